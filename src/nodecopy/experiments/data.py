"""The data of trials: public datasets, files of the user, and networks drawn from known models.

An entry ``{ name = "mine", edges = "edges.csv", labels = "labels.csv", directed = true }`` of a list of
datasets names files, relative to the folder of the TOML file. Interactions have the key ``interactions``, or
``train``, ``test`` and optionally ``validation``. Other keys are parameters of the function that reads the
files, and ``ignore_columns``, a list of columns of the features to leave out.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.files import resolve
from nodecopy._core.random import Rng, child
from nodecopy.errors import InputError
from nodecopy.experiments.spec import as_reader, check_keys, read_mapping, read_name, read_text
from nodecopy.generators import ConfigurationModel
from nodecopy.generators.base import EdgeListModel, Edges, list_edges, remove_duplicates, replace_edges
from nodecopy.generators.classical import IndependentEdges
from nodecopy.graph import Graph
from nodecopy.io import FeatureEncoder, read_graph, read_interactions
from nodecopy.models import GraphModel


class FileKind(NamedTuple):
    """The keys that name files, the function that reads them, and the function with its options."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[..., Any]
    reader: Callable[..., Any]


FILE_KINDS = {
    "interactions": FileKind(("interactions",), (), read_interactions, read_interactions),
    "split": FileKind(("train", "test"), ("validation",), datasets.read_split, read_interactions),
    "graph": FileKind(("edges",), ("labels", "features"), read_graph, read_graph),
}
OBJECTS = ("path", "labels", "features", "node_ids", "encoder")  # parameters of readers that are no keys


@lru_cache(maxsize=1)
def load_data(dataset: str | FileDataset, largest_component: bool = False) -> Any:
    """Load a dataset, which is kept in memory until another is loaded."""
    if isinstance(dataset, FileDataset):
        return dataset.load(largest_component)
    return datasets.load(dataset, largest_component=largest_component)


@lru_cache
def digest_dataset(dataset: str, largest_component: bool = False) -> str:
    """Return a digest of the nodes, edges, labels and features of a graph."""
    graph = load_data(dataset, largest_component)
    parts = hashlib.sha256(f"{graph.n_nodes} {graph.directed}".encode())
    for part in (graph.rows.indptr, graph.rows.indices, graph.rows.weights, graph.labels):
        parts.update(b"-" if part is None else np.ascontiguousarray(part, np.float64).tobytes())
    parts.update("\n".join(map(str, graph.node_ids.tolist())).encode())
    digest = hashlib.sha256(parts.hexdigest()[:16].encode())
    if graph.features is not None:
        features = sparse.csr_array(graph.features)
        for part in (features.indptr, features.indices, features.data):
            digest.update(np.ascontiguousarray(part, np.float64).tobytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class FileDataset:
    """A graph, interactions or a split in files."""

    name: str
    kind: str
    files: tuple[tuple[str, Path], ...]
    options: tuple[tuple[str, Any], ...]
    fingerprint: str

    def load(self, largest_component: bool = False) -> Any:
        """Read the files, which must not have changed."""
        if _fingerprint(self.files, self.options) != self.fingerprint:
            raise InputError(f"files of the dataset {self.name} must not change while an experiment runs.")
        (_, path), *others = self.files
        options = dict(self.options)
        if "ignore_columns" in options:
            options["encoder"] = FeatureEncoder(options.pop("ignore_columns"))
        data = FILE_KINDS[self.kind].read(path, **dict(others), **options)
        return data.largest_component() if largest_component and isinstance(data, Graph) else data


def separate_file_datasets(
    content: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], tuple[FileDataset, ...]]:
    """Return the content of a TOML file with names in place of file datasets, and those datasets."""
    protocol = read_mapping(content.get("protocol", {}), "[protocol]")
    if not isinstance(protocol.get("datasets"), list):
        return dict(content), ()
    entries = [
        _read_file_dataset(entry, folder) if isinstance(entry, dict) else entry
        for entry in protocol["datasets"]
    ]
    own = tuple(entry for entry in entries if isinstance(entry, FileDataset))
    names = [entry.name if isinstance(entry, FileDataset) else entry for entry in entries]
    return {**content, "protocol": {**protocol, "datasets": names}}, own


def _read_file_dataset(section: dict[str, Any], folder: Path) -> FileDataset:
    where = "an entry of datasets of [protocol]"
    kind = next((name for name in FILE_KINDS if FILE_KINDS[name].required[0] in section), "graph")
    required, optional, _, reader = FILE_KINDS[kind]
    keys = [name for name in inspect.signature(reader).parameters if name not in OBJECTS]
    readers = dict.fromkeys(keys, as_reader("option"))
    if "features" in section:
        readers["ignore_columns"] = as_reader(["text"])
    check_keys(section, where, ("name", *required, *optional, *readers), ("name", *required))
    name = read_name(section["name"], f"name of {where}")
    if name in datasets.names():
        raise InputError(f"name of {where} must not be the name of a dataset of the package; got {name!r}.")
    files = []
    for entry in (*required, *optional):
        if entry in section:
            path = resolve(Path(folder, read_text(section[entry], f"{entry} of {name}")))
            if not path.is_file():
                place = "Paths are relative to the folder of the TOML file"
                raise InputError(f"{entry} of {name} must be a file; {path} is none. {place}.")
            files.append((entry, path))
    given = [entry for entry in readers if entry in section]
    options = tuple((entry, readers[entry](section[entry], f"{entry} of {name}")) for entry in given)
    return FileDataset(name, kind, tuple(files), options, _fingerprint(tuple(files), options))


def _fingerprint(files: tuple[tuple[str, Path], ...], options: tuple[tuple[str, Any], ...]) -> str:
    contents = {}
    for name, path in files:
        with path.open("rb") as file:
            suffix = Path(path.name.removesuffix(".gz")).suffix
            contents[name] = [suffix, hashlib.file_digest(file, "sha256").hexdigest()]
    return hashlib.sha256(json.dumps([contents, options], sort_keys=True).encode()).hexdigest()


KNOWN_NETWORKS = {  # with the means of the probabilities that _draw_nodes returns
    "sbm": 0.625,  # two blocks, with four times as many edges inside as across
    "dc-sbm": 0.625,  # the same with Pareto(3) activities
    "dot-product": 0.141,  # Dirichlet positions; blocks are the nearest corners
    "graphon": 0.14,  # a smooth graphon; blocks are its halves
    "bipartite": 0.5,
    "directed": 0.625,  # a block model with Pareto(3) out-degrees
}
CORNERS = np.array([[0.5, 0.1, 0.1], [0.1, 0.45, 0.1], [0.1, 0.1, 0.4]])


def _draw_nodes(name: str, n_nodes: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the block of each node of a network, and the probabilities of edges up to a factor."""
    if name == "dot-product":
        weights = rng.dirichlet([1, 1, 1], n_nodes)
        positions = weights @ CORNERS
        return weights.argmax(axis=1), positions @ positions.T
    if name == "graphon":
        u = rng.random(n_nodes)
        probabilities = 0.25 * np.exp(-(u[:, None] + u)) + 0.08 * np.cos(np.pi * (u[:, None] - u)) ** 2
        return (u > 0.5).astype(np.int64), probabilities
    blocks = rng.integers(0, 2, n_nodes)
    is_same = blocks[:, None] == blocks
    if name == "bipartite":
        return blocks, (~is_same).astype(np.float64)
    probabilities = np.where(is_same, 1.0, 0.25)
    if name in ("dc-sbm", "directed"):
        activity = (1 - rng.random(n_nodes)) ** (-1 / 3) / 1.5  # Pareto(3) with mean 1
        probabilities *= np.outer(activity, activity) if name == "dc-sbm" else activity[:, None]
    return blocks, probabilities


class KnownNetwork(GraphModel[Graph]):
    """The true model of a network with independent edges: the reference row of tables."""

    def __init__(self, probabilities: Any = None, blocks: Any = None, directed: bool = False) -> None:
        self.probabilities, self.blocks, self.directed = probabilities, blocks, directed

    @classmethod
    def by_name(
        cls, name: str, n_nodes: int, degree: float, seed: SeedSequence, limit: float = 0.95
    ) -> KnownNetwork:
        """Return the model of that name with about the given mean degree."""
        blocks, probabilities = _draw_nodes(name, n_nodes, np.random.default_rng(seed))
        probabilities *= degree / (n_nodes * KNOWN_NETWORKS[name])
        return cls(np.minimum(probabilities, limit), blocks, name == "directed")

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Store the graph; nothing is estimated."""
        self.graph_ = graph
        return self

    @cached_property
    def _edges(self) -> IndependentEdges:
        return IndependentEdges(self.probabilities, self.directed)

    @cached_property
    def _empty(self) -> Graph:
        n_nodes = len(self.blocks)
        return Graph(sparse.csr_array((n_nodes, n_nodes)), labels=self.blocks, directed=self.directed)

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the network of a seed."""
        return replace_edges(self._empty, *self._edges.draw(np.random.default_rng(seed)))


NULL_NETWORKS = ("erdos-renyi", "configuration", "sbm", "dc-sbm", "planted-triangles", "planted-communities")
N_SWAPS = 30  # attempted swaps per edge that randomise a network with given degrees
N_PLANTED = 100  # triangles that are planted
PLANTED_RATIO = 0.85  # probability of an edge across planted communities over that inside


class StubMatching(EdgeListModel):
    """The configuration model as users of NetworkX draw it."""

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.stubs_ = np.repeat(np.arange(graph.n_nodes), graph.degrees)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        first, second = rng.permutation(self.stubs_).reshape(2, -1)
        return remove_duplicates(first, second, graph.n_nodes, False)


def draw_null_network(name: str, n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    """Return a network on which tests are measured, with two blocks as labels."""
    first, second = child(seed, 0), child(seed, 1)
    if name == "sbm":
        return KnownNetwork.by_name("sbm", n_nodes, degree, first).draw(second)
    if name == "dc-sbm":
        return factored_odds(n_nodes, degree, first).draw(second)
    if name == "configuration":
        start = KnownNetwork.by_name("dc-sbm", n_nodes, degree, child(first, 0)).draw(child(first, 1))
        return ConfigurationModel(N_SWAPS).fit(start).draw(second)
    if name == "planted-triangles":
        graph, rng = draw_null_network("configuration", n_nodes, degree, first), np.random.default_rng(second)
        corners = np.stack([rng.choice(n_nodes, 3, replace=False) for _ in range(N_PLANTED)])
        sources, targets = list_edges(graph)
        sources = np.concatenate([sources, *corners.T])
        targets = np.concatenate([targets, *np.roll(corners, 1, axis=1).T])
        return replace_edges(graph, *remove_duplicates(sources, targets, n_nodes, False))
    blocks = np.arange(n_nodes) % 2
    if name == "erdos-renyi":
        return KnownNetwork(np.full((n_nodes, n_nodes), degree / n_nodes), blocks).draw(seed)
    p = np.where(blocks[:, None] == blocks, 1.0, PLANTED_RATIO)
    return KnownNetwork(p * (degree / n_nodes / p.mean()), blocks).draw(seed)


def factored_odds(n_nodes: int, degree: int, seed: SeedSequence) -> KnownNetwork:
    """Return a degree-corrected block model whose odds of edges factor."""
    odds = KnownNetwork.by_name("dc-sbm", n_nodes, degree, seed, np.inf)  # odds with a limit would not factor
    return KnownNetwork(odds.probabilities / (1 + odds.probabilities), odds.blocks)

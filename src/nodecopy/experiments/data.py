"""Datasets in files of the user's own, which stand beside the names of others in ``datasets``.

An entry ``{ name = "mine", edges = "edges.csv", labels = "labels.csv", directed = true }`` names files,
relative to the folder of the TOML file. Interactions have the key ``interactions``, or ``train``, ``test``
and perhaps ``validation`` where the parts of a split are files of their own; other keys are parameters of
the function that reads them, and ``ignore_columns``, a list of columns of the features to leave out.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.files import resolve
from nodecopy._core.random import Rng, child
from nodecopy.errors import InputError
from nodecopy.experiments.sections import (
    check_keys,
    make_list_reader,
    make_reader,
    read_mapping,
    read_name,
    read_text,
)
from nodecopy.generators import ConfigurationModel
from nodecopy.generators.base import (
    EdgeListModel,
    Edges,
    IndependentEdges,
    list_edges,
    remove_duplicates,
    replace_edges,
)
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import FeatureEncoder, read_graph, read_interactions
from nodecopy.models import GraphModel

FILES = {
    "graph": ("edges", "labels", "features"),
    "interactions": ("interactions",),
    "split": ("train", "test", "validation"),
}
"""The keys that name files by the kind of data, the required ones first."""
REQUIRED = {"graph": ("edges",), "interactions": ("interactions",), "split": ("train", "test")}
Data: TypeAlias = Graph | Interactions | datasets.Split[Interactions]
READERS: dict[str, Callable[..., Data]] = {
    "graph": read_graph,
    "interactions": read_interactions,
    "split": datasets.read_split,
}
OPTIONS: dict[str, Callable[..., Any]] = READERS | {"split": read_interactions}
"""The functions whose parameters are keys of a section."""
OBJECTS = ("path", "labels", "features", "node_ids", "encoder")
"""Parameters of readers that are files or objects, and so no options of a section."""
read_columns = make_list_reader(read_text)
read_option = make_reader(
    "a text, a number, true or false", lambda value: isinstance(value, str | int | float)
)


@dataclass(frozen=True)
class FileDataset:
    """A graph, interactions or a split of interactions in files.

    Attributes
    ----------
    name
        What tables and folders call it.
    kind
        ``"graph"``, ``"interactions"`` or ``"split"``.
    files
        Keys and absolute paths, the required key first.
    options
        Names and values of further parameters of the function that reads the files.
    fingerprint
        Digest of the contents of the files and of the options, but not of where the files are.
    """

    name: str
    kind: str
    files: tuple[tuple[str, Path], ...]
    options: tuple[tuple[str, Any], ...]
    fingerprint: str

    def load(self, largest_component: bool = False) -> Data:
        """Read the files, which must not have changed since the experiment was read."""
        if _fingerprint(self.files, self.options) != self.fingerprint:
            raise InputError(
                f"the files of the dataset {self.name} must not change while an experiment runs; they did. "
                "Start it again."
            )
        (_, path), *others = self.files
        options = dict(self.options)
        if "ignore_columns" in options:
            options["encoder"] = FeatureEncoder(options.pop("ignore_columns"))
        data = READERS[self.kind](path, **dict(others), **options)
        return data.largest_component() if largest_component and isinstance(data, Graph) else data


def separate_file_datasets(
    content: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], tuple[FileDataset, ...]]:
    """Return the content of a TOML file with names in place of datasets in files, and those datasets."""
    protocol = read_mapping(content.get("protocol", {}), "[protocol]")
    if not isinstance(protocol.get("datasets"), list):
        return dict(content), ()
    own = {
        number: _read_file_dataset(entry, folder)
        for number, entry in enumerate(protocol["datasets"])
        if isinstance(entry, dict)
    }
    names = [own[n].name if n in own else entry for n, entry in enumerate(protocol["datasets"])]
    return {**content, "protocol": {**protocol, "datasets": names}}, tuple(own.values())


def _read_file_dataset(section: dict[str, Any], folder: Path) -> FileDataset:
    where = "an entry of datasets of [protocol]"
    kind = next((kind for kind in ("interactions", "split") if REQUIRED[kind][0] in section), "graph")
    keys, parameters = FILES[kind], inspect.signature(OPTIONS[kind]).parameters
    options = [name for name in parameters if name not in OBJECTS]
    if "features" in section:
        options.append("ignore_columns")
    check_keys(section, where, ("name", *keys, *options), ("name", *REQUIRED[kind]))
    name = read_name(section["name"], f"name of {where}")
    if name in datasets.names():
        raise InputError(f"name of {where}", f"must not be that of a dataset of the package; got {name!r}.")
    files = tuple(
        (key, _find_file(section[key], folder, f"{key} of {name}")) for key in keys if key in section
    )
    readers = {"ignore_columns": read_columns}
    values = tuple(
        (key, readers.get(key, read_option)(section[key], f"{key} of {name}"))
        for key in options
        if key in section
    )
    return FileDataset(name, kind, files, values, _fingerprint(files, values))


def _find_file(value: Any, folder: Path, where: str) -> Path:
    path = resolve(Path(folder, read_text(value, where)))
    if not path.is_file():
        raise InputError(
            f"{where} must be a file; {path} is none. Paths are relative to the folder of the TOML file."
        )
    return path


def _fingerprint(files: tuple[tuple[str, Path], ...], options: tuple[tuple[str, Any], ...]) -> str:
    contents = {}
    for key, path in files:
        with path.open("rb") as file:
            contents[key] = [
                Path(path.name.removesuffix(".gz")).suffix,
                hashlib.file_digest(file, "sha256").hexdigest(),
            ]
    text = json.dumps([contents, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# Networks drawn from known models, of which the variance of every statistic can be simulated.


Floats = NDArray[np.float64]
MAX_PROBABILITY = 0.95
"""Probabilities of edges are cut off here by default."""
CORNERS = np.array([[0.5, 0.1, 0.1], [0.1, 0.45, 0.1], [0.1, 0.1, 0.4]])
"""Corners of the latent positions of the dot product graph."""


class NetworkNodes(NamedTuple):
    """The nodes of a network: a block of each, and the probabilities of edges up to a factor."""

    blocks: NDArray[np.int64]
    probabilities: Floats


def _blocks(n_nodes: int, rng: Generator, across: float = 0.25) -> NetworkNodes:
    block = rng.integers(0, 2, n_nodes)
    return NetworkNodes(block, np.where(block[:, None] == block, 1.0, across))


def _activities(n_nodes: int, rng: Generator) -> Floats:
    """Return Pareto(3) numbers with mean 1."""
    return np.asarray((1 - rng.random(n_nodes)) ** (-1 / 3) / 1.5)


def _degree_corrected_blocks(n_nodes: int, rng: Generator) -> NetworkNodes:
    blocks, probabilities = _blocks(n_nodes, rng)
    activity = _activities(n_nodes, rng)
    return NetworkNodes(blocks, probabilities * np.outer(activity, activity))


def _directed_blocks(n_nodes: int, rng: Generator) -> NetworkNodes:
    blocks, probabilities = _blocks(n_nodes, rng)
    return NetworkNodes(blocks, probabilities * _activities(n_nodes, rng)[:, None])


def _bipartite(n_nodes: int, rng: Generator) -> NetworkNodes:
    blocks, probabilities = _blocks(n_nodes, rng)
    return NetworkNodes(blocks, (probabilities < 1).astype(np.float64))


def _dot_product(n_nodes: int, rng: Generator) -> NetworkNodes:
    weights = rng.dirichlet([1, 1, 1], n_nodes)
    positions = weights @ CORNERS
    return NetworkNodes(weights.argmax(axis=1), np.asarray(positions @ positions.T))


def _graphon(n_nodes: int, rng: Generator) -> NetworkNodes:
    u = rng.random(n_nodes)
    probabilities = 0.25 * np.exp(-(u[:, None] + u)) + 0.08 * np.cos(np.pi * (u[:, None] - u)) ** 2
    return NetworkNodes((u > 0.5).astype(np.int64), probabilities)


KNOWN_NETWORKS: dict[str, tuple[Callable[[int, Generator], NetworkNodes], float]] = {
    "sbm": (_blocks, 0.625),
    "dc-sbm": (_degree_corrected_blocks, 0.625),
    "dot-product": (_dot_product, 0.141),
    "graphon": (_graphon, 0.14),
    "bipartite": (_bipartite, 0.5),
    "directed": (_directed_blocks, 0.625),
}
"""How nodes are drawn, and the mean of the probabilities of their edges, by name.

A block model with two blocks, of which every node draws one, and four times as many edges inside as across;
the same with Pareto(3) activities; a random dot product graph with Dirichlet positions, whose blocks are the
nearest corners; a smooth graphon, whose blocks are its halves; a bipartite graph; a directed block model with
Pareto(3) out-degrees."""


class KnownNetwork(GraphModel[Graph]):
    """The true model of a network: independent edges with known probabilities, the reference row of tables.

    Parameters
    ----------
    probabilities
        The matrix of probabilities; given by the experiment.
    blocks
        The block of each node, the label of the networks.
    directed
        Whether edges are directed.
    """

    def __init__(self, probabilities: Any = None, blocks: Any = None, directed: bool = False) -> None:
        self.probabilities = probabilities
        self.blocks = blocks
        self.directed = directed

    @classmethod
    def by_name(
        cls, name: str, n_nodes: int, degree: float, seed: SeedSequence, limit: float = MAX_PROBABILITY
    ) -> KnownNetwork:
        """Return the model with the name, about the mean degree, and the nodes that belong to a seed.

        Probabilities are cut off at ``limit``.
        """
        draw_nodes, mean = KNOWN_NETWORKS[name]
        blocks, probabilities = draw_nodes(n_nodes, np.random.default_rng(seed))
        probabilities *= degree / (n_nodes * mean)
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


# Networks on which tests are measured: of null models, and with planted triangles or communities.


N_SWAPS = 30
"""Attempted swaps per edge that randomise a network with given degrees."""
N_PLANTED = 100
"""Triangles that are planted."""
PLANTED_RATIO = 0.85
"""Probability of an edge across planted communities over that inside."""


class StubMatching(EdgeListModel):
    """The configuration model as users of NetworkX draw it.

    Ends of edges are paired at random; repeated edges and self-loops are then removed, as by
    ``nx.Graph(nx.configuration_model(degrees))`` and ``remove_edges_from(nx.selfloop_edges(graph))``.
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.stubs_ = np.repeat(np.arange(graph.n_nodes), graph.degrees)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        first, second = rng.permutation(self.stubs_).reshape(2, -1)
        return remove_duplicates(first, second, graph.n_nodes, False)


def _known(name: str, n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    return KnownNetwork.by_name(name, n_nodes, degree, child(seed, 0)).draw(child(seed, 1))


def _erdos_renyi(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    p, blocks = np.full((n_nodes, n_nodes), degree / n_nodes), np.arange(n_nodes) % 2
    return KnownNetwork(p, blocks).draw(seed)


def _configuration(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    graph = _known("dc-sbm", n_nodes, degree, child(seed, 0))
    return ConfigurationModel(N_SWAPS).fit(graph).draw(child(seed, 1))


def _planted_triangles(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    graph, rng = _configuration(n_nodes, degree, child(seed, 0)), np.random.default_rng(child(seed, 1))
    corners = np.stack([rng.choice(n_nodes, 3, replace=False) for _ in range(N_PLANTED)])
    first, second = list_edges(graph)
    first = np.concatenate([first, *corners.T])
    second = np.concatenate([second, *np.roll(corners, 1, axis=1).T])
    return replace_edges(graph, *remove_duplicates(first, second, n_nodes, False))


def _planted_communities(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    blocks = np.arange(n_nodes) % 2
    p = np.where(blocks[:, None] == blocks, 1.0, PLANTED_RATIO)
    return KnownNetwork(p * (degree / n_nodes / p.mean()), blocks).draw(seed)


def factored_odds(n_nodes: int, degree: int, seed: SeedSequence) -> KnownNetwork:
    """Return a degree-corrected block model whose odds of edges factor.

    Its networks are uniform given the number of edges from each node to each block.
    """
    odds = KnownNetwork.by_name("dc-sbm", n_nodes, degree, seed, np.inf)  # odds with a limit would not factor
    return KnownNetwork(odds.probabilities / (1 + odds.probabilities), odds.blocks)


NULL_NETWORKS: dict[str, Callable[[int, int, SeedSequence], Graph]] = {
    "erdos-renyi": _erdos_renyi,
    "configuration": _configuration,
    "sbm": lambda n_nodes, degree, seed: _known("sbm", n_nodes, degree, seed),
    "dc-sbm": lambda n_nodes, degree, seed: factored_odds(n_nodes, degree, child(seed, 0)).draw(
        child(seed, 1)
    ),
    "planted-triangles": _planted_triangles,
    "planted-communities": _planted_communities,
}
"""How networks are drawn, by name; all have two blocks as labels. Erdős-Rényi; uniform among the graphs with
the degrees of a network with Pareto(3) activities; the block models of :mod:`.known_networks`; the second
with planted triangles; and the first with somewhat more edges inside the blocks."""

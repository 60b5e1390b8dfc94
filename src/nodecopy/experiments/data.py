"""Networks drawn from known models, on which intervals and tests are measured."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.random import Rng, child
from nodecopy.generators import ConfigurationModel
from nodecopy.generators.base import EdgeListModel, Edges, list_edges, remove_duplicates, replace_edges
from nodecopy.generators.classical import IndependentEdges
from nodecopy.graph import Graph
from nodecopy.models import GraphModel

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
        blocks, probabilities = _draw_nodes(name, n_nodes, np.random.default_rng(seed))
        probabilities *= degree / (n_nodes * KNOWN_NETWORKS[name])
        return cls(np.minimum(probabilities, limit), blocks, name == "directed")

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        return self

    @cached_property
    def _parts(self) -> tuple[Graph, IndependentEdges]:
        empty = sparse.csr_array((len(self.blocks), len(self.blocks)))
        graph = Graph(empty, labels=self.blocks, directed=self.directed)
        return graph, IndependentEdges(self.probabilities, self.directed)

    def draw(self, seed: SeedSequence) -> Graph:
        empty, edges = self._parts
        return replace_edges(empty, *edges.draw(np.random.default_rng(seed)))


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

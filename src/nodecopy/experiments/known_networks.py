"""Networks drawn from known models, of which the variance of every statistic can be simulated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.random import Rng
from nodecopy.generators.base import replace_edges
from nodecopy.generators.independent_edges import IndependentEdges
from nodecopy.graph import Graph
from nodecopy.models import GraphModel

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

"""Networks drawn from known models, of which the variance of every statistic can be simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from nodecopy._core.random import Rng
from nodecopy.graph import Graph
from nodecopy.models import GraphModel

Floats = NDArray[np.float64]
INSIDE, ACROSS = 0.12, 0.03
"""Probabilities of an edge inside a block and across blocks, at 200 nodes."""
POSITIONS = np.array([[0.5, 0.1, 0.1], [0.1, 0.45, 0.1], [0.1, 0.1, 0.4]])
"""Corners of the latent positions of the dot product graph."""


def _blocks(n_nodes: int, rng: Generator, inside: float = INSIDE, across: float = ACROSS) -> Floats:
    block = np.arange(n_nodes) % 2
    return np.where(block[:, None] == block, inside, across)


def _pareto(n_nodes: int, rng: Generator) -> Floats:
    activity = (1 - rng.random(n_nodes)) ** (-1 / 3)
    return np.asarray(activity / activity.mean())


def _degree_corrected_blocks(n_nodes: int, rng: Generator) -> Floats:
    activity = _pareto(n_nodes, rng)
    return _blocks(n_nodes, rng) * np.outer(activity, activity)


def _directed_blocks(n_nodes: int, rng: Generator) -> Floats:
    return _blocks(n_nodes, rng) * np.outer(_pareto(n_nodes, rng), np.ones(n_nodes))


def _dot_product(n_nodes: int, rng: Generator) -> Floats:
    positions = rng.dirichlet([1, 1, 1], n_nodes) @ POSITIONS
    return np.asarray(positions @ positions.T)


def _graphon(n_nodes: int, rng: Generator) -> Floats:
    u = rng.random(n_nodes)
    return np.asarray(0.25 * np.exp(-(u[:, None] + u)) + 0.08 * np.cos(np.pi * (u[:, None] - u)) ** 2)


KNOWN_NETWORKS: dict[str, Callable[[int, Generator], Floats]] = {
    "sbm": _blocks,
    "dc-sbm": _degree_corrected_blocks,
    "dot-product": _dot_product,
    "graphon": _graphon,
    "bipartite": lambda n_nodes, rng: _blocks(n_nodes, rng, 0.0, INSIDE),
    "directed": _directed_blocks,
}
"""The probabilities of edges, by name: a block model with two blocks, the same with Pareto(3) activities, a
random dot product graph with Dirichlet positions, a smooth graphon, a bipartite graph, and a directed block
model with Pareto(3) out-degrees."""


class KnownNetwork(GraphModel[Graph]):
    """The true model of a network: independent edges with known probabilities, the reference row of tables.

    Parameters
    ----------
    probabilities
        The matrix of probabilities; given by the experiment.
    directed
        Whether edges are directed.
    """

    def __init__(self, probabilities: Any = None, directed: bool = False) -> None:
        self.probabilities = probabilities
        self.directed = directed

    @classmethod
    def by_name(cls, name: str, n_nodes: int, seed: SeedSequence) -> KnownNetwork:
        """Return the model with the name and the nodes that belong to a seed."""
        probabilities = KNOWN_NETWORKS[name](n_nodes, np.random.default_rng(seed)) * (200 / n_nodes)
        return cls(np.clip(probabilities, 0, 1), name == "directed")

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Store the graph; nothing is estimated."""
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the network of a seed."""
        edges = np.random.default_rng(seed).random(self.probabilities.shape) < self.probabilities
        np.fill_diagonal(edges, False)
        return Graph(edges if self.directed else np.triu(edges), directed=self.directed)

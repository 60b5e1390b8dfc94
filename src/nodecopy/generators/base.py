"""What graph models have in common: the contract around one method each."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import Rows
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.models import GraphModel

Nodes: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = tuple[Nodes, Nodes]

MOST_PROPAGATIONS = 30


class EdgeListModel(GraphModel[Graph]):
    """A graph model whose samples are lists of pairs, without weights.

    A subclass sets ``graph_`` at the end of its ``fit`` and writes ``_draw``, whose pairs may come in any
    order: each once, no self-loop, and in one direction only where the graph is undirected.
    """

    def draw(self, seed: SeedSequence) -> Graph:
        return self._sampled(self.graph_, np.random.default_rng(seed))

    def _sampled(self, graph: Graph, draws: Generator) -> Graph:
        first, second = self._draw(graph, draws)
        return graph.with_rows(rows_of(first, second, graph.n_nodes, graph.directed))

    def _checked(self, graph: Graph) -> Graph:
        if not isinstance(graph, Graph):
            raise InputError(f"graph of {type(self).__name__} must be a Graph; got {type(graph).__name__}.")
        return graph

    @abstractmethod
    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        """Return the edges of one sample."""


class PairModel(EdgeListModel):
    """A graph model that fits some numbers to a graph; these samples keep its directedness too.

    Self-loops count neither in what is observed nor in what is sampled. A subclass writes ``_learn``,
    which checks and fits.
    """

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Fit the model; ``rng`` matters only to those that say so."""
        self._learn(self._checked(graph), np.random.default_rng(seed_sequence(rng)))
        self.graph_ = graph
        return self

    def _learn(self, graph: Graph, draws: Generator) -> None:
        raise NotImplementedError


def pairs_of(graph: Graph) -> Pairs:
    """The edges of a graph as node numbers: no self-loops, an undirected edge once."""
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    kept = first != second if graph.directed else first < second
    return first[kept], second[kept]


def rows_of(first: Nodes, second: Nodes, n_nodes: int, directed: bool) -> Rows:
    """The rows of a binary graph from its edges, each given once."""
    if not directed:
        first, second = np.concatenate([first, second]), np.concatenate([second, first])
    ones = np.ones(len(first), np.int8)
    matrix = sparse.csr_array((ones, (first, second)), shape=(n_nodes, n_nodes))
    return Rows.canonical(matrix.indptr, matrix.indices, None, n_nodes)


def distinct(first: Nodes, second: Nodes, n_nodes: int, directed: bool) -> Pairs:
    """Each pair once, none of a node with itself."""
    if not directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    one, other = np.divmod(ascending((first * n_nodes + second)[first != second]), max(n_nodes, 1))
    return one, other


def ascending(numbers: Nodes) -> Nodes:
    """The distinct numbers, sorted; several times as fast as NumPy's ``unique``, which hashes."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def blocks_of(graph: Graph, draws: Generator) -> Nodes:
    """The block of each node, 0, 1, 2, ...: its label, or else what labels propagate to it.

    A node without a label takes the commonest one among its neighbours, over and over; of equals a
    random one. Where the graph has no labels at all, every node starts with a label of its own, and
    what remains are communities. Nodes that no label reaches form the last block.
    """
    n_nodes = graph.n_nodes
    known = np.full(n_nodes, UNLABELLED) if graph.labels is None else graph.labels
    names, labels = np.unique(known, return_inverse=True)
    fixed = known != UNLABELLED
    # From here on codes are 0, 1, 2, ... and an unknown one stands last.
    labels = (labels - (names[:1] == UNLABELLED).sum()) % max(len(names), 1)
    if not fixed.any():
        names, labels = np.arange(n_nodes + 1), np.arange(n_nodes)
    unknown = len(names) - 1 if not fixed.all() else len(names)
    first, second = pairs_of(graph)
    first, second = np.concatenate([first, second]), np.concatenate([second, first])
    for _ in range(MOST_PROPAGATIONS * (not fixed.all())):
        taken = _commonest(labels, first, second, unknown, draws)
        # Only half of the nodes move at a time, or two neighbours would swap labels for ever.
        moves = ~fixed & (taken != unknown) & (draws.random(n_nodes) < 0.5)
        labels = np.where(moves, taken, labels)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _commonest(labels: Nodes, first: Nodes, second: Nodes, unknown: int, draws: Generator) -> Nodes:
    """For each node the commonest label among its neighbours, ``unknown`` where no neighbour has one."""
    labelled = labels[second] != unknown
    votes = first[labelled] * (unknown + 1) + labels[second[labelled]]
    numbers, count = np.unique(votes, return_counts=True)
    node, label = np.divmod(numbers, unknown + 1)
    order = np.lexsort((draws.random(len(count)), count, node))
    taken = np.full(len(labels), unknown)
    taken[node[order]] = label[order]  # of several votes of a node the last one, the largest, stays
    return taken

"""What graph models that draw pairs of nodes have in common: the contract around one method each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nodecopy import checks
from nodecopy.copying.model import stream
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.rng import Rng, child, seed_sequence
from nodecopy.rows import Rows

Nodes: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = tuple[Nodes, Nodes]

MOST_PROPAGATIONS = 30


class PairModel:
    """A graph model that fits some numbers to a graph and then draws pairs of nodes.

    Samples have the observed graph's nodes, features, labels and directedness, and no weights: an edge
    is there or not, in what is observed as in what is sampled. Neither counts self-loops.

    A subclass writes ``_learn``, which checks and fits, and ``_draw``, whose pairs may come in any order;
    each once, no node with itself, and in one direction only where the graph is undirected.
    """

    graph_: Graph

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Fit the model; ``rng`` matters only to those that say so."""
        if not isinstance(graph, Graph):
            raise InputError(f"graph of {type(self).__name__} must be a Graph; got {type(graph).__name__}.")
        self._learn(graph, np.random.default_rng(seed_sequence(rng)))
        self.graph_ = graph
        return self

    def sample(self, *, rng: Rng) -> Graph:
        """One graph: the first of :meth:`sample_many` with the same ``rng``."""
        return next(self.sample_many(1, rng=rng))

    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]:
        """A stream of ``n`` graphs; sample number s depends on (seed, s) alone."""
        graph, seed = self._fitted(), seed_sequence(rng)
        checks.integer(n, "n of sample_many", low=0)
        checks.integer(workers, "workers of sample_many", low=1)

        def make(number: int) -> Graph:
            pairs = self._draw(np.random.default_rng(child(seed, number)))
            return graph.with_rows(rows_of(pairs, graph.n_nodes, graph.directed))

        return stream(make, n, workers)

    def _fitted(self) -> Graph:
        if not hasattr(self, "graph_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(graph) first.")
        return self.graph_

    def _learn(self, graph: Graph, draws: Generator) -> None:
        raise NotImplementedError

    def _draw(self, draws: Generator) -> Pairs:
        raise NotImplementedError


def pairs_of(graph: Graph) -> Pairs:
    """The edges of a graph as node numbers: no self-loops, an undirected edge once."""
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    kept = first != second if graph.directed else first < second
    return first[kept], second[kept]


def rows_of(pairs: Pairs, n_nodes: int, directed: bool) -> Rows:
    """The rows of a binary graph from its edges, each given once."""
    first, second = pairs if directed else (np.concatenate(pairs), np.concatenate(pairs[::-1]))
    first, second = np.divmod(np.sort(first * n_nodes + second), max(n_nodes, 1))
    indptr = np.searchsorted(first, np.arange(n_nodes + 1))
    return Rows.canonical(indptr, second, None, n_nodes)


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

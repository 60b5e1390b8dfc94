"""Exact predictions of a two-layer GCN at nodes with copied neighbourhoods, from two hops alone.

A prediction at one node adds up its neighbours' hidden layers, and these their neighbours' features.
All (node, donor) pairs are laid side by side as the rows of two sparse matrices, one for each
convolution, so that nothing else of the graph is touched and no loop runs over pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from nodecopy._core.csr import FloatArray, IntArray
from nodecopy.classify.ensemble import Ensemble
from nodecopy.graph import Graph
from nodecopy.nn.features import prepared

Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Row number, node and weight of every entry."""
PREDICTIONS_AT_ONCE = 2**22
"""About how many entries the matrices of pairs evaluated at once have."""


@dataclass(frozen=True, eq=False)
class Hops:
    """What two convolutions compute at one place for each pair.

    Parameters
    ----------
    second
        ``[pairs, inner]``: how each pair adds up hidden layers.
    first
        ``[inner, nodes]``: how each of these adds up features.
    nodes
        Whose features.
    """

    second: sparse.csr_array
    first: sparse.csr_array
    nodes: IntArray

    @classmethod
    def of(cls, n_pairs: int, second: Entries, first: Entries) -> Hops:
        pair, inner, weight = second
        nodes, column = np.unique(first[1], return_inverse=True)
        return cls(
            sparse.csr_array((weight, (pair, np.arange(len(inner)))), shape=(n_pairs, len(inner))),
            sparse.csr_array((first[2], (first[0], column)), shape=(len(inner), len(nodes))),
            nodes,
        )

    def probabilities(self, networks: Ensemble, features: Any) -> NDArray[np.float64]:
        """``[pairs, classes]``, the mean over networks; their weights themselves, without dropout."""
        own = prepared(features[self.nodes], networks.recipe)
        total: Any = 0.0
        for first, second, *biases in zip(*networks.weights, strict=True):
            hidden = self.first @ (own @ first)
            hidden = hidden + biases[0] if biases else hidden
            hidden = np.maximum(hidden, 0) if networks.recipe.activation == "relu" else hidden
            logits = (self.second @ hidden) @ second
            total = total + softmax(logits + biases[1] if biases else logits, axis=1)
        mean: NDArray[np.float64] = total / len(networks.weights[0])
        return mean


class Neighbourhoods:
    """The rows of a graph, and the sums of A + I over them, by which convolutions are normalised."""

    def __init__(self, graph: Graph) -> None:
        self.rows, self.directed = graph.rows, graph.directed
        sums: Any = graph.degrees if self.rows.weights is None else graph.adjacency.sum(axis=1)
        self.sums: NDArray[np.float64] = 1.0 + np.asarray(sums, np.float64)

    def entries(self, nodes: IntArray) -> Entries:
        """Entries of the rows of A of given nodes, numbered by their places in ``nodes``."""
        start = self.rows.indptr[nodes].astype(np.int64)
        length = self.rows.indptr[nodes + 1] - start
        owner = np.repeat(np.arange(len(nodes)), length)
        entry = np.arange(len(owner)) + np.repeat(start - np.cumsum(length) + length, length)
        weights = self.rows.weights
        weight = np.ones(len(entry)) if weights is None else weights[entry].astype(np.float64)
        return owner, self.rows.indices[entry], weight

    def in_donors_place(self, nodes: IntArray, donors: IntArray) -> Hops:
        """The prediction at each donor, were its features those of its node."""
        pair, inner, weight = _joined(self.entries(donors), _loops(donors))
        second = weight / np.sqrt(self.sums[donors[pair]] * self.sums[inner])
        owner, outer, weight = _joined(self.entries(inner), _loops(inner))
        first = weight / np.sqrt(self.sums[inner[owner]] * self.sums[outer])
        outer = np.where(outer == donors[pair][owner], nodes[pair][owner], outer)
        return Hops.of(len(nodes), (pair, inner, second), (owner, outer, first))

    def with_donors_row(self, nodes: IntArray, donors: IntArray) -> Hops:
        """The prediction at each node, were its row of A (undirected: and its column) that of its donor."""
        row = self.entries(donors)
        change: Entries
        if self.directed:
            change = _nothing()
        else:  # no loops, and both ends of an edge change
            row = _chosen(row, row[1] != nodes[row[0]])
            old = self.entries(nodes)
            change = _joined(row, (old[0], old[1], -old[2]))
        total = 1.0 + np.bincount(row[0], row[2], minlength=len(nodes))
        sums = _Sums(self.sums, _joined(change, (np.arange(len(nodes)), nodes, total - self.sums[nodes])))
        itself = row[1] == nodes[row[0]]
        own_loop = 1.0 + np.bincount(row[0][itself], row[2][itself], minlength=len(nodes))
        others = _chosen(row, ~itself)
        pair, inner, weight = _joined(others, (np.arange(len(nodes)), nodes, own_loop))
        second = weight / np.sqrt(sums(np.arange(len(nodes)), nodes)[pair] * sums(pair, inner))
        owner, outer, weight = self._rows_with(row, others, nodes)
        first = weight / np.sqrt(sums(pair[owner], inner[owner]) * sums(pair[owner], outer))
        return Hops.of(len(nodes), (pair, inner, second), (owner, outer, first))

    def _rows_with(self, row: Entries, others: Entries, nodes: IntArray) -> Entries:
        """Rows of A + I, changed: first those of the nodes in ``others``, then those of ``nodes``."""
        pair, inner, weight = others
        beyond = self.entries(inner)
        if not self.directed:
            beyond = _chosen(beyond, beyond[1] != nodes[pair[beyond[0]]])
            beyond = _joined(beyond, (np.arange(len(inner)), nodes[pair], weight))
        own = row[0] + len(inner), row[1], row[2]
        return _joined(_joined(beyond, own), _loops(np.concatenate([inner, nodes])))


class _Sums:
    """Sums of rows, some of which change for some pairs."""

    def __init__(self, sums: NDArray[np.float64], changes: Entries) -> None:
        self.sums = sums
        self.keys, place = np.unique(self._key(changes[0], changes[1]), return_inverse=True)
        self.changes = np.bincount(place, changes[2])

    def __call__(self, pair: IntArray, node: IntArray) -> NDArray[np.float64]:
        key = self._key(pair, node)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        changed: NDArray[np.float64] = np.where(self.keys[place] == key, self.changes[place], 0.0)
        return self.sums[node] + changed

    def _key(self, pair: IntArray, node: IntArray) -> NDArray[np.int64]:
        return pair.astype(np.int64) * len(self.sums) + node


class LocalCopying:
    """Copied predictions of two-layer GCNs.

    Parameters
    ----------
    networks
        Trained GCNs.
    graph
        Where they predict.
    place
        ``"donor"`` or ``"row"``.
    """

    def __init__(self, networks: Ensemble, graph: Graph, place: str) -> None:
        self.networks, self.features, self.place = networks, graph.features, place
        self.near = Neighbourhoods(graph)

    def __call__(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float64]:
        """``[pairs, classes]``."""
        hops = self.near.in_donors_place if self.place == "donor" else self.near.with_donors_row
        ends = np.cumsum(self._n_entries(donors)) // PREDICTIONS_AT_ONCE
        parts = np.split(np.arange(len(nodes)), np.flatnonzero(np.diff(ends)) + 1)
        found = [hops(nodes[p], donors[p]).probabilities(self.networks, self.features) for p in parts]
        return np.concatenate(found)

    def _n_entries(self, donors: IntArray) -> NDArray[np.int64]:
        """About how many entries each pair needs: the degrees of its donor's neighbours, added up."""
        owner, inner, _ = self.near.entries(donors)
        degree = self.near.rows.indptr[inner + 1] - self.near.rows.indptr[inner]
        return np.bincount(owner, degree + 1, minlength=len(donors)).astype(np.int64) + 1


class WholeCopying:
    """Copied predictions of any classifier, one whole graph for each pair.

    Parameters
    ----------
    predict
        The trained classifier: probabilities of all nodes of a graph.
    graph, place
        As in :class:`LocalCopying`.
    """

    def __init__(self, predict: Callable[[Graph], NDArray[Any]], graph: Graph, place: str) -> None:
        self.predict, self.graph, self.place = predict, graph, place

    def __call__(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float64]:
        """``[pairs, classes]``."""
        change, at = (with_donors_features, donors) if self.place == "donor" else (with_donors_row, nodes)
        pairs = zip(nodes.tolist(), donors.tolist(), at, strict=True)
        return np.array([self.predict(change(self.graph, v, d))[place] for v, d, place in pairs])


def with_donors_features(graph: Graph, node: int, donor: int) -> Graph:
    """The graph with the features of ``node`` in the place of ``donor``."""
    rows = np.arange(graph.n_nodes)
    rows[donor] = node
    features: Any = graph.features
    return graph.replace(features=features[rows])


def with_donors_row(graph: Graph, node: int, donor: int) -> Graph:
    """The graph with the donor's neighbours in place of the node's (undirected: in both directions)."""
    row = graph.adjacency[[donor]].tocoo()
    rest = graph.adjacency.tocoo()
    keep = rest.row != node
    if not graph.directed:
        keep &= rest.col != node
    here = np.full(row.nnz, node)
    first, second = np.concatenate([rest.row[keep], here]), np.concatenate([rest.col[keep], row.col])
    weight = np.concatenate([rest.data[keep], row.data])
    matrix = sparse.csr_array((weight, (first, second)), shape=rest.shape)
    return graph.replace(adjacency=matrix)


def _joined(one: Entries, other: Entries) -> Entries:
    first, second, third = (np.concatenate(parts) for parts in zip(one, other, strict=True))
    return first, second, third


def _chosen(entries: Entries, which: NDArray[np.bool_]) -> Entries:
    return entries[0][which], entries[1][which], entries[2][which]


def _loops(nodes: IntArray) -> Entries:
    return np.arange(len(nodes)), nodes, np.ones(len(nodes))


def _nothing() -> Entries:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)

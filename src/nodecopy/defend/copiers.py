"""Copiers: the classifier's predictions at nodes with copied neighbourhoods.

For a two-layer GCN the prediction at a node sums its neighbours' hidden layers, and these sum their
neighbours' features. :class:`TwoHopCopier` lays all (node, donor) pairs side by side as the rows of two
sparse matrices, one for each convolution, so that it touches two hops only and has no loop over pairs.
:class:`WholeGraphCopier` evaluates any classifier on a whole graph for each pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from nodecopy._core.csr import FloatArray, IntArray, Rows
from nodecopy._core.notices import warn_about_data
from nodecopy.classify.ensemble import Ensemble
from nodecopy.graph import Graph

Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Row number, node and weight of every entry of some rows."""
MODES = ("swap-features", "copy-row")
Job = TypeVar("Job")
Result = TypeVar("Result")
MAX_SECONDS = 60.0
"""Estimated seconds from which on a warning is issued."""
MAX_ENTRIES = 2**22
"""About the largest number of entries in the matrices of the pairs that are evaluated together."""


class Copier(Protocol):
    """Predict nodes as if they had the neighbourhoods of their donors."""

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> NDArray[np.floating[Any]]:
        """Return the probabilities of each pair of a node and its donor, ``[n_pairs, n_classes]``."""


class TwoHopCopier:
    """Evaluate two-layer GCNs exactly on the two-hop neighbourhoods of the donors.

    Parameters
    ----------
    networks
        Trained GCNs.
    graph
        The graph on which they predict.
    mode
        ``"swap-features"``: predict at the donor, with the node's features in place of its own.
        ``"copy-row"``: predict at the node, with the donor's row of the adjacency (undirected: and column)
        in place of its own.
    """

    def __init__(self, networks: Ensemble, graph: Graph, mode: str) -> None:
        self.networks, self.mode = networks, mode
        self.features: Any = graph.features
        self.rows, self.directed = graph.rows, graph.directed
        if networks.weight_scaling.kind != "raw":
            self.rows = Rows.from_matrix(networks.weight_scaling.apply(graph.adjacency), "adjacency")
        row_sums: Any = graph.degrees if self.rows.weights is None else self.rows.csr.sum(axis=1)
        self.row_sums: NDArray[np.float64] = 1.0 + np.asarray(row_sums, np.float64)
        """Row sums of A + I, by which convolutions are normalised."""

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float64]:
        """Return the probabilities of each pair of a node and its donor, ``[n_pairs, n_classes]``."""
        convolutions = self.swap_features if self.mode == "swap-features" else self.copy_rows
        owner, inner, _ = self._entries(donors)
        # About the number of entries of each pair: the degrees of its donor's neighbours, summed.
        degrees = self.rows.indptr[inner + 1] - self.rows.indptr[inner]
        n_entries = np.bincount(owner, degrees + 1, minlength=len(donors)).astype(np.int64) + 1
        block = np.cumsum(n_entries) // MAX_ENTRIES
        parts = np.split(np.arange(len(nodes)), np.flatnonzero(np.diff(block)) + 1)
        return np.concatenate([self._evaluate(*convolutions(nodes[p], donors[p]), len(p)) for p in parts])

    def swap_features(self, nodes: IntArray, donors: IntArray) -> tuple[Entries, Entries]:
        """Return both convolutions at each donor, with its features replaced by those of its node.

        The entries of the second convolution, which sums hidden layers, are the rows of the first.
        """
        pair, inner, weight = self._entries(donors, self_loops=True)
        second = weight / np.sqrt(self.row_sums[donors[pair]] * self.row_sums[inner])
        owner, outer, weight = self._entries(inner, self_loops=True)
        first = weight / np.sqrt(self.row_sums[inner[owner]] * self.row_sums[outer])
        outer = np.where(outer == donors[pair][owner], nodes[pair][owner], outer)
        return (owner, outer, first), (pair, inner, second)

    def copy_rows(self, nodes: IntArray, donors: IntArray) -> tuple[Entries, Entries]:
        """Return both at each node, with its row (undirected: and column) replaced by its donor's."""
        row = self._entries(donors)
        change: Entries = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        if not self.directed:  # no self-loops, and both ends of an edge change
            row = _select(row, row[1] != nodes[row[0]])
            old = self._entries(nodes)
            change = _concatenate(row, (old[0], old[1], -old[2]))
        pairs = np.arange(len(nodes))
        total = 1.0 + np.bincount(row[0], row[2], minlength=len(nodes))
        owner, changed, difference = _concatenate(change, (pairs, nodes, total - self.row_sums[nodes]))
        shape = len(nodes), len(self.row_sums)
        changes = sparse.csr_array((difference, (owner, changed)), shape=shape)

        def changed_row_sums(pair: IntArray, node: IntArray) -> NDArray[np.float64]:
            """Return the changed row sums of some nodes, each for one pair."""
            return self.row_sums[node] + np.asarray(changes[pair, node]).ravel()

        is_loop = row[1] == nodes[row[0]]
        own_loop = 1.0 + np.bincount(row[0][is_loop], row[2][is_loop], minlength=len(nodes))
        others = _select(row, ~is_loop)
        pair, inner, weight = _concatenate(others, (pairs, nodes, own_loop))
        second = weight / np.sqrt(changed_row_sums(pairs, nodes)[pair] * changed_row_sums(pair, inner))
        owner, outer, weight = self._changed_rows(row, others, nodes)
        first = weight / np.sqrt(
            changed_row_sums(pair[owner], inner[owner]) * changed_row_sums(pair[owner], outer)
        )
        return (owner, outer, first), (pair, inner, second)

    def _evaluate(self, first: Entries, second: Entries, n_pairs: int) -> NDArray[np.float64]:
        """Return the mean probabilities over the networks, without dropout, ``[n_pairs, n_classes]``."""
        n_inner = len(second[0])
        columns_in_use, column = np.unique(first[1], return_inverse=True)
        first_convolution = sparse.csr_array(
            (first[2], (first[0], column)), shape=(n_inner, len(columns_in_use))
        )
        second_convolution = sparse.csr_array(
            (second[2], (second[0], np.arange(n_inner))), shape=(n_pairs, n_inner)
        )
        networks, features = self.networks, self.features
        inputs = networks.feature_scaling.apply(features[columns_in_use])
        total: Any = 0.0
        for weights, last_weights, *biases in zip(*networks.weights, strict=True):
            hidden = first_convolution @ (inputs @ weights)
            hidden = hidden + biases[0] if biases else hidden
            hidden = np.maximum(hidden, 0) if networks.recipe.activation == "relu" else hidden
            logits = (second_convolution @ hidden) @ last_weights
            total = total + softmax(logits + biases[1] if biases else logits, axis=1)
        mean: NDArray[np.float64] = total / len(networks.weights[0])
        return mean

    def _changed_rows(self, row: Entries, others: Entries, nodes: IntArray) -> Entries:
        """Return changed rows of A + I: first those of the nodes in ``others``, then those of ``nodes``."""
        pair, inner, weight = others
        second_hop = self._entries(inner)
        if not self.directed:
            second_hop = _select(second_hop, second_hop[1] != nodes[pair[second_hop[0]]])
            second_hop = _concatenate(second_hop, (np.arange(len(inner)), nodes[pair], weight))
        own = row[0] + len(inner), row[1], row[2]
        loop_nodes = np.concatenate([inner, nodes])
        loops = np.arange(len(loop_nodes)), loop_nodes, np.ones(len(loop_nodes))
        return _concatenate(_concatenate(second_hop, own), loops)

    def _entries(self, nodes: IntArray, *, self_loops: bool = False) -> Entries:
        """Return the entries of the rows of A, or of A + I, of some nodes.

        Rows are numbered by position in ``nodes``. Self-loops come last.
        """
        start = self.rows.indptr[nodes].astype(np.int64)
        length = self.rows.indptr[nodes + 1] - start
        owner = np.repeat(np.arange(len(nodes)), length)
        entry = np.arange(len(owner)) + np.repeat(start - np.cumsum(length) + length, length)
        weights = self.rows.weights
        weight = np.ones(len(entry)) if weights is None else weights[entry].astype(np.float64)
        if not self_loops:
            return owner, self.rows.indices[entry], weight
        return (
            np.append(owner, np.arange(len(nodes))),
            np.append(self.rows.indices[entry], nodes),
            np.append(weight, np.ones(len(nodes))),
        )


@dataclass(frozen=True, eq=False)
class WholeGraphCopier:
    """Evaluate any classifier on a whole graph for each pair.

    Parameters
    ----------
    predict
        The trained classifier, as a function from graphs to the probabilities of all nodes.
    graph, mode
        As in :class:`TwoHopCopier`.
    """

    predict: Callable[[Graph], NDArray[Any]]
    graph: Graph
    mode: str

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float64]:
        """Return the probabilities of each pair of a node and its donor, ``[n_pairs, n_classes]``."""
        swaps = self.mode == "swap-features"
        change = replace_features if swaps else copy_row

        def predict_pair(pair: tuple[int, int]) -> NDArray[Any]:
            row: NDArray[Any] = self.predict(change(self.graph, *pair))[pair[swaps]]
            return row

        pairs = list(zip(nodes.tolist(), donors.tolist(), strict=True))
        return np.array(evaluate_all(predict_pair, pairs))


@dataclass(frozen=True, eq=False)
class PredictionsWithoutCopying:
    """Predict without copying: as the donors are predicted (a control), or as the nodes themselves are.

    The latter is exact for classifiers that do not use edges.
    """

    probabilities: NDArray[np.floating[Any]]
    at_donors: bool = False

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> NDArray[np.floating[Any]]:
        """Return the prediction of the donor, or of the node, of each pair."""
        rows: NDArray[np.floating[Any]] = self.probabilities[donors if self.at_donors else nodes]
        return rows


def evaluate_all(evaluate: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Return the results of jobs; after the first, a warning says if the others will take long."""
    start, results = time.monotonic(), []
    for number, job in enumerate(jobs):
        results.append(evaluate(job))
        seconds = (time.monotonic() - start) * (len(jobs) - 1)
        if number == 0 and seconds > MAX_SECONDS:
            warn_about_data(
                f"corrections by this classifier evaluate {len(jobs):,} graphs, which will take about "
                f"{seconds / 60:.0f} minutes; correct fewer nodes, or use fewer donors."
            )
    return results


def replace_features(graph: Graph, node: int, donor: int) -> Graph:
    """Return the graph in which the donor has the features of the node."""
    rows = np.arange(graph.n_nodes)
    rows[donor] = node
    features: Any = graph.features
    return graph.replace(features=features[rows])


def copy_row(graph: Graph, node: int, donor: int) -> Graph:
    """Return the graph in which the node has the donor's neighbours (undirected: in both directions)."""
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


def _concatenate(first: Entries, second: Entries) -> Entries:
    rows, nodes, weights = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    return rows, nodes, weights


def _select(entries: Entries, mask: NDArray[np.bool_]) -> Entries:
    return entries[0][mask], entries[1][mask], entries[2][mask]

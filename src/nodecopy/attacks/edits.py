"""The edges of a graph while an attack flips them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows
from nodecopy.errors import InputError
from nodecopy.graph import Graph


class Edits:
    """A graph and the flips made so far; rows that changed lie beside the graph's own.

    Attributes
    ----------
    graph
        As it was.
    degrees
        As they are now.
    flips, feature_flips
        Pairs of nodes, and pairs (node, feature), in the order in which they were flipped.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.degrees = graph.degrees.astype(np.int64)
        self.flips: list[tuple[int, int]] = []
        self.feature_flips: list[tuple[int, int]] = []
        self._changed: dict[int, IntArray] = {}

    def neighbours(self, node: int) -> IntArray:
        """Ascending."""
        rows = self.graph.rows
        own = rows.indices[rows.indptr[node] : rows.indptr[node + 1]]
        return self._changed.get(node, own)

    def has_edge(self, first: int, second: int) -> bool:
        neighbours = self.neighbours(first)
        place = np.searchsorted(neighbours, second)
        return bool(place < len(neighbours) and neighbours[place] == second)

    def flip(self, first: int, second: int) -> None:
        """Remove the edge if it is there, add it otherwise."""
        change = -1 if self.has_edge(first, second) else 1
        for one, other in ((first, second), (second, first)):
            neighbours = self.neighbours(one)
            place = int(np.searchsorted(neighbours, other))
            self._changed[one] = (
                np.insert(neighbours, place, other) if change == 1 else np.delete(neighbours, place)
            )
            self.degrees[one] += change
        self.flips.append((first, second))

    def flip_feature(self, node: int, feature: int) -> None:
        """Remove a binary feature from a node if it has it, add it otherwise."""
        self.feature_flips.append((node, feature))

    def adjacency(self) -> sparse.csr_array:
        """As it is now."""
        return flipped(self.graph.rows, pairs(self.flips)).csr


def pairs(values: list[tuple[int, int]]) -> NDArray[np.int64]:
    """``[n, 2]``, also where there are none."""
    return np.array(values, np.int64).reshape(-1, 2)


def flipped(rows: Rows, flips: IntArray) -> Rows:
    """Binary, symmetric rows with every pair flipped in turn: twice is as good as never."""
    ends = np.concatenate([flips, flips[:, ::-1]])
    times = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=rows.csr.shape)
    times.data %= 2
    matrix = sparse.csr_array(abs(rows.csr - times.astype(np.float32)))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return Rows.canonical(matrix.indptr, matrix.indices, None, rows.n_columns)


def check_simple(graph: Graph) -> None:
    """Attacks flip edges that are there or not, in both directions at once."""
    if graph.directed:
        raise InputError(
            "graph must be undirected to be attacked; got a directed one (see graph.undirected)."
        )
    if graph.is_weighted:
        raise InputError(
            "graph must be binary to be attacked, since a flip adds an edge or removes it; got a weighted "
            "one (graph.replace(adjacency=graph.adjacency > 0) forgets the weights)."
        )

"""The edges of a graph while an attack flips them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows
from nodecopy._core.hints import Hint
from nodecopy._core.validation import check_integer, check_type
from nodecopy.errors import InputError
from nodecopy.graph import Graph

WHOLE_GRAPH = -1
"""Owner of the flips of an attack on the whole graph."""


class Edits:
    """A graph and the flips made so far.

    Attributes
    ----------
    graph
        The clean graph.
    degrees
        The degrees after the flips.
    owner
        The target for which flips are being made, ``-1`` for the whole graph.
    flips, is_added, owners
        Pairs of nodes in the order in which they were flipped, whether each flip added an edge, and
        its owner.
    feature_flips, feature_owners
        The same for pairs (node, feature).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import Edits
    >>> edits = Edits(datasets.load("karate"))
    >>> edits.flip(5, 0)
    >>> edits.is_added, edits.neighbours(5).tolist()
    ([False], [6, 10, 16])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = check_type(graph, Graph, "graph of Edits", "a Graph")
        self.degrees = graph.degrees.astype(np.int64)
        self.owner = WHOLE_GRAPH
        self.flips: list[tuple[int, int]] = []
        self.is_added: list[bool] = []
        self.owners: list[int] = []
        self.feature_flips: list[tuple[int, int]] = []
        self.feature_owners: list[int] = []
        self._changed_rows: dict[int, IntArray] = {}

    def neighbours(self, node: int) -> IntArray:
        """Return the neighbours of a node after the flips, in ascending order."""
        rows = self.graph.rows
        node = check_integer(node, "node", low=0, high=rows.n_rows - 1)
        unchanged = rows.indices[rows.indptr[node] : rows.indptr[node + 1]]
        return self._changed_rows.get(node, unchanged)

    def has_edge(self, first: int, second: int) -> bool:
        """Return whether two nodes are neighbours after the flips."""
        neighbours = self.neighbours(first)
        second = check_integer(second, "node", low=0, high=self.graph.n_nodes - 1)
        position = np.searchsorted(neighbours, second)
        return bool(position < len(neighbours) and neighbours[position] == second)

    def flip(self, first: int, second: int) -> None:
        """Remove the edge between two nodes if there is one, add it otherwise."""
        last = self.graph.n_nodes - 1
        first, second = (check_integer(node, "node of flip", low=0, high=last) for node in (first, second))
        if first == second:
            raise InputError(f"nodes of flip must be two different nodes; got {first} twice.")
        is_added = not self.has_edge(first, second)
        for node, other in ((first, second), (second, first)):
            neighbours = self.neighbours(node)
            position = int(np.searchsorted(neighbours, other))
            self._changed_rows[node] = (
                np.insert(neighbours, position, other) if is_added else np.delete(neighbours, position)
            )
            self.degrees[node] += 1 if is_added else -1
        self.flips.append((first, second))
        self.is_added.append(is_added)
        self.owners.append(self.owner)

    def flip_feature(self, node: int, feature: int) -> None:
        """Remove a binary feature from a node if it has it, add it otherwise."""
        if self.graph.features is None:
            raise InputError("graph of flip_feature must have features; got none.")
        last = [size - 1 for size in self.graph.features.shape]
        node = check_integer(node, "node of flip_feature", low=0, high=last[0])
        feature = check_integer(feature, "feature of flip_feature", low=0, high=last[1])
        self.feature_flips.append((node, feature))
        self.feature_owners.append(self.owner)

    def adjacency(self) -> sparse.csr_array:
        """Return the adjacency after the flips."""
        return flip_entries(self.graph.rows, np.array(self.flips, np.int64).reshape(-1, 2)).csr


def flip_entries(rows: Rows, flips: NDArray[np.int64]) -> Rows:
    """Return binary, symmetric rows with pairs flipped in turn; a pair flipped twice stays as it was."""
    ends = np.concatenate([flips, flips[:, ::-1]])
    times = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=rows.csr.shape)
    times.data %= 2
    matrix = sparse.csr_array(abs(rows.csr - times.astype(np.float32)))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return Rows.canonical(matrix.indptr, matrix.indices, None, rows.n_columns)


def check_attackable(graph: Graph) -> None:
    """Raise an error unless a graph is undirected and binary."""
    if graph.directed:
        raise InputError(
            "graph must be undirected to be attacked; got a directed one.",
            Hint("{} makes it undirected.", **{"graph.undirected()": ...}),
        )
    if graph.is_weighted:
        raise InputError(
            "graph must be binary to be attacked, since a flip adds an edge or removes it; got a weighted "
            "one.",
            Hint("{} forgets the weights.", **{"graph.replace(adjacency=graph.adjacency > 0)": ...}),
            Hint("A file is read without weights by {}.", weight=""),
        )

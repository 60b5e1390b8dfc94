"""Graphs with some of their edges removed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray
from nodecopy.graph import Graph


def remove_edges_of(graph: Graph, nodes: IntArray) -> Graph:
    """Return the graph without the edges of some nodes."""
    stays = np.ones(graph.n_nodes, bool)
    stays[nodes] = False
    return keep_edges(graph, stays[graph.rows.row_numbers] & stays[graph.rows.indices])


def keep_edges(graph: Graph, mask: NDArray[np.bool_]) -> Graph:
    """Return the graph with those stored entries of its adjacency where ``mask`` is true."""
    return graph.with_rows(graph.rows.keep_entries(mask))


def find_entries(graph: Graph, first: IntArray, second: IntArray) -> IntArray:
    """Return the numbers of stored entries of the adjacency, -1 for pairs that are no edges."""
    rows, n = graph.rows, np.int64(graph.n_nodes)
    entries, pairs = rows.row_numbers * n + rows.indices, first * n + second
    position = np.searchsorted(entries, pairs)
    is_edge = np.append(entries, -1)[position] == pairs
    return np.where(is_edge, position, -1)

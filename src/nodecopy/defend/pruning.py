"""Graphs that have lost some of their edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray, keep_entries
from nodecopy.graph import Graph


def without_edges_of(graph: Graph, nodes: IntArray) -> Graph:
    """The graph in which some nodes have no neighbours."""
    stays = np.ones(graph.n_nodes, bool)
    stays[nodes] = False
    return with_entries(graph, stays[graph.rows.row_numbers] & stays[graph.rows.indices])


def with_entries(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    """The graph with some of its stored entries of A only."""
    return graph.replace(adjacency=keep_entries(graph.adjacency, kept))

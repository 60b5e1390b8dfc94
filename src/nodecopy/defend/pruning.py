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

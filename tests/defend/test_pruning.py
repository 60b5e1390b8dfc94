"""Removed edges on a path."""

from __future__ import annotations

import numpy as np

from nodecopy import Graph
from nodecopy.defend.pruning import keep_edges, remove_edges_of


def test_edges_of_nodes_and_entries_are_removed() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    assert list(zip(*remove_edges_of(graph, np.array([0, 3])).edges()[:2], strict=True)) == [(1, 2)]
    assert graph.n_edges == 3
    first, second = graph.rows.row_numbers, graph.rows.indices
    kept = keep_edges(graph, (first + second) == 3)
    assert list(zip(*kept.edges()[:2], strict=True)) == [(1, 2)]

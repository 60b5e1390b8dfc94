"""Removed edges on a path."""

from __future__ import annotations

import numpy as np

from nodecopy import Graph
from nodecopy.defend.base import find_entries, keep_edges, remove_edges_of
from tests.contracts.classifiers import planted_graph


def test_edges_of_nodes_and_entries_are_removed() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    assert list(zip(*remove_edges_of(graph, np.array([0, 3])).edges()[:2], strict=True)) == [(1, 2)]
    assert graph.n_edges == 3
    first, second = graph.rows.row_numbers, graph.rows.indices
    kept = keep_edges(graph, (first + second) == 3)
    assert list(zip(*kept.edges()[:2], strict=True)) == [(1, 2)]


def test_entries_are_found() -> None:
    graph = planted_graph()
    first, second = graph.rows.row_numbers, graph.rows.indices
    assert np.array_equal(find_entries(graph, first, second), np.arange(len(first)))
    dense = graph.adjacency.toarray()
    absent = np.argwhere(dense == 0).T
    assert (find_entries(graph, *absent) == -1).all()
    assert find_entries(graph, np.zeros(0, int), np.zeros(0, int)).shape == (0,)

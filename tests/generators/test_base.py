"""Edge lists, their conversion to graphs, and label propagation into blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.generators import SBM
from nodecopy.generators.base import (
    assign_blocks,
    binary_adjacency,
    check_pairs,
    list_edges,
    remove_duplicates,
    replace_edges,
    sort_unique,
)
from tests.strategies import graphs


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_listed_edges_rebuild_the_graph_without_loops_and_weights(graph: Graph) -> None:
    first, second = list_edges(graph)
    rebuilt = replace_edges(graph, first, second)
    expected = binary_adjacency(graph).toarray()
    np.fill_diagonal(expected, 0)
    assert np.array_equal(rebuilt.adjacency.toarray(), expected)
    assert rebuilt.replace(adjacency=graph.adjacency) == graph
    if not graph.directed:
        assert (first < second).all()
        assert len(first) == graph.n_edges


def test_binary_adjacency_has_ones_and_single_precision() -> None:
    weighted = Graph([[0, 3, 0], [3, 0, 0.5], [0, 0.5, 0]])
    matrix = binary_adjacency(weighted)
    assert matrix.dtype == np.float32
    assert matrix.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("directed", "expected"), [(False, [(0, 2), (1, 2)]), (True, [(0, 2), (1, 2), (2, 0), (2, 1)])]
)
def test_duplicates_and_loops_are_removed(directed: bool, expected: list[tuple[int, int]]) -> None:
    first, second = np.array([2, 0, 1, 1, 2, 2, 0]), np.array([1, 2, 1, 2, 0, 1, 2])
    pairs = remove_duplicates(first, second, 3, directed)
    assert list(zip(*(nodes.tolist() for nodes in pairs), strict=True)) == expected


def test_pairs_of_positions_are_checked() -> None:
    first, second = check_pairs([0, 2], np.array([1, 0], np.int32), 3)
    assert (first.tolist(), second.tolist()) == ([0, 2], [1, 0])
    with pytest.raises(InputError, match="second must lie between 0 and 2; got 3"):
        check_pairs([0], [3], 3)
    with pytest.raises(InputError, match="second must hold one entry per pair, 2 in all; got 1"):
        check_pairs([0, 1], [1], 3)


def test_sorted_distinct_numbers() -> None:
    numbers = np.random.default_rng(0).integers(0, 50, 200)
    assert sort_unique(numbers).tolist() == np.unique(numbers).tolist()
    assert sort_unique(np.zeros(0, np.int64)).tolist() == []


def test_label_propagation_without_labels_divides_cliques() -> None:
    cliques = np.kron(np.eye(4), np.ones((8, 8)))
    cliques[7, 8] = 1
    blocks = assign_blocks(Graph(cliques), np.random.default_rng(0))
    assert sorted(np.bincount(blocks).tolist()) == [8, 8, 8, 8]
    assert all(len(set(blocks[8 * k : 8 * k + 8])) == 1 for k in range(4))


def test_unlabelled_nodes_take_labels_from_neighbours() -> None:
    labels = ["cat", "", "", "dog", "", ""]
    graph = Graph.from_edges([0, 1, 3], [1, 2, 4], node_ids=range(6), labels=labels)
    assert assign_blocks(graph, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]
    large_codes = graph.replace(labels=[7, -1, -1, 10**18, -1, -1])
    assert assign_blocks(large_codes, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]


def test_observed_labels_are_the_blocks() -> None:
    graph = Graph(np.zeros((4, 4)), labels=[5, 2, 5, 9])
    assert assign_blocks(graph, np.random.default_rng(0)).tolist() == [1, 0, 1, 2]


def test_only_graphs_are_fitted() -> None:
    with pytest.raises(InputError, match=r"graph of SBM must be a Graph.*; got numpy\.ndarray"):
        SBM().fit(np.eye(3))

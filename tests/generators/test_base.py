"""Edge lists, splits of edges, and settings and graphs that models refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import Graph, Interactions, datasets
from nodecopy.errors import InputError, NotFittedError
from nodecopy.generators import CELL, GAE, MMSBM, SBM, NetGAN, RandomDotProduct, split_edges
from nodecopy.generators.base import (
    binary_adjacency,
    decode_pairs,
    list_edges,
    remove_duplicates,
    replace_edges,
    sample_non_edges,
)
from tests.contracts.graph_models import community_graph
from tests.strategies import graphs

KARATE = datasets.load("karate")
EMPTY = Graph(np.zeros((3, 3)))


@settings(max_examples=60)
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


@pytest.mark.parametrize(
    ("directed", "expected"), [(False, [(0, 2), (1, 2)]), (True, [(0, 2), (1, 2), (2, 0), (2, 1)])]
)
def test_duplicates_and_loops_are_removed(directed: bool, expected: list[tuple[int, int]]) -> None:
    first, second = np.array([2, 0, 1, 1, 2, 2, 0]), np.array([1, 2, 1, 2, 0, 1, 2])
    pairs = remove_duplicates(first, second, 3, directed)
    assert list(zip(*(nodes.tolist() for nodes in pairs), strict=True)) == expected


def edge_set(graph: Graph) -> set[tuple[int, int]]:
    return pair_set(np.stack(sparse.triu(graph.adjacency).nonzero()))


def pair_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(first), int(second)) for first, second in pairs.T}


def test_parts_are_disjoint_and_complete() -> None:
    karate = KARATE
    edges = edge_set(karate)
    for seed in range(20):
        split = split_edges(karate, validation=0.2, test=0.3, rng=seed)
        train = edge_set(split.train)
        held_out = [pair_set(part.edges) for part in split[1:]]
        non_edges = [pair_set(part.non_edges) for part in split[1:]]
        assert [len(part) for part in held_out] == [len(part) for part in non_edges] == [15, 23]
        assert train | held_out[0] | held_out[1] == edges
        assert len(train) + 15 + 23 == len(edges)
        assert not (non_edges[0] & non_edges[1])
        assert not ((non_edges[0] | non_edges[1]) & edges)
        assert all(first < second for part in non_edges for first, second in part)


def test_weights_are_kept_and_directions_dropped() -> None:
    graph = Graph([[0, 2, 0], [0, 0, 3], [0, 0, 0]], directed=True)
    split = split_edges(graph, validation=0, test=0.5, rng=0)
    assert not split.train.directed
    assert split.train.n_edges == 1
    assert split.train.adjacency.sum() in (4, 6)
    assert split.validation.edges.shape == (2, 0)


def test_non_edges_are_uniform() -> None:
    """All pairs without an edge are equally likely."""
    graph = Graph.from_edges([0, 0, 2, 4], [1, 4, 3, 5])
    pairs = sample_non_edges(graph, 11, rng=0)
    assert len(pair_set(pairs)) == 11
    rng = np.random.default_rng(0)
    counts: dict[tuple[int, int], int] = dict.fromkeys(pair_set(pairs), 0)
    for _ in range(2200):
        for pair in pair_set(sample_non_edges(graph, 2, rng=rng)):
            counts[pair] += 1
    squares = sum((count - 400) ** 2 / 400 for count in counts.values())
    assert squares < 30  # the chi-squared distribution with 10 degrees of freedom passes 29.6 once in 1000


def test_pairs_are_numbered_row_by_row() -> None:
    assert np.array_equal(decode_pairs(np.arange(435), 30), np.triu_indices(30, 1))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomDotProduct(35), "n_dimensions of RandomDotProduct must be an integer between 1 and"),
        (MMSBM(np.ones((3, 2))), r"one row for each of 34 nodes; got shape \(3, 2\)"),
        (MMSBM(np.zeros((34, 2))), "nor all zero"),
        (CELL(learning_rate=1e30), "learning_rate of CELL must not be so large that training overflows"),
        (NetGAN(learning_rate=1e30, n_steps=4, n_transitions=2000), "learning_rate of NetGAN must not be"),
    ],
)
def test_wrong_settings(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(KARATE, rng=0)


@pytest.mark.parametrize(
    ("model", "graph", "message"),
    [
        (SBM(), np.eye(3), r"graph of SBM must be a Graph.*; got numpy\.ndarray"),
        (GAE(), EMPTY, "must have an edge .* got Graph"),
        (GAE(), Graph(np.eye(3), directed=True), "must have an edge between two different nodes"),
        (GAE(), Interactions(np.eye(3)), "graph of GAE must be a Graph.*; got nodecopy.Interactions"),
        (GAE(), community_graph().replace(features=np.full((20, 2), 1e30)), "that training overflows"),
        (CELL(), Graph(np.zeros((0, 0))), "graph of CELL must have an edge"),
        (CELL(), community_graph(directed=True), "graph of CELL must be undirected"),
        (NetGAN(), EMPTY, "graph of NetGAN must have an edge; got Graph"),
    ],
)
def test_graphs_that_cannot_be_fitted(model: Any, graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(graph, rng=0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 40], [1, 2], "first must lie between 0 and 33; got 40"),
        ([0, 1], [1], "second must hold one entry per pair, 2 in all; got 1"),
    ],
)
def test_wrong_pairs(first: Any, second: Any, message: str) -> None:
    for model in (GAE(n_epochs=1), MMSBM(n_steps=1)):
        with pytest.raises(InputError, match=message):
            model.fit(KARATE, rng=0).edge_probabilities(first, second)
        assert model.edge_probabilities([], []).shape == (0,)
        with pytest.raises(NotFittedError):
            type(model)().edge_probabilities([0], [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": 0.5}, "size of sample_non_edges .* pairs without an edge = 0; got 5"),
        ({"validation": 0.6, "test": 0.6}, r"validation \+ test of split_edges"),
    ],
)
def test_wrong_shares(options: dict[str, float], message: str) -> None:
    complete = Graph(np.ones((5, 5)))
    assert split_edges(complete, test=0.0, validation=0.0, rng=0).train == complete
    with pytest.raises(InputError, match=message):
        split_edges(complete, **options, rng=0)

"""Splits of edges for link prediction, and uniform non-edges."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.generators import split_edges
from nodecopy.generators.base import decode_pairs, sample_non_edges


def complete(n_nodes: int) -> Graph:
    return Graph(np.ones((n_nodes, n_nodes)))


def edge_set(graph: Graph) -> set[tuple[int, int]]:
    return pair_set(np.stack(sparse.triu(graph.adjacency).nonzero()))


def pair_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(first), int(second)) for first, second in pairs.T}


def test_parts_are_disjoint_and_complete() -> None:
    karate = datasets.load("karate")
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


def test_same_seed_same_split_and_the_graph_is_not_changed() -> None:
    karate = datasets.load("karate")
    before = pickle.loads(pickle.dumps(karate))
    first, same, other = (split_edges(karate, rng=seed) for seed in (1, 1, 2))
    assert first.train == same.train
    assert first.train != other.train
    assert np.array_equal(first.test.non_edges, same.test.non_edges)
    assert karate == before
    assert first.train.replace(adjacency=karate.adjacency) == karate


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


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (complete(5), {}, None),
        (complete(5), {"test": 0.5}, "size of sample_non_edges .* pairs without an edge = 0; got 5"),
        (complete(5), {"test": 1.5}, r"test of split_edges .* got 1\.5"),
        (complete(5), {"validation": -0.1}, r"validation of split_edges .* got -0\.1"),
        (complete(5), {"validation": 0.6, "test": 0.6}, r"validation \+ test of split_edges"),
        (Graph(np.zeros((0, 0))), {}, None),
    ],
)
def test_invalid_shares(graph: Graph, options: dict[str, float], message: str | None) -> None:
    if message is None:
        split = split_edges(graph, **({"test": 0.0, "validation": 0.0} | options), rng=0)
        assert split.train == graph
        return
    with pytest.raises(InputError, match=message):
        split_edges(graph, **options, rng=0)


def test_pairs_are_numbered_row_by_row() -> None:
    assert np.array_equal(decode_pairs(np.arange(435), 30), np.triu_indices(30, 1))

"""Splits for link prediction."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.generators import link_split
from nodecopy.generators.link_prediction import non_edges


def complete(n_nodes: int) -> Graph:
    return Graph(np.ones((n_nodes, n_nodes)))


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    return as_set(np.stack(sparse.triu(graph.adjacency).nonzero()))


def as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(first), int(second)) for first, second in pairs.T}


def test_parts_are_disjoint_and_complete() -> None:
    club = datasets.load("karate")
    edges = edges_of(club)
    for seed in range(20):
        split = link_split(club, validation=0.2, test=0.3, rng=seed)
        kept = edges_of(split.train)
        hidden = [as_set(part.edges) for part in split[1:]]
        others = [as_set(part.non_edges) for part in split[1:]]
        assert [len(part) for part in hidden] == [len(part) for part in others] == [15, 23]
        assert kept | hidden[0] | hidden[1] == edges
        assert len(kept) + 15 + 23 == len(edges)
        assert not (others[0] & others[1])
        assert not ((others[0] | others[1]) & edges)
        assert all(first < second for part in others for first, second in part)


def test_same_seed_same_split_and_the_graph_is_kept() -> None:
    club = datasets.load("karate")
    before = pickle.loads(pickle.dumps(club))
    one, same, other = (link_split(club, rng=seed) for seed in (1, 1, 2))
    assert one.train == same.train
    assert one.train != other.train
    assert np.array_equal(one.test.non_edges, same.test.non_edges)
    assert club == before
    assert one.train.replace(adjacency=club.adjacency) == club


def test_weights_stay_and_directions_go() -> None:
    graph = Graph([[0, 2, 0], [0, 0, 3], [0, 0, 0]], directed=True)
    split = link_split(graph, validation=0, test=0.5, rng=0)
    assert not split.train.directed
    assert split.train.n_edges == 1
    assert split.train.adjacency.sum() in (4, 6)
    assert split.validation.edges.shape == (2, 0)


def test_non_edges_are_uniform() -> None:
    """Each of the pairs without an edge as often as any other."""
    graph = Graph.from_edges([0, 0, 2, 4], [1, 4, 3, 5])
    every = non_edges(graph, 11, rng=0)
    assert len(as_set(every)) == 11
    draws = np.random.default_rng(0)
    counts: dict[tuple[int, int], int] = dict.fromkeys(as_set(every), 0)
    for _ in range(2200):
        for pair in as_set(non_edges(graph, 2, rng=draws)):
            counts[pair] += 1
    squares = sum((count - 400) ** 2 / 400 for count in counts.values())
    assert squares < 30  # the chi-squared distribution with 10 degrees of freedom passes 29.6 once in 1000


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (complete(5), {}, None),
        (complete(5), {"test": 0.5}, "size of non_edges .* pairs without an edge = 0; got 5"),
        (complete(5), {"test": 1.5}, r"test of link_split .* got 1\.5"),
        (complete(5), {"validation": -0.1}, r"validation of link_split .* got -0\.1"),
        (complete(5), {"validation": 0.6, "test": 0.6}, r"validation \+ test of link_split"),
        (Graph(np.zeros((0, 0))), {}, None),
    ],
)
def test_too_much_asked(graph: Graph, options: dict[str, float], message: str | None) -> None:
    if message is None:
        split = link_split(graph, **({"test": 0.0, "validation": 0.0} | options), rng=0)
        assert split.train == graph
        return
    with pytest.raises(InputError, match=message):
        link_split(graph, **options, rng=0)

"""Edges from scores: exact counts, an edge for every node, and the probabilities of sequential draws."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodecopy.generators.edges import assemble_edges

Edge = tuple[int, int]


def split_blocks(scores: NDArray[Any], size: int) -> list[NDArray[Any]]:
    return [scores[start : start + size].copy() for start in range(0, len(scores), size)]


@st.composite
def symmetric_scores(draw: st.DrawFn) -> NDArray[np.float64]:
    """Scores of a few nodes, many of them zero, some tiny, some huge; the diagonal is arbitrary."""
    n = draw(st.integers(2, 9))
    values = draw(
        st.lists(st.sampled_from([0.0, 0.0, 1e-30, 0.5, 1.0, 7.0, 1e30]), min_size=n * n, max_size=n * n)
    )
    upper = np.triu(np.array(values).reshape(n, n))
    return upper + upper.T


@given(symmetric_scores(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_the_number_of_edges_is_exact_and_every_node_has_one(
    scores: NDArray[np.float64], block: int, n_edges: int, seed: int
) -> None:
    n_nodes = len(scores)
    first, second = assemble_edges(split_blocks(scores, block), n_edges, np.random.default_rng(seed))
    free = scores.copy()
    np.fill_diagonal(free, 0)
    assert len(first) == min(n_edges, np.count_nonzero(np.triu(free)))
    assert (first < second).all()
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(first)
    assert (free[first, second] > 0).all()
    if n_edges >= n_nodes - 1:
        assert set(first.tolist()) | set(second.tolist()) == set(np.flatnonzero(free.sum(axis=0)).tolist())


def enumerate_probabilities(scores: NDArray[np.float64], n_edges: int) -> Counter[frozenset[Edge]]:
    """Return the probability of each graph, by enumerating all sequences of draws."""
    n_nodes, result = len(scores), Counter[frozenset[Edge]]()

    def finish(edges: frozenset[Edge], probability: float) -> None:
        if len(edges) >= n_edges:
            result[edges] += probability  # type: ignore[assignment]
            return
        others = {(i, j): scores[i, j] for i in range(n_nodes) for j in range(i + 1, n_nodes)}
        rest = {edge: score for edge, score in others.items() if edge not in edges}
        for edge, score in rest.items():
            finish(edges | {edge}, probability * score / sum(rest.values()))

    for targets in product(range(n_nodes), repeat=n_nodes):
        probability = np.prod([scores[i, j] / scores[i].sum() for i, j in enumerate(targets)])
        if probability:
            finish(frozenset((min(i, j), max(i, j)) for i, j in enumerate(targets)), float(probability))
    return result


@pytest.mark.parametrize("block", [1, 3, 4])
def test_frequencies_are_those_of_sequential_draws(block: int) -> None:
    scores = np.array([[0, 5, 1, 2], [5, 0, 3, 0.5], [1, 3, 0, 4], [2, 0.5, 4, 0.0]])
    expected, n = enumerate_probabilities(scores, 4), 2000
    assert sum(expected.values()) == pytest.approx(1)
    rng, counts = np.random.default_rng(block), Counter[frozenset[Edge]]()
    for _ in range(n):
        first, second = assemble_edges(split_blocks(scores, block), 4, rng).tolist()
        counts[frozenset(zip(first, second, strict=True))] += 1
    assert counts.keys() <= expected.keys()
    for edges, probability in expected.items():
        assert abs(counts[edges] - n * probability) <= 5 * np.sqrt(n * probability * (1 - probability)) + 1, (
            edges
        )


def test_five_edges_connect_all_of_six_nodes() -> None:
    """The neighbours that six nodes draw may be six edges, one too many."""
    for seed in range(200):
        first, second = assemble_edges([np.ones((6, 6))], 5, np.random.default_rng(seed))
        assert len(first) == 5
        assert len({*first.tolist(), *second.tolist()}) == 6

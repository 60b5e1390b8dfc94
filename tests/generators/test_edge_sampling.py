"""Graphs from scores: exact counts, every node its edge, and the probabilities of plain drawing."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodecopy.generators.edge_sampling import assemble, row_blocks

Edge = tuple[int, int]


def in_blocks(scores: NDArray[Any], size: int) -> list[NDArray[Any]]:
    return [scores[start : start + size].copy() for start in range(0, len(scores), size)]


@st.composite
def symmetric_scores(draw: st.DrawFn) -> NDArray[np.float64]:
    """Scores of a few nodes, many of them zero, some tiny, some huge; the diagonal is anything."""
    n = draw(st.integers(2, 9))
    values = draw(
        st.lists(st.sampled_from([0.0, 0.0, 1e-30, 0.5, 1.0, 7.0, 1e30]), min_size=n * n, max_size=n * n)
    )
    upper = np.triu(np.array(values).reshape(n, n))
    return upper + upper.T


@given(symmetric_scores(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_edges_are_as_many_as_asked_for_and_reach_every_node(
    scores: NDArray[np.float64], block: int, n_edges: int, seed: int
) -> None:
    n_nodes = len(scores)
    first, second = assemble(in_blocks(scores, block), n_edges, np.random.default_rng(seed))
    free = scores.copy()
    np.fill_diagonal(free, 0)
    assert len(first) == min(n_edges, np.count_nonzero(np.triu(free)))
    assert (first < second).all()
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(first)
    assert (free[first, second] > 0).all()
    if n_edges >= n_nodes - 1:
        assert set(first.tolist()) | set(second.tolist()) == set(np.flatnonzero(free.sum(axis=0)).tolist())


def plain_probabilities(scores: NDArray[np.float64], n_edges: int) -> Counter[frozenset[Edge]]:
    """Every way the drawing can go, one edge after another, with its probability."""
    n_nodes, found = len(scores), Counter[frozenset[Edge]]()

    def finish(edges: frozenset[Edge], chance: float) -> None:
        if len(edges) >= n_edges:
            found[edges] += chance  # type: ignore[assignment]
            return
        others = {(i, j): scores[i, j] for i in range(n_nodes) for j in range(i + 1, n_nodes)}
        rest = {edge: score for edge, score in others.items() if edge not in edges}
        for edge, score in rest.items():
            finish(edges | {edge}, chance * score / sum(rest.values()))

    for targets in product(range(n_nodes), repeat=n_nodes):
        chance = np.prod([scores[i, j] / scores[i].sum() for i, j in enumerate(targets)])
        if chance:
            finish(frozenset((min(i, j), max(i, j)) for i, j in enumerate(targets)), float(chance))
    return found


@pytest.mark.parametrize("block", [1, 3, 4])
def test_probabilities_are_those_of_drawing_one_after_another(block: int) -> None:
    scores = np.array([[0, 5, 1, 2], [5, 0, 3, 0.5], [1, 3, 0, 4], [2, 0.5, 4, 0.0]])
    expected, n = plain_probabilities(scores, 4), 2000
    assert sum(expected.values()) == pytest.approx(1)
    draws, found = np.random.default_rng(block), Counter[frozenset[Edge]]()
    for _ in range(n):
        first, second = assemble(in_blocks(scores, block), 4, draws).tolist()
        found[frozenset(zip(first, second, strict=True))] += 1
    assert found.keys() <= expected.keys()
    for edges, chance in expected.items():
        assert abs(found[edges] - n * chance) <= 5 * np.sqrt(n * chance * (1 - chance)) + 1, edges


def test_a_tree_is_covered() -> None:
    """Six nodes and five edges: what nodes draw first may be six edges, one too many."""
    for seed in range(200):
        first, second = assemble([np.ones((6, 6))], 5, np.random.default_rng(seed))
        assert len(first) == 5
        assert len({*first.tolist(), *second.tolist()}) == 6


def test_blocks_of_rows() -> None:
    for n_nodes, at_once in [(1, 1), (7, 1), (7, 14), (7, 20), (7, 100)]:
        blocks = list(row_blocks(n_nodes, at_once))
        assert np.concatenate([np.arange(n_nodes)[rows] for rows in blocks]).tolist() == list(range(n_nodes))
        assert all((rows.stop - rows.start) * n_nodes <= max(at_once, n_nodes) for rows in blocks)

"""Blocks of rows, calibrated independent edges, and a given number of edges by scores."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from nodecopy.generators import edges as module
from nodecopy.generators.edges import (
    MAX_THINNING_PROBABILITY,
    EdgeDistribution,
    assemble_edges,
    calibrate_scores,
    expected_edges,
    split_rows,
    split_triangle,
)
from tests.generators.helpers import draw_edges_by_score, random_vectors

SIZES = [(1, 1), (7, 1), (7, 14), (7, 20), (7, 100)]


@pytest.mark.parametrize(("n_nodes", "at_once"), SIZES)
def test_blocks_of_rows_cover_the_matrix(n_nodes: int, at_once: int) -> None:
    blocks = list(split_rows(n_nodes, at_once))
    assert np.concatenate([np.arange(n_nodes)[rows] for rows in blocks]).tolist() == list(range(n_nodes))
    assert all((rows.stop - rows.start) * n_nodes <= max(at_once, n_nodes) for rows in blocks)


@pytest.mark.parametrize(("n_nodes", "at_once"), SIZES)
def test_triangular_blocks_cover_each_unordered_pair(n_nodes: int, at_once: int) -> None:
    counts = np.zeros((n_nodes, n_nodes), int)
    for rows in split_triangle(n_nodes, at_once):
        assert (rows.stop - rows.start) * (n_nodes - rows.start) <= max(at_once, n_nodes)
        counts[rows, rows.start :] += 1
    assert (np.triu(counts) == np.triu(np.ones((n_nodes, n_nodes)))).all()


@pytest.mark.parametrize("logits_at_once", [1, 2**18])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("size", [1.0, 0.05, 4.0])
def test_parameters_are_those_of_scikit_learn(
    balanced: bool, size: float, logits_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.LOGITS_AT_ONCE, "cpu", logits_at_once)
    decoded = random_vectors(n_nodes=60, size=size)
    edges, scores, is_edge = draw_edges_by_score(decoded)
    slope, intercept = calibrate_scores(torch.from_numpy(decoded), edges, balanced=balanced)
    weights = "balanced" if balanced else None
    expected = LogisticRegression(class_weight=weights, solver="newton-cholesky", tol=1e-10)
    expected.fit(scores[:, None], is_edge)
    assert slope == pytest.approx(expected.coef_[0, 0], rel=1e-5, abs=1e-6)
    assert intercept == pytest.approx(expected.intercept_[0], rel=1e-5)
    total = expit(slope * scores + intercept).sum()
    assert expected_edges(torch.from_numpy(decoded), (slope, intercept)) == pytest.approx(total)


UPPER = np.triu_indices(30, 1)
DISTRIBUTIONS = {
    "raw": EdgeDistribution(random_vectors()),
    "calibrated": EdgeDistribution(random_vectors(), (5.0, -4.0)),
    "thinned": EdgeDistribution(random_vectors(), (3.0, -6.0), 1.5),
    "thinned, decreasing in the score": EdgeDistribution(random_vectors(), (-3.0, -3.0)),
    "cut off at one": EdgeDistribution(random_vectors(), (5.0, -4.0), 2.0),
}


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_frequencies_are_the_probabilities(kind: str) -> None:
    """Each pair in 2000 draws. A correct sampler fails for one seed in 1000; the seed is fixed."""
    distribution, n_draws = DISTRIBUTIONS[kind], 2000
    logits = (distribution.decoded @ distribution.decoded.T).astype(float)[UPPER]
    slope, intercept = distribution.calibration or (1.0, 0.0)
    p = expit(logits) if distribution.calibration is None else expit(slope * expit(logits) + intercept)
    p = np.minimum(1.0, distribution.scale * p)
    np.testing.assert_allclose(distribution.probabilities(*UPPER), p, rtol=1e-5)
    assert p.max() <= distribution.upper_bound * (1 + 1e-6)
    assert (distribution.upper_bound < MAX_THINNING_PROBABILITY) == kind.startswith("thinned")
    rng = np.random.default_rng(8)
    counts = np.zeros((30, 30), int)
    for _ in range(n_draws):
        np.add.at(counts, tuple(distribution.draw(rng)), 1)
    assert counts.sum() == counts[UPPER].sum()
    error_rate = 0.001 / 3 / len(p)  # of either tail of each pair; the last third is for the total
    low, high = binom.ppf(error_rate, n_draws, p), binom.isf(error_rate, n_draws, p)
    assert ((counts[UPPER] >= low) & (counts[UPPER] <= high)).all()
    deviation = np.sqrt(n_draws * (p * (1 - p)).sum())
    assert abs(counts.sum() - n_draws * p.sum()) < norm.isf(0.001 / 6) * deviation


@pytest.mark.parametrize("kind", ["calibrated", "thinned"])
def test_small_blocks_give_edges_at_the_same_rate(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.LOGITS_AT_ONCE, "cpu", 1)
    monkeypatch.setattr(module, "CANDIDATES_AT_ONCE", 3)
    distribution = DISTRIBUTIONS[kind]
    samples = [distribution.draw(np.random.default_rng(seed)) for seed in range(300)]
    for edges in samples:
        assert (edges[0] < edges[1]).all()
        assert len({*zip(*edges.tolist(), strict=True)}) == edges.shape[1]
    p = distribution.probabilities(*UPPER)
    deviation = np.sqrt(300 * (p * (1 - p)).sum())
    assert abs(sum(edges.shape[1] for edges in samples) - 300 * p.sum()) < 3.9 * deviation


Edge = tuple[int, int]


def split_blocks(scores: NDArray[Any], size: int) -> list[NDArray[Any]]:
    return [scores[start : start + size].copy() for start in range(0, len(scores), size)]


@st.composite
def symmetric_scores(draw: st.DrawFn) -> NDArray[np.float64]:
    """Scores of a few nodes, many of them zero, some tiny, some huge; the diagonal is arbitrary."""
    n = draw(st.integers(2, 9))
    score = st.sampled_from([0.0, 0.0, 1e-30, 0.5, 1.0, 7.0, 1e30])
    values = draw(st.lists(score, min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(values).reshape(n, n))
    return upper + upper.T


@given(symmetric_scores(), st.integers(1, 9), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=150)
def test_number_of_edges_is_exact(scores: NDArray[np.float64], block: int, n_edges: int, seed: int) -> None:
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
        deviation = np.sqrt(n * probability * (1 - probability))
        assert abs(counts[edges] - n * probability) <= 5 * deviation + 1, edges

"""The logistic regression over all pairs against scikit-learn, and draws of independent edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

from nodecopy.generators import edges as blockwise
from nodecopy.generators import edges as edge_distribution
from nodecopy.generators.edges import (
    MAX_THINNING_PROBABILITY,
    EdgeDistribution,
    calibrate_scores,
    expected_edges,
)


def random_vectors(seed: int = 0, n_nodes: int = 30, size: float = 1.0) -> Any:
    return (size * np.random.default_rng(seed).normal(size=(n_nodes, 4))).astype(np.float32)


def draw_edges_by_score(decoded: Any, seed: int = 1) -> Any:
    """Draw edges that are more likely at high scores; return them, all scores and which are edges."""
    first, second = np.triu_indices(len(decoded), 1)
    scores = expit((decoded @ decoded.T).astype(float)[first, second])
    is_edge = np.random.default_rng(seed).random(len(scores)) < expit(6 * scores - 5)
    return np.stack([first, second])[:, is_edge], scores, is_edge


@pytest.mark.parametrize("logits_at_once", [1, 2**18])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("size", [1.0, 0.05, 4.0])
def test_parameters_are_those_of_scikit_learn(
    balanced: bool, size: float, logits_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(blockwise.LOGITS_AT_ONCE, "cpu", logits_at_once)
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


def test_the_penalty_keeps_the_slope_finite_if_scores_separate_edges() -> None:
    decoded = np.repeat(np.array([[3, 0], [0, 3]], np.float32), 5, axis=0)
    first, second = np.triu_indices(10, 1)
    within = first // 5 == second // 5
    edges = np.stack([first, second])[:, within]
    slope, intercept = calibrate_scores(torch.from_numpy(decoded), edges, balanced=False)
    scores = expit((decoded @ decoded.T)[first, second].astype(float))
    expected = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(scores[:, None], within)
    assert (slope, intercept) == pytest.approx((expected.coef_[0, 0], expected.intercept_[0]), rel=1e-5)


def test_all_pairs_of_a_complete_graph_are_certain() -> None:
    edges = np.stack(np.triu_indices(10, 1))
    assert calibrate_scores(torch.from_numpy(random_vectors(n_nodes=10)), edges, balanced=True) == (0, np.inf)


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
    monkeypatch.setitem(blockwise.LOGITS_AT_ONCE, "cpu", 1)
    monkeypatch.setattr(edge_distribution, "CANDIDATES_AT_ONCE", 3)
    distribution = DISTRIBUTIONS[kind]
    samples = [distribution.draw(np.random.default_rng(seed)) for seed in range(300)]
    for edges in samples:
        assert (edges[0] < edges[1]).all()
        assert len({*zip(*edges.tolist(), strict=True)}) == edges.shape[1]
    p = distribution.probabilities(*UPPER)
    deviation = np.sqrt(300 * (p * (1 - p)).sum())
    assert abs(sum(edges.shape[1] for edges in samples) - 300 * p.sum()) < 3.9 * deviation


@pytest.mark.parametrize(("intercept", "n_edges"), [(-np.inf, 0), (np.inf, 435)])
def test_certain_probabilities(intercept: float, n_edges: int) -> None:
    distribution = EdgeDistribution(random_vectors(), (0.0, intercept))
    assert distribution.draw(np.random.default_rng(0)).shape == (2, n_edges)

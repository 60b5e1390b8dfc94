"""The logistic regression over all pairs against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from nodecopy.generators import blockwise
from nodecopy.generators.calibration import calibrate_scores, expected_edges


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

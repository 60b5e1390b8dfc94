from __future__ import annotations

import numpy as np
import pytest
import torch

from nodecopy.classify.regressions import softmax_regressions


@pytest.mark.parametrize("n_rows", [6, 40])
def test_agrees_with_scikit_learn(n_rows: int) -> None:
    """With fewer rows than columns, and with more."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    rows, codes = draw.normal(size=(n_rows, 10)), np.arange(n_rows) % 3
    weights = draw.random(n_rows) + 0.5
    strengths = (0.1, 10.0)
    fits = softmax_regressions(rows, np.eye(3)[codes], strengths, weights)
    for strength, (coefficients, intercepts) in zip(strengths, fits, strict=True):
        theirs = linear_model.LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
        theirs.fit(rows, codes, sample_weight=weights)
        np.testing.assert_allclose(coefficients.T, theirs.coef_, atol=5e-3)
        # Adding a constant to all intercepts changes nothing.
        ours, others = (values - values.mean() for values in (intercepts, theirs.intercept_))
        np.testing.assert_allclose(ours, others, atol=5e-3)


def test_soft_targets_are_fractions_of_samples() -> None:
    """A sample with target (0.75, 0.25) counts as three of the one class and one of the other."""
    rows = np.array([[0.0, 1.0], [1.0, 0.5]])
    targets = np.array([[0.75, 0.25], [0.0, 1.0]])
    (soft,) = softmax_regressions(rows, targets, [4.0])
    (hard,) = softmax_regressions(rows.repeat(4, axis=0), np.eye(2)[[0, 0, 0, 1, 1, 1, 1, 1]], [1.0])
    for ours, expected in zip(soft, hard, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_computes_the_same() -> None:
    draw = np.random.default_rng(0)
    rows, targets = draw.normal(size=(50, 8)), np.eye(3)[draw.integers(3, size=50)]
    fits = [softmax_regressions(rows, targets, [1.0], device=torch.device(name)) for name in ("cpu", "cuda")]
    for ours, expected in zip(fits[1][0], fits[0][0], strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-3)

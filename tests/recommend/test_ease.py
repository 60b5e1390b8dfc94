from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Interactions
from nodecopy._core import csr
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE, ease
from nodecopy.recommend.ease import co_occurrences, constrained, constrained_path, inverted
from tests.contracts.recommenders import tastes


def ridge_without_itself(X: Any, A: Any, regularisation: float) -> Any:
    """Each column of A from the other columns of X, one ridge regression at a time."""
    n = A.shape[1]
    B = np.zeros((n, n))
    for item in range(n):
        rest = [other for other in range(n) if other != item]
        left = X[:, rest].T @ X[:, rest] + regularisation * np.eye(n - 1)
        B[rest, item] = np.linalg.solve(left, X[:, rest].T @ A[:, item])
    return B


@pytest.mark.parametrize("precision", ["double", "single"])
def test_ease_is_ridge_regression_on_the_other_items(precision: str) -> None:
    log = tastes()
    A = log.matrix.toarray()
    found = EASE(regularisation=3.0, precision=precision).fit(log).weights_
    np.testing.assert_allclose(found, ridge_without_itself(A, A, 3.0), atol=1e-5)
    assert not np.diag(found).any()


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([0.1, 1.0, 50.0]))
def test_the_constrained_solution(seed: int, n_items: int, regularisation: float) -> None:
    draws = np.random.default_rng(seed)
    X, A = draws.random((12, n_items)), (draws.random((12, n_items)) < 0.4).astype(float)
    wanted = ridge_without_itself(X, A, regularisation)
    np.testing.assert_allclose(constrained(X.T @ X, X.T @ A, regularisation), wanted, atol=1e-9)
    (found,) = constrained_path(X.T @ X, X.T @ A, [regularisation])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 255, 256, 300])
def test_inverse(size: int) -> None:
    """Sizes around that of the blocks."""
    half = np.random.default_rng(size).standard_normal((size, size))
    matrix = half @ half.T
    found = inverted(matrix, 2.0)
    np.testing.assert_allclose(found @ (matrix + 2 * np.eye(size)), np.eye(size), atol=1e-8)
    assert np.array_equal(found, found.T)


def test_no_inverse() -> None:
    for solve in (inverted, lambda M, value: constrained(M, M, value)):
        with pytest.raises(InputError, match="regularisation must be larger: the matrix is singular"):
            solve(-np.eye(3), 0.5)


@pytest.mark.parametrize("spectral_from", [1, 99])
@pytest.mark.parametrize("model", [EASE(), CopyEASE()])
def test_a_path_holds_what_single_fits_hold(
    model: EASE | CopyEASE, spectral_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ease, "SPECTRAL_FROM", spectral_from)
    log = tastes()
    values = [2.0, 20.0]
    for value, fitted in zip(values, model.fit_path(log, values), strict=True):
        alone = type(model)(regularisation=value).fit(log)
        assert fitted.regularisation == value
        np.testing.assert_allclose(fitted.weights_, alone.weights_, atol=1e-5)
        np.testing.assert_allclose(fitted.score(), alone.score(), atol=1e-4)
    assert not hasattr(model, "interactions_")


def test_wrong_paths() -> None:
    with pytest.raises(InputError, match=r"regularisation of EASE must be above 0; got 0.0"):
        list(EASE().fit_path(tastes(), [1.0, 0.0]))
    with pytest.raises(InputError, match="interactions must hold at least one"):
        list(EASE().fit_path(Interactions(np.zeros((2, 2))), [1.0]))


@pytest.mark.parametrize("dense_from", [-1.0, np.inf])
def test_co_occurrences(dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr, "MIN_DENSE_SHARE", dense_from)
    A, weights = tastes().matrix.toarray().astype(float), np.linspace(0.0, 2.0, 60)
    assert np.array_equal(co_occurrences(tastes().matrix, np.float32), A.T @ A)
    found = co_occurrences(tastes().matrix, np.float64, weights)
    np.testing.assert_allclose(found, A.T @ np.diag(weights) @ A, atol=1e-12)

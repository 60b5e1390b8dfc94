from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy._core import arrays as csr
from nodecopy.errors import InputError
from nodecopy.recommend.algebra import (
    co_occurrence_pair,
    co_occurrences,
    invert_regularised,
    solve_constrained,
    solve_constrained_path,
)
from tests.contracts.recommenders import tastes
from tests.recommend.oracles import ridge_without_itself


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([0.1, 1.0, 50.0]))
def test_solve_constrained(seed: int, n_items: int, regularisation: float) -> None:
    draws = np.random.default_rng(seed)
    X, A = draws.random((12, n_items)), (draws.random((12, n_items)) < 0.4).astype(float)
    expected = ridge_without_itself(X, A, regularisation)
    np.testing.assert_allclose(solve_constrained(X.T @ X, X.T @ A, regularisation), expected, atol=1e-9)
    (path,) = solve_constrained_path(X.T @ X, X.T @ A, [regularisation])
    np.testing.assert_allclose(path, expected, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 255, 256, 300])
def test_invert_regularised(size: int) -> None:
    """The sizes are around that of the blocks."""
    half = np.random.default_rng(size).standard_normal((size, size))
    matrix = half @ half.T
    inverse = invert_regularised(matrix, 2.0)
    np.testing.assert_allclose(inverse @ (matrix + 2 * np.eye(size)), np.eye(size), atol=1e-8)
    assert np.array_equal(inverse, inverse.T)


@pytest.mark.parametrize("n_items", [256, 300, 600])
def test_solve_constrained_in_blocks(n_items: int) -> None:
    draws = np.random.default_rng(n_items)
    X, A = draws.random((40, n_items)), (draws.random((40, n_items)) < 0.4).astype(float)
    M, C = X.T @ X, X.T @ A
    K = np.linalg.inv(M + 3 * np.eye(n_items))
    expected = K @ C - K * (np.diag(K @ C) / np.diag(K))
    np.testing.assert_allclose(solve_constrained(M, C, 3.0), expected, atol=1e-9)


def test_singular_matrix() -> None:
    for solve in (invert_regularised, lambda M, value: solve_constrained(M, M, value)):
        with pytest.raises(InputError, match="regularisation must be larger: the matrix is singular"):
            solve(-np.eye(3), 0.5)


@pytest.mark.parametrize("dense_from", [-1.0, np.inf])
def test_co_occurrences(dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr, "MIN_DENSE_SHARE", dense_from)
    A, weights = tastes().matrix.toarray().astype(float), np.linspace(0.0, 2.0, 60)
    assert np.array_equal(co_occurrences(tastes().matrix, np.float32), A.T @ A)
    weighted = co_occurrences(tastes().matrix, np.float64, weights)
    np.testing.assert_allclose(weighted, A.T @ np.diag(weights) @ A, atol=1e-12)
    for dtype in (np.float32, np.float64):
        own, donors = co_occurrence_pair(tastes().matrix, dtype, None, weights)
        assert np.array_equal(own, A.T @ A)
        np.testing.assert_allclose(donors, weighted, rtol=1e-5)
        assert own.dtype == donors.dtype == dtype
        assert own.flags.c_contiguous
        assert donors.flags.c_contiguous

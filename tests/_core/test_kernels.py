from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from nodecopy._core import kernels as compilation
from nodecopy._core.arrays import Floats
from nodecopy._core.kernels import njit
from nodecopy._core.linalg import fit_logistic, fit_penalised_logistic, truncated_svd


def add_one(x: int) -> int:
    return x + 1


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compilation, "_has_warned", False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


def test_code_is_kept_where_that_is_possible(tmp_path: Path) -> None:
    assert njit(cache=True)(add_one)(1) == 2
    assert list(tmp_path.rglob("*.nbi"))


def test_without_a_folder_for_the_cache_there_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.warns(UserWarning, match="compiled code cannot be kept on disk .*NUMBA_CACHE_DIR"):
        compiled = njit(cache=True, nogil=True)(add_one)
    with warnings.catch_warnings(action="error"):
        assert compiled(1) == njit(cache=True)(add_one)(1) == 2


@pytest.mark.parametrize("method", ["save", "load"])
def test_a_full_disk_or_a_damaged_file_is_no_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, method, fail)
    compiled = njit(cache=True)(add_one)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert compiled(1) == 2


prefetch: Any = compilation.prefetch


@numba.njit  # type: ignore[untyped-decorator, unused-ignore]
def gather_with_prefetch(values: Any, positions: Any, ahead: int) -> Any:
    """A gather that prefetches ``ahead`` positions early, beyond the end without a check."""
    gathered = np.empty(len(positions), values.dtype)
    for i in range(len(positions)):
        prefetch(values, np.intp(positions[min(i + ahead, len(positions) - 1)]))
        prefetch(values, np.intp(len(values) + 10**9))
        prefetch(values, np.intp(-(10**12)))
        gathered[i] = values[positions[i]]
    return gathered


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_prefetching_changes_no_result_and_accepts_any_index(dtype: Any) -> None:
    draw = np.random.default_rng(0)
    values, positions = draw.integers(0, 99, 1000).astype(dtype), draw.integers(0, 1000, 5000)
    np.testing.assert_array_equal(gather_with_prefetch(values, positions, 12), values[positions])


def test_a_prefetch_instruction_is_emitted() -> None:
    values, positions = np.arange(4), np.arange(4)
    gather_with_prefetch(values, positions, 1)
    assert "llvm.prefetch" in next(iter(gather_with_prefetch.inspect_llvm().values()))


def test_truncated_svd_equals_a_full_one_and_is_reproducible() -> None:
    draws = np.random.default_rng(0)
    matrix = sparse.csr_array(draws.random((30, 20)) * (draws.random((30, 20)) < 0.3))
    u, s, vt = truncated_svd(matrix, 4)
    full = np.linalg.svd(matrix.toarray(), full_matrices=False)
    np.testing.assert_allclose(np.sort(s)[::-1], full[1][:4])
    best = (full[0][:, :4] * full[1][:4]) @ full[2][:4]
    np.testing.assert_allclose((u * s) @ vt, best, atol=1e-9)
    for again, part in zip(truncated_svd(matrix, 4), (u, s, vt), strict=True):
        assert np.array_equal(again, part)


RNG = np.random.default_rng(0)
INPUTS = np.column_stack([np.ones(200), RNG.normal(size=(200, 2))])
TARGETS = (RNG.random(200) < expit(INPUTS @ [-0.5, 2.0, -1.0])).astype(float)
EXPECTED = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(INPUTS, TARGETS)


def derivatives(weights: Floats) -> tuple[Floats, Floats]:
    p = expit(INPUTS @ weights)
    return INPUTS.T @ (TARGETS - p) - weights, INPUTS.T @ (INPUTS * (p * (1 - p))[:, None]) + np.eye(3)


def largest_change(step: Floats) -> float:
    return float(np.abs(INPUTS @ step).max())


def test_full_steps_reach_the_maximum() -> None:
    weights = fit_logistic(derivatives, np.zeros(3), max_steps=20)
    np.testing.assert_allclose(weights, EXPECTED.coef_[0], rtol=1e-6)


def test_damped_steps_reach_the_maximum_from_a_start_where_full_steps_diverge() -> None:
    start = np.array([0.0, -60.0, 60.0])
    with np.errstate(all="ignore"):
        assert not np.allclose(fit_logistic(derivatives, start, max_steps=3), EXPECTED.coef_[0], atol=1)
    weights = fit_logistic(derivatives, start, max_steps=200, logit_change=largest_change, tolerance=1e-8)
    np.testing.assert_allclose(weights, EXPECTED.coef_[0], rtol=1e-6)


@pytest.mark.parametrize("tolerance", [10.0, 1e-8])
def test_steps_end_at_the_tolerance(tolerance: float) -> None:
    changes = []

    def record(step: Floats) -> float:
        changes.append(largest_change(step))
        return changes[-1]

    fit_logistic(derivatives, np.zeros(3), max_steps=100, logit_change=record, tolerance=tolerance)
    assert all(change >= tolerance for change in changes[:-1])
    assert changes[-1] < tolerance


def test_penalised_logistic_regression_equals_the_log_odds() -> None:
    """Three of four: the log-odds are log 3. With a second input, one of two: 0."""
    outcomes = np.array([1.0, 1, 1, 0] * 100 + [1, 0] * 100)
    inputs = np.stack([np.repeat([1.0, 0.0], [400, 200]), np.repeat([0.0, 1.0], [400, 200])], axis=1)
    weights = fit_penalised_logistic(inputs, outcomes, penalty=1e-3, max_steps=20)
    np.testing.assert_allclose(weights, [np.log(3), 0], atol=1e-4)

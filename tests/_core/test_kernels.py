from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching

from nodecopy._core import kernels as compilation
from nodecopy._core.kernels import njit


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

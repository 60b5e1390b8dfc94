"""Compiled code where its cache cannot be used."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numba
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

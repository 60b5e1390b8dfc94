from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from nodecopy._core import kernels as prefetching

prefetch: Any = prefetching.prefetch


@njit  # type: ignore[untyped-decorator, unused-ignore]
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

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from nodecopy.copying import intrinsics
from nodecopy.copying.intrinsics import LANES

prefetch: Any = intrinsics.prefetch
start_run: Any = intrinsics.start_run
merge_run: Any = intrinsics.merge_run
finish_run: Any = intrinsics.finish_run
LISTS = st.lists(st.integers(0, 90), unique=True, max_size=70).map(sorted)


@njit  # type: ignore[untyped-decorator, unused-ignore]
def union(first: Any, second: Any, skip: Any, out: Any) -> Any:
    """The kernel's loop: sorted union of two sorted arrays without ``skip``."""
    run = np.empty(LANES + 1, first.dtype)
    run[LANES] = -1
    x, y, position = 0, 0, 0
    start_run(run, first, x, len(first) - x)
    position = merge_run(run, second, y, len(second) - y, out, position, skip)
    x, y = x + LANES, y + LANES
    while x < len(first) or y < len(second):
        if y >= len(second) or (x < len(first) and first[x] <= second[y]):
            position = merge_run(run, first, x, len(first) - x, out, position, skip)
            x += LANES
        else:
            position = merge_run(run, second, y, len(second) - y, out, position, skip)
            y += LANES
    return finish_run(run, out, position, skip)


def check(first: Any, second: Any, skip: int, dtype: Any) -> None:
    guard = 20
    out = np.full(len(first) + len(second) + guard, -7, dtype)
    n = union(np.array(first, dtype), np.array(second, dtype), dtype(skip), out)
    wanted = sorted((set(first) | set(second)) - {skip})
    assert out[:n].tolist() == wanted
    assert (out[n:] == -7).all()  # nothing is written beyond the numbers that count


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(deadline=None, max_examples=300)
@given(LISTS, LISTS, st.integers(0, 90))
def test_union_of_sorted_runs(dtype: Any, first: list[int], second: list[int], skip: int) -> None:
    check(first, second, skip, dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("m", [0, 1, 15, 16, 17, 32, 33])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 32, 33])
def test_lengths_around_a_vector(m: int, n: int, dtype: Any) -> None:
    for second in (range(n), range(1000, 1000 + n), range(0, 2 * n, 2)):
        check(list(range(m)), list(second), 5, dtype)


def test_numbers_next_to_the_padding() -> None:
    """The padding is the largest value of the type, which no node number can be."""
    top = 2**31 - 2
    check([0, top - 1, top], [top], 0, np.int32)


@pytest.mark.parametrize("index", [0, 3, 10**6, -5])
def test_prefetch_is_harmless_anywhere(index: int) -> None:
    @njit  # type: ignore[untyped-decorator, unused-ignore]
    def touch(array: Any, index: Any) -> Any:
        prefetch(array, index)
        return array.sum()

    assert touch(np.arange(4), index) == 6

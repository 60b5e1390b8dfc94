from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from nodecopy.nn.kernels import LANES, gather_rows, scatter_row

rng = np.random.default_rng(0)
INDICES = np.array([9, 4, 0, 4, 2], np.int32)
VALUES = rng.normal(size=5).astype(np.float32)
START, STOP, COLUMN = 1, 4, 3


@njit
def gather(out: Any, dense: Any) -> None:
    gather_rows(  # type: ignore[call-arg]
        out, 2, COLUMN, INDICES, VALUES, START, STOP, dense
    )


@njit
def scatter(out: Any, dense: Any) -> None:
    scatter_row(  # type: ignore[call-arg]
        out, INDICES, VALUES, START, STOP, dense, 2, COLUMN
    )


def test_a_sum_of_rows_changes_sixteen_columns_of_one_row() -> None:
    dense, out = (rng.normal(size=(5, 20)).astype(np.float32) for _ in range(2))
    expected = out.copy()
    lanes = slice(COLUMN, COLUMN + LANES)
    expected[2, lanes] = VALUES[START:STOP] @ dense[INDICES[START:STOP], lanes]
    gather(out, dense)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_row_is_added_to_sixteen_columns_of_rows_that_may_repeat() -> None:
    dense, out = (rng.normal(size=(5, 20)).astype(np.float32) for _ in range(2))
    expected = out.copy()
    lanes = slice(COLUMN, COLUMN + LANES)
    for entry in range(START, STOP):
        expected[INDICES[entry], lanes] += VALUES[entry] * dense[2, lanes]
    scatter(out, dense)
    np.testing.assert_allclose(out, expected, rtol=1e-5)

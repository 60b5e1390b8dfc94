"""Node copying said plainly: dense matrices, loops, all donor vectors one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import IntArray, Rows
from nodecopy._core.random import Key

Matrix = NDArray[Any]


def dense(rows: Rows) -> Matrix:
    return np.asarray(rows.csr.toarray())


def rows_of(matrix: Any, dtype: Any = np.int32, weights: Any = None) -> Rows:
    """Rows with a given type of indices and weights; binary where ``weights`` is ``None``."""
    csr = sparse.csr_array(matrix)
    data = None if weights is None else csr.data.astype(weights)
    return Rows(csr.indptr.astype(dtype), csr.indices.astype(dtype), data, csr.shape[1])


def random_rows(n: int, degree: float, seed: int, dtype: Any = np.int32, weights: Any = None) -> Rows:
    """Rows with about ``degree`` entries each, loops among them, and weights that often tie."""
    draw = np.random.default_rng(seed)
    cells = np.unique(draw.integers(n * n, size=int(n * degree)))
    data = draw.integers(1, 5, size=len(cells)) / 2
    return rows_of(sparse.csr_array((data, (cells // n, cells % n)), shape=(n, n)), dtype, weights)


def assert_same_rows(first: Rows, second: Rows) -> None:
    """Equal bit for bit, types included."""
    assert first == second
    assert first.indptr.dtype == second.indptr.dtype
    assert first.indices.dtype == second.indices.dtype
    if first.weights is not None and second.weights is not None:
        assert first.weights.dtype == second.weights.dtype


def maximum(matrix: Matrix, donors: Any) -> Matrix:
    copied = matrix[donors]
    result = np.maximum(copied, copied.T)
    np.fill_diagonal(result, 0)
    return np.asarray(result)


def one_endpoint(matrix: Matrix, donors: Any, key: Key) -> Matrix:
    """For each pair the coin says whether the larger node's copied row decides."""
    copied, result = matrix[donors], np.zeros_like(matrix)
    for i in range(len(matrix)):
        for j in range(i):
            falls_to_larger = threefry(key, j, i)[0] >> 31
            result[i, j] = result[j, i] = copied[i, j] if falls_to_larger else copied[j, i]
    return result


def threefry(key: Key, first: int, second: int) -> tuple[int, int]:
    """Threefry-2x32-20 on Python integers."""
    keys, mask = (*key, key[0] ^ key[1] ^ 0x1BD11BDA), 2**32 - 1
    x, y = (first + keys[0]) & mask, (second + keys[1]) & mask
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = (x + y) & mask
            y = ((y << rotation | y >> (32 - rotation)) & mask) ^ x
        x = (x + keys[(group + 1) % 3]) & mask
        y = (y + keys[(group + 2) % 3] + group + 1) & mask
    return x, y


def with_keep(P: Matrix, keep: float) -> Matrix:
    """The donors' probabilities when every node keeps its own row with probability ``keep``."""
    return np.asarray(keep * np.eye(len(P)) + (1 - keep) * P)


def all_donors(P: Matrix) -> Iterator[tuple[IntArray, float]]:
    """Every possible donor vector with its probability."""
    for donors in product(*(np.flatnonzero(row) for row in P)):
        yield np.array(donors, int), prod(float(P[i, m]) for i, m in enumerate(donors))

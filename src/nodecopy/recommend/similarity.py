"""Cosine similarity of the rows of a binary matrix, in blocks: never all pairs at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.rows import IntArray

PAIRS_AT_ONCE = 2**22


def nearest_rows(pattern: sparse.csr_array, top: int, shrinkage: float = 0.0) -> sparse.csr_array:
    """The ``top`` rows most similar to each other row, the first of equals; row i holds i's similarities."""
    n_rows, chosen = pattern.shape[0], []
    for row, column, value in _blocks(pattern, shrinkage):
        order = np.lexsort((column, -value, row))
        place = np.arange(len(order)) - np.searchsorted(row, row)
        kept = np.sort(order[place < top])
        chosen.append((row[kept], column[kept], value[kept]))
    return _matrix(chosen, n_rows)


def above_threshold(pattern: sparse.csr_array, mean_degree: float) -> sparse.csr_array:
    """The most similar pairs of rows, so many that a row has ``mean_degree`` others on average.

    Pairs that tie with the last one are in, so the mean degree can be a little larger.
    """
    n_rows = pattern.shape[0]
    n_entries = int(mean_degree * n_rows)
    best = np.zeros(0)
    for _, _, value in _blocks(pattern, 0.0):
        best = np.concatenate([best, value])
        if len(best) > n_entries:
            best = np.partition(best, len(best) - n_entries)[len(best) - n_entries :]
    threshold = best.min(initial=np.inf) if n_entries else np.inf
    chosen = []
    for row, column, value in _blocks(pattern, 0.0):
        kept = value >= threshold
        chosen.append((row[kept], column[kept], value[kept]))
    return _matrix(chosen, n_rows)


def _blocks(
    pattern: sparse.csr_array, shrinkage: float
) -> Iterator[tuple[IntArray, IntArray, NDArray[np.float64]]]:
    """Pairs of different rows that share a column, by rows: row, other row, similarity."""
    n_rows = pattern.shape[0]
    degrees = np.diff(pattern.indptr).astype(np.float64)
    transpose = sparse.csr_array(pattern.T)
    step = max(1, PAIRS_AT_ONCE // max(1, n_rows))
    for start in range(0, n_rows, step):
        shared = sparse.csr_array(pattern[start : start + step] @ transpose)
        shared.sort_indices()
        row = start + np.repeat(np.arange(shared.shape[0]), np.diff(shared.indptr))
        column = shared.indices
        # Counts are whole numbers and one division follows, so equal similarities are equal bit for bit.
        value = shared.data / (np.sqrt(degrees[row] * degrees[column]) + shrinkage)
        other = row != column
        yield row[other], column[other], value[other].astype(np.float64)


def _matrix(chosen: list[Any], n_rows: int) -> sparse.csr_array:
    row, column, value = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    return sparse.csr_array((value.astype(np.float32), (row, column)), shape=(n_rows, n_rows))

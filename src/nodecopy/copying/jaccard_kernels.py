"""Compiled search for the most similar rows by the Jaccard index, for many rows.

Rows are computed by threads of Python, which run compiled code without the GIL; no row depends on another.
The numbers are bit for bit those of :class:`.Jaccard` without compiled code.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

MAX_THREADS = 8
N_TASKS = 64


def most_similar_rows(
    pattern: sparse.csr_array, transpose: sparse.csr_array, n_largest: int, include_self: bool
) -> sparse.csr_array:
    """Return the largest Jaccard indices of each row with all rows; ties go to the lowest row."""
    n_rows = pattern.shape[0]
    work = np.cumsum(np.append(0.0, pattern @ np.diff(transpose.indptr).astype(np.float64)))
    bounds = np.unique(np.append(np.searchsorted(work, np.linspace(0, work[-1], N_TASKS)), [0, n_rows]))
    csr = (pattern.indptr, pattern.indices, transpose.indptr, transpose.indices)

    def search(first: int, last: int) -> Any:
        arguments: tuple[Any, ...] = (*csr, first, last, n_largest, include_self)
        return _most_similar(*arguments)

    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        parts = list(pool.map(search, bounds[:-1].tolist(), bounds[1:].tolist()))
    counts, columns, values = zip(*parts, strict=True)
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    shape = (n_rows, n_rows)
    return sparse.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=shape)


@njit(cache=True, nogil=True)
def _most_similar(indptr, indices, other_indptr, other_indices, first, last, n_largest, include_self):
    n = len(indptr) - 1
    shared, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    index, kept = np.empty(n, np.float64), np.empty(n_largest, np.int32)
    counts = np.zeros(last - first, np.int64)
    columns = np.empty((last - first) * n_largest, np.int32)
    values = np.empty((last - first) * n_largest, np.float64)
    filled = 0
    for row in range(first, last):
        n_touched = 0
        for e in range(indptr[row], indptr[row + 1]):
            for f in range(other_indptr[indices[e]], other_indptr[indices[e] + 1]):
                other = other_indices[f]
                if shared[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                shared[other] += 1
        degree = indptr[row + 1] - indptr[row]
        n_found = 0
        for t in range(n_touched):
            other = touched[t]
            if include_self or other != row:
                union = degree + (indptr[other + 1] - indptr[other]) - shared[other]
                touched[n_found] = other
                index[n_found] = shared[other] / union
                n_found += 1
            shared[other] = 0
        threshold = 0.0
        if n_found > n_largest:
            threshold = np.partition(index[:n_found], n_found - n_largest)[n_found - n_largest]
        n_kept = n_ties = 0
        for t in range(n_found):
            if index[t] > threshold:
                kept[n_kept] = t
                n_kept += 1
            elif index[t] == threshold:
                shared[n_ties] = touched[t]  # a free array of the right size
                n_ties += 1
        n_free = min(n_ties, n_largest - n_kept)
        ties = np.sort(shared[:n_ties])[:n_free]
        shared[:n_ties] = 0
        found = np.empty(n_kept + n_free, np.int32)
        index_of = np.empty(n_kept + n_free, np.float64)
        for t in range(n_kept):
            found[t], index_of[t] = touched[kept[t]], index[kept[t]]
        found[n_kept:], index_of[n_kept:] = ties, threshold
        for t in np.argsort(found):
            columns[filled], values[filled] = found[t], index_of[t]
            filled += 1
        counts[row - first] = len(found)
    return counts, columns[:filled].copy(), values[:filled].copy()

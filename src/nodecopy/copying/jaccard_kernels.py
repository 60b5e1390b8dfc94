"""Compiled search for the most similar rows by the Jaccard index, for many rows.

Rows are computed by threads of Python, which run compiled code without the GIL; no row depends on another.
The numbers are bit for bit those of :class:`.Jaccard` without compiled code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.compilation import njit
from nodecopy._core.worker_pools import map_on_cores

N_TASKS = 64
"""Blocks of rows with about as many multiplications each, which threads take in turn."""


def most_similar_rows(
    pattern: sparse.csr_array, transpose: sparse.csr_array, n_largest: int, include_self: bool
) -> sparse.csr_array:
    """Return the largest Jaccard indices of each row with all rows; ties go to the lowest row."""
    n_rows = pattern.shape[0]
    n_products = pattern @ np.diff(transpose.indptr).astype(np.float64)
    work = np.cumsum(np.append(0.0, n_products))
    # A row has no more similar rows than multiplications.
    n_entries = np.minimum(n_products, min(n_largest, n_rows)).astype(np.int64)
    bounds = np.unique(np.append(np.searchsorted(work, np.linspace(0, work[-1], N_TASKS)), [0, n_rows]))
    csr = (pattern.indptr, pattern.indices, transpose.indptr, transpose.indices)

    def search(block: tuple[int, int]) -> Any:
        first, last = block
        size = int(n_entries[first:last].sum())
        arguments: tuple[Any, ...] = (*csr, first, last, min(n_largest, n_rows), include_self, size)
        return _most_similar(*arguments)

    parts = map_on_cores(search, pairwise(bounds.tolist()))
    counts, columns, values = zip(*parts, strict=True)
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    shape = (n_rows, n_rows)
    return sparse.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=shape)


@njit(cache=True, nogil=True)
def _most_similar(
    indptr, indices, other_indptr, other_indices, first, last, n_largest, include_self, n_entries
):
    """Return the counts, columns and indices of the rows from first to last, at most ``n_entries``."""
    n = len(indptr) - 1
    shared, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    index, above = np.empty(n, np.float64), np.empty(n_largest, np.int32)
    counts = np.zeros(last - first, np.int64)
    columns = np.empty(n_entries, np.int32)
    values = np.empty(n_entries, np.float64)
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
        n_others = 0
        for t in range(n_touched):
            other = touched[t]
            if include_self or other != row:
                union = degree + (indptr[other + 1] - indptr[other]) - shared[other]
                touched[n_others] = other
                index[n_others] = shared[other] / union
                n_others += 1
            shared[other] = 0
        threshold = 0.0
        if n_others > n_largest:
            threshold = np.partition(index[:n_others], n_others - n_largest)[n_others - n_largest]
        n_above = n_ties = 0
        for t in range(n_others):
            if index[t] > threshold:
                above[n_above] = t
                n_above += 1
            elif index[t] == threshold:
                shared[n_ties] = touched[t]  # a free array of the right size
                n_ties += 1
        n_free = min(n_ties, n_largest - n_above)
        ties = np.sort(shared[:n_ties])[:n_free]
        shared[:n_ties] = 0
        best = np.empty(n_above + n_free, np.int32)
        index_of = np.empty(n_above + n_free, np.float64)
        for t in range(n_above):
            best[t], index_of[t] = touched[above[t]], index[above[t]]
        best[n_above:], index_of[n_above:] = ties, threshold
        for t in np.argsort(best):
            columns[filled], values[filled] = best[t], index_of[t]
            filled += 1
        counts[row - first] = len(best)
    return counts, columns[:filled].copy(), values[:filled].copy()

"""Cosine similarity of the rows of a binary matrix, in blocks: never all pairs at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from nodecopy._core.csr import keep_entries, largest_entries

PAIRS_AT_ONCE = 2**22


def nearest_rows(pattern: sparse.csr_array, top: int, shrinkage: float = 0.0) -> sparse.csr_array:
    """The ``top`` rows most similar to each other row, the first of equals; row i holds i's similarities."""
    blocks = [largest_entries(block, top) for block in _blocks(pattern, shrinkage)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def above_threshold(pattern: sparse.csr_array, mean_degree: float) -> sparse.csr_array:
    """The most similar pairs of rows, so many that a row has ``mean_degree`` others on average.

    Pairs that tie with the last one are in, so the mean degree can be a little larger.
    """
    n_rows = pattern.shape[0]
    n_entries = int(mean_degree * n_rows)
    best = np.zeros(0)
    for block in _blocks(pattern, 0.0):
        best = np.concatenate([best, block.data])
        if len(best) > n_entries:
            best = np.partition(best, len(best) - n_entries)[len(best) - n_entries :]
    threshold = best.min(initial=np.inf) if n_entries else np.inf
    blocks = [keep_entries(block, block.data >= threshold) for block in _blocks(pattern, 0.0)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def _blocks(pattern: sparse.csr_array, shrinkage: float) -> Iterator[sparse.csr_array]:
    """Similarities of some rows to all others with a column in common, block by block."""
    n_rows = pattern.shape[0]
    degrees = np.diff(pattern.indptr).astype(np.float64)
    transpose = sparse.csr_array(pattern.T)
    step = max(1, PAIRS_AT_ONCE // max(1, n_rows))
    for start in range(0, n_rows, step):
        shared = sparse.csr_array(pattern[start : start + step] @ transpose)
        row = start + np.repeat(np.arange(shared.shape[0]), np.diff(shared.indptr))
        # Counts are whole numbers and one division follows, so equal similarities are equal bit for bit.
        value = shared.data / (np.sqrt(degrees[row] * degrees[shared.indices]) + shrinkage)
        block = sparse.csr_array((value, shared.indices, shared.indptr), shape=shared.shape)
        yield keep_entries(block, row != block.indices)

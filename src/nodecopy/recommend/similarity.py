"""Cosine similarity of the rows of a binary matrix, computed in blocks to bound the memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from nodecopy._core.csr import keep_entries, largest_entries

MAX_BLOCK_PAIRS = 2**22


def nearest_rows(pattern: sparse.csr_array, n_neighbours: int, shrinkage: float = 0.0) -> sparse.csr_array:
    """Return the similarities of each row to its nearest rows, in its own row; ties go to the lower row."""
    blocks = [largest_entries(block, n_neighbours) for block in _similarity_blocks(pattern, shrinkage)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def above_threshold(pattern: sparse.csr_array, mean_degree: float) -> sparse.csr_array:
    """Return the similarities of the most similar pairs, ``mean_degree`` per row on average.

    Pairs that tie with the last one are included, so the mean degree can be a little larger.
    """
    n_rows = pattern.shape[0]
    n_entries = int(mean_degree * n_rows)
    best = np.zeros(0)
    for block in _similarity_blocks(pattern, 0.0):
        best = np.concatenate([best, block.data])
        if len(best) > n_entries:
            best = np.partition(best, len(best) - n_entries)[len(best) - n_entries :]
    threshold = best.min(initial=np.inf) if n_entries else np.inf
    blocks = [keep_entries(block, block.data >= threshold) for block in _similarity_blocks(pattern, 0.0)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def _similarity_blocks(pattern: sparse.csr_array, shrinkage: float) -> Iterator[sparse.csr_array]:
    """Yield the similarities of some rows to all others that share a column, block by block."""
    n_rows = pattern.shape[0]
    degrees = np.diff(pattern.indptr).astype(np.float64)
    transpose = sparse.csr_array(pattern.T)
    # The number of entries of a row is at most the sum of the degrees of its columns.
    n_pairs = np.append(0, np.cumsum(pattern @ np.diff(transpose.indptr)))
    stop = 0
    while stop < n_rows:
        start = stop
        stop = max(start + 1, int(np.searchsorted(n_pairs, n_pairs[start] + MAX_BLOCK_PAIRS, "right")) - 1)
        shared = sparse.csr_array(pattern[start:stop] @ transpose)
        row = start + np.repeat(np.arange(shared.shape[0]), np.diff(shared.indptr))
        # Integers and a single division: equal similarities have equal bits.
        value = shared.data / (np.sqrt(degrees[row] * degrees[shared.indices]) + shrinkage)
        block = sparse.csr_array((value, shared.indices, shared.indptr), shape=shared.shape)
        yield keep_entries(block, row != block.indices)

"""Counting over rows with NumPy and SciPy: what a small graph needs, without waiting for a compiler.

The functions are those of :mod:`nodecopy.metrics.counting_kernels` and return the same integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows

BATCH = 1024  # sources that travel together, a bit each
MAX_LEVELS = 100  # steps after which a search from one source at a time is faster


def triangle_counts(rows: Rows) -> NDArray[np.int64]:
    """Number of triangles through each node of a symmetric graph without loops.

    Edges point from lower to higher (degree, number), so that products of the matrix stay sparse even
    around hubs; a triangle u -> w -> v, u -> v is then counted once at each of its three places.
    """
    first, second, degrees = rows.row_numbers, rows.indices, rows.degrees
    up = (degrees[first] < degrees[second]) | ((degrees[first] == degrees[second]) & (first < second))
    shape = (rows.n_rows, rows.n_rows)
    forward = sparse.csr_array((np.ones(np.count_nonzero(up), np.int64), (first[up], second[up])), shape)
    closed = (forward @ forward) * forward
    opposite = (forward.T @ forward) * forward
    counts: NDArray[np.int64] = closed.sum(axis=1) + closed.sum(axis=0) + opposite.sum(axis=1)
    return counts


def component_sizes(rows: Rows) -> tuple[int, int]:
    """Number of components of a symmetric graph and number of nodes in the largest."""
    if not rows.n_rows:
        return 0, 0
    number, component = sparse.csgraph.connected_components(rows.csr, directed=False)
    return int(number), int(np.bincount(component).max())


def degree_products(rows: Rows) -> int:
    """Sum of the product of both degrees over all entries."""
    degrees = rows.degrees.astype(np.int64)
    return int((degrees[rows.row_numbers] * degrees[rows.indices]).sum())


def label_counts(rows: Rows, labels: IntArray, n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each class of source: entries whose target has the same label, and has any label."""
    own, other = labels[rows.row_numbers], labels[rows.indices]
    known = (own >= 0) & (other >= 0)
    same = known & (own == other)
    return np.bincount(own[same], minlength=n_classes), np.bincount(own[known], minlength=n_classes)


def common_entries(first: Rows, second: Rows) -> int:
    """Number of entries that both hold."""
    a, b = (rows.row_numbers.astype(np.int64) * rows.n_columns + rows.indices for rows in (first, second))
    return len(np.intersect1d(a, b, assume_unique=True))


def distances(rows: Rows, sources: IntArray) -> tuple[int, int]:
    """Sum of the distances from the sources to all they reach, and number of such pairs."""
    reverse = sparse.csr_array(rows.csr.T)  # bits are pulled from the nodes that point here
    targets = np.flatnonzero(np.diff(reverse.indptr))
    starts, origins = reverse.indptr[targets], reverse.indices
    total = pairs = 0
    for batch in np.split(sources, range(BATCH, len(sources), BATCH)) if len(targets) else []:
        numbers = np.arange(len(batch), dtype=np.uint64)
        seen = np.zeros((rows.n_rows, -(-len(batch) // 64)), np.uint64)
        seen[batch, numbers // 64] = np.uint64(1) << numbers % 64
        new, level = seen, 0
        while new.any():
            arrived = np.zeros_like(seen)
            arrived[targets] = np.bitwise_or.reduceat(new[origins], starts)
            new, level = arrived & ~seen, level + 1
            seen = seen | new
            found = int(np.bitwise_count(new).sum())
            total, pairs = total + level * found, pairs + found
            if level == MAX_LEVELS:
                return _long_distances(rows, sources)
    return total, pairs


def _long_distances(rows: Rows, sources: IntArray) -> tuple[int, int]:
    """The same by Dijkstra's algorithm, whose cost does not grow with the length of the paths."""
    total = pairs = 0
    for batch in np.split(sources, range(BATCH, len(sources), BATCH)):
        lengths = sparse.csgraph.dijkstra(rows.csr, indices=batch, unweighted=True)
        lengths = lengths[np.isfinite(lengths)]
        total, pairs = total + int(lengths.sum()), pairs + int(np.count_nonzero(lengths))
    return total, pairs

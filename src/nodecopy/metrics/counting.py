"""Counts of triangles, components, labels and distances with NumPy and SciPy, for small graphs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import IntArray, Ints, Rows

BATCH_SIZE = 1024  # sources of one breadth-first search, a bit each
MAX_LEVELS = 100  # levels after which compiled code, which only visits new nodes, is faster


def triangle_counts(rows: Rows) -> Ints:
    """Return the number of triangles through each node of a symmetric graph without loops."""
    # Edges point from lower to higher (degree, number), so that products stay sparse even around hubs.
    first, second, degrees = rows.row_numbers, rows.indices, rows.degrees
    up = (degrees[first] < degrees[second]) | ((degrees[first] == degrees[second]) & (first < second))
    shape = (rows.n_rows, rows.n_rows)
    forward = sparse.csr_array((np.ones(np.count_nonzero(up), np.int64), (first[up], second[up])), shape)
    closed = (forward @ forward) * forward
    opposite = (forward.T @ forward) * forward
    return np.asarray(closed.sum(axis=1) + closed.sum(axis=0) + opposite.sum(axis=1))


def count_triangles(rows: Rows) -> int:
    """Return the number of triangles of a symmetric graph without loops."""
    return int(triangle_counts(rows).sum()) // 3


def component_sizes(rows: Rows) -> tuple[int, int]:
    """Return the number of components of a symmetric graph and the number of nodes in the largest."""
    if not rows.n_rows:
        return 0, 0
    number, component = sparse.csgraph.connected_components(rows.csr, directed=False)
    return int(number), int(np.bincount(component).max())


def label_counts(rows: Rows, labels: IntArray, n_classes: int) -> tuple[Ints, Ints]:
    """Return, for each class of source, the entries whose target has the same label, and any label."""
    own, other = labels[rows.row_numbers], labels[rows.indices]
    labelled = (own >= 0) & (other >= 0)
    same = labelled & (own == other)
    return np.bincount(own[same], minlength=n_classes), np.bincount(own[labelled], minlength=n_classes)


def distances(rows: Rows, sources: IntArray) -> tuple[int, int]:
    """Return the sum of the distances from the sources to all nodes they reach, and the number of pairs."""
    reverse = sparse.csr_array(rows.csr.T)  # each node takes the bits of the nodes that point to it
    targets = np.flatnonzero(np.diff(reverse.indptr))
    starts, origins = reverse.indptr[targets], reverse.indices
    total = pairs = 0
    for batch in np.split(sources, range(BATCH_SIZE, len(sources), BATCH_SIZE)) if len(targets) else []:
        numbers = np.arange(len(batch), dtype=np.uint64)
        seen = np.zeros((rows.n_rows, -(-len(batch) // 64)), np.uint64)
        seen[batch, numbers // 64] = np.uint64(1) << numbers % 64
        new, level = seen, 0
        while new.any():
            arrived = np.zeros_like(seen)
            arrived[targets] = np.bitwise_or.reduceat(new[origins], starts)
            new, level = arrived & ~seen, level + 1
            seen = seen | new
            n_new = int(np.bitwise_count(new).sum())
            total, pairs = total + level * n_new, pairs + n_new
            if level == MAX_LEVELS:
                from nodecopy.metrics import counting_kernels

                return counting_kernels.distances(rows, sources)
    return total, pairs

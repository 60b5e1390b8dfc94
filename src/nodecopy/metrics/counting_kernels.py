"""Compiled counts for large graphs; :mod:`.counting` returns the same numbers with SciPy.

Threads are Python's: unlike numba's, they survive a fork and may be used from several threads at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.arrays import IntArray, Ints, Rows
from nodecopy._core.kernels import compiled, prefetch
from nodecopy._core.parallel import map_on_cores, n_threads

BATCH_SIZE = 64  # sources of one breadth-first search, a bit each
POINTERS_AHEAD, ROWS_AHEAD, ENTRIES_PER_PREFETCH = 40, 12, 16  # how many rows before their use


def triangle_counts(rows: Rows) -> Ints:
    """Return the triangles through each node."""
    starts, targets, number = sort_by_degree(rows.indptr, rows.indices)
    return np.asarray(_sum_over_nodes(_triangles, starts, targets)[number])


def count_triangles(rows: Rows) -> int:
    """Return the number of triangles, in half the time."""
    starts, targets, _ = sort_by_degree(rows.indptr, rows.indices)
    return int(_sum_over_nodes(_count_triangles, starts, targets))


def _sum_over_nodes(kernel: Any, starts: IntArray, targets: IntArray) -> Any:
    starts, targets = _earlier_neighbours(starts, targets)
    n_nodes, n_parts = len(starts) - 1, n_threads()
    bounds = np.searchsorted(starts, np.linspace(0, len(targets), n_parts + 1)).tolist()
    bounds[0], bounds[-1] = 0, n_nodes
    return sum(map_on_cores(lambda i: kernel(starts, targets, bounds[i], bounds[i + 1]), range(n_parts)))


def component_sizes(rows: Rows) -> tuple[int, int]:
    """Return the number of components and the size of the largest."""
    number, largest = map(int, _components(rows.indptr, rows.indices))
    return number, largest


def label_counts(rows: Rows, labels: IntArray, n_classes: int) -> tuple[Ints, Ints]:
    """Return the entries to the same label and to any, by class of source."""
    same, labelled = _label_counts(rows.indptr, rows.indices, labels, n_classes)
    return same, labelled


def distances(rows: Rows, sources: IntArray) -> tuple[int, int]:
    """Return the sum of the distances from the sources, and the number of pairs."""
    batches = [sources[i : i + BATCH_SIZE] for i in range(0, len(sources), BATCH_SIZE)]
    parts = list(map_on_cores(lambda batch: _distances(rows.indptr, rows.indices, batch), batches))
    return sum(int(total) for total, _ in parts), sum(int(pairs) for _, pairs in parts)


@compiled
def sort_by_degree(indptr, indices):
    """Return the rows of the same graph with nodes in descending order of degree, and the new numbers."""
    # Ends of loops over rows of equal length are predictable, and nodes that are read often are neighbours.
    n, largest = len(indptr) - 1, 0
    for u in range(n):
        largest = max(largest, indptr[u + 1] - indptr[u])
    places = np.zeros(largest + 2, np.int64)
    for u in range(n):
        places[largest - (indptr[u + 1] - indptr[u]) + 1] += 1
    for d in range(largest + 1):
        places[d + 1] += places[d]
    number, node = np.empty(n, indices.dtype), np.empty(n, indices.dtype)
    for u in range(n):
        place = largest - (indptr[u + 1] - indptr[u])
        number[u] = places[place]
        node[places[place]] = u
        places[place] += 1
    starts, targets, position = np.empty_like(indptr), np.empty_like(indices), np.uint64(0)
    for place in range(n):
        starts[place] = position
        prefetch(indptr, np.intp(node[min(place + POINTERS_AHEAD, n - 1)]))
        ahead = np.intp(indptr[node[min(place + ROWS_AHEAD, n - 1)]])
        prefetch(indices, ahead)
        prefetch(indices, ahead + ENTRIES_PER_PREFETCH)
        for e in range(np.uint64(indptr[node[place]]), np.uint64(indptr[node[place] + 1])):
            targets[position] = number[np.uint64(indices[e])]
            position += np.uint64(1)
    starts[n] = position
    return starts, targets, number


@compiled
def _earlier_neighbours(indptr, indices):
    """Return each edge once, to the node of higher degree: no row is longer than sqrt(2 edges)."""
    n = len(indptr) - 1
    starts, filled = np.zeros(n + 1, indptr.dtype), np.uint64(0)
    targets = np.empty(len(indices) // 2 + 1, indices.dtype)
    for u in range(n):
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[e]
            targets[filled] = v  # overwritten by the next target if v is later: cheaper than a branch
            filled += np.uint64(v < u)
        starts[u + 1] = filled
    return starts, targets[: np.intp(filled)]


@compiled
def _prefetch_targets(starts, targets, end):
    last = len(targets) - 1
    for k in range(4):
        prefetch(targets, np.intp(starts[targets[min(end + 10 + 2 * k, last)]]))


@compiled
def _triangles(starts, targets, first, last):
    """Count the triangles whose last node is in ``first .. last - 1`` at all three nodes."""
    n, unit = len(starts) - 1, np.uint64(1)
    counts, is_target = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    for u in range(first, last):
        start, end = np.uint64(starts[u]), np.uint64(starts[u + 1])
        if end - start < np.uint64(2):
            continue
        _prefetch_targets(starts, targets, np.intp(end))
        for e in range(start, end):
            is_target[np.uint64(targets[e])] = 1
        for e in range(start, end):
            v, n_closed = np.uint64(targets[e]), 0
            for f in range(np.uint64(starts[v]), np.uint64(starts[v + unit])):
                w = np.uint64(targets[f])
                if is_target[w]:
                    n_closed += 1
                    counts[w] += 1
            counts[u] += n_closed
            counts[v] += n_closed
        for e in range(start, end):
            is_target[np.uint64(targets[e])] = 0
    return counts


@compiled
def _count_triangles(starts, targets, first, last):
    """Return the number of triangles that :func:`_triangles` counts, without a branch for each."""
    n, unit = len(starts) - 1, np.uint64(1)
    is_target, total = np.zeros(n, np.uint8), np.int64(0)
    for u in range(first, last):
        start, end = np.uint64(starts[u]), np.uint64(starts[u + 1])
        if end - start < np.uint64(2):
            continue
        _prefetch_targets(starts, targets, np.intp(end))
        for e in range(start, end):
            is_target[np.uint64(targets[e])] = 1
        for e in range(start, end):
            v, n_closed = np.uint64(targets[e]), np.uint32(0)
            for f in range(np.uint64(starts[v]), np.uint64(starts[v + unit])):
                n_closed += is_target[np.uint64(targets[f])]
            total += n_closed
        for e in range(start, end):
            is_target[np.uint64(targets[e])] = 0
    return total


@compiled
def _root(parents, node):
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@compiled
def _join(parents, first, second):
    a, b = _root(parents, first), _root(parents, second)
    if a != b:
        parents[max(a, b)] = min(a, b)


@compiled
def _components(indptr, indices):
    """Find components by union-find that skips most edges (Afforest, Sutton et al., 2018)."""
    # Two edges of each node join most of the largest component. Its nodes are skipped afterwards, because
    # every edge that leaves it is seen from its other end.
    n = len(indptr) - 1
    parents = np.arange(n).astype(indices.dtype)
    for u in range(n):
        for e in range(indptr[u], min(indptr[u] + 2, indptr[u + 1])):
            _join(parents, u, indices[e])
    sizes = np.zeros(n, np.int64)
    for u in range(n):
        sizes[_root(parents, u)] += 1
    largest = np.argmax(sizes) if n else 0
    for u in range(n):
        if _root(parents, u) != _root(parents, largest):
            for e in range(indptr[u] + 2, indptr[u + 1]):
                _join(parents, u, indices[e])
    sizes[:] = 0
    number = 0
    for u in range(n):
        number += parents[u] == u
        sizes[_root(parents, u)] += 1
    return number, (sizes.max() if n else 0)


@compiled
def _label_counts(indptr, indices, labels, n_classes):
    same = np.zeros(n_classes, np.int64)
    labelled = np.zeros(n_classes, np.int64)
    for u in range(len(indptr) - 1):
        own = labels[u]
        if own < 0:
            continue
        n_same = n_labelled = 0
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            other = labels[np.uint64(indices[e])]
            n_same += other == own
            n_labelled += other >= 0
        same[own] += n_same
        labelled[own] += n_labelled
    return same, labelled


@compiled
def _count_ones(bits):
    """Count the ones in 64 bits by summing pairs, then groups of four, then bytes in parallel."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _distances(indptr, indices, sources):
    """Search breadth-first from up to 64 sources at once, a bit each (Then et al., 2014)."""
    n = len(indptr) - 1
    seen = np.zeros(n, np.uint64)
    arriving = np.zeros(n, np.uint64)
    passing = np.zeros(n, np.uint64)
    queue = np.empty(n, indices.dtype)
    waiting = np.empty(n, indices.dtype)
    n_queue = n_waiting = level = total = pairs = 0
    for i in range(len(sources)):
        seen[sources[i]] |= np.uint64(1) << np.uint64(i)
        passing[sources[i]] = seen[sources[i]]
        queue[i] = sources[i]
        n_queue += 1
    while n_queue:
        level += 1
        n_waiting = 0
        for i in range(n_queue):
            bits = passing[queue[i]]
            for e in range(indptr[queue[i]], indptr[queue[i] + 1]):
                v = indices[e]
                if bits & ~seen[v]:
                    if arriving[v] == 0:
                        waiting[n_waiting] = v
                        n_waiting += 1
                    arriving[v] |= bits
        n_queue = n_waiting
        for i in range(n_queue):
            v = waiting[i]
            queue[i] = v
            bits = arriving[v] & ~seen[v]
            passing[v] = bits
            seen[v] |= bits
            arriving[v] = 0
            n_new = _count_ones(bits)
            pairs += n_new
            total += level * n_new
    return total, pairs

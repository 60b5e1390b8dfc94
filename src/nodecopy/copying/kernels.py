"""Compiled kernels of node copying: uniforms, draws, the gather of rows and its symmetric closure.

Their twins in :mod:`.rows`, :mod:`.distributions` and :mod:`nodecopy._core.random` give the same bits and
serve small graphs. ``rows`` and ``merged`` are pairs of row pointers and column numbers, ``chunks`` is
``(pool, cursors, next_chunk)``. Weights are arguments of their own, since numba drops their branches only
then.

For the symmetric closure, entries are distributed over *buckets* of neighbouring columns (chains of chunks).
Each bucket, which fits into the cache, is sorted by row, and its rows are merged with the donors' rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import uint32
from scipy import sparse

from nodecopy._core.kernels import compiled, njit, prefetch
from nodecopy._core.parallel import map_on_cores
from nodecopy._core.random import PARITY, ROTATIONS

CHUNK_BITS = 10
CHUNK_SIZE = 1 << CHUNK_BITS
R0, R1, R2, R3, R4, R5, R6, R7 = ROTATIONS
POINTERS_AHEAD, ROWS_AHEAD = 40, 12  # rows before their use when pointers and entries are prefetched
ENTRIES_PER_PREFETCH = 16
COINS_AT_ONCE = 2048
MAX_INSERTION = 64  # entries of a row up to which insertion sorts faster
N_TASKS = 64  # blocks of rows with about as many multiplications each, which threads take in turn

inlined = njit(cache=True, nogil=True, inline="always")


@inlined
def _round(x, y, rotation):
    x = uint32(x + y)
    return x, uint32(uint32((y << uint32(rotation)) | (y >> uint32(32 - rotation))) ^ x)


@inlined
def _four_rounds(x, y, r0, r1, r2, r3):
    x, y = _round(x, y, r0)
    x, y = _round(x, y, r1)
    x, y = _round(x, y, r2)
    return _round(x, y, r3)


@inlined
def _threefry(k0, k1, k2, first, second):
    """Threefry-2x32-20 of one counter, unrolled so that loops over counters become vector code."""
    x, y = uint32(first + k0), uint32(second + k1)
    x, y = _four_rounds(x, y, R0, R1, R2, R3)
    x, y = _four_rounds(uint32(x + k1), uint32(y + k2 + uint32(1)), R4, R5, R6, R7)
    x, y = _four_rounds(uint32(x + k2), uint32(y + k0 + uint32(2)), R0, R1, R2, R3)
    x, y = _four_rounds(uint32(x + k0), uint32(y + k1 + uint32(3)), R4, R5, R6, R7)
    x, y = _four_rounds(uint32(x + k1), uint32(y + k2 + uint32(4)), R0, R1, R2, R3)
    return uint32(x + k2), uint32(y + k0 + uint32(5))


@compiled
def node_uniforms(key, out):
    """Write the numbers of :func:`nodecopy._core.random.node_uniforms`."""
    k0, k1 = uint32(key[0]), uint32(key[1])
    k2 = uint32(k0 ^ k1 ^ uint32(PARITY))
    for i in range(len(out)):
        x, y = _threefry(k0, k1, k2, uint32(i), uint32(i))
        out[i] = (np.float64(x >> uint32(5)) * 2.0**26 + np.float64(y >> uint32(6))) * 2.0**-53


@compiled
def draw_from_lists(uniforms, keep, list_of, offsets, members, donors):
    """Draw a donor for each node uniformly from its list; itself with probability ``keep``."""
    for i in range(len(uniforms)):
        u = uniforms[i]
        if u < keep:
            donors[i] = i
        else:
            start = offsets[list_of[i]]
            size = offsets[list_of[i] + 1] - start
            donors[i] = members[start + min(int((u - keep) / (1.0 - keep) * size), size - 1)]


@compiled
def draw_from_rows(uniforms, keep, indptr, indices, cumulative, donors):
    """Draw a donor for each node by binary search in the cumulative probabilities of its row."""
    for i in range(len(uniforms)):
        u = uniforms[i]
        if u < keep:
            donors[i] = i
            continue
        u = (u - keep) / (1.0 - keep)
        low, high = indptr[i], indptr[i + 1] - 1
        while low < high:
            middle = (low + high) >> 1
            if cumulative[middle] > u:
                high = middle
            else:
                low = middle + 1
        donors[i] = indices[low]


@compiled
def _prefetch_rows(indptr, indices, donors, i):
    """Prefetch the rows of later donors, without branches, across which numba counts references."""
    last = len(donors) - 1
    prefetch(indptr, np.intp(donors[min(i + POINTERS_AHEAD, last)]))
    start = np.intp(indptr[donors[min(i + ROWS_AHEAD, last)]])
    prefetch(indices, start)
    prefetch(indices, start + ENTRIES_PER_PREFETCH)


@compiled
def gather(indptr, indices, weights, donors, out_indptr, out, out_weights):
    """Copy row ``donors[i]`` of the input to row ``i`` of the output."""
    for i in range(len(donors)):
        _prefetch_rows(indptr, indices, donors, i)
        source, target = indptr[donors[i]], out_indptr[i]
        length = out_indptr[i + 1] - target
        for k in range(length):
            out[target + k] = indices[source + k]
        if weights is not None:
            for k in range(length):
                out_weights[target + k] = weights[source + k]


@inlined
def _exchange(classes, own, donor, bits, j):
    """Return the node that takes the place of node j in a row; see :class:`.rows.NodeClasses`."""
    places, offsets, members, _ = classes
    rank_bits, unit = np.uint64(0xFFFFFFFF), np.uint64(1)
    place = np.uint64(places[np.uint64(j)])
    c, r = place >> np.uint64(32), place & rank_bits
    is_own = np.uint64(c == own >> np.uint64(32))
    start = np.uint64(offsets[c])
    size = np.uint64(offsets[c + unit]) - start - is_own
    r -= is_own & np.uint64(r > donor & rank_bits)
    r += (bits * size) >> np.uint64(32)
    r -= size * np.uint64(r >= size)
    r += is_own & np.uint64(r >= own & rank_bits)
    return members[start + r]


@compiled
def _sort_row(indices, weights, start, end):
    """Sort the entries of a row, which mostly has few."""
    if end - start > MAX_INSERTION:
        order = np.argsort(indices[start:end])
        indices[start:end] = indices[start:end][order]
        if weights is not None:
            weights[start:end] = weights[start:end][order]
        return
    for k in range(start + 1, end):
        j, place = indices[k], k
        weight = weights[k] if weights is not None else 0
        while place > start and indices[place - 1] > j:
            indices[place] = indices[place - 1]
            if weights is not None:
                weights[place] = weights[place - 1]
            place -= 1
        indices[place] = j
        if weights is not None:
            weights[place] = weight


@compiled
def select_by_coin(key, indptr, indices, weights, donors, classes, out_indptr, out, out_weights):
    """Copy the entries (i, j) for which the coin of the pair {i, j} selects i; drop self-loops.

    With ``classes``, the nodes j are exchanged first. Coins of many rows are tossed at once: rows are mostly
    shorter than what a vector instruction needs.
    """
    n_rows, i, position = len(donors), 0, np.uint64(0)
    first, second = np.empty(COINS_AT_ONCE, np.uint32), np.empty(COINS_AT_ONCE, np.uint32)
    is_selected = np.empty(COINS_AT_ONCE, np.uint8)
    while i < n_rows:
        batch_start, size = i, np.uint64(0)
        while i < n_rows:
            start, end = np.uint64(indptr[donors[i]]), np.uint64(indptr[donors[i] + 1])
            if size + (end - start) > np.uint64(len(first)):
                if size:
                    break
                first, second = np.empty(end - start, np.uint32), np.empty(end - start, np.uint32)
                is_selected = np.empty(end - start, np.uint8)
            _prefetch_rows(indptr, indices, donors, i)
            if classes is not None:
                own, donor = classes[0][np.uint64(i)], classes[0][np.uint64(donors[i])]
                bits = np.uint64(classes[3][np.uint64(i)])
                for entry in range(start, end):
                    first[size] = i
                    second[size] = _exchange(classes, own, donor, bits, indices[entry])
                    size += np.uint64(1)
            else:
                for entry in range(start, end):
                    first[size], second[size] = i, indices[entry]
                    size += np.uint64(1)
            i += 1
        _toss_coins(key, first[:size], second[:size], is_selected[:size])
        row_start = np.uint64(0)
        for row in range(batch_start, i):
            out_indptr[row] = position
            start, end = np.uint64(indptr[donors[row]]), np.uint64(indptr[donors[row] + 1])
            for coin in range(row_start, row_start + (end - start)):
                out[position] = second[coin]
                if weights is not None:
                    out_weights[position] = weights[start + (coin - row_start)]
                position += np.uint64(is_selected[coin])
            row_start += end - start
            if classes is not None:
                _sort_row(out, out_weights, np.int64(out_indptr[row]), np.int64(position))
    out_indptr[n_rows] = position
    return position


@compiled
def _toss_coins(key, first, second, is_selected):
    """Write whether the coin of each pair selects the first node; loops are never selected."""
    k0, k1 = uint32(key[0]), uint32(key[1])
    k2 = uint32(k0 ^ k1 ^ uint32(PARITY))
    for k in range(len(first)):
        i, j = first[k], second[k]
        selects_larger = _threefry(k0, k1, k2, min(i, j), max(i, j))[0] >> uint32(31)
        is_selected[k] = (i != j) & (selects_larger == (i > j))


@compiled
def distribute(rows, weights, donors, shift, chunks, pool_weights):
    """Write every copied entry (i, j) to the bucket of column j, in ascending order of i.

    Bucket ``b`` starts with chunk ``b``; ``cursors[b]`` is where its next entry goes. An entry packs i
    and the low bits of j into one integer.
    """
    indptr, indices = rows
    pool, cursors, next_chunk = chunks
    low_bits, unit = np.uint64((1 << shift) - 1), np.uint64(1)
    shift_, chunk_bits = np.uint64(shift), np.uint64(CHUNK_BITS)
    free = np.uint64(len(cursors))
    for bucket in range(len(cursors)):
        cursors[bucket] = bucket << CHUNK_BITS
    for i in range(len(donors)):
        _prefetch_rows(indptr, indices, donors, i)
        row = np.uint64(i) << shift_
        for k in range(indptr[donors[i]], indptr[donors[i] + 1]):
            column = np.uint64(indices[k])
            bucket = column >> shift_
            position = np.uint64(cursors[bucket])
            pool[position] = row | (column & low_bits)
            if weights is not None:
                pool_weights[position] = weights[k]
            position += unit
            if position & np.uint64(CHUNK_SIZE - 1) == np.uint64(0):
                next_chunk[(position >> chunk_bits) - unit] = free
                position = free << chunk_bits
                free += unit
            cursors[bucket] = position


@compiled
def _chunk_bounds(chunk, cursor):
    """Return the bounds of the entries of a chunk, and whether it is the last one of its bucket."""
    start, is_last = chunk << CHUNK_BITS, chunk == cursor >> CHUNK_BITS
    return start, cursor if is_last else start + CHUNK_SIZE, is_last


@compiled
def largest_bucket(cursors, next_chunk):
    """Return the number of entries in the largest bucket."""
    largest = 0
    for bucket in range(len(cursors)):
        size, chunk, is_last = 0, bucket, False
        while not is_last:
            start, end, is_last = _chunk_bounds(chunk, cursors[bucket])
            size += end - start
            chunk = next_chunk[chunk]
        largest = max(largest, size)
    return largest


@compiled
def sort_bucket(bucket, shift, chunks, pool_weights, ends, columns, column_weights):
    """Sort one bucket by counting; afterwards row r of the transpose ends at ``ends[r]``."""
    pool, cursors, next_chunk = chunks
    cursor = cursors[bucket]
    low_bits, unit, shift_ = np.uint64((1 << shift) - 1), np.uint64(1), np.uint64(shift)
    ends[:] = 0
    chunk, is_last = bucket, False
    while not is_last:
        start, end, is_last = _chunk_bounds(chunk, cursor)
        for k in range(start, end):
            ends[(np.uint64(pool[k]) & low_bits) + unit] += 1
        chunk = next_chunk[chunk]
    for r in range(len(ends) - 1):
        ends[r + 1] += ends[r]
    chunk, is_last = bucket, False
    while not is_last:
        start, end, is_last = _chunk_bounds(chunk, cursor)
        for k in range(start, end):
            entry = np.uint64(pool[k])
            r = entry & low_bits
            position = ends[r]
            columns[np.uint64(position)] = entry >> shift_
            if pool_weights is not None:
                column_weights[position] = pool_weights[k]
            ends[r] = position + 1
        chunk = next_chunk[chunk]


@compiled
def merge_rows(bounds, rows, weights, donors, ends, columns, column_weights, merged, out_weights, position):
    """Append, for each row of a bucket, the union of its two sorted halves, with the larger weights."""
    first, last = bounds
    indptr, indices = rows
    out_indptr, out = merged
    y, unit = np.uint64(0), np.uint64(1)
    for row in range(first, last):
        _prefetch_rows(indptr, indices, donors, row)
        out_indptr[row] = position
        x, x_end = np.uint64(indptr[donors[row]]), np.uint64(indptr[donors[row] + 1])
        y_end = np.uint64(ends[row - first])
        while x < x_end and y < y_end:  # which half is next is a coin: a branch would cost more
            a, b = indices[x], columns[y]
            out[position] = min(a, b)
            if weights is not None:
                weight = weights[x] if a <= b else column_weights[y]
                out_weights[position] = max(weight, column_weights[y]) if b <= a else weight
            position += np.uint64(min(a, b) != row)
            x += np.uint64(a <= b)
            y += np.uint64(b <= a)
        while x < x_end:
            out[position] = indices[x]
            if weights is not None:
                out_weights[position] = weights[x]
            position += np.uint64(indices[x] != row)
            x += unit
        while y < y_end:
            out[position] = columns[y]
            if weights is not None:
                out_weights[position] = column_weights[y]
            position += np.uint64(columns[y] != row)
            y += unit
    return position


@compiled
def merge_buckets(
    rows, weights, donors, shift, chunks, pool_weights, columns, column_weights, merged, out_weights
):
    """Write the union of the copied rows and their transpose without self-loops; return its size.

    ``columns`` and ``column_weights`` are scratch memory for the largest bucket.
    """
    ends = np.zeros((1 << shift) + 1, np.int64)
    position = np.uint64(0)
    for bucket in range(len(chunks[1])):
        sort_bucket(bucket, shift, chunks, pool_weights, ends, columns, column_weights)
        bounds = bucket << shift, min((bucket + 1) << shift, len(donors))
        position = merge_rows(
            bounds, rows, weights, donors, ends, columns, column_weights, merged, out_weights, position
        )
    merged[0][len(donors)] = position
    return position


def most_similar_rows(
    pattern: sparse.csr_array, transpose: sparse.csr_array, n_largest: int, include_self: bool
) -> sparse.csr_array:
    """Return the largest Jaccard indices of each row with all rows; ties go to the lowest row."""
    n_rows, n_largest = pattern.shape[0], min(n_largest, pattern.shape[0])
    n_products = pattern @ np.diff(transpose.indptr).astype(np.float64)
    work = np.cumsum(np.append(0.0, n_products))
    # A row has no more similar rows than multiplications.
    n_entries = np.minimum(n_products, n_largest).astype(np.int64)
    bounds = np.unique(np.append(np.searchsorted(work, np.linspace(0, work[-1], N_TASKS)), [0, n_rows]))

    def search(block: tuple[int, int]) -> Any:
        size = int(n_entries[slice(*block)].sum())
        csr = (pattern.indptr, pattern.indices, transpose.indptr, transpose.indices)
        return _most_similar(*csr, *block, n_largest, include_self, size)

    counts, columns, values = zip(*map_on_cores(search, pairwise(bounds.tolist())), strict=True)
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    entries = np.concatenate(values), np.concatenate(columns), indptr
    return sparse.csr_array(entries, shape=(n_rows, n_rows))


@compiled
def _most_similar(
    indptr, indices, other_indptr, other_indices, first, last, n_largest, include_self, n_entries
):
    """Return the counts, columns and indices of the rows from first to last, at most ``n_entries``."""
    n, degrees = len(indptr) - 1, np.diff(indptr).astype(np.int32)
    shared, touched = np.zeros(n, np.int32), np.empty(n + 1, np.int32)
    index, rows = np.empty(n_largest, np.float64), np.empty(n_largest, np.int32)  # a heap, the worst first
    counts = np.zeros(last - first, np.int64)
    columns = np.empty(n_entries, np.int32)
    values = np.empty(n_entries, np.float64)
    filled = 0
    for row in range(first, last):
        n_touched = 0
        for e in range(indptr[row], indptr[row + 1]):
            for f in range(other_indptr[indices[e]], other_indptr[indices[e] + 1]):
                other = other_indices[f]
                touched[n_touched] = other
                n_touched += shared[other] == 0
                shared[other] += 1
        index[:], rows[:] = 0.0, n
        bound = 0.0  # just below the smallest index of the heap
        for t in range(n_touched):
            other = touched[t]
            union = degrees[row] + degrees[other] - shared[other]
            if shared[other] >= bound * union and (include_self or other != row):
                value = shared[other] / union
                if value > index[0] or (value == index[0] and other < rows[0]):
                    _replace_worst(index, rows, value, other)
                    bound = (1 - 1e-9) * index[0]
            shared[other] = 0
        for k in range(n_largest):
            if index[k] > 0:
                columns[filled], values[filled] = rows[k], index[k]
                filled += 1
                counts[row - first] += 1
    return counts, columns[:filled].copy(), values[:filled].copy()


@compiled
def _replace_worst(index, rows, value, row):
    """Replace the root of a heap, which has the smallest index and among equal ones the largest row."""
    k, child = 0, 1
    while child < len(index):
        if child + 1 < len(index):
            after = index[child + 1], -rows[child + 1]
            child += after < (index[child], -rows[child])
        if (value, -row) < (index[child], -rows[child]):
            break
        index[k], rows[k] = index[child], rows[child]
        k, child = child, 2 * child + 1
    index[k], rows[k] = value, row

"""T(A, zeta): copy the donors' rows and make the result symmetric.

From ``MIN_COMPILED_SIZE`` entries on, compiled kernels compute the same bits several times faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nodecopy._core.arrays import Array, Bools, Floats, IntArray, Rows, index_dtype, keep_entries
from nodecopy._core.random import Key, pair_coins

MIN_COMPILED_SIZE = 200_000  # entries plus rows below which loading compiled code takes longer than it saves


def is_large(rows: Rows) -> bool:
    """Return whether rows are large enough for compiled kernels."""
    return rows.n_entries + rows.n_rows >= MIN_COMPILED_SIZE


def copy_rows(rows: Rows, donors: IntArray) -> Rows:
    """Return the directed sample C_zeta A: its row ``i`` is row ``donors[i]``."""
    indptr = _copied_indptr(rows, donors)
    if is_large(rows):
        from nodecopy.copying import kernels

        indices, weights = _empty_entries(rows, int(indptr[-1]))
        kernels.gather(rows.indptr, rows.indices, rows.weights, donors, indptr, indices, weights)
        return Rows.canonical(indptr, indices, weights, rows.n_columns)
    entries = np.arange(indptr[-1]) + np.repeat(rows.indptr[donors] - indptr[:-1], np.diff(indptr))
    weights = None if rows.weights is None else rows.weights[entries]
    return Rows.canonical(indptr, rows.indices[entries], weights, rows.n_columns)


def symmetric_union(rows: Rows, donors: IntArray) -> Rows:
    """Return the elementwise maximum of the copied rows and their transpose, without self-loops."""
    if is_large(rows):
        return _symmetric_union_compiled(rows, donors)
    copied = copy_rows(rows, donors)
    return _closure(copied, copied.row_numbers != copied.indices)


class NodeClasses(NamedTuple):
    """Classes whose nodes take each other's place in copied rows.

    ``places`` packs the class of each node and its rank in it; class c is ``members[offsets[c]:offsets[c +
    1]]``. The ``bits`` of a node, 32 random ones, rotate its row.
    """

    places: Array
    offsets: IntArray
    members: IntArray
    bits: Array

    @classmethod
    def of(cls, list_of: IntArray, offsets: IntArray, members: IntArray, uniforms: Floats) -> NodeClasses:
        """Return the classes of nodes whose donors are the nodes of their class."""
        places = list_of.astype(np.uint64) << np.uint64(32)
        places[members] += (np.arange(len(members)) - np.repeat(offsets[:-1], np.diff(offsets))).astype(
            np.uint64
        )
        return cls(places, offsets, members, (uniforms * 2.0**32).astype(np.uint32))


def one_endpoint(rows: Rows, donors: IntArray, key: Key, classes: NodeClasses | None = None) -> Rows:
    """Copy rows, then let a fair coin per pair choose the endpoint whose row decides the edge.

    With ``classes``, each copied row first exchanges its nodes within their classes by a random rotation.
    """
    if is_large(rows):
        from nodecopy.copying import kernels

        indptr = _copied_indptr(rows, donors)
        indices, weights = _empty_entries(
            rows, int(indptr[-1]) + 1
        )  # an entry is written before it is dropped
        parts = None if classes is None else tuple(classes)
        source = (key, rows.indptr, rows.indices, rows.weights, donors, parts)
        n_entries = kernels.select_by_coin(*source, indptr, indices, weights)
        selected = Rows(indptr, *_truncate(indices, weights, n_entries), rows.n_columns)
        return _symmetric_union_compiled(selected, np.arange(rows.n_rows, dtype=rows.indices.dtype))
    copied = copy_rows(rows, donors)
    if classes is not None:
        copied = _exchange(copied, donors, classes)
    first, second = copied.row_numbers, copied.indices
    is_selected = pair_coins(key, first, second) == (first > second)
    return _closure(copied, is_selected & (first != second))


def _exchange(copied: Rows, donors: IntArray, classes: NodeClasses) -> Rows:
    """Return rows in which the nodes of each class are rotated; a node takes its donor's place among them."""
    places, offsets, members, bits = classes
    list_of, rank = (
        (places >> np.uint64(32)).astype(np.int64),
        (places & np.uint64(2**32 - 1)).astype(np.int64),
    )
    first, second = copied.row_numbers, copied.indices
    c, r = list_of[second], rank[second]
    is_own = c == list_of[first]
    sizes = (np.diff(offsets)[c] - is_own).astype(np.int64)  # without the node itself
    r = r - (is_own & (r > rank[donors[first]]))
    r += (bits[first] * sizes.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
    r -= sizes * (r >= sizes)
    r += is_own & (r >= rank[first])
    columns = members[offsets[c] + r]
    order = np.lexsort((columns, first))
    weights = None if copied.weights is None else copied.weights[order]
    return Rows.canonical(copied.indptr, columns[order], weights, copied.n_columns)


def _closure(copied: Rows, mask: Bools) -> Rows:
    """Return the elementwise maximum of the entries where ``mask`` is true and their transpose."""
    matrix = keep_entries(copied.csr, mask)
    matrix = matrix.maximum(matrix.T.tocsr())
    matrix.sort_indices()
    weights = None if copied.weights is None else matrix.data
    return Rows.canonical(matrix.indptr, matrix.indices, weights, copied.n_columns)


def _symmetric_union_compiled(rows: Rows, donors: IntArray) -> Rows:
    from nodecopy.copying import kernels

    indptr = _copied_indptr(rows, donors, max_growth=2)
    n_copied = int(indptr[-1])
    node_bits = int(rows.n_rows).bit_length()
    shift = max(9, node_bits - 10)  # at most 1,024 buckets, each of which fits into the cache
    n_buckets = (rows.n_rows >> shift) + 1
    n_chunks = n_copied // kernels.CHUNK_SIZE + 2 * n_buckets
    pool = np.empty(n_chunks << kernels.CHUNK_BITS, np.uint32 if node_bits + shift <= 32 else np.uint64)
    pool_weights = None if rows.weights is None else np.empty(len(pool), rows.weights.dtype)
    cursors, next_chunk = np.empty(n_buckets, np.int64), np.zeros(n_chunks, np.int64)
    chunks = (pool, cursors, next_chunk)
    source = ((rows.indptr, rows.indices), rows.weights, donors, shift, chunks, pool_weights)
    kernels.distribute(*source)
    scratch = _empty_entries(rows, kernels.largest_bucket(cursors, next_chunk))
    indices, weights = _empty_entries(rows, 2 * n_copied)
    n_entries = kernels.merge_buckets(*source, *scratch, (indptr, indices), weights)
    return Rows.canonical(indptr, *_truncate(indices, weights, n_entries), rows.n_columns)


def _copied_indptr(rows: Rows, donors: IntArray, max_growth: int = 1) -> IntArray:
    """Return the row pointers of copied rows, of a type for ``max_growth`` times as many entries."""
    lengths = rows.degrees[donors]
    needed = index_dtype(max_growth * int(lengths.sum(dtype=np.int64)))
    indptr = np.zeros(len(donors) + 1, np.promote_types(rows.indptr.dtype, needed))
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _empty_entries(rows: Rows, n_entries: int) -> tuple[Array, Array | None]:
    weights = None if rows.weights is None else np.empty(n_entries, rows.weights.dtype)
    return np.empty(n_entries, rows.indices.dtype), weights


def _truncate(indices: Array, weights: Array | None, n_entries: int) -> tuple[Any, Any]:
    for array in (indices, weights):
        if array is not None:
            array.resize(n_entries, refcheck=False)
    return indices, weights

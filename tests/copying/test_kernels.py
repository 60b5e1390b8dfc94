from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy._core import random
from nodecopy._core.arrays import Rows
from nodecopy.copying import kernels as typed_kernels
from tests.copying import oracles
from tests.copying.oracles import dense, random_rows

kernels: Any = typed_kernels
KEYS = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
ALMOST_ONE = np.nextafter(1.0, 0.0)


@settings(deadline=None)
@given(KEYS, st.integers(0, 50))
def test_uniforms_of_numpy_numba_and_python_are_equal(key: tuple[int, int], n: int) -> None:
    compiled = np.empty(n)
    kernels.node_uniforms(key, compiled)
    words = [oracles.threefry(key, i, i) for i in range(n)]
    assert compiled.tolist() == [((x >> 5) * 2**26 + (y >> 6)) / 2**53 for x, y in words]
    assert np.array_equal(compiled, random.node_uniforms(key, n))
    assert ((compiled >= 0) & (compiled < 1)).all()


@settings(deadline=None)
@given(KEYS, st.integers(0, 1000), st.integers(0, 1000))
def test_coins_do_not_depend_on_the_order_of_a_pair(key: tuple[int, int], i: int, j: int) -> None:
    coins = random.pair_coins(key, np.array([i, j]), np.array([j, i]))
    assert coins.tolist() == [bool(oracles.threefry(key, min(i, j), max(i, j))[0] >> 31)] * 2


UNIFORMS = np.array([0.0, 0.2, 0.25, 0.3, 0.5, 0.7, 0.999, ALMOST_ONE])


@pytest.mark.parametrize("keep", [0.0, 0.25, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_draws_from_lists(keep: float, dtype: Any) -> None:
    list_of, offsets, members = (np.array(a, dtype) for a in ([0, 1] * 4, [0, 3, 5], [0, 2, 4, 1, 3]))
    for draw in (kernels.draw_from_lists, kernels.draw_from_lists.py_func):
        donors = np.full(8, -1, dtype)
        draw(UNIFORMS, keep, list_of, offsets, members, donors)
        for i, u in enumerate(UNIFORMS):
            if u < keep:
                assert donors[i] == i
            else:
                mine = [0, 2, 4] if i % 2 == 0 else [1, 3]
                place = min(int((u - keep) / (1 - keep) * len(mine)), len(mine) - 1)
                assert donors[i] == mine[place]


@pytest.mark.parametrize("keep", [0.0, 0.25, 0.3, 0.9, 1.0])
def test_draws_from_rows(keep: float) -> None:
    """The donor is the first whose cumulative probability exceeds the uniform."""
    indptr, indices = np.arange(0, 27, 3), np.tile([1, 4, 6], 8)
    cumulative = np.tile([0.25, 0.5, 1.0], 8)
    for draw in (kernels.draw_from_rows, kernels.draw_from_rows.py_func):
        donors = np.full(8, -1)
        draw(UNIFORMS, keep, indptr, indices, cumulative, donors)
        for i, u in enumerate(UNIFORMS):
            v = (u - keep) / (1 - keep) if u >= keep else 0.0
            assert donors[i] == (i if u < keep else 1 if v < 0.25 else 4 if v < 0.5 else 6)


@pytest.mark.parametrize("weight", [None, np.float32])
def test_gather_and_coins_against_python(weight: Any) -> None:
    rows, key = random_rows(30, 4, 5, weights=weight), (17, 2**31)
    donors = np.random.default_rng(2).integers(30, size=30).astype(np.int32)
    copied = dense(rows)[donors]
    indptr = np.empty(31, np.int32)
    n_copied = kernels.copied_indptr(rows.indptr, donors, indptr)
    assert n_copied == np.count_nonzero(copied)
    out, out_weights = np.empty(n_copied, np.int32), None if weight is None else np.empty(n_copied, weight)
    kernels.gather(rows.indptr, rows.indices, rows.weights, donors, indptr, out, out_weights)
    assert np.array_equal(dense(Rows(indptr, out, out_weights, 30)), copied)

    selects_larger = [
        [oracles.threefry(key, min(i, j), max(i, j))[0] >> 31 for j in range(30)] for i in range(30)
    ]
    above = np.arange(30)[:, None] > np.arange(30)
    decides = (np.array(selects_larger) == above) & ~np.eye(30, dtype=bool)
    out = np.empty(n_copied + 1, np.int32)
    out_weights = None if weight is None else np.empty(n_copied + 1, weight)
    n = kernels.select_by_coin(key, rows.indptr, rows.indices, rows.weights, donors, indptr, out, out_weights)
    result = Rows(indptr, out[:n], None if out_weights is None else out_weights[:n], 30)
    assert np.array_equal(dense(result), np.where(decides, copied, 0))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("degree", [0, 1, 5, 20, 60])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("weight", [None, np.float64])
def test_merging_gives_the_union_with_the_larger_weights(
    degree: int, dtype: Any, weight: Any, compiled: bool
) -> None:
    """All rows in one bucket; the transpose of the copied rows comes from SciPy."""
    n = 200
    rows = random_rows(n, degree, degree, dtype, weights=weight)
    donors = np.random.default_rng(1).integers(n, size=n).astype(dtype)
    copied = sparse.csr_array(dense(rows)[donors])
    transpose = copied.T.tocsr()
    transpose.sort_indices()
    indptr, out = np.empty(n + 1, dtype), np.full(2 * copied.nnz, -1, dtype)
    column_weights, out_weights = None, None
    if rows.weights is not None:
        column_weights, out_weights = transpose.data.astype(weight), np.empty(2 * copied.nnz, weight)
    merge = kernels.merge_rows if compiled else kernels.merge_rows.py_func
    indptr[n] = merge(
        (0, n), (rows.indptr, rows.indices), rows.weights, donors, transpose.indptr[1:].astype(np.int64),
        transpose.indices.astype(dtype), column_weights, (indptr, out), out_weights, 0,
    )  # fmt: skip
    size = indptr[n]
    result = Rows(indptr, out[:size], None if out_weights is None else out_weights[:size], n)
    expected = sparse.csr_array(oracles.maximum(dense(rows), donors))
    assert np.array_equal(result.indptr, expected.indptr)
    assert np.array_equal(result.indices, expected.indices)
    assert np.array_equal(dense(result), expected.toarray())


@pytest.mark.parametrize(("n", "degree", "shift"), [(40, 3, 3), (300, 30, 5), (1100, 8, 9)])
@pytest.mark.parametrize("word", [np.uint32, np.uint64])
def test_buckets_hold_every_entry_once_and_in_order(n: int, degree: int, shift: int, word: Any) -> None:
    """Distribute, follow the chains of chunks in Python, sort: the transpose of the copied rows."""
    rows = random_rows(n, degree, 7, weights=np.float32)
    donors = np.random.default_rng(6).integers(n, size=n).astype(np.int32)
    copied = sparse.csr_array(dense(rows)[donors])
    n_buckets = (n >> shift) + 1
    n_chunks = copied.nnz // kernels.CHUNK_SIZE + 2 * n_buckets
    pool, pool_weights = (
        np.zeros(n_chunks * kernels.CHUNK_SIZE, word),
        np.zeros(n_chunks * kernels.CHUNK_SIZE, np.float32),
    )
    cursors, next_chunk = np.empty(n_buckets, np.int64), np.zeros(n_chunks, np.int64)
    arrays = pool, cursors, next_chunk
    kernels.distribute((rows.indptr, rows.indices), rows.weights, donors, shift, arrays, pool_weights)
    first, second = copied.nonzero()
    sizes = []
    for bucket in range(n_buckets):
        chunks, last = [bucket], int(cursors[bucket]) >> kernels.CHUNK_BITS
        while chunks[-1] != last:
            assert len(chunks) < n_chunks
            chunks.append(int(next_chunk[chunks[-1]]))
        starts = [chunk * kernels.CHUNK_SIZE for chunk in chunks]
        ends_at = [start + kernels.CHUNK_SIZE for start in starts[:-1]] + [int(cursors[bucket])]
        entries = [k for start, end in zip(starts, ends_at, strict=True) for k in pool[start:end].tolist()]
        mine = second >> shift == bucket
        low = second[mine] - (bucket << shift)
        assert entries == ((first[mine].astype(np.int64) << shift) | low).tolist()
        sizes.append(len(entries))
        ends = np.zeros((1 << shift) + 1, np.int64)
        columns, weights = np.empty(len(entries), np.int32), np.empty(len(entries), np.float32)
        kernels.sort_bucket(bucket, shift, arrays, pool_weights, ends, columns, weights)
        order = np.argsort(low, kind="stable")
        assert np.array_equal(columns, first[mine][order])
        assert np.array_equal(weights, copied.toarray()[first[mine][order], second[mine][order]])
        assert np.array_equal(ends[:-1], np.cumsum(np.bincount(low, minlength=1 << shift)))
    assert kernels.largest_bucket(cursors, next_chunk) == max(sizes)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import Graph
from nodecopy._core import arrays as rows_module
from nodecopy._core import random
from nodecopy._core.arrays import Rows
from nodecopy.copying import kernels as typed_kernels
from nodecopy.copying import rows as row_copying
from nodecopy.copying.distributions import DonorLists
from nodecopy.copying.rows import NodeClasses, copy_rows, one_endpoint, symmetric_union
from tests.copying import oracles
from tests.copying.oracles import assert_same_rows, dense, random_rows, rows_of
from tests.strategies import graphs, interactions

KINDS = [(index, weight) for index in (np.int32, np.int64) for weight in (None, np.float32, np.float64)]
KEYS = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))


def some_donors(data: st.DataObject, n: int) -> Any:
    return np.array(data.draw(st.lists(st.integers(0, max(0, n - 1)), min_size=n, max_size=n)), np.int32)


def without_loops(rows: Rows) -> Rows:
    return rows.keep_entries(rows.row_numbers != rows.indices)


def compiled_and_plain(rows: Rows, donors: Any, seed: int = 3) -> list[tuple[Rows, Rows]]:
    """Return the result of every operation by compiled kernels and by NumPy."""
    key = (seed, 2**32 - 1 - seed)
    groups, uniforms = np.arange(rows.n_rows) % 3, np.random.default_rng(seed).random(rows.n_rows)
    donors_of = DonorLists.from_groups(groups)
    classes = NodeClasses.of(donors_of.list_of, donors_of.offsets, donors_of.members, uniforms)
    mates = donors_of.draw(uniforms, 0.0)
    results = []
    for min_compiled_size in (0, 2**62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_copying, "MIN_COMPILED_SIZE", min_compiled_size)
            plain = (copy_rows(rows, donors), symmetric_union(rows, donors), one_endpoint(rows, donors, key))
            results.append((*plain, one_endpoint(without_loops(rows), mates, key, classes)))
    return list(zip(*results, strict=True))


@given(st.data(), graphs())
def test_row_i_is_the_donors_row(data: st.DataObject, graph: Graph) -> None:
    donors = some_donors(data, graph.n_nodes)
    assert np.array_equal(dense(copy_rows(graph.rows, donors)), dense(graph.rows)[donors])


@given(st.data(), interactions())
def test_users_copy_users(data: st.DataObject, log: Any) -> None:
    donors = some_donors(data, log.n_users)
    sample = copy_rows(log.rows, donors)
    assert np.array_equal(dense(sample), dense(log.rows)[donors])
    assert sample.n_columns == log.n_items


@given(st.data(), graphs(directed=False))
def test_maximum_is_the_larger_of_both_rows(data: st.DataObject, graph: Graph) -> None:
    donors = some_donors(data, graph.n_nodes)
    wanted = oracles.maximum(dense(graph.rows), donors)
    assert np.array_equal(dense(symmetric_union(graph.rows, donors)), wanted)


@given(st.data(), graphs(directed=False), KEYS)
def test_one_endpoint_decides_each_pair(data: st.DataObject, graph: Graph, key: tuple[int, int]) -> None:
    donors = some_donors(data, graph.n_nodes)
    wanted = oracles.one_endpoint(dense(graph.rows), donors, key)
    assert np.array_equal(dense(one_endpoint(graph.rows, donors, key)), wanted)


@given(st.data(), graphs(directed=False))
def test_renumbering_commutes_with_copying(data: st.DataObject, graph: Graph) -> None:
    n = graph.n_nodes
    donors, order = some_donors(data, n), np.array(data.draw(st.permutations(range(n))), int)
    renumbered = graph.subgraph(order).rows
    donors_renumbered = np.argsort(order)[donors[order]]
    for operation in (copy_rows, symmetric_union):
        sample = dense(operation(graph.rows, donors))
        assert np.array_equal(dense(operation(renumbered, donors_renumbered)), sample[np.ix_(order, order)])


@settings(max_examples=60)
@given(st.data(), graphs(max_nodes=12))
def test_compiled_code_gives_the_same_bits(data: st.DataObject, graph: Graph) -> None:
    donors = some_donors(data, graph.n_nodes)
    for compiled, plain in compiled_and_plain(graph.rows, donors):
        assert_same_rows(compiled, plain)


@settings(max_examples=30)
@given(st.data(), interactions(max_size=12))
def test_compiled_code_gives_the_same_bits_for_users(data: st.DataObject, log: Any) -> None:
    donors = some_donors(data, log.n_users)
    expected = copy_rows(log.rows, donors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_copying, "MIN_COMPILED_SIZE", 0)
        assert_same_rows(copy_rows(log.rows, donors), expected)


@pytest.mark.parametrize(("index", "weight"), KINDS)
@pytest.mark.parametrize(("n", "degree"), [(0, 0), (1, 1), (7, 0), (40, 3), (130, 40), (400, 30)])
def test_compiled_code_for_every_type(n: int, degree: float, index: Any, weight: Any) -> None:
    """Row lengths from none to far beyond the 16 numbers of a vector."""
    rows = random_rows(n, degree, n, index, weight)
    donors = np.random.default_rng(n).integers(max(1, n), size=n).astype(index)
    for compiled, plain in compiled_and_plain(rows, donors):
        assert_same_rows(compiled, plain)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 48, 100, 255, 256, 257, 600])
@pytest.mark.parametrize("weight", [None, np.float64])
def test_rows_around_the_lengths_of_vectors_and_buffers(length: int, weight: Any) -> None:
    """Hubs: some rows hold ``length`` entries, and one column is in every row."""
    n, draw = 700, np.random.default_rng(length)
    matrix = np.zeros((n, n))
    for i in (0, 3, 511, 512, 699):
        matrix[i, draw.choice(n, length, replace=False)] = draw.integers(1, 4, length)
    matrix[:, 5] = 2
    rows = rows_of(matrix, weights=weight)
    donors = draw.choice([0, 3, 511, 512, 699, 100], n).astype(np.int32)
    for compiled, plain in compiled_and_plain(rows, donors):
        assert_same_rows(compiled, plain)


@pytest.mark.parametrize("n", [511, 512, 513, 1023, 1024, 1025, 1537])
@pytest.mark.parametrize("weight", [None, np.float32])
def test_node_numbers_around_the_borders_of_buckets(n: int, weight: Any) -> None:
    rows = random_rows(n, 6, n, weights=weight)
    donors = np.random.default_rng(n).integers(n, size=n).astype(np.int32)
    for compiled, plain in compiled_and_plain(rows, donors):
        assert_same_rows(compiled, plain)


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2047, 2048, 2049, 3072])
@pytest.mark.parametrize("column", [0, 511, 512, 1600])
def test_buckets_that_fill_their_chunks_exactly(count: int, column: int) -> None:
    """One bucket gets ``count`` entries: 1,024 of them fill a chunk."""
    n = 3100
    matrix = np.zeros((n, n), np.int8)
    matrix[:count, column] = 1
    rows, own = rows_of(matrix), np.arange(n, dtype=np.int32)
    for compiled, plain in compiled_and_plain(rows, own):
        assert_same_rows(compiled, plain)


def test_two_million_nodes_need_wide_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 2**21 nodes on, a row and the low bits of a column no longer fit 32 bits."""
    n, draw = 2**21 + 5, np.random.default_rng(0)
    cells = np.unique(draw.integers(n * n, size=100_000))
    rows = rows_of(sparse.csr_array((np.ones(len(cells)), (cells // n, cells % n)), shape=(n, n)))
    donors = draw.integers(n, size=n).astype(np.int32)
    monkeypatch.setattr(row_copying, "MIN_COMPILED_SIZE", 2**40)
    for compiled, plain in compiled_and_plain(rows, donors):
        assert_same_rows(compiled, plain)


def test_large_inputs_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(50, 4, 2)
    size = rows.n_entries + rows.n_rows
    monkeypatch.setattr(row_copying, "MIN_COMPILED_SIZE", size + 1)
    assert not row_copying.is_large(rows)
    monkeypatch.setattr(row_copying, "MIN_COMPILED_SIZE", size)
    assert row_copying.is_large(rows)


def test_pointers_widen_where_entries_exceed_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of 100 instead of 2**31, row pointers have the wide type and the result is the same."""
    rows = random_rows(40, 4, 3)
    donors = np.zeros(40, np.int32)
    wanted = symmetric_union(rows, donors)
    with monkeypatch.context() as patch:
        for module in (row_copying, rows_module):
            patch.setattr(module, "index_dtype", lambda *sizes: np.int32 if max(sizes) < 100 else np.int64)
        patch.setattr(row_copying, "MIN_COMPILED_SIZE", 0)
        compiled = symmetric_union(rows, donors)
    assert compiled.indptr.dtype == np.int64
    assert compiled == wanted


kernels: Any = typed_kernels


@given(KEYS, st.integers(0, 50))
def test_uniforms_of_numpy_numba_and_python_are_equal(key: tuple[int, int], n: int) -> None:
    compiled = np.empty(n)
    kernels.node_uniforms(key, compiled)
    words = [oracles.threefry(key, i, i) for i in range(n)]
    assert compiled.tolist() == [((x >> 5) * 2**26 + (y >> 6)) / 2**53 for x, y in words]
    assert np.array_equal(compiled, random.node_uniforms(key, n))
    assert ((compiled >= 0) & (compiled < 1)).all()


@given(KEYS, st.integers(0, 1000), st.integers(0, 1000))
def test_coins_do_not_depend_on_the_order_of_a_pair(key: tuple[int, int], i: int, j: int) -> None:
    coins = random.pair_coins(key, np.array([i, j]), np.array([j, i]))
    assert coins.tolist() == [bool(oracles.threefry(key, min(i, j), max(i, j))[0] >> 31)] * 2

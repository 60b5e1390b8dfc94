"""Rows: canonical form, equality, read-only arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy._core.arrays import Rows, index_dtype, is_dense_product_faster, largest_entries
from nodecopy.errors import InputError
from tests.strategies import matrices


@settings(max_examples=60, deadline=None)
@given(matrices((5, 4)))
def test_there_and_back(matrix: sparse.csr_array) -> None:
    rows = Rows.from_matrix(matrix, "m")
    assert rows.csr.toarray().tolist() == matrix.toarray().tolist()
    assert (rows.n_rows, rows.n_columns, rows.n_entries) == (5, 4, matrix.nnz)
    assert rows.row_numbers.tolist() == rows.csr.nonzero()[0].tolist()
    assert rows == Rows.from_matrix(matrix.toarray(), "m")
    assert (rows.weights is None) == bool((matrix.data == 1).all())
    for i in range(5):
        columns = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        assert (np.diff(columns) > 0).all()


def test_equality_and_pickles() -> None:
    rows = Rows.from_matrix([[0, 2], [1, 0]], "m")
    _ = rows.csr
    twin = pickle.loads(pickle.dumps(rows))
    assert twin == rows
    assert "csr" not in twin.__dict__
    assert not twin.indices.flags.writeable
    assert rows != Rows.from_matrix([[0, 1], [1, 0]], "m")
    assert rows != Rows.from_matrix([[0, 2, 0], [1, 0, 0]], "m")
    assert rows != "rows"


def test_arrays_are_read_only_and_the_originals_are_not() -> None:
    indices = np.array([1, 0])
    rows = Rows(np.array([0, 1, 2]), indices, None, 2)
    with pytest.raises(ValueError, match="read-only"):
        rows.indices[0] = 0
    indices[0] = 1


def test_dtypes() -> None:
    assert index_dtype() is np.int32
    assert index_dtype(2**31 - 1) is np.int32
    assert index_dtype(2**31) is np.int64
    single, integer = Rows.from_matrix(np.array([[2]], np.float32), "m"), Rows.from_matrix([[2]], "m")
    assert single.weights is not None
    assert single.weights.dtype == np.float32
    assert integer.weights is not None
    assert integer.weights.dtype == np.float64


def test_errors_carry_the_name() -> None:
    with pytest.raises(InputError, match="table must hold finite numbers"):
        Rows.from_matrix([[np.nan]], "table")


@given(matrices((5, 6)), st.integers(1, 7), st.integers(1, 3))
def test_largest_entries(matrix: sparse.csr_array, top: int, levels: int) -> None:
    """Against sorting; few distinct values make many ties, and rows come in any order."""
    matrix.data = 1.0 + matrix.indices % levels
    shuffled = matrix.copy()
    for start, end in zip(shuffled.indptr[:-1], shuffled.indptr[1:], strict=True):
        shuffled.indices[start:end] = shuffled.indices[start:end][::-1].copy()
        shuffled.data[start:end] = shuffled.data[start:end][::-1].copy()
    shuffled.has_sorted_indices = False
    found = largest_entries(shuffled, top).toarray()
    for row, values in zip(found, matrix.toarray(), strict=True):
        chosen = sorted(np.flatnonzero(values), key=lambda column, v=values: (-v[column], column))[:top]  # type: ignore[misc]
        assert row.tolist() == [value if column in chosen else 0 for column, value in enumerate(values)]


def test_what_is_crowded() -> None:
    """Ten rows share one column of a thousand: 100 steps beside 10 x 10 x 1,000 dense ones, a thousandth."""
    one = sparse.csr_array(np.eye(1, 1000).repeat(10, axis=0))
    assert not is_dense_product_faster(one)
    assert is_dense_product_faster(one[:, :999])
    assert not is_dense_product_faster(sparse.csr_array((2**13, 2**13)))  # nothing there

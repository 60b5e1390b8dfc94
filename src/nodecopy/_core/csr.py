"""Rows of a sparse matrix, which graphs and interactions share, and operations on CSR matrices.

A CSR matrix of SciPy stores a value for every entry. Binary rows need none, and node copying does little but
move entries, so the values are built only for the SciPy matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.sparse_matrices import as_csr, native
from nodecopy._core.validation import check_finite, check_numbers, check_type
from nodecopy.errors import InputError

MIN_DENSE_SHARE, MAX_DENSE_ENTRIES = 1e-3, 2**25
"""Share of the steps of a dense product from which a sparse one is slower, and the largest dense factor."""

IntArray: TypeAlias = NDArray[np.integer[Any]]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
Value = TypeVar("Value")


def index_dtype(*sizes: int) -> type[np.integer[Any]]:
    """Return int32 if it can hold every size, otherwise int64."""
    return np.int32 if max(sizes, default=0) < 2**31 else np.int64


def freeze(value: Value) -> Value:
    """Return a read-only view of an array, a CSR matrix with read-only arrays, other values as they are."""
    frozen: Any = value
    if isinstance(value, np.ndarray):
        frozen = value.view()
        frozen.flags.writeable = False
    elif isinstance(value, sparse.csr_array):
        for part in ("data", "indices", "indptr"):
            setattr(value, part, freeze(getattr(value, part)))
    return frozen  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Rows:
    """Sorted rows of column numbers with optional positive weights, in CSR layout.

    Parameters
    ----------
    indptr, indices
        Row ``i`` holds the columns ``indices[indptr[i]:indptr[i + 1]]``, ascending, each once.
    weights
        One weight per stored entry, or ``None`` where every weight is one.
    n_columns
        Number of columns.
    """

    indptr: IntArray
    indices: IntArray
    weights: FloatArray | None
    n_columns: int

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "weights"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    @classmethod
    def from_matrix(cls, matrix: Any, name: str) -> Rows:
        """Return the rows of a dense or SciPy sparse matrix after checking it; the input is not changed.

        Duplicate entries of a sparse matrix are added, as in SciPy; zeros are not stored.
        """
        if sparse.issparse(matrix):
            csr = as_csr(matrix, name, copy=True)
        else:
            dense = check_numbers(matrix, name)
            if dense.ndim != 2:
                raise InputError(f"{name} must be a matrix with two dimensions; got shape {dense.shape}.")
            csr = sparse.csr_array(native(dense))
        csr.sum_duplicates()
        check_finite(csr.data, name)
        smallest = csr.data.min(initial=1)
        if smallest < 0:
            raise InputError(f"{name} must not hold negative weights; got {smallest}.")
        if not smallest:
            csr.eliminate_zeros()
        weights = csr.data.astype(csr.dtype if csr.dtype == np.float32 else np.float64, copy=False)
        return cls.canonical(csr.indptr, csr.indices, weights, csr.shape[1])

    @classmethod
    def canonical(
        cls, indptr: IntArray, indices: IntArray, weights: FloatArray | None, n_columns: int
    ) -> Rows:
        """Return rows with the smallest index type, and without weights if all of them are one."""
        dtype = index_dtype(len(indices), len(indptr), n_columns)
        if weights is not None and (weights == 1).all():
            weights = None
        return cls(indptr.astype(dtype, copy=False), indices.astype(dtype, copy=False), weights, n_columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return len(self.indices)

    @property
    def degrees(self) -> IntArray:
        """Number of stored entries in each row."""
        return np.diff(self.indptr)

    @cached_property
    def _ones(self) -> Any:
        return freeze(np.ones(self.n_entries, np.float32))

    @property
    def csr(self) -> sparse.csr_array:
        """The rows as a canonical, read-only SciPy matrix, with ones if there are no weights."""
        data = self._ones if self.weights is None else self.weights
        matrix = sparse.csr_array(
            (data, self.indices, self.indptr), shape=(self.n_rows, self.n_columns), copy=False
        )
        matrix.has_canonical_format = True
        return matrix

    @property
    def row_numbers(self) -> IntArray:
        """The row of every stored entry."""
        return np.repeat(np.arange(self.n_rows, dtype=self.indices.dtype), self.degrees)

    def keep_entries(self, mask: NDArray[np.bool_]) -> Rows:
        """Return rows with those of the stored entries where ``mask`` is true."""
        matrix = keep_entries(self.csr, mask)
        weights = None if self.weights is None else matrix.data
        return Rows.canonical(matrix.indptr, matrix.indices, weights, self.n_columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.indptr, self.indices, self.weights, self.n_columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        if (self.weights is None) != (other.weights is None) or self.n_columns != other.n_columns:
            return False
        return bool(
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and (self.weights is None or np.array_equal(self.weights, other.weights))  # type: ignore[arg-type]
        )


class RowData:
    """What graphs and interactions share: rows, and attributes that cannot be changed."""

    rows: Rows
    how_to_change: str

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} objects are frozen; {self.how_to_change.format(name)}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} objects are frozen; their parts cannot be deleted.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles do not store that arrays are read-only.
        self.__dict__.update({name: freeze(value) for name, value in state.items()})

    @property
    def is_weighted(self) -> bool:
        """Whether some weight is not one."""
        return self.rows.weights is not None

    def with_rows(self, rows: Rows) -> Self:
        """Return a copy with other rows, which must be canonical and are not checked."""
        return self._with(rows=rows)

    def _with(self, **attributes: Any) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **attributes)
        return other


def check_row_data(data: Any, name: str = "data") -> Any:
    """Return a graph or interactions."""
    return check_type(data, RowData, name, "a Graph or Interactions")


def is_dense_product_faster(matrix: sparse.csr_array) -> bool:
    """Return whether ``matrix @ matrix.T`` is faster with dense factors.

    A sparse product takes a step for each pair of entries in a column, a dense one for each pair of rows and
    each column.
    """
    n_rows, n_columns = matrix.shape
    per_column = np.bincount(matrix.indices, minlength=n_columns).astype(np.float64)
    steps = MIN_DENSE_SHARE * n_rows**2 * n_columns
    return bool(n_rows * n_columns <= MAX_DENSE_ENTRIES and per_column @ per_column > steps)


def largest_entries(
    matrix: sparse.csr_array, n_largest: int, threshold: NDArray[np.float64] | None = None
) -> sparse.csr_array:
    """Return the ``n_largest`` largest stored entries of each row; ties go to the lowest column.

    Entries must not be negative. Rows need not be sorted; those of the result are. Where ``threshold`` is
    given, it holds the last of the largest entries of each row, and no entry is smaller.
    """
    candidates = matrix
    if threshold is None:
        # Only the entries from the threshold on, little more than the result, are sorted.
        threshold = _row_thresholds(matrix, n_largest)
        candidates = keep_entries(matrix, matrix.data >= np.repeat(threshold, np.diff(matrix.indptr)))
    candidates.sort_indices()
    row = np.repeat(np.arange(len(threshold)), np.diff(candidates.indptr))
    is_tie = candidates.data == threshold[row]
    n_ties_to_keep = n_largest - np.bincount(row[~is_tie], minlength=len(threshold))
    ties_before = np.append(0, np.cumsum(is_tie))
    tie_number = ties_before[1:] - ties_before[candidates.indptr[:-1]][row]
    return keep_entries(candidates, ~is_tie | (tie_number <= n_ties_to_keep[row]))


def _row_thresholds(matrix: sparse.csr_array, n_largest: int) -> NDArray[np.float64]:
    """Return the ``n_largest``-th largest stored entry of each row, -1 where there are not more."""
    threshold, data, indptr = np.full(matrix.shape[0], -1.0), matrix.data.copy(), matrix.indptr.tolist()
    for row in np.flatnonzero(np.diff(matrix.indptr) > n_largest).tolist():
        entries = data[indptr[row] : indptr[row + 1]]
        entries.partition(len(entries) - n_largest)
        threshold[row] = entries[-n_largest]
    return threshold


def keep_entries(matrix: sparse.csr_array, mask: NDArray[np.bool_]) -> sparse.csr_array:
    """Return the matrix with those of its stored entries where ``mask`` is true."""
    positions = np.flatnonzero(mask)
    indptr = np.searchsorted(positions, matrix.indptr).astype(matrix.indptr.dtype)
    return sparse.csr_array((matrix.data[positions], matrix.indices[positions], indptr), shape=matrix.shape)


def unit_rows(matrix: Any) -> Any:
    """Return a dense or CSR matrix with its rows scaled to length one; rows of zeros stay."""
    length = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    if isinstance(matrix, np.ndarray):
        return matrix * scale[:, None]
    scaled = sparse.csr_array(matrix, copy=True)
    scaled.data = scaled.data * np.repeat(scale, np.diff(scaled.indptr))
    return scaled

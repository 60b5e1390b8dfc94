"""Rows of a sparse matrix, which graphs and interactions share, and operations on CSR matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.checks import (
    as_array,
    as_integers,
    check_characters,
    check_finite,
    check_numbers,
    check_type,
    check_unique,
    check_vector,
    show,
)
from nodecopy.errors import InputError

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]
Array = NDArray[Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]
Value = TypeVar("Value")
PARTS = ("indptr", "indices", "weights")  # the arrays of rows
MAX_ID_LENGTH = 4096  # characters; an array takes the longest of its ids for each of them
MAX_COMPARED = 8  # up to this many ids, comparing is faster than sorting


def as_csr(matrix: Any, name: str) -> sparse.csr_array:
    """Return a SciPy matrix of any format as a CSR matrix; wrong arrays would crash compiled code."""
    try:
        return _convert(matrix, check_matrix_shape(matrix.shape, name), name)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(name, f"must fit into memory; got a matrix of shape {matrix.shape}.") from error
    except Exception as error:  # attributes that no constructor of SciPy sets raise errors of many types
        raise _error(name, str(error)) from error


def _convert(matrix: Any, shape: tuple[int, int], name: str) -> sparse.csr_array:
    if matrix.format == "csr":
        return csr_from_parts(matrix.data, matrix.indices, matrix.indptr, shape, name)
    if matrix.format == "csc":
        transpose = csr_from_parts(matrix.data, matrix.indices, matrix.indptr, shape[::-1], name)
        return sparse.csr_array(transpose.T)
    if matrix.format == "bsr":
        blocks = as_array(matrix.data, name)
        _, height, width = blocks.shape
        if shape[0] % height or shape[1] % width:
            raise _error(name, f"blocks of shape {height, width} must fill its shape {shape}")
        n_rows, n_columns = shape[0] // height, shape[1] // width
        starts, columns = check_rows(matrix.indptr, matrix.indices, n_rows, n_columns, name)
        values = _check_values(blocks.ravel(), len(columns) * height * width, name).reshape(blocks.shape)
        return sparse.csr_array(sparse.bsr_array((values, columns, starts), shape=shape))
    if matrix.format == "lil":
        lengths = list(map(len, matrix.rows))
        if len(lengths) != shape[0] or lengths != list(map(len, matrix.data)):
            raise _error(name, "a row needs a value for every column")
    if matrix.format == "dia":
        data, offsets = as_array(matrix.data, name), _check_integers(matrix.offsets, f"offsets of {name}")
        if ((offsets <= -shape[0]) | (offsets >= shape[1])).any() or len(data) != len(offsets):
            raise _error(name, f"offsets must be between {1 - shape[0]} and {shape[1] - 1}, one per diagonal")
        values = _check_values(data.ravel(), data.size, name).reshape(data.shape)
        matrix = sparse.dia_array((values, offsets), shape=shape)
    coo = matrix if matrix.format == "coo" else matrix.tocoo()
    data = _check_values(coo.data, len(coo.data), name)
    rows, columns = (check_positions(axis, size, name) for axis, size in zip(coo.coords, shape, strict=True))
    return sparse.csr_array((data, (rows, columns)), shape=shape)


def as_matrix(values: Any, name: str) -> Any:
    """Return a SciPy matrix as :func:`as_csr` does, and anything else as an array."""
    return as_csr(values, name) if sparse.issparse(values) else as_array(values, name)


def csr_from_parts(data: Any, indices: Any, indptr: Any, shape: Any, name: str) -> sparse.csr_array:
    """Return the CSR matrix of three arrays, which are checked."""
    n_rows, n_columns = check_matrix_shape(shape, name)
    starts, columns = check_rows(indptr, indices, n_rows, n_columns, name)
    values = _check_values(data, len(columns), name)
    return sparse.csr_array((values, columns, starts), shape=(n_rows, n_columns))


def check_rows(indptr: Any, indices: Any, n_rows: int, n_columns: int, name: str) -> tuple[Array, Array]:
    """Return ``indptr`` and ``indices`` in native integers."""
    starts, columns = _check_integers(indptr, f"indptr of {name}"), check_positions(indices, n_columns, name)
    if len(starts) != n_rows + 1 or starts[0] != 0 or starts[-1] != len(columns):
        raise _error(name, f"indptr must hold {n_rows + 1} numbers from 0 to the number of entries")
    if not (starts[1:] >= starts[:-1]).all():
        raise _error(name, "indptr must never fall")
    return starts, columns


def check_matrix_shape(shape: Any, name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a matrix."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else ()
    if len(sizes) != 2 or not all(isinstance(n, (int, np.integer)) and 0 <= n < 2**62 for n in sizes):
        raise InputError(name, f"must be a matrix with two dimensions; got shape {shape!r}.")
    return int(sizes[0]), int(sizes[1])


def _check_integers(values: Any, name: str) -> Array:
    """Return a vector as int32 or int64; integers that are too large become negative."""
    array = as_array(values, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(name, f"must be a vector of integers; got {array.dtype} of shape {array.shape}.")
    is_small = array.dtype.itemsize <= (4 if array.dtype.kind == "i" else 2)
    return array.astype(np.int32 if is_small else np.int64, copy=False)


def check_positions(values: Any, size: int, name: str) -> Array:
    """Return a vector of integers between 0 and ``size - 1``."""
    positions = _check_integers(values, f"indices of {name}")
    # Negative numbers are large as unsigned ones, so that one maximum finds both errors.
    if positions.size and int(positions.view(f"u{positions.itemsize}").max()) >= size:
        wrong = positions[(positions < 0) | (positions >= size)][0]
        raise _error(name, f"indices must be between 0 and {size - 1}; got {wrong}")
    return positions


def _check_values(values: Any, length: int, name: str) -> Array:
    array = check_numbers(values, name)
    if array.shape != (length,):
        raise _error(name, f"{length} entries need one value each; got shape {array.shape}")
    if array.dtype.kind not in "iu":
        return native(array)
    # SciPy adds duplicates in their own type, and sums of integers could overflow.
    array = array.astype(np.promote_types(array.dtype, np.int64))
    largest = max(int(array.max(initial=0)), -int(array.min(initial=0)))
    return array if largest * length < 2**63 else array.astype(np.float64)


def native(array: Array) -> Array:
    """Return numbers in native byte order, half precision as single, extended as double."""
    dtype = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):  # what is infinite as a double is refused later
        return array.astype(np.float64 if dtype == np.longdouble else dtype, copy=False)


def _error(name: str, reason: str) -> InputError:
    way_out = "Build it by scipy.sparse.coo_array"
    return InputError(name, f"must be a valid sparse matrix: {reason}. {way_out}.")


def index_dtype(*sizes: int) -> type[np.integer[Any]]:
    """Return int32 if it can hold every size, otherwise int64."""
    return np.int32 if max(sizes, default=0) < 2**31 else np.int64


def freeze(value: Value) -> Value:
    """Return a read-only view of an array, or a CSR matrix with read-only arrays."""
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
    """Sorted rows of distinct column numbers in CSR layout; ``weights`` are ``None`` if all are one."""

    indptr: IntArray
    indices: IntArray
    weights: FloatArray | None
    n_columns: int

    def __post_init__(self) -> None:
        for name in PARTS:
            object.__setattr__(self, name, freeze(getattr(self, name)))

    @classmethod
    def from_matrix(cls, matrix: Any, name: str) -> Rows:
        """Return the rows of a dense or sparse matrix; duplicates are added."""
        if sparse.issparse(matrix):
            csr = as_csr(matrix, name).copy()
        else:
            dense = check_numbers(matrix, name)
            if dense.ndim != 2:
                raise InputError(name, f"must be a matrix with two dimensions; got shape {dense.shape}.")
            csr = sparse.csr_array(native(dense))
        csr.sum_duplicates()
        check_finite(csr.data, name)
        smallest = csr.data.min(initial=1)
        if smallest < 0:
            raise InputError(name, f"must not hold negative weights; got {smallest}.")
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
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return len(self.indices)

    @property
    def degrees(self) -> IntArray:
        return np.diff(self.indptr)

    @cached_property
    def _ones(self) -> Any:
        return freeze(np.ones(self.n_entries, np.float32))

    @property
    def csr(self) -> sparse.csr_array:
        """The rows as a canonical, read-only SciPy matrix, with ones if there are no weights."""
        data, shape = self._ones if self.weights is None else self.weights, (self.n_rows, self.n_columns)
        matrix = sparse.csr_array((data, self.indices, self.indptr), shape=shape, copy=False)
        matrix.has_canonical_format = True
        return matrix

    @property
    def row_numbers(self) -> IntArray:
        return np.repeat(np.arange(self.n_rows, dtype=self.indices.dtype), self.degrees)

    def keep_entries(self, mask: Bools) -> Rows:
        matrix = keep_entries(self.csr, mask)
        weights = None if self.weights is None else matrix.data
        return Rows.canonical(matrix.indptr, matrix.indices, weights, self.n_columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.indptr, self.indices, self.weights, self.n_columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        return self.n_columns == other.n_columns and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in PARTS
        )


class RowData:
    """Base class of graphs and interactions, whose attributes cannot be changed."""

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


def largest_entries(matrix: sparse.csr_array, n_largest: int) -> sparse.csr_array:
    """Return the largest stored entries of each row, not negative; ties go to the lowest column."""
    threshold, data, indptr = np.full(matrix.shape[0], -1.0), matrix.data.copy(), matrix.indptr.tolist()
    for number in np.flatnonzero(np.diff(matrix.indptr) > n_largest).tolist():
        entries = data[indptr[number] : indptr[number + 1]]
        entries.partition(len(entries) - n_largest)
        threshold[number] = entries[-n_largest]
    candidates = keep_entries(matrix, matrix.data >= np.repeat(threshold, np.diff(matrix.indptr)))
    candidates.sort_indices()
    row = np.repeat(np.arange(len(threshold)), np.diff(candidates.indptr))
    is_tie = candidates.data == threshold[row]
    n_ties_to_keep = n_largest - np.bincount(row[~is_tie], minlength=len(threshold))
    ties_before = np.append(0, np.cumsum(is_tie))
    tie_number = ties_before[1:] - ties_before[candidates.indptr[:-1]][row]
    return keep_entries(candidates, ~is_tie | (tie_number <= n_ties_to_keep[row]))


def keep_entries(matrix: sparse.csr_array, mask: Bools) -> sparse.csr_array:
    """Return a matrix with the stored entries where ``mask`` is true."""
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


def check_ids(values: ArrayLike, name: str, length: int | None = None) -> Array:
    """Return ids, integers or strings, as a read-only array; with ``length`` they must be unique."""
    array = check_vector(values, name, length=length)
    if array.dtype.kind in "OU":
        # In the array of a list NumPy has turned what is not text into text, and dropped NUL at its end.
        cells: Any = values if isinstance(values, (list, tuple)) else array.tolist()
        kinds = set(map(type, cells))
        if not all(issubclass(kind, (str, int, np.integer)) and kind is not bool for kind in kinds):
            wrong = next(
                cell for cell in cells if type(cell) is bool or not isinstance(cell, (str, int, np.integer))
            )
            allowed = "integers or strings without missing values"
            raise InputError(name, f"must hold {allowed}; got {wrong!r}.")
        check_characters(cells, name)
        if not any(issubclass(kind, str) for kind in kinds):
            array = as_integers(cells, name)
        elif array.dtype.kind == "O" or len(kinds) > 1:
            check_spellings(cells, name)
            array = as_array(list(map(str, cells)), name)
        longest = max(map(len, array.tolist()), default=0) if array.dtype.kind == "U" else 0
        if longest > MAX_ID_LENGTH:
            way_out = "Use shorter ids, such as hashes"
            raise InputError(name, f"must have at most {MAX_ID_LENGTH} characters; got {longest}. {way_out}.")
    if not array.size and array.dtype.kind != "U":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise InputError(name, f"must hold integers or strings; got {array.dtype}. Use astype(str).")
    if array.dtype.kind == "u":
        if int(array.max()) >= 2**63:
            raise InputError(name, f"must fit into 64 bits with a sign; got {array.max()}.")
        array = array.astype(np.int64)  # NumPy would compare signed and unsigned ids as floats
    if length is not None:
        check_unique(array, name)
    return freeze(array.copy())


def check_spellings(values: Any, name: str) -> None:
    """Raise an error if an integer and its text are among ids, which would become one."""
    texts = {value for value in values if isinstance(value, str)}
    twin = next((value for value in values if not isinstance(value, str) and str(value) in texts), None)
    if twin is not None:
        raise InputError(name, f"must not hold both {twin} and {str(twin)!r}. Write ids the same way.")


def number_ids(n: int, name: str) -> Ints:
    """Return the ids 0, 1, 2, ..."""
    try:
        return np.arange(n)
    except MemoryError as error:
        raise InputError(name, f"must fit into memory; got {n} of them.") from error


def find_positions(values: Array, ids: Array, name: str, *hints: Any) -> Ints:
    """Return the position of each value in ``ids``; an unknown value is an error with hints."""
    if not values.size:
        return np.zeros(0, np.int64)
    if len(values) <= MAX_COMPARED or not ids.size:
        matches = [np.flatnonzero(ids == value) for value in values]
        positions = np.array([match[0] if len(match) else -1 for match in matches], np.int64)
    else:
        order, narrow = np.argsort(ids, kind="stable"), _narrow(values, ids)
        ranks = np.searchsorted(ids[order], narrow)
        positions = order[np.minimum(ranks, len(ids) - 1)].astype(np.int64)
        positions[(ids[positions] != narrow) | (narrow != values)] = -1
    if positions.min() < 0:
        wrong = values[positions < 0].tolist()[0]
        raise InputError(name, f"must hold known ids; got {show(wrong)}, which is not among them.", *hints)
    return positions


def find_ids(given: Any, ids: Array, name: str) -> Ints:
    """Return the position of each given id; ids of different types are compared as text."""
    values = check_ids(given, name)
    if values.dtype.kind != ids.dtype.kind:
        values, ids = values.astype(str), ids.astype(str)
    return find_positions(values, ids, name)


def contains(ids: Array, values: Array) -> Bools:
    """Return which values are among ids."""
    narrow = _narrow(values, ids)
    is_whole: Bools = narrow == values
    return is_whole & np.isin(narrow, ids)


def _narrow(values: Array, ids: Array) -> Array:
    """Return texts cut off at the length of ids, which would otherwise be padded to the longest text."""
    return values.astype(ids.dtype, copy=False) if values.dtype.kind == ids.dtype.kind == "U" else values


def check_weights(values: ArrayLike, length: int, name: str = "weight") -> Floats:
    """Return finite, non-negative weights, one per edge or row."""
    vector = check_vector(values, name, length=length, per="edge" if name == "weight" else "row")
    with np.errstate(over="ignore"):
        weights = check_numbers(vector, name).astype(np.float64)
    check_finite(weights, name)
    if weights.size and weights.min() < 0:
        raise InputError(name, f"must not be negative; got {weights.min():g}.")
    return weights


def deduplicate(
    first: IntArray, second: IntArray, values: FloatArray, shape: tuple[int, int], rank: Any = None
) -> sparse.csr_array:
    """Return a sparse matrix with the largest, or highest in ``rank``, of repeated entries."""
    order = np.lexsort((values if rank is None else rank, second, first))
    first, second, values = first[order], second[order], values[order]
    is_last = np.ones(len(first), bool)
    is_last[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return sparse.csr_array((values[is_last], (first[is_last], second[is_last])), shape=shape)

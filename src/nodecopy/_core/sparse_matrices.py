"""Sparse matrices from outside: SciPy's and our compiled code read their arrays without checking them.

A wrong ``indptr`` or column number makes that code read or write foreign memory, so every matrix that a
caller gives, a file holds or a donor law returns passes :func:`as_csr` or :func:`csr_from_parts` first.
SciPy's ``check_format`` does not look at the column numbers if the last entry of ``indptr`` is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import as_array
from nodecopy.errors import InputError

WAY_OUT = "Build it from rows, columns and values, as in scipy.sparse.coo_array((values, (rows, columns)))."


def as_csr(matrix: Any, name: str, *, copy: bool = False) -> sparse.csr_array:
    """Return a SciPy matrix of any format as a CSR matrix, after checking its arrays.

    Parameters
    ----------
    matrix
        The matrix, which is not changed.
    name
        What it is called in errors.
    copy
        Whether the result owns its arrays; otherwise those of a CSR matrix are shared.
    """
    try:
        return _convert(matrix, name, copy=copy)
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{name} must fit into memory; got a matrix of shape {matrix.shape}.") from error
    except Exception as error:  # attributes that no constructor of SciPy sets raise errors of many types
        raise _error(name, "arrays that fit together", str(error)) from error


def _convert(matrix: Any, name: str, *, copy: bool) -> sparse.csr_array:
    shape = shape_of(matrix, name)
    if matrix.format == "csr":
        csr = csr_from_parts(matrix.data, matrix.indices, matrix.indptr, shape, name)
        return csr.copy() if copy else csr
    if matrix.format == "csc":
        return sparse.csr_array(
            csr_from_parts(matrix.data, matrix.indices, matrix.indptr, shape[::-1], name, format="csc").T
        )
    if matrix.format == "bsr":
        return _from_blocks(matrix, shape, name)
    coo = _as_coo(matrix, shape, name)
    data = _check_values(coo.data, len(coo.data), name)
    coords = [check_positions(axis, size, name) for axis, size in zip(coo.coords, shape, strict=True)]
    if any(len(axis) != len(data) for axis in coords):
        raise _error(name, "rows, columns and values of one length", "different lengths")
    return sparse.csr_array((data, (coords[0], coords[1])), shape=shape)


def as_matrix(values: Any, name: str) -> Any:
    """Return a SciPy matrix as :func:`as_csr` does, and anything else as an array."""
    return as_csr(values, name) if sparse.issparse(values) else as_array(values, name)


def csr_from_parts(
    data: Any, indices: Any, indptr: Any, shape: Any, name: str, *, format: str = "csr"
) -> sparse.csr_array:
    """Return the CSR matrix of three arrays after checking them; ``format`` is what errors call it."""
    n_rows, n_columns = _check_shape(shape, name)
    starts, columns = check_rows(indptr, indices, n_rows, n_columns, name, format=format)
    values = _check_values(data, len(columns), name)
    return sparse.csr_array((values, columns, starts), shape=(n_rows, n_columns))


def check_rows(
    indptr: Any, indices: Any, n_rows: int, n_columns: int, name: str, *, format: str = "csr"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``indptr`` and ``indices`` in native integers if they are those of a CSR matrix.

    ``indptr`` starts at 0, never falls and ends at the number of entries; column numbers are in range. The
    cost is one pass over each array.
    """
    starts, kind = _check_integers(indptr, f"indptr of {name}"), format.upper()
    if len(starts) != n_rows + 1:
        raise _error(
            name, f"an indptr of {n_rows + 1} numbers for its {n_rows} {kind} rows", str(len(starts))
        )
    if starts[0] != 0:
        raise _error(name, "an indptr that starts at 0", str(starts[0]))
    columns = check_positions(indices, n_columns, name)
    if not (starts[1:] >= starts[:-1]).all():
        row = int(np.flatnonzero(starts[1:] < starts[:-1])[0])
        raise _error(name, "an indptr that never falls", f"{starts[row + 1]} after {starts[row]}")
    if starts[-1] != len(columns):
        raise _error(name, f"an indptr that ends at the number of entries, {len(columns)}", str(starts[-1]))
    return starts, columns


def _from_blocks(matrix: Any, shape: tuple[int, int], name: str) -> sparse.csr_array:
    """Return a matrix of dense blocks as CSR."""
    blocks = as_array(matrix.data, name)
    size = blocks.shape[1:]
    if blocks.ndim != 3 or 0 in size or any(length % part for length, part in zip(shape, size, strict=True)):
        raise _error(name, f"blocks that fill its shape {shape}", f"blocks of shape {blocks.shape}")
    n_rows, n_columns = shape[0] // size[0], shape[1] // size[1]
    starts, columns = check_rows(matrix.indptr, matrix.indices, n_rows, n_columns, name, format="bsr")
    values = _check_values(blocks.ravel(), len(columns) * size[0] * size[1], name).reshape(blocks.shape)
    return sparse.csr_array(sparse.bsr_array((values, columns, starts), shape=shape))


def _as_coo(matrix: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a matrix of a format without ``indptr`` in coordinates, which are not checked yet."""
    if matrix.format == "coo":
        return matrix
    if matrix.format == "lil":
        lengths = [[len(row) for row in part] for part in (matrix.rows, matrix.data)]
        if lengths[0] != lengths[1] or len(lengths[0]) != shape[0]:
            raise _error(name, f"{shape[0]} lists with a value for every column", "other lists")
    if matrix.format == "dia":
        offsets, data = _check_integers(matrix.offsets, f"offsets of {name}"), as_array(matrix.data, name)
        if data.ndim != 2 or len(data) != len(offsets) or len(np.unique(offsets)) != len(offsets):
            raise _error(name, "one row of values per diagonal", f"shape {data.shape} for {len(offsets)}")
        wrong = offsets[(offsets <= -shape[0]) | (offsets >= shape[1])]
        if len(wrong):
            limits = f"between {1 - shape[0]} and {shape[1] - 1}"
            raise _error(name, f"offsets {limits} of its diagonals", str(wrong[0]))
        values = _check_values(data.ravel(), data.size, name).reshape(data.shape)
        matrix = sparse.dia_array((values, offsets), shape=shape)
    return matrix.tocoo()


def shape_of(matrix: Any, name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a SciPy matrix, which need not be what SciPy sets."""
    return _check_shape(matrix.shape, name)


def _check_shape(shape: Any, name: str) -> tuple[int, int]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else ()
    if len(sizes) != 2 or not all(
        isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 0 <= size < 2**62
        for size in sizes
    ):
        raise InputError(f"{name} must be a matrix with two dimensions; got shape {shape!r}.")
    return int(sizes[0]), int(sizes[1])


def _check_integers(values: Any, name: str) -> NDArray[Any]:
    """Return a vector as int32 or int64; integers that are too large become negative."""
    array = as_array(values, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a vector of integers; got {array.dtype} of shape {array.shape}.")
    is_small = array.dtype.itemsize <= (4 if array.dtype.kind == "i" else 2)
    return array.astype(np.int32 if is_small else np.int64, copy=False)


def check_positions(values: Any, size: int, name: str) -> NDArray[Any]:
    """Return a vector of integers between 0 and ``size - 1``, in one pass."""
    positions = _check_integers(values, f"indices of {name}")
    # Negative numbers are large as unsigned ones, so that one maximum finds both errors.
    if positions.size and int(positions.view(f"u{positions.itemsize}").max()) >= size:
        wrong = positions[(positions < 0) | (positions >= size)][0]
        raise _error(name, f"indices between 0 and {size - 1}" if size else "no entries", str(wrong))
    return positions


def _check_values(values: Any, length: int, name: str) -> NDArray[Any]:
    """Return the values of a matrix, of a type that sparse matrices can have."""
    array = as_array(values, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers; got {array.dtype}.")
    if array.shape != (length,):
        raise _error(name, f"one value for each of its {length} entries", f"values of shape {array.shape}")
    if array.dtype.kind not in "iu":
        return native(array)
    # SciPy adds duplicates in their own type, and sums of integers could overflow.
    array = array.astype(np.promote_types(array.dtype, np.int64))
    largest = max(int(array.max(initial=0)), -int(array.min(initial=0)))
    return array if largest * length < 2**63 else array.astype(np.float64)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the byte order of the machine, half precision as single, extended as double."""
    dtype = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):  # what is infinite as a double is refused later
        return array.astype(np.float64 if dtype == np.longdouble else dtype, copy=False)


def _error(name: str, allowed: str, got: str) -> InputError:
    return InputError(f"{name} must be a valid sparse matrix with {allowed}; got {got}. {WAY_OUT}")

"""What edge lists and logs of interactions share: ids, weights, and entries that are listed twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import FloatArray, IntArray, freeze
from nodecopy._core.validation import check_finite, check_unique, check_vector
from nodecopy.errors import InputError


def check_ids(values: ArrayLike, name: str, length: int | None = None) -> NDArray[Any]:
    """External ids: integers or strings, as a read-only array; unique where a length is given."""
    array = check_vector(values, name, length=length)
    if array.dtype.kind == "O":
        if not all(isinstance(value, (str, int, np.integer)) for value in array):
            raise InputError(f"{name} must hold integers or strings without gaps.")
        array = np.array([str(value) for value in array]) if array.size else array.astype(np.int64)
    if array.size == 0 and array.dtype.kind not in "iuU":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise InputError(f"{name} must hold integers or strings; got {array.dtype}.")
    if array.dtype.kind == "u":
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise InputError(f"{name} must fit into 64 bits with a sign; got {array.max()}.")
        array = array.astype(np.int64)  # so that signed and unsigned ids never meet as floats
    if length is not None:
        check_unique(array, name)
    return freeze(array.copy())


def find_positions(values: NDArray[Any], ids: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Where each id stands in ``ids``; an id that is not there is an error."""
    if not values.size:
        return np.zeros(0, np.int64)
    order = np.argsort(ids, kind="stable")
    found = np.searchsorted(ids[order], values) if ids.size else np.zeros(len(values), np.int64)
    missing = found >= len(ids)
    found[missing] = 0
    if ids.size:
        missing |= ids[order[found]] != values
    if missing.any():
        raise InputError(
            f"{name} must hold known ids; got {values[missing].tolist()[0]!r}, which is not among them."
        )
    return order[found].astype(np.int64)


def check_weights(values: ArrayLike, length: int) -> NDArray[np.float64]:
    """Finite, non-negative weights, one per edge."""
    weights = check_vector(values, "weight", length=length, per="edge")
    if weights.dtype.kind not in "biuf":
        raise InputError(f"weight must hold numbers; got {weights.dtype}.")
    weights = weights.astype(np.float64)
    check_finite(weights, "weight")
    if weights.size and weights.min() < 0:
        raise InputError(f"weight must not be negative; got {weights.min():g}.")
    return weights


def deduplicate(
    first: IntArray,
    second: IntArray,
    values: FloatArray,
    shape: tuple[int, int],
    rank: NDArray[Any] | None = None,
) -> sparse.csr_array:
    """A sparse matrix that takes, of repeated entries, the largest, or the one of the highest ``rank``."""
    order = np.lexsort((values if rank is None else rank, second, first))
    first, second, values = first[order], second[order], values[order]
    last = np.ones(len(first), bool)
    last[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return sparse.csr_array((values[last], (first[last], second[last])), shape=shape)

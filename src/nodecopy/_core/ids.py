"""Ids, weights and duplicates in edge lists and logs of interactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import FloatArray, IntArray, freeze
from nodecopy._core.validation import as_array, check_characters, check_finite, check_unique, check_vector
from nodecopy.errors import InputError

MAX_COMPARED = 8
"""Up to this many ids are compared with all others, which is faster than sorting those."""


def check_ids(values: ArrayLike, name: str, length: int | None = None) -> NDArray[Any]:
    """Return external ids, integers or strings, as a read-only array; with ``length`` they must be unique."""
    array = check_vector(values, name, length=length)
    if array.dtype.kind == "U":  # NumPy drops NUL at the end of the texts of a list
        check_characters(array.tolist() if isinstance(values, np.ndarray) else values, name)  # type: ignore[arg-type]
        if isinstance(values, (list, tuple)):  # in which NumPy turns what is not text into text
            _check_kinds(values, name)
    if array.dtype.kind == "O":
        _check_kinds(array, name)
        check_characters(array, name)
        texts = [str(value) for value in array]
        array = as_array(texts, name) if texts else array.astype(np.int64)
    if array.size == 0 and array.dtype.kind not in "iuU":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise InputError(
            f"{name} must hold integers or strings; got {array.dtype}. Convert them, such as by astype(str)."
        )
    if array.dtype.kind == "u":
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise InputError(f"{name} must fit into 64 bits with a sign; got {array.max()}.")
        array = array.astype(np.int64)  # NumPy would compare signed and unsigned ids as floats
    if length is not None:
        check_unique(array, name)
    return freeze(array.copy())


def _check_kinds(values: Iterable[Any], name: str) -> None:
    for value in values:
        if not isinstance(value, (str, int, np.integer)) or isinstance(value, bool):
            raise InputError(
                f"{name} must hold integers or strings without missing values; got {value!r}. Leave out "
                f"what has no id, and convert other ids to text."
            )


def number_ids(n: int, name: str) -> NDArray[np.int64]:
    """Return the ids 0, 1, 2, ..."""
    try:
        return np.arange(n)
    except MemoryError as error:
        raise InputError(f"{name} must fit into memory; got {n} of them.") from error


def find_positions(values: NDArray[Any], ids: NDArray[Any], name: str, *hints: Any) -> NDArray[np.int64]:
    """Return the position of each value in ``ids``; a value that is not among them is an error with hints."""
    if not values.size:
        return np.zeros(0, np.int64)
    if len(values) <= MAX_COMPARED:
        matches = [np.flatnonzero(ids == value) for value in values]
        is_missing = np.array([not len(match) for match in matches])
        positions = np.array([match[0] if len(match) else -1 for match in matches], np.int64)
    else:
        order = np.argsort(ids, kind="stable")
        ranks = np.searchsorted(ids[order], values) if ids.size else np.zeros(len(values), np.int64)
        is_missing = ranks >= len(ids)
        ranks[is_missing] = 0
        if ids.size:
            is_missing |= ids[order[ranks]] != values
        positions = order[ranks].astype(np.int64) if ids.size else ranks
    if is_missing.any():
        raise InputError(
            f"{name} must hold known ids; got {values[is_missing].tolist()[0]!r}, which is not among them.",
            *hints,
        )
    return positions


def check_weights(values: ArrayLike, length: int, name: str = "weight") -> NDArray[np.float64]:
    """Return finite, non-negative weights, one per edge or row."""
    weights = check_vector(values, name, length=length, per="edge" if name == "weight" else "row")
    if weights.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers; got {weights.dtype}.")
    with np.errstate(over="ignore"):
        weights = weights.astype(np.float64)
    check_finite(weights, name)
    if weights.size and weights.min() < 0:
        raise InputError(f"{name} must not be negative; got {weights.min():g}.")
    return weights


def deduplicate(
    first: IntArray,
    second: IntArray,
    values: FloatArray,
    shape: tuple[int, int],
    rank: NDArray[Any] | None = None,
) -> sparse.csr_array:
    """Return a sparse matrix with the largest of repeated entries, or with the one of highest ``rank``."""
    order = np.lexsort((values if rank is None else rank, second, first))
    first, second, values = first[order], second[order], values[order]
    is_last = np.ones(len(first), bool)
    is_last[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return sparse.csr_array((values[is_last], (first[is_last], second[is_last])), shape=shape)

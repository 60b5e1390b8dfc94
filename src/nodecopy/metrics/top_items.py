"""The best columns of the rows of a matrix of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import as_array, check_integer
from nodecopy.errors import InputError

MAX_SORTED_RATIO = 8
"""Rows with at most this many times k candidates are sorted; rows with more have ties, which are counted."""


def top_items(scores: ArrayLike, k: int) -> IntArray:
    """Return the ``k`` best columns of every row, best first; ties go to the lower column.

    >>> top_items([[0.5, 0.9, 0.5], [0.0, 0.0, 1.0]], 2).tolist()
    [[1, 0], [2, 0]]
    """
    values = as_array(scores, "scores")
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InputError(
            f"scores must hold numbers, one row per user; got {values.dtype} of shape {values.shape}."
        )
    n_users, n_items = values.shape
    check_integer(k, "k", low=1, high=n_items, high_name="n_items")
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if n_users and np.isnan(values.max()):
        raise InputError("scores must be numbers; got nan.")
    row, column = np.divmod(np.flatnonzero(values >= _lower_bound(values, k)), n_items)
    has_ties = np.bincount(row, minlength=n_users) > MAX_SORTED_RATIO * k
    is_sorted = ~has_ties[row]
    row, column = row[is_sorted], column[is_sorted]
    order = np.lexsort((column, -values[row, column], row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ranked = np.empty((n_users, k), np.int64)
    ranked[~has_ties] = column[order[rank < k]].reshape(-1, k)
    if has_ties.any():
        ranked[has_ties] = _rank_with_ties(values[has_ties], k)
    return ranked


def _lower_bound(values: NDArray[Any], k: int) -> NDArray[Any]:
    """Return a number for each row that is at most the k-th largest of the row, and near it.

    It is the k-th largest of the maxima of groups of columns, which are faster to find than ranks.
    """
    n_users, n_items = values.shape
    size = max(1, n_items // (4 * k))
    n_groups = n_items // size
    maxima = values[:, : n_groups * size].reshape(n_users, n_groups, size).max(axis=2)
    return np.partition(maxima, n_groups - k, axis=1)[:, -k][:, None]


def _rank_with_ties(values: NDArray[Any], k: int) -> IntArray:
    """Return the same as :func:`top_items` for rows in which many items tie with the k-th largest."""
    threshold = np.partition(values, values.shape[1] - k, axis=1)[:, -k][:, None]
    above, equal = values > threshold, values == threshold
    is_top = above | (equal & (np.cumsum(equal, axis=1) <= k - above.sum(axis=1, keepdims=True)))
    chosen = np.nonzero(is_top)[1].reshape(len(values), k)
    order = np.lexsort((chosen, -np.take_along_axis(values, chosen, axis=1)), axis=1)
    return np.take_along_axis(chosen, order, axis=1)

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
    bounds = _lower_bound(values, k)
    is_candidate = values >= bounds
    has_ties = np.count_nonzero(is_candidate, axis=1) > MAX_SORTED_RATIO * k
    is_candidate[has_ties] = False
    row, column = np.nonzero(is_candidate)
    order = np.lexsort((column, -values[row, column], row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ranked = np.empty((n_users, k), np.int64)
    ranked[~has_ties] = column[order[rank < k]].reshape(-1, k)
    for user in np.flatnonzero(has_ties):
        ranked[user] = _rank_with_ties(values[user], bounds[user], k)
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


def _rank_with_ties(values: NDArray[Any], bound: NDArray[Any], k: int) -> IntArray:
    """Return the same as :func:`top_items` for a row in which many items tie, given its lower bound."""
    above = np.flatnonzero(values > bound)
    equal = np.flatnonzero(values == bound)
    if len(above) >= k:
        largest = values[above]
        threshold = np.partition(largest, len(above) - k)[-k]
        above, equal = above[largest > threshold], above[largest == threshold]
    chosen = np.concatenate([above, equal[: k - len(above)]])
    return chosen[np.lexsort((chosen, -values[chosen]))]

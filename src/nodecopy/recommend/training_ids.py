"""Checks of tables, users and items against those of training, and the matrices that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.ids import check_ids, find_positions
from nodecopy.conversion import InteractionsLike, convert_interactions
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions


def check_nonempty(interactions: InteractionsLike, name: str) -> Interactions:
    """Return interactions, converted if need be, that hold at least one, or raise an error."""
    interactions = convert_interactions(interactions, name)
    if not interactions.n_interactions:
        raise InputError(f"{name} must hold at least one interaction; got {interactions!r}.")
    return interactions


def check_same_ids(other: InteractionsLike, train: Interactions, name: str) -> Interactions:
    """Return other interactions of the users and items of training, in the same order.

    Objects of other libraries are converted with the ids of training.
    """
    other = convert_interactions(other, name, like=train)
    same = np.array_equal(other.user_ids, train.user_ids) and np.array_equal(other.item_ids, train.item_ids)
    if not same:
        raise InputError(
            f"{name} must be of the users and items of training, {train!r}, in the same order; "
            f"got {other!r}. Pass user_ids and item_ids of training to Interactions.from_table."
        )
    return other


def find_ids(values: ArrayLike, ids: NDArray[Any], name: str) -> IntArray:
    """Return the positions of external ids, which must be of the type of those in training."""
    given = check_ids(values, name)
    if given.size and (given.dtype.kind == "U") != (ids.dtype.kind == "U"):
        kind = "strings" if ids.dtype.kind == "U" else "integers"
        raise InputError(f"{name} must hold {kind}, as in training; got {given.tolist()[0]!r}.")
    return find_positions(given, ids, name)


def one_hot(columns: IntArray, n_columns: int) -> sparse.csr_array:
    """Return a matrix with a row for each column number, which holds a single one there."""
    return sparse.csr_array(sparse.eye_array(n_columns, dtype=np.float32, format="csr")[columns])


def history_rows(histories: Sequence[ArrayLike], item_ids: NDArray[Any]) -> sparse.csr_array:
    """Return a binary row for each list of item ids; an item that is named twice counts once."""
    if isinstance(histories, str) or any(isinstance(ids, str) or np.ndim(ids) != 1 for ids in histories):
        raise InputError("histories must hold one list of item ids per user; got something else.")
    columns = [np.unique(find_ids(ids, item_ids, "histories")) for ids in histories]
    indptr = np.append(0, np.cumsum([len(part) for part in columns])).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *columns])
    shape = (len(columns), len(item_ids))
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)

"""Checks of tables, users and items against those of training, and the matrices that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.hints import Hint
from nodecopy._core.ids import check_ids, find_positions
from nodecopy._core.notices import log_decision
from nodecopy._core.validation import check_choice, check_sequence, show
from nodecopy.conversion import InteractionsLike, convert_interactions
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

UNKNOWN = ("error", "ignore")
"""What may be done with ids that were not in training."""
IGNORE = Hint("{} leaves such ids out.", unknown="ignore")
OUTSIDE = "{} takes users outside training."
"""The text of hints that name a method."""
SAME_IDS = (
    "Leave such interactions out; the parts of a split by nodecopy.datasets have the same users and items."
)


def check_nonempty(interactions: InteractionsLike, name: str) -> Interactions:
    """Return interactions, converted if need be and without times, or raise an error if there are none."""
    interactions = convert_interactions(interactions, name).without_times()
    if not interactions.n_interactions:
        raise InputError(f"{name} must hold at least one interaction; got {interactions!r}.")
    return interactions


def align(
    other: InteractionsLike,
    train: Interactions,
    name: str,
    unknown: str = "error",
    *,
    keep_users: bool = False,
    hint: Any = SAME_IDS,
) -> Interactions:
    """Return other interactions in the order of the users and items of training.

    Objects of other libraries are converted. Interactions with other users or items are an error with a
    ``hint`` or, with ``unknown="ignore"``, left out. With ``keep_users`` the users are those of ``other``.
    """
    other = convert_interactions(other, name, like=train)
    user_ids = other.user_ids if keep_users else train.user_ids
    if np.array_equal(other.user_ids, user_ids) and np.array_equal(other.item_ids, train.item_ids):
        return other
    users, items, weights = other.table()
    rows = _positions(users, user_ids, f"{name}: users", unknown, hint)
    columns = _positions(items, train.item_ids, f"{name}: items", unknown, hint)
    is_known = (rows >= 0) & (columns >= 0)
    if not is_known.all():
        n_unknown = len(is_known) - int(is_known.sum())
        log_decision(f"{name}: {n_unknown} of {len(is_known)} interactions are of unknown users or items.")
    values = np.ones(len(users)) if weights is None else weights
    shape = (len(user_ids), train.n_items)
    entries = (values[is_known], (rows[is_known], columns[is_known]))
    return Interactions(sparse.csr_array(entries, shape=shape), user_ids, train.item_ids)


def find_ids(
    values: ArrayLike, ids: NDArray[Any], name: str, unknown: str = "error", hint: Any = None
) -> IntArray:
    """Return the positions of external ids, which must be of the type of those in training.

    With ``unknown="ignore"``, ids that are not in ``ids`` are left out; otherwise they are an error, with a
    ``hint`` if there is one.
    """
    if isinstance(values, (str, int)):
        raise InputError(f"{name} must be a list of ids; got {show(values)}. Write [{show(values)}].")
    positions = _positions(check_ids(values, name), ids, name, unknown, hint)
    return positions[positions >= 0]


def _positions(given: NDArray[Any], ids: NDArray[Any], name: str, unknown: str, hint: Any) -> IntArray:
    """Return the positions of ids, -1 for those that are ignored."""
    check_choice(unknown, "unknown", UNKNOWN)
    if given.size and (given.dtype.kind == "U") != (ids.dtype.kind == "U"):
        kind = "strings" if ids.dtype.kind == "U" else "integers"
        raise InputError(f"{name} must hold {kind}, as in training; got {given.tolist()[0]!r}.")
    positions = np.full(len(given), -1)
    is_known = np.isin(given, ids) if unknown == "ignore" else np.ones(len(given), bool)
    positions[is_known] = find_positions(given[is_known], ids, name, *([hint] if hint else []))
    return positions


def one_hot(columns: IntArray, n_columns: int) -> sparse.csr_array:
    """Return a matrix with a row for each column number, which holds a single one there."""
    return sparse.csr_array(sparse.eye_array(n_columns, dtype=np.float32, format="csr")[columns])


def history_rows(
    histories: Sequence[ArrayLike], item_ids: NDArray[Any], unknown: str = "error"
) -> sparse.csr_array:
    """Return a binary row for each list of item ids; an item that is named twice counts once."""
    if isinstance(histories, str):
        histories = [histories]  # so that the message shows it
    histories = check_sequence(histories, "histories", "one list of item ids per user")
    wrong = [ids for ids in histories if isinstance(ids, (str, bytes)) or np.ndim(ids) != 1]
    if wrong:
        raise InputError(
            f"histories must hold one list of item ids per user; got {show(wrong[0])} in place of a list. "
            f"Write [['first item', 'second item']] for one user."
        )
    columns = [np.unique(find_ids(ids, item_ids, "histories", unknown, IGNORE)) for ids in histories]
    indptr = np.append(0, np.cumsum([len(part) for part in columns])).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *columns])
    shape = (len(columns), len(item_ids))
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)

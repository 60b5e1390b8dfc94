"""Interactions as lines ``user item item ...``, one per user: the form in which public splits are shared."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import as_array
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io.table_columns import unify_ids
from nodecopy.io.table_files import Column, open_text

N_SNIFFED = 500
"""Lines by which lists of items are distinguished from tables."""


def holds_item_lists(path: Path, *, any_length: bool = False) -> bool:
    """Return whether lines are lists of integers of different lengths, each of another user.

    With ``any_length`` they may have equal lengths.
    """
    try:
        with open_text(path, "r") as file:
            rows = [line.split() for line in islice(file, N_SNIFFED) if line.strip()]
    except UnicodeDecodeError:
        return False
    return (
        (any_length or len({len(row) for row in rows}) > 1)
        and len({row[0] for row in rows}) == len(rows)
        and all(word.isdecimal() for row in rows for word in row)
    )


def read_item_lists(path: Path) -> Interactions:
    """Return the interactions in a file of lists; a user without items is kept, an item counts once."""
    with open_text(path, "r") as file:
        rows = [line.split() for line in file if line.strip()]
    if not rows:
        raise InputError("the file holds no rows.")
    user_ids, lines = encode_ids([row[0] for row in rows])
    item_ids, columns = encode_ids(list(chain.from_iterable(row[1:] for row in rows)))
    users = np.repeat(lines, [len(row) - 1 for row in rows])
    shape = len(user_ids), len(item_ids)
    matrix = sparse.csr_array((np.ones(len(users)), (users, columns)), shape=shape)
    return Interactions(matrix, user_ids, item_ids).binary()


def encode_ids(column: Column) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct ids in ascending order, and the position of each entry among them."""
    (values,) = unify_ids([column])
    ids = sorted(set(values))
    position_of = {value: number for number, value in enumerate(ids)}
    codes = np.array([position_of[value] for value in values], np.int64)
    return as_array(ids or np.zeros(0, np.int64), "ids"), codes

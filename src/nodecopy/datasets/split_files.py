"""Published splits from files: a training, a test and perhaps a validation part."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.formats import TableLike, exists, is_frame
from nodecopy._core.notices import log_decision, warn_about_data
from nodecopy._core.validation import check_sequence
from nodecopy.datasets.interaction_splits import fixed_split
from nodecopy.datasets.splits import Split
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import read_interactions
from nodecopy.io.item_lists import holds_item_lists


def read_split(
    train: TableLike | Sequence[TableLike],
    test: TableLike,
    validation: TableLike | None = None,
    **options: Any,
) -> Split[Interactions]:
    r"""Return the split whose parts are in files, in the order of all users and items.

    Parameters
    ----------
    train, test
        Files or data frames that :func:`.read_interactions` reads: tables, lists of items such as the
        ``train.txt`` and ``test.txt`` of LightGCN, or RecBole's atomic files. Several training files are
        pooled.
    validation
        A part of ``train``. A part that has nothing in common with ``train``, such as the ``.valid.inter`` of
        RecBole, is added to ``train``, which is logged: models are fitted to ``train`` without it while
        settings are chosen, and then to both. Without it, a tenth of ``train`` is drawn with seed 0.
    options
        Parameters of :func:`.read_interactions`, for all files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from nodecopy import datasets
    >>> with TemporaryDirectory() as folder:
    ...     train, test = Path(folder, "train.txt"), Path(folder, "test.txt")
    ...     _ = train.write_text("0 3 4 5\n1 3\n"), test.write_text("0 6\n1 4 5\n")
    ...     datasets.read_split(train, test).test
    Interactions(2 users, 4 items, 3 interactions, binary)
    """
    several: Any = [train] if isinstance(train, (str, os.PathLike)) or is_frame(train) else train
    several = check_sequence(several, "train", "a file, a data frame or a list of them")
    if not several:
        raise InputError("train must be a file, a data frame or a list of them; got an empty list.")
    files = {"train": several, "test": [test], "validation": [] if validation is None else [validation]}
    has_lists = options.get("lists") is None and any(map(_holds_lists, chain(*files.values())))

    def read(file: TableLike) -> Interactions:
        # Lines of equal length could be rows of a table, but not in a split with lists of items.
        is_list = has_lists and _holds_lists(file, any_length=True)
        return read_interactions(file, **(options | {"lists": True} if is_list else options))

    parts = {name: [read(file) for file in group] for name, group in files.items()}
    tables = [table for group in parts.values() for table in group]
    user_ids = _join_ids([table.user_ids for table in tables])
    item_ids = _join_ids([table.item_ids for table in tables])
    joined = {name: _join(group, user_ids, item_ids) for name, group in parts.items() if group}
    _warn_if_disjoint(joined["train"], joined["test"])
    if validation is not None:
        held_out = joined["validation"]
        if n_shared := held_out.n_interactions - held_out.difference(joined["test"]).n_interactions:
            raise InputError(
                f"validation must have no pair of user and item in common with test; got {n_shared}. Leave "
                f"these out."
            )
        if held_out.difference(joined["train"]) == held_out:
            joined["train"] = joined["train"].union(held_out)
            log_decision("the validation part is outside the training part and was added to it.")
    return fixed_split(**joined)


def _warn_if_disjoint(train: Interactions, test: Interactions) -> None:
    """Warn if no user or no item of test is in train, as where files write ids in different ways."""
    first, second = train.rows.csr, test.rows.csr
    for name, axis in (("users", 1), ("items", 0)):
        is_shared = (first.sum(axis=axis) > 0) & (second.sum(axis=axis) > 0)
        if test.n_interactions and train.n_interactions and not is_shared.any():
            warn_about_data(
                f"test: none of its {name} are in train. Check that both files write ids in the same way."
            )


def _holds_lists(file: TableLike, *, any_length: bool = False) -> bool:
    """Return whether a file is recognised as lists of items."""
    if not isinstance(file, (str, os.PathLike)):
        return False
    path = Path(file)
    if not exists(path) or not path.is_file() or ".txt" not in path.suffixes:
        return False
    return holds_item_lists(path, any_length=any_length)


def _join_ids(ids: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return all ids in ascending order, as texts if some are."""
    has_texts = any(part.dtype.kind == "U" for part in ids if part.size)
    return np.unique(np.concatenate([part.astype(str) if has_texts else part for part in ids]))


def _join(tables: Sequence[Interactions], user_ids: NDArray[Any], item_ids: NDArray[Any]) -> Interactions:
    columns = [table.table() for table in tables]
    users = np.concatenate([column.astype(user_ids.dtype) for column, _, _ in columns])
    items = np.concatenate([column.astype(item_ids.dtype) for _, column, _ in columns])
    return Interactions.from_table(users, items, user_ids=user_ids, item_ids=item_ids)

"""Reading and writing interactions: tables, lines ``user item item ...`` of one user each, and archives."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.checks import as_array, check_choice, check_type
from nodecopy._core.files import TABLES, PathLike, TableLike, format_of, reading
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import matrices
from nodecopy.io.columns import (
    NOTATIONS,
    Decimal,
    check_identifiers,
    check_notation,
    describe,
    parse_numbers,
    parse_times,
    read_columns,
    unify_ids,
)
from nodecopy.io.tables import ATOMIC, Column, open_text, write_table

FORMATS = (*TABLES, ".npz")  # formats that can be written; atomic files can be read
N_SNIFFED = 500  # lines by which lists of items are distinguished from tables


def read_interactions(
    path: TableLike,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    header: bool | None = None,
    lists: bool | None = None,
    decimal: Decimal | None = None,
    day_first: bool | None = None,
) -> Interactions:
    """Return the interactions in a file or data frame.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.txt``, ``.parquet``) or data frame with a row per interaction, an
        atomic file of RecBole (``.inter``), or an ``.npz`` file of :func:`write_interactions` or SciPy.
    user, item, rating, time
        Names of columns. By default columns with usual names (``user``, ``customer``, ``item``, ``rating``,
        ``time``, ...); otherwise the first two that can hold ids are user and item, the next one is the
        rating if it holds numbers other than times and prices, and the first column of Unix times or dates
        (2024-05-31 or 31.05.2024) is the time. An empty name leaves rating or time out; otherwise rows with
        an empty cell of such a column are left out.
    header
        Whether the first row is a header; by default decided as in :func:`~nodecopy.read_graph`.
    lists
        Whether a ``.txt`` file has a line per user, ``user item item``; by default if all ids are integers,
        no user has two lines and lines differ in length.
    decimal
        The decimal sign of ratings, ``"."`` or ``","``; by default the one with which all can be read.
    day_first
        Whether 3/4/2024 is in April; by default if some day above 12 comes first. 3.4.2024 always is.

    Notes
    -----
    Of repeated interactions of a user with an item the latest row counts, with the time of the first. A
    rating of zero is no interaction. Ids are as in :func:`~nodecopy.read_graph`.

    Examples
    --------
    >>> import pandas
    >>> read_interactions(pandas.DataFrame({"user": ["ann", "bob"], "item": ["tea", "jam"]}))
    Interactions(2 users, 2 items, 2 interactions, binary)
    """
    column_names = {"user": user, "item": item, "rating": rating, "time": time}
    suffix = format_of(path, (*FORMATS, ATOMIC))
    if decimal is not None:
        check_choice(decimal, "decimal", NOTATIONS)
    with reading(path) as file:
        if suffix == ".txt" and (lists if lists is not None else holds_item_lists(file)):
            if lists is None:
                log_decision(f"{describe(path)}: each line holds a user and that user's items.", "lists")
            return _read_item_lists(file)
        if lists:
            raise InputError("lists", "must be left out: lists of items can be read from .txt files only.")
        if suffix == ".npz":
            if named := [role for role, name in column_names.items() if name]:
                raise InputError(f"a .npz file has no columns to name. Leave {' and '.join(named)} out.")
            return matrices.read_interactions(file)
        table, columns = read_columns(file, "interactions", column_names, header=header)
        users, items = (check_identifiers(table, columns[role], role) for role in ("user", "item"))
        check_notation([users])
        check_notation([items])
        user_ids, user_codes = _encode_ids(users)
        item_ids, item_codes = _encode_ids(items)
        ratings = when = None
        if "rating" in columns:
            ratings = parse_numbers(table, columns["rating"], "rating", low=0, decimal=decimal)
        if "time" in columns:
            when = parse_times(table, columns["time"], day_first)
        log = Interactions.from_table(user_codes, item_codes, ratings, when)
        is_shorter = log.n_interactions < len(user_codes)  # by repeated pairs or ratings of zero
        pairs = np.unique(user_codes * len(item_ids) + item_codes) if is_shorter else user_codes
        if n_repeated := len(user_codes) - len(pairs):
            log_decision(f"{describe(path)}: repeated user-item pairs: {n_repeated}; the latest row counts.")
        if n_zeros := len(pairs) - log.n_interactions:
            way = "they are no interactions. An empty name reads all rows without ratings"
            log_decision(f"{describe(path)}: user-item pairs with a rating of 0: {n_zeros}; {way}.", "rating")
        return Interactions(log.matrix, user_ids, item_ids, log.times)


def holds_item_lists(path: Path, *, any_length: bool = False) -> bool:
    """Return whether lines are lists of integers, each of another user, and differ in length."""
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


def _read_item_lists(path: Path) -> Interactions:
    with open_text(path, "r") as file:
        rows = [line.split() for line in file if line.strip()]
    if not rows:
        raise InputError("the file holds no rows.")
    user_ids, lines = _encode_ids([row[0] for row in rows])
    item_ids, columns = _encode_ids(list(chain.from_iterable(row[1:] for row in rows)))
    users = np.repeat(lines, [len(row) - 1 for row in rows])
    shape = len(user_ids), len(item_ids)
    matrix = sparse.csr_array((np.ones(len(users)), (users, columns)), shape=shape)
    return Interactions(matrix, user_ids, item_ids).binary()


def _encode_ids(column: Column) -> tuple[NDArray[Any], NDArray[np.int64]]:
    (values,) = unify_ids([column])
    ids = sorted(set(values))
    position_of = {value: number for number, value in enumerate(ids)}
    codes = np.array([position_of[value] for value in values], np.int64)
    return as_array(ids or np.zeros(0, np.int64), "ids"), codes


def write_interactions(interactions: Interactions, path: PathLike, *, spreadsheet: bool = False) -> None:
    """Write interactions as columns ``user``, ``item`` and, where there are some, ``rating`` and ``time``.

    Only ``.npz`` keeps users and items without interactions. See :func:`~nodecopy.write_graph`.

    >>> from tempfile import TemporaryDirectory
    >>> log = Interactions.from_table(["ann", "bob"], ["tea", "jam"])
    >>> with TemporaryDirectory() as folder:
    ...     write_interactions(log, f"{folder}/log.csv")
    ...     read_interactions(f"{folder}/log.csv") == log
    True
    """
    check_type(interactions, Interactions, "interactions", "Interactions")
    if format_of(path, FORMATS) == ".npz":
        matrices.write_interactions(interactions, path)
    else:
        users, items, ratings = interactions.table()
        columns = {"user": users, "item": items, "rating": ratings, "time": interactions.times}
        write_table(path, columns, spreadsheet=spreadsheet)

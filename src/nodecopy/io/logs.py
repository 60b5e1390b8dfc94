"""Interactions in and out of files."""

from __future__ import annotations

import numpy as np

from nodecopy._core.formats import TABLES, PathLike, TableLike, format_of, reading
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import npz, table_files

LOG = {
    "user": ("user", "user_id", "userid", "customer", "customer_id"),
    "item": ("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id"),
    "rating": ("rating", "score", "weight", "value", "count"),
    "time": ("time", "timestamp", "date"),
}
FORMATS = (*TABLES, ".npz")


def read_interactions(
    path: TableLike,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
) -> Interactions:
    """Read a log of who took what.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.txt``, ``.parquet``), one row an interaction, or an ``.npz`` that
        :func:`write_interactions` or SciPy wrote; or a pandas data frame.
    user, item, rating, time
        Names of columns. By default those with known names (user, item, rating, time and their
        relatives), else the first four in this order; rating and time may be missing.

    Notes
    -----
    Where a user met an item more than once the latest row counts, the last one if there are no times.
    Ids are integers if every one is written like an integer, else strings. A rating of zero is no
    interaction. The first row is a header if it holds known names, if a name was given, or if
    some column holds numbers everywhere but there. A header alone is an empty log, as
    :func:`write_interactions` writes it; recommenders refuse to learn from one.

    Examples
    --------
    >>> import pandas
    >>> read_interactions(pandas.DataFrame({"user": ["ann", "bob"], "item": ["tea", "jam"]}))
    Interactions(2 users, 2 items, 2 interactions, binary)
    """
    given = {"user": user, "item": item, "rating": rating, "time": time}
    suffix = format_of(path, FORMATS)
    with reading(path) as file:
        if suffix == ".npz":
            if any(given.values()):
                raise InputError("an .npz file has no columns to name.")
            return npz.read_interactions(file)
        table, columns = table_files.columns_for(file, LOG, given)
        users, items = (table_files.identifiers(table, columns[role], role) for role in ("user", "item"))
        user_ids, user_codes = _encoded(users)
        item_ids, item_codes = _encoded(items)
        ratings = (
            table_files.numbers(table, columns["rating"], "rating", low=0) if "rating" in columns else None
        )
        when = table_files.times(table, columns["time"]) if "time" in columns else None
        log = Interactions.from_table(user_codes, item_codes, ratings, when)
        return Interactions(log.matrix, user_ids, item_ids)


def write_interactions(interactions: Interactions, path: PathLike) -> None:
    """Write interactions: columns ``user``, ``item`` and, where there are weights, ``rating``.

    Only ``.npz`` keeps users and items without any interaction.

    >>> from tempfile import TemporaryDirectory
    >>> log = Interactions.from_table(["ann", "bob"], ["tea", "jam"])
    >>> with TemporaryDirectory() as folder:
    ...     write_interactions(log, f"{folder}/log.csv")
    ...     read_interactions(f"{folder}/log.csv") == log
    True
    """
    if format_of(path, FORMATS) == ".npz":
        npz.write_interactions(interactions, path)
    else:
        users, items, ratings = interactions.table()
        table_files.write_table(path, {"user": users, "item": items, "rating": ratings})


def _encoded(column: table_files.Column) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids in ascending order, and each entry's place among them."""
    (values,) = table_files.same_type([column])
    ids = sorted(set(values))
    place = {value: number for number, value in enumerate(ids)}
    return np.array(ids or np.zeros(0, np.int64)), np.array([place[value] for value in values], np.int64)

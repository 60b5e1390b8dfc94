"""Columns of tables: finding them by name or position, and checking their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodecopy.errors import InputError
from nodecopy.io.table_files import Column, Table, read_table

Roles: TypeAlias = Mapping[str, Sequence[str]]
"""The names that the column of each role may have, in lower case."""

EDGE_COLUMNS: Roles = {
    "source": (
        *("source", "src", "from", "u", "source_id", "from_node", "fromnodeid", "node1", "node_1", "citing"),
    ),
    "target": ("target", "dst", "to", "v", "target_id", "to_node", "tonodeid", "node2", "node_2", "cited"),
    "weight": ("weight", "w", "value"),
}
NODE_COLUMNS: Roles = {"node": ("id", "node", "node_id", "name"), "label": ("label", "class", "y")}
INTERACTION_COLUMNS: Roles = {
    "user": ("user", "user_id", "userid", "customer", "customer_id"),
    "item": ("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id"),
    "rating": ("rating", "score", "weight", "value", "count"),
    "time": ("time", "timestamp", "date"),
}

N_REQUIRED = 2
"""The first two roles of every table in a file are required."""


def match_columns(
    names: Sequence[str],
    n_columns: int,
    roles: Roles,
    *,
    n_required: int,
    is_numeric: Callable[[int], bool],
    given: Mapping[str, str | None] | None = None,
    owner: str = "the table",
) -> dict[str, int]:
    """Return the position of the column of each role.

    The column of a role is the one that the caller names, otherwise one with a name of the role, otherwise
    the one at the position of the role among all roles. An optional role is matched by position only if no
    required role is matched by name alone and its column is numeric.

    Parameters
    ----------
    names
        Names of the columns; empty if there is no header.
    n_columns
        Number of columns.
    roles
        Names of the columns of each role.
    n_required
        Number of roles, from the first on, that must have a column.
    is_numeric
        Whether the column at a position holds numbers.
    given
        Names of columns by role, as the caller gave them.
    owner
        What the table is called in errors.
    """
    given = given or {}
    lower = [name.lower() for name in names]
    positions: dict[str, int] = {}
    for role, words in roles.items():
        name = given.get(role)
        if name is not None and name not in names:
            raise InputError(f"there is no column {name!r}; there are {', '.join(names)}.")
        matches = [names.index(name)] if name is not None else [lower.index(w) for w in words if w in lower]
        if matches:
            positions[role] = matches[0]
    by_name = all(role in positions for role in list(roles)[:n_required])
    for position, role in enumerate(roles):
        if role in positions or (by_name and position >= n_required):
            continue
        is_free = position < n_columns and position not in positions.values()
        if position < n_required and not is_free:
            hint = f" Name it with {role}=." if given else ""
            raise InputError(f"{owner} must have a column for {role}; it has {', '.join(names)}.{hint}")
        if position < n_required or (is_free and is_numeric(position)):
            positions[role] = position
    return positions


def read_columns(path: Any, roles: Roles, given: Mapping[str, str | None]) -> tuple[Table, dict[str, Column]]:
    """Return the table in a file or data frame, and its columns by role (:func:`match_columns`)."""
    table = read_table(path, lambda first, below: _has_header(first, below, roles, given))
    if len(table.columns) < N_REQUIRED:
        required = " and ".join(list(roles)[:N_REQUIRED])
        raise InputError(f"the table must have a column for {required}; it has {len(table.columns)} in all.")
    positions = match_columns(
        table.names or [],
        len(table.columns),
        roles,
        n_required=N_REQUIRED,
        is_numeric=lambda position: _starts_with_number(table.columns[position]),
        given=given,
    )
    return table, {role: table.columns[position] for role, position in positions.items()}


def check_identifiers(table: Table, column: Column, role: str) -> Column:
    """Return a column of ids, integers or strings without missing values, or raise an error with the line."""
    if isinstance(column, np.ndarray):
        missing = [row for row, value in enumerate(column.tolist()) if value is None or value != value]
        if not missing and column.dtype.kind not in "iu" and not all(isinstance(v, str) for v in column):
            raise InputError(f"column {role} must hold integers or strings; it holds {column.dtype}.")
    else:
        missing = [] if all(column) else [column.index("")]
    if missing:
        raise InputError(f"{table.where(missing[0])} has no {role}.")
    return column


def unify_ids(columns: Sequence[Column]) -> list[list[Any]]:
    """Return the ids of several columns as integers if all are integers in canonical form, else as strings.

    7 is an integer in canonical form, 007 is not.
    """
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
    typed = [column for column in columns if isinstance(column, np.ndarray) and len(column)]
    if all(column.dtype.kind in "iu" for column in typed):
        try:
            integers = [list(map(int, values)) for values in lists]
            limits = [limit for values in integers if values for limit in (min(values), max(values))]
            np.array(limits, np.int64)
        except (ValueError, OverflowError):
            pass
        else:
            if [list(map(str, values)) for values in integers] == [list(map(str, ids)) for ids in lists]:
                return integers
    return [list(map(str, values)) for values in lists]


def parse_numbers(table: Table, column: Column, role: str, *, low: float = -math.inf) -> NDArray[np.float64]:
    """Return a column of finite numbers of at least ``low``, or raise an error with the line."""
    try:
        values = np.array(list(map(float, column)), np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(column) if not is_number(value))
        raise InputError(f"{table.where(row)} has {role} {column[row]!r}, which is not a number.") from None
    is_wrong = ~np.isfinite(values) | (values < low)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        allowed = "finite" if low == -math.inf else f"finite and at least {low:g}"
        raise InputError(f"{table.where(row)} has {role} {values[row]:g}; it must be {allowed}.")
    return values


def parse_times(table: Table, column: Column) -> NDArray[Any]:
    """Return a column of numbers or of ISO 8601 dates; dates without a time zone are in UTC."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column
    if not len(column) or is_number(column[0]):
        return parse_numbers(table, column, "time")
    seconds = np.empty(len(column))
    for row, text in enumerate(column):
        try:
            moment = datetime.fromisoformat(text)
        except (TypeError, ValueError):
            raise InputError(
                f"{table.where(row)} has time {text!r}; it must be a number or a date."
            ) from None
        seconds[row] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds


def is_number(value: Any) -> bool:
    """Return whether a cell can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _has_header(
    first: list[str], below: list[list[str]], roles: Roles, given: Mapping[str, str | None]
) -> bool:
    """Return whether the first row is a header.

    It is one if the caller names a column, if it has names of the required roles, or if some column holds
    numbers everywhere but there.
    """
    lower = [name.strip().lower() for name in first]
    required = list(roles.values())[:N_REQUIRED]
    if any(given.values()) or all(any(name in lower for name in names) for names in required):
        return True
    if not below[0]:
        return False
    return any(
        not is_number(name) and all(map(is_number, column)) for name, column in zip(first, below, strict=True)
    )


def _starts_with_number(column: Column) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    return bool(column) and is_number(column[0])

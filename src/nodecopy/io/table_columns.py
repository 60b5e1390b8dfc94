"""Columns of tables: finding them by name or position, and checking their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy._core.formats import is_frame
from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision, warn_about_data
from nodecopy._core.validation import check_characters, is_missing, list_names
from nodecopy.errors import InputError
from nodecopy.io.column_types import (
    MISSING_IDS,
    NO_RATINGS,
    NO_WEIGHTS,
    find_id_columns,
    holds_times,
    holds_weights,
    is_square,
)
from nodecopy.io.headers import N_KEYS, Roles, find_header, match_names
from nodecopy.io.table_files import Column, Table, read_table
from nodecopy.io.table_kinds import KINDS, Kind, check_kind

ID_ROLES = ("source", "target", "id", "user", "item")
ADJACENCY_ERROR = (
    "the table is an adjacency matrix, where edges are expected. Write it as .mtx or .npz "
    "(scipy.sparse.save_npz), or use as_graph(scipy.sparse.csr_array(frame)) in Python."
)


def match_columns(
    names: Sequence[str],
    n_columns: int,
    roles: Roles,
    *,
    n_required: int,
    is_numeric: Callable[[int], bool],
    column_names: Mapping[str, str | None] | None = None,
    owner: str = "the table",
    by_position: Collection[str] = (),
    keys: Sequence[int] | None = None,
) -> dict[str, int]:
    """Return the position of the column of each role.

    The column of a role is the one that the caller names, otherwise one with a usual name, otherwise the only
    one with a usual word in its name (``from_account``), otherwise, for a required role, the one in ``keys``.
    Optional roles are then matched with the columns behind those of the required ones, in their order, if
    they are numeric, but not if all required roles have usual names, unless they are in ``by_position``.

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
    column_names
        Names of columns by role, as the caller gave them.
    owner
        What the table is called in errors.
    by_position
        Optional roles that are matched by position wherever the other columns are.
    keys
        Positions of the columns of required roles without a usual name; by default 0, 1, 2, ...
    """
    column_names = column_names or {}
    lower = [name.lower() for name in names]
    positions = {
        role: position
        for role, position in match_names(names, roles).items()
        if column_names.get(role) is None
    }
    for role, name in column_names.items():
        if name and name not in names:
            raise InputError(f"there is no column {name!r}; there are {', '.join(names)}.")
        if name:
            positions = {other: at for other, at in positions.items() if at != names.index(name)}
            positions[role] = names.index(name)
    required, keys = list(roles)[:n_required], keys or range(n_required)
    by_name = all(column_names.get(role) or not set(roles[role]).isdisjoint(lower) for role in required)
    for number, role in enumerate(required):
        if role not in positions and (keys[number] >= n_columns or keys[number] in positions.values()):
            hints = (Hint("Name it with {}.", **{role: str}),) if column_names else ()
            raise InputError(f"{owner} must have a column for {role}; it has {', '.join(names)}.", *hints)
        positions.setdefault(role, keys[number])
    last = max(positions[role] for role in required)
    for position, role in enumerate(list(roles)[n_required:], last + 1):
        if role in positions or column_names.get(role) == "" or (by_name and role not in by_position):
            continue
        if position < n_columns and position not in positions.values() and is_numeric(position):
            positions[role] = position
    return positions


def read_columns(
    path: Any,
    kind: Kind,
    column_names: Mapping[str, str | None],
    *,
    header: bool | None = None,
    nodes: Collection[str] | None = None,
    is_shared: bool = False,
) -> tuple[Table, dict[str, Column]]:
    """Return the table in a file or data frame, and its columns by role (:func:`match_columns`).

    Parameters
    ----------
    path
        A file or a data frame.
    kind
        What it should hold: a key of ``KINDS``.
    column_names
        Names of columns by role, as the caller gave them; an empty name leaves an optional role out.
    header, nodes
        See :func:`.find_header`.
    is_shared
        Whether other columns are read elsewhere, so that they are not logged.
    """
    roles, file = KINDS[kind], describe(path)
    names_given = [name for name in column_names.values() if name]
    table = read_table(
        path,
        lambda first, below: find_header(
            first,
            below,
            roles,
            file=file,
            header=header,
            given=names_given,
            nodes=nodes,
            others=KINDS.values(),
        ),
    )
    if kind == "edges" and not names_given:
        _check_no_adjacency(table)
    if not names_given and table.names is not None:
        check_kind(table.names, kind, file)
    table = drop_row_names(
        table, nodes, has_id=bool(column_names.get("id")) or "id" in match_names(table.names or [], roles)
    )
    names, columns = table.names or [], table.columns
    if len(columns) < N_KEYS:
        required = " and ".join(list(roles)[:N_KEYS])
        raise InputError(f"the table must have a column for {required}; it has {len(columns)} in all.")
    no_values = NO_RATINGS if kind == "interactions" else NO_WEIGHTS
    has_time = column_names.get("time") or "time" in match_names(names, roles)
    positions = match_columns(
        names,
        len(columns),
        roles if has_time else {role: usual for role, usual in roles.items() if role != "time"},
        n_required=N_KEYS,
        is_numeric=lambda position: holds_weights(
            columns[position], *names[position : position + 1], others=no_values
        ),
        column_names=column_names,
        by_position=("weight", "rating"),
        keys=(0, 1) if kind == "labels" else _find_keys(table, kind, column_names),
    )
    if "time" in roles and "time" not in positions and column_names.get("time") != "":
        free = (number for number in range(len(columns)) if number not in positions.values())
        times = next((number for number in free if holds_times(columns[number])), None)
        positions |= {} if times is None else {"time": times}
    if not is_shared:
        _log_columns(file, table, roles, column_names, positions)
    by_role = {role: columns[position] for role, position in positions.items()}
    _warn_about_words(file, [by_role[role] for role in roles if role in ID_ROLES])
    return table, by_role


def _check_no_adjacency(table: Table) -> None:
    """Raise an error if the names of the columns are also the names of the rows."""
    if table.names and len(table.names) > N_KEYS and table.names[1:] == list(map(str, table.columns[0])):
        raise InputError(ADJACENCY_ERROR)


def _find_keys(table: Table, kind: Kind, column_names: Mapping[str, str | None]) -> Sequence[int]:
    """Return the columns of ids (:func:`.find_id_columns`) if they have no usual names."""
    required = list(KINDS[kind])[:N_KEYS]
    usual = match_names(table.names or [], KINDS[kind])
    if all(column_names.get(role) or role in usual for role in required):
        return 0, 1
    if kind == "edges" and is_square(table.columns):
        raise InputError(ADJACENCY_ERROR)
    keys = find_id_columns(table.columns, table.names or [], is_alike=kind == "edges")
    if len(keys) < N_KEYS:
        raise InputError(
            f"the table must have a column for {' and '.join(required)}, of integers or text; there are less "
            "than two of them.",
            Hint(
                f"Name them with {{{required[0]}}} and {{{required[1]}}}.",
                **dict.fromkeys(required, str),
            ),
        )
    return keys


def describe(path: Any) -> str:
    """Return what a file or data frame is called in decisions."""
    return "the data frame" if is_frame(path) else Path(path).name


def drop_row_names(table: Table, nodes: Collection[str] | None, *, has_id: bool) -> Table:
    """Return the table without a first column that has no name, where pandas and R write row names.

    In tables about ``nodes`` it stays if it holds their ids and no other column does (``has_id``).
    """
    names = table.names
    if names is None or names[0] or len(names) < N_KEYS + (nodes is None):
        return table
    if nodes is not None and not has_id and any(str(value) in nodes for value in table.columns[0]):
        return table
    return table.select(range(1, len(names)))


def _log_columns(
    file: str,
    table: Table,
    roles: Roles,
    column_names: Mapping[str, str | None],
    positions: Mapping[str, int],
) -> None:
    """Log which columns are read by their position, and which are not read."""
    names = table.names or [f"column {number}" for number in range(1, len(table.columns) + 1)]
    usual = match_names(table.names or [], roles)
    required, optional = list(roles)[:N_KEYS], list(roles)[N_KEYS:]
    unusual = [
        role for role in required if role != "label" and not column_names.get(role) and role not in usual
    ]
    if "id" not in roles and unusual and (table.names or set(map(positions.get, required)) != {0, 1}):
        parts = " and ".join(f"{names[positions[role]]} is the {role}" for role in unusual)
        log_decision(
            f"{file}: {parts} of each row.", Hint("{} reads another column.", **dict.fromkeys(unusual, str))
        )
    for role in optional:
        if role in positions and not column_names.get(role) and role not in usual:
            log_decision(
                f"{file}: {names[positions[role]]} holds the {role} of each row.",
                Hint("{} reads another column.", **{role: str}),
                Hint("{} reads none.", **{role: ""}),
            )
    ignored = [
        name
        for number, (name, column) in enumerate(zip(names, table.columns, strict=True))
        if number not in positions.values() and any(value not in ("", None) for value in column)
    ]
    if ignored:
        missing = {role: str for role in optional if role not in positions and table.names}
        hints = (Hint("{} reads one of them.", **missing),) if missing else ()
        log_decision(f"{file}: not read: {list_names(ignored)}.", *hints)


def _warn_about_words(file: str, columns: Sequence[Column]) -> None:
    if words := set().union(*map(MISSING_IDS.intersection, columns)):
        warn_about_data(
            f"{file}: {', '.join(sorted(words))} is read as an id. Remove such rows if it stands for a "
            "missing one."
        )


def check_identifiers(table: Table, column: Column, role: str) -> Column:
    """Return a column of ids, integers or strings without missing values, or raise an error with the line."""
    if isinstance(column, np.ndarray):
        missing = [row for row, value in enumerate(column.tolist()) if is_missing(value)]
        if not missing and column.dtype.kind not in "iu" and not all(isinstance(v, str) for v in column):
            raise InputError(
                f"column {role} must hold integers or strings; it holds {column.dtype}. Convert it first."
            )
    else:
        missing = [] if all(column) else [row for row, value in enumerate(column) if not value]
    if missing:
        others = f", and {len(missing) - 1:,} more rows have none" if len(missing) > 1 else ""
        raise InputError(f"{table.where(missing[0])} has no {role}{others}. Add it, or remove such rows.")
    return column


def check_notation(columns: Sequence[Column]) -> None:
    """Raise an error if an id has decimals (1.0), or leading zeros in another column, and elsewhere not."""
    texts = set().union(*(column for column in columns if not isinstance(column, np.ndarray)))
    if twin := next((text for text in texts if text[-2:] == ".0" and text[:-2] in texts), None):
        raise InputError(f"ids must be written the same way; got {twin[:-2]!r} and {twin!r}. Write integers.")
    numbers = [column for column in columns if isinstance(column, np.ndarray) and column.dtype.kind in "iu"]
    if 0 < len(numbers) < len(columns):
        values = set().union(*(column.tolist() for column in numbers))
        coded = (text for column in columns for text in column if isinstance(text, str) and text[:1] == "0")
        for text in coded:
            if text.isdecimal() and str(int(text)) != text and int(text) in values:
                raise InputError(
                    f"ids must be written the same way; got {int(text)} in one column and {text!r} in "
                    "another. Read both as text (in pandas with dtype=str)."
                )


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
    for values in lists:
        check_characters(values, "ids")
    return [list(map(str, values)) for values in lists]

"""Selecting and checking the columns of edge tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodecopy._core.notices import log_decision
from nodecopy.edge_tables.engines import Engine
from nodecopy.errors import InputError
from nodecopy.io.headers import Roles, match_names
from nodecopy.io.table_columns import match_columns


def select_columns(table: Any, roles: Roles, name: str, *, n_required: int) -> Any:
    """Return the columns of some roles, named after the roles, as in files (:func:`match_columns`)."""
    names = list(table.columns)
    positions = match_columns(
        names,
        len(names),
        roles,
        n_required=n_required,
        is_numeric=lambda position: table[names[position]].type().is_numeric(),
        owner=name,
    )
    usual = match_names(names, roles)
    unusual = {role: names[position] for role, position in positions.items() if role not in usual}
    if unusual:
        parts = " and ".join(f"{column} is the {role}" for role, column in unusual.items())
        log_decision(f"{name}: {parts} of each row. Rename columns that hold something else.")
    return table.select(**{role: names[position] for role, position in positions.items()})


def check_ids(table: Any, roles: Sequence[str], name: str, engine: Engine) -> None:
    """Raise an error unless some columns hold integers or strings without missing values."""
    for role in roles:
        kind = table[role].type()
        if not (kind.is_integer() or kind.is_string()):
            raise InputError(f"{role} of {name} must hold integers or strings; it holds {kind}.")
    n_missing = engine.row(table.aggregate([table[role].isnull().sum().name(role) for role in roles]))
    for role in roles:
        if n_missing[role]:
            raise InputError(f"{role} of {name} must not be missing; it is in {n_missing[role]} rows.")


def check_unique_ids(table: Any, name: str, engine: Engine) -> None:
    """Raise an error if an id occurs more than once."""
    counts = engine.row(table.aggregate(rows=table.count(), ids=table.id.nunique()))
    if counts["rows"] != counts["ids"]:
        rows, ids = counts["rows"], counts["ids"]
        raise InputError(f"{name} must list every id once; got {rows} rows for {ids} ids.")


def check_weights(table: Any, name: str, engine: Engine) -> None:
    """Raise an error if a weight is missing, infinite or negative."""
    if "weight" not in table.columns:
        return
    if not table.weight.type().is_numeric():
        raise InputError(f"weight of {name} must hold numbers; it holds {table.weight.type()}.")
    value = table.weight.cast("float64")
    is_wrong = value.isnull() | value.isnan() | value.isinf() | (value < 0)
    n_wrong = engine.row(table.aggregate(n=is_wrong.sum()))["n"]
    if n_wrong:
        raise InputError(f"weight of {name} must be finite and not negative; {n_wrong} rows are not.")

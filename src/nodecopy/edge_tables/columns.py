"""Which columns of a table are meant, and whether they can be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodecopy.edge_tables.engines import Engine
from nodecopy.errors import InputError
from nodecopy.io.table_columns import Roles, match_columns


def select_columns(table: Any, roles: Roles, name: str, *, n_required: int) -> Any:
    """Return the columns of some roles, named after the roles, found as in files (:func:`match_columns`)."""
    names = list(table.columns)
    positions = match_columns(
        names,
        len(names),
        roles,
        n_required=n_required,
        is_numeric=lambda position: table[names[position]].type().is_numeric(),
        owner=name,
    )
    return table.select(**{role: names[position] for role, position in positions.items()})


def check_ids(table: Any, roles: Sequence[str], name: str, engine: Engine) -> None:
    """Integers or strings, without gaps."""
    for role in roles:
        kind = table[role].type()
        if not (kind.is_integer() or kind.is_string()):
            raise InputError(f"{role} of {name} must hold integers or strings; it holds {kind}.")
    gaps = engine.row(table.aggregate([table[role].isnull().sum().name(role) for role in roles]))
    for role in roles:
        if gaps[role]:
            raise InputError(f"{role} of {name} must not have gaps; {gaps[role]} rows have none.")


def check_once(table: Any, name: str, engine: Engine) -> None:
    """Every id at most once."""
    found = engine.row(table.aggregate(rows=table.count(), ids=table.id.nunique()))
    if found["rows"] != found["ids"]:
        raise InputError(f"{name} must list every id once; got {found['rows']} rows for {found['ids']} ids.")


def check_weights(table: Any, name: str, engine: Engine) -> None:
    """Finite and not negative, where there are any."""
    if "weight" not in table.columns:
        return
    if not table.weight.type().is_numeric():
        raise InputError(f"weight of {name} must hold numbers; it holds {table.weight.type()}.")
    value = table.weight.cast("float64")
    wrong = value.isnull() | value.isnan() | value.isinf() | (value < 0)
    found = engine.row(table.aggregate(wrong=wrong.sum()))["wrong"]
    if found:
        raise InputError(f"weight of {name} must be finite and not negative; {found} rows are not.")

"""Which columns of a table are meant, and whether they can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodecopy.edge_tables.engines import Engine
from nodecopy.errors import InputError


def columns(table: Any, roles: Mapping[str, Sequence[str]], name: str, *, needed: int) -> Any:
    """The columns for some roles, named after them: by known names, else by place, as files are read.

    A role beyond those ``needed`` may be missing; it goes by place only where those do.
    """
    lower = [column.lower() for column in table.columns]
    found = {}
    for role, words in roles.items():
        places = [lower.index(word) for word in words if word in lower]
        if places:
            found[role] = table.columns[places[0]]
    by_name = all(role in found for role in list(roles)[:needed])
    for place, role in enumerate(roles):
        if role in found or (by_name and place >= needed):
            continue
        at_place = [column for column in table.columns[place : place + 1] if column not in found.values()]
        if place < needed and not at_place:
            raise InputError(f"{name} must have a column for {role}; it has {', '.join(table.columns)}.")
        if place < needed or (at_place and table[at_place[0]].type().is_numeric()):
            found[role] = at_place[0]
    return table.select(**found)


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

"""Numbers and times in columns."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.hints import Hint
from nodecopy.errors import InputError
from nodecopy.io.headers import COMPLEX, is_grouped, is_number
from nodecopy.io.table_files import Column, Table

OPTIONAL = ("weight", "rating", "time")
GROUPED_HINT = "Write numbers with a decimal point and nothing between thousands."


def parse_numbers(table: Table, column: Column, role: str, *, low: float = -math.inf) -> NDArray[np.float64]:
    """Return a column of finite numbers of at least ``low``, or raise an error with the line."""
    try:
        if any(issubclass(kind, COMPLEX) for kind in set(map(type, column))):
            raise TypeError
        values = np.array(list(map(float, column)), np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(column) if not is_number(value))
        cell = column[row]
        message = f"{table.where(row)} has {role} {cell!r}, which is not a number."
        if is_grouped(cell):
            raise InputError(f"{message} {GROUPED_HINT}") from None
        raise InputError(message, *_leave_out(role)) from None
    is_wrong = ~np.isfinite(values) | (values < low)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        allowed = "finite" if low == -math.inf else f"finite and at least {low:g}"
        raise InputError(
            f"{table.where(row)} has {role} {values[row]:g}; it must be {allowed}.", *_leave_out(role)
        )
    return values


def _leave_out(role: str) -> tuple[Hint, ...]:
    return (
        (Hint("Remove the row, or use {} to leave the column out.", **{role: ""}),)
        if role in OPTIONAL
        else ()
    )


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
                f"{table.where(row)} has time {text!r}; it must be a number or a date such as 2024-05-31.",
                *_leave_out("time"),
            ) from None
        seconds[row] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds

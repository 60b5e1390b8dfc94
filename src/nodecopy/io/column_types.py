"""What a column holds: numbers, weights, times or missing values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from nodecopy.io.headers import is_number, is_numeral, match_names
from nodecopy.io.table_files import Column

EPOCH_SECONDS, EPOCH_MILLISECONDS = (1e8, 2.2e9), (1e11, 2.2e12)
"""Numbers in these limits (1973 to 2039) are taken for times if nothing else is known about them."""
N_INSPECTED = 100
"""Rows by which a column is taken for numbers or times."""
NO_WEIGHTS = ("id", "label", "class", "type", "kind", "index", "key", "year", "month", "day", "hour")
"""Words in the names of columns of numbers that are no weights."""
TIMES = ("time", "timestamp", "ts", "date", "datetime")
"""Usual names of columns of times."""
DATES = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}([./])\d{1,2}\2\d{2,4}( .*)?")
"""Text that is a date: 2024-05-31 (and a time), 31.05.2024 or 5/31/24."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NO_RATINGS = (*NO_WEIGHTS, "price", "cost", "amount")
"""Words in the names of columns of numbers that are no ratings."""
MIN_SQUARE = 5
"""Rows from which a square table of numbers is a matrix; smaller ones may list edges."""
NO_IDS = (*TIMES, "year", "month", "day", "hour")
"""Words in the names of columns that hold no ids."""
MISSING_IDS = frozenset(["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>"])
"""What R, pandas, Python and databases write for a missing label or id."""


def find_id_columns(columns: Sequence[Column], names: Sequence[str], *, is_alike: bool) -> list[int]:
    """Return the positions of the first two columns that can hold ids, fewer if there are fewer.

    Dates, numbers with decimals and truth values are no ids. If ids are alike (``is_alike``) and the first
    two columns are one of numbers and one of text, the first two columns of text are returned, if there are
    two.
    """
    named = zip(columns, names or [""] * len(columns), strict=True)
    ids = [position for position, (column, name) in enumerate(named) if holds_ids(column, name)]
    texts = [position for position in ids if not holds_numbers(columns[position])]
    is_mixed = len({position in texts for position in ids[:2]}) > 1
    return texts[:2] if is_alike and is_mixed and len(texts) > 1 else ids[:2]


def is_square(columns: Sequence[Column]) -> bool:
    """Return whether columns are those of a matrix with as many rows, perhaps with names of both."""
    n_rows = len(columns[0])
    return (
        n_rows >= MIN_SQUARE
        and len(columns) - n_rows in (0, 1)
        and all(is_number(cell) for column in columns[1:] for cell in column[1:])
    )


def holds_ids(column: Column, name: str = "") -> bool:
    """Return whether a column can hold ids, by its name and its first values."""
    if match_names([name], {"other": NO_IDS}):
        return False
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column.dtype.kind in "iuU"
    cells = [cell for cell in column[:N_INSPECTED] if cell not in ("", None)]
    is_numeric = all(NUMBER.fullmatch(str(cell)) for cell in cells)
    has_decimals = is_numeric and not all(str(cell).lstrip("+-").isdecimal() for cell in cells)
    is_boolean = all(str(cell).lower() in ("true", "false") for cell in cells)
    return not cells or not (has_decimals or is_boolean or all(map(is_date, cells)))


def is_date(cell: Any) -> bool:
    """Return whether a cell is a date, perhaps with a time."""
    return isinstance(cell, date) or (isinstance(cell, str) and bool(DATES.fullmatch(cell.strip())))


def _is_iso_date(cell: Any) -> bool:
    if not isinstance(cell, str) or is_number(cell):
        return False
    try:
        datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True


def holds_numbers(column: Column) -> bool:
    """Return whether a column is of numbers: of a number type, or with one as its first entry."""
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    first = next((cell for cell in column[:N_INSPECTED] if cell), "")
    return is_numeral(first)


def holds_weights(column: Column, name: str = "", *, others: Sequence[str] = NO_WEIGHTS) -> bool:
    """Return whether a column is of numbers that are neither times nor, by its name, ``others``."""
    is_named = match_names([name], {"other": others})
    return holds_numbers(column) and not is_named and not holds_times(column, name)


def holds_times(column: Column, name: str = "") -> bool:
    """Return whether a column has the name of times, or starts with dates or Unix times from 1973 to 2039."""
    if match_names([name], {"time": TIMES}):
        return True
    if isinstance(column, np.ndarray) and column.dtype.kind not in "iuf":
        return column.dtype.kind == "M"
    cells = [cell for cell in column[:N_INSPECTED] if cell != ""]
    if cells and all(map(_is_iso_date, cells)):
        return True
    values = [float(cell) for cell in column[:N_INSPECTED] if is_number(cell)]
    return (
        bool(values)
        and len(values) == len(column[:N_INSPECTED])
        and any(
            all(low <= value <= high for value in values) for low, high in (EPOCH_SECONDS, EPOCH_MILLISECONDS)
        )
    )

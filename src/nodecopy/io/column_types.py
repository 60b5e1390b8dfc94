"""What a column holds: numbers, weights, times or missing values."""

from __future__ import annotations

import numpy as np

from nodecopy.io.headers import is_number, is_numeral, match_names
from nodecopy.io.table_files import Column

EPOCH_SECONDS, EPOCH_MILLISECONDS = (1e8, 2.2e9), (1e11, 2.2e12)
"""Numbers in these limits (1973 to 2039) are taken for times if nothing else is known about them."""
N_INSPECTED = 100
"""Rows by which a column is taken for numbers or times."""
NO_WEIGHTS = ("id", "label", "class", "type", "kind", "index", "key", "year", "month", "day", "hour")
"""Words in the names of columns of numbers that are neither weights nor ratings."""
TIMES = ("time", "timestamp", "ts", "date", "datetime")
"""Usual names of columns of times."""
MISSING_IDS = frozenset(["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>"])
"""What R, pandas, Python and databases write for a missing label or id."""


def holds_numbers(column: Column) -> bool:
    """Return whether a column is of numbers: of a number type, or with one as its first entry."""
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    first = next((cell for cell in column[:N_INSPECTED] if cell), "")
    return is_numeral(first)


def holds_weights(column: Column, name: str = "") -> bool:
    """Return whether a column is of numbers that are neither times nor, by its name, ids or categories."""
    is_named = match_names([name], {"other": NO_WEIGHTS})
    return holds_numbers(column) and not is_named and not holds_times(column, name)


def holds_times(column: Column, name: str = "") -> bool:
    """Return whether a column has the name of times, or starts with Unix times between 1973 and 2039."""
    if match_names([name], {"time": TIMES}):
        return True
    if isinstance(column, np.ndarray) and column.dtype.kind not in "iuf":
        return column.dtype.kind == "M"
    values = [float(cell) for cell in column[:N_INSPECTED] if is_number(cell)]
    return (
        bool(values)
        and len(values) == len(column[:N_INSPECTED])
        and any(
            all(low <= value <= high for value in values) for low, high in (EPOCH_SECONDS, EPOCH_MILLISECONDS)
        )
    )

"""Numbers and times in columns, and errors that name their lines."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.io.columns import parse_numbers, parse_times
from nodecopy.io.tables import Table


def rows(n: int) -> Table:
    """A table whose rows are the lines from 5 on."""
    return Table([], None, range(5, 5 + n))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["1", "x"], "line 6 has weight 'x', which is not a number"),
        (["1", "nan"], "line 6 has weight nan; it must be finite and at least 0"),
        (["-1", "2"], "line 5 has weight -1; it must be finite and at least 0"),
    ],
)
def test_wrong_numbers_are_named_with_their_line(column: list[str], message: str) -> None:
    assert parse_numbers(rows(2), ["1e3", "-0.5"], "weight").tolist() == [1000.0, -0.5]
    with pytest.raises(InputError, match=message):
        parse_numbers(rows(2), column, "weight", low=0)


def test_times_are_numbers_or_dates() -> None:
    assert parse_times(rows(2), ["5", "7.5"]).tolist() == [5.0, 7.5]
    dates = ["1970-01-01T00:00:10", "1970-01-01T01:00:10+01:00", "1970-01-02"]
    assert parse_times(rows(3), dates).tolist() == [10.0, 10.0, 86400.0]
    typed = np.array(["2020-01-01"], "datetime64[D]")
    assert parse_times(rows(1), typed) is typed
    with pytest.raises(InputError, match="line 6 has time 'soon'; it must be a number or a date"):
        parse_times(rows(2), ["2020-01-01", "soon"])

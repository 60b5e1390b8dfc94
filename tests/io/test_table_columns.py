from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.io.columns import (
    EDGE_COLUMNS,
    check_identifiers,
    is_number,
    match_columns,
    read_columns,
    unify_ids,
)
from nodecopy.io.tables import Table


def match(names: list[str], n_columns: int, *, numeric: bool = True, **given: str) -> dict[str, int]:
    return match_columns(
        names, n_columns, EDGE_COLUMNS, n_required=2, is_numeric=lambda _: numeric, column_names=given
    )


def rows(n: int) -> Table:
    """A table whose rows are the lines from 5 on."""
    return Table([], None, range(5, 5 + n))


@pytest.mark.parametrize(
    ("names", "n_columns", "numeric", "expected"),
    [
        (["source", "target"], 2, True, {"source": 0, "target": 1}),
        (["W", "Dst", "SRC"], 3, True, {"source": 2, "target": 1, "weight": 0}),
        (["year", "from", "to"], 3, True, {"source": 1, "target": 2}),
        ([], 2, True, {"source": 0, "target": 1}),
        ([], 3, True, {"source": 0, "target": 1, "weight": 2}),
        ([], 3, False, {"source": 0, "target": 1}),
        (["source", "b", "c"], 3, True, {"source": 0, "target": 1, "weight": 2}),
    ],
)
def test_columns_are_matched_by_name_and_then_by_position(
    names: list[str], n_columns: int, numeric: bool, expected: dict[str, int]
) -> None:
    assert match(names, n_columns, numeric=numeric) == expected


def test_a_column_that_has_another_role_is_not_matched_by_position() -> None:
    with pytest.raises(InputError, match=r"the table must have a column for source; it has target, other\.$"):
        match(["target", "other"], 2)


def test_names_of_the_caller_come_first() -> None:
    names = ["source", "target", "a", "b"]
    assert match(names, 4, source="a", target="b") == {"source": 2, "target": 3}
    with pytest.raises(InputError, match="there is no column 'z'; there are source, target, a, b"):
        match(names, 4, source="z")
    with pytest.raises(InputError, match=r"a column for target; it has x, y\. Name it with target=NAME"):
        match(["x", "y"], 2, source="y")


def test_columns_of_data_frames_are_found() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"item": [1, 2], "user": ["a", "b"], "when": [3, 4]})
    table, columns = read_columns(frame, "interactions", {"time": "when"})
    assert {role: list(column) for role, column in columns.items()} == {
        "item": [1, 2],
        "user": ["a", "b"],
        "time": [3, 4],
    }
    assert table.where(1) == "row 2"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([["1", "2"], ["3"]], [[1, 2], [3]]),
        ([["1", "2"], ["x"]], [["1", "2"], ["x"]]),
        ([["007"]], [["007"]]),
        ([["+1"]], [["+1"]]),
        ([[str(2**63)]], [[str(2**63)]]),
        ([[str(-(2**63))]], [[-(2**63)]]),
        ([np.array([1, 2]), ["3"]], [[1, 2], [3]]),
        ([np.array(["1", "2"], object)], [["1", "2"]]),
        ([[], []], [[], []]),
    ],
)
def test_ids_are_integers_only_if_all_are_in_canonical_form(columns: Any, expected: Any) -> None:
    assert unify_ids(columns) == expected


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", ""], "line 6 has no node"),
        (np.array(["a", None], object), "line 6 has no node"),
        (np.array([1.0, np.nan]), "line 6 has no node"),
        (np.array([0.5, 1.5]), "column node must hold integers or strings; it holds float64"),
    ],
)
def test_wrong_identifiers_are_named_with_their_line(column: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_identifiers(rows(2), column, "node")


def test_cells_that_are_numbers() -> None:
    assert [is_number(cell) for cell in ("1", " 2.5 ", "1e9", "nan")] == [True] * 4
    assert [is_number(cell) for cell in ("", "x", "1,5", None)] == [False] * 4

"""How columns are chosen: headers, kinds of tables, roles, types; and the values of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy.errors import DataWarning, InputError
from nodecopy.io.columns import (
    EDGE_COLUMNS,
    INTERACTION_COLUMNS,
    NODE_COLUMNS,
    find_header,
    find_id_columns,
    guess_kind,
    holds_numbers,
    holds_times,
    holds_weights,
    match_columns,
    match_names,
)
from nodecopy.io.tables import Column

CYCLE = ["ann,bob", "bob,cleo", "cleo,dan", "dan,eve", "eve,ann"]
"""Edges of text ids, all of which occur twice."""
PAIRS = [f"{a},{b}" for a in "abcdefgh" for b in "ijklmnop"]
LOG = [f"{user},{item}" for user in ("ann", "bob", "cleo") for item in ("tea", "jam")]
NODES = {"ann", "bob", "cleo"}


def decide(rows: list[str], roles: Any = EDGE_COLUMNS, **options: Any) -> bool:
    first, *below = [row.split(",") for row in rows]
    columns = [list(column) for column in zip(*below, strict=True)] or [[] for _ in first]
    return find_header(first, columns, roles, file="f.csv", **options)


@pytest.mark.parametrize(
    ("rows", "is_header", "reason"),
    [
        (["from_account,to_account", "ann,bob"], True, "its names contain usual words"),
        (["compte,vers", "A1,B2"], True, "all values below 'compte' have digits"),
        (["quelle,ziel", *CYCLE], True, "its values never occur again below"),
        (["quelle,ziel", *PAIRS, "lonely,alone"], True, "its values never occur again below"),
        (["one,other", "1,2"], True, "the column below 'one' holds numbers"),
        (CYCLE, False, "'ann' occurs again"),
        (["ann,bob", "bob,cleo", "cleo,dan"], False, "'bob' occurs again"),
        (["ann,bob,note", "bob,cleo,3"], False, "'bob' occurs again"),
        (["x,y", "ann,bob", "bob,cleo", "dan,eve"], False, "the values of 1 other rows do not occur again"),
        (["quelle,ziel", *PAIRS, "lonely,alone", "other,pair"], False, "the values of 2 other rows"),
        # Obvious decisions are not logged.
        (["source,target", "ann,bob"], True, None),
        (["#node1,node2", "ann,bob"], True, None),
        ([",from,to", "1,ann,bob"], True, None),
        (["ann,2"], False, None),
        (["ann,bob,3"], False, None),
        (["1,2", "2,3"], False, None),
        (["1,2,", "2,3,0.5"], False, None),
        (["x,y,0.5", *(f"{edge},2" for edge in CYCLE)], False, None),
    ],
)
def test_headers(rows: list[str], is_header: bool, reason: str | None, caplog: Any) -> None:
    assert decide(rows) is is_header
    assert len(caplog.messages) == (reason is not None)
    if reason:
        kind = "a header" if is_header else "data"
        assert f"f.csv: the first row ({rows[0]}) is {kind}, since {reason}" in caplog.text
        assert "Set header to change this." in caplog.text


@pytest.mark.parametrize("rows", [["u1,u2", "u3,u4"], ["a,b", "c,d", "e,f"], ["who,whom"]])
def test_a_first_row_that_may_be_a_header_is_a_warning(rows: list[str]) -> None:
    with pytest.warns(DataWarning, match="is data, since .* Set header to change this"):
        assert not decide(rows)


@pytest.mark.parametrize(
    ("rows", "roles", "nodes", "is_header"),
    [
        (["account_no,segment", "ann,gold", "bob,silver"], NODE_COLUMNS, NODES, True),
        (["ann,gold", "bob,silver"], NODE_COLUMNS, NODES, False),
        (["typo,gold", "ann,gold", "bob,silver"], NODE_COLUMNS, NODES, False),
        (["account_no,7", "ann,3", "bob,4"], NODE_COLUMNS, NODES, False),
        (["name,segment", "x1,gold", "y1,gold2"], NODE_COLUMNS, NODES, True),
        (["person,team"], EDGE_COLUMNS, NODES, True),
        (["ann,red"], EDGE_COLUMNS, NODES, False),
        (["typo,1,2.5", "ann,5,6", "bob,7,8"], {"id": NODE_COLUMNS["id"]}, NODES, False),
        (["key,0,1", "ann,5,6", "bob,7,8"], {"id": NODE_COLUMNS["id"]}, NODES, True),
        (["ann,NA", "bob,3"], {"id": NODE_COLUMNS["id"]}, NODES, False),
        (["client,article", *LOG], INTERACTION_COLUMNS, None, True),
        (LOG, INTERACTION_COLUMNS, None, False),
    ],
)
def test_headers_of_other_tables(rows: list[str], roles: Any, nodes: Any, is_header: bool) -> None:
    assert decide(rows, roles, nodes=nodes) is is_header


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("source,target\na,b\n", "edges"),
        ("id,from_account,to_account,amount\n0,a,b,1\n1,b,c,2\n", "edges"),
        ("1,2\n2,3\n", "edges"),
        ("userId,movieId,rating\n1,2,3\n", "interactions"),
        ("user 1,item 7\nuser 2,item 7\n", "edges"),
        ("id,label\na,x\nb,x\n", "labels"),
        ("id,age\na,3\nb,4\n", "features"),
        ("id,age\na,3\na,4\n", "edges"),
        ("account,age,income,city\na,3,1,Oslo\nb,4,1,Rome\n", "features"),
        ("account,age\na,3\nb,4\n", "edges"),
    ],
)
def test_kinds_of_tables(text: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(text)
    assert guess_kind(tmp_path / "table.csv") == kind
    assert guess_kind(tmp_path / "table.csv", id="account") == ("features" if "account,age" in text else kind)


def choose(names: str, numeric: bool = True, **given: str) -> str:
    """Return the columns of source, target and weight."""
    positions = match_columns(
        names.split(","), EDGE_COLUMNS, n_required=2, is_numeric=lambda _: numeric, column_names=given
    )
    return " ".join(f"{role[0]}{positions[role]}" for role in EDGE_COLUMNS if role in positions)


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        ("source,target", {}, "s0 t1"),
        ("W,Dst,SRC", {}, "s2 t1 w0"),
        ("year,from,to", {}, "s1 t2"),
        (",,", {}, "s0 t1 w2"),
        (",,", {"numeric": False}, "s0 t1"),
        ("source,b,c", {}, "s0 t1 w2"),
        ("source,target,a,b", {"source": "a", "target": "b"}, "s2 t3"),
        ("target,other", {}, "a column for source; it has target, other."),
        (
            "source,target,a,b",
            {"source": "z"},
            "must be a column; got 'z', where there are source, target, a",
        ),
    ],
)
def test_columns_are_chosen_by_name_and_then_by_position(names: str, options: Any, expected: str) -> None:
    if expected.startswith("s"):
        assert choose(names, **options) == expected
    else:
        with pytest.raises(InputError) as error:
            choose(names, **options)
        assert expected in str(error.value)


def test_names_match_roles_by_their_words_if_only_one_does() -> None:
    words = match_names(["Date", "from_account", "ToAccount", "w"], EDGE_COLUMNS)
    assert words == {"source": 1, "target": 2, "weight": 3}
    assert match_names(["from_a", "from_b"], EDGE_COLUMNS) == {}
    assert match_names(["source", "from_where", "target"], EDGE_COLUMNS) == {"source": 0, "target": 2}


@pytest.mark.parametrize(
    ("column", "name", "kinds"),
    [
        (["", "1.5"], "", (True, True, False)),
        (["a", "1.5"], "", (False, False, False)),
        (["1217567877", "1217573801"], "", (True, False, True)),
        (["1", "2"], "timestamp", (True, False, True)),
        (["1", "2"], "type", (True, False, False)),
        (np.array([1.5]), "", (True, True, False)),
        (np.array(["2020-01-01"], "datetime64[D]"), "", (False, False, True)),
    ],
)
def test_numbers_weights_and_times(column: Column, name: str, kinds: tuple[bool, bool, bool]) -> None:
    assert (holds_numbers(column), holds_weights(column, name), holds_times(column, name)) == kinds


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        ([["a"], ["b"]], [], [0, 1]),
        ([["2024-05-31"], ["a"], ["b"], ["1.5"]], [], [1, 2]),
        ([["31.05.2024"], ["0221"], ["0222"]], [], [1, 2]),
        ([["5.0"], ["True"], ["1"], ["x"]], [], [2, 3]),
        ([["2001"], ["1"], ["2"]], ["year", "a", "b"], [1, 2]),
        ([["a"], ["1"], ["2"]], [], [0, 1]),
        ([np.array([0.5]), np.array([1]), np.array(["a"], object)], [], [1, 2]),
    ],
)
def test_columns_of_ids(columns: list[Column], names: list[str], expected: list[int]) -> None:
    assert find_id_columns(columns, names, is_alike=True) == expected


def test_nodes_have_ids_of_one_kind_but_users_and_items_may_differ() -> None:
    columns = [["ann"], ["1"], ["tea"]]
    assert [find_id_columns(columns, [], is_alike=is_alike) for is_alike in (True, False)] == [[0, 2], [0, 1]]

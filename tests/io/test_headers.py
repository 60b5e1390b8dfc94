"""Whether the first row is a header; every decision that is not obvious is logged with how to overrule it."""

from __future__ import annotations

import logging

import pytest

from nodecopy.errors import DataWarning
from nodecopy.io.columns import (
    EDGE_COLUMNS,
    INTERACTION_COLUMNS,
    NODE_COLUMNS,
    find_header,
    find_keys,
    match_names,
)

CYCLE = ["ann,bob", "bob,cleo", "cleo,dan", "dan,eve", "eve,ann"]
"""Edges of text ids, all of which occur twice."""


def decide(rows: list[str], **options: object) -> bool:
    roles = options.pop("roles", EDGE_COLUMNS)
    first, *below = [row.split(",") for row in rows]
    columns = [list(column) for column in zip(*below, strict=True)] or [[] for _ in first]
    return find_header(first, columns, roles, file="f.csv", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (["from_account,to_account", "ann,bob"], "its names contain usual words"),
        (["Sender From,Sent To", "ann,bob", "bob,cleo"], "its names contain usual words"),
        (["compte,vers", "A1,B2"], "all values below 'compte' have digits"),
        (["quelle,ziel", *CYCLE], "its values never occur again below"),
        (["giver,taker", "ann,bob", "bob,cleo"], "its values never occur again below"),
        (["one,other", "1,2"], "the column below 'one' holds numbers"),
        (["ann,weight", "x,1.5"], "the column below 'weight' holds numbers"),
    ],
)
def test_unfamiliar_headers_are_found(rows: list[str], reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """Before, only columns of numbers told: a header above text was an edge."""
    with caplog.at_level(logging.INFO, "nodecopy"):
        assert decide(rows)
    assert caplog.messages == [
        f"f.csv: the first row ({rows[0]}) is a header, since {reason}. Use header=False otherwise."
    ]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (CYCLE, "'ann' occurs again"),
        (["ann,bob", "bob,cleo", "cleo,dan"], "'bob' occurs again"),
        (["x,x", *CYCLE], "'x' occurs again"),
        (["x,y", "ann,bob", "bob,cleo", "dan,eve"], "the values of 1 other rows do not occur again either"),
        (["ann,bob,note", "bob,cleo,3"], "'bob' occurs again"),
    ],
    ids=["cycle", "path", "loop", "short", "note"],
)
def test_text_ids_are_data_where_it_may_be(
    rows: list[str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        assert not decide(rows)
    assert caplog.messages == [
        f"f.csv: the first row ({rows[0]}) is data, since {reason}. Use header=True otherwise."
    ]


@pytest.mark.parametrize("rows", [["u1,u2", "u3,u4"], ["a,b", "c,d", "e,f"]], ids=["pair", "matching"])
def test_a_first_row_that_may_be_a_header_is_a_warning(rows: list[str]) -> None:
    with pytest.warns(DataWarning, match=r"is data, since the values of . other rows .* Use header=True"):
        assert not decide(rows)


def test_an_only_row_of_text_may_be_a_header() -> None:
    """Before, a file with nothing but an unfamiliar header was one edge, without a word."""
    with pytest.warns(
        DataWarning, match=r"\(who,whom\) is data, since there is no other row .* Use header=True"
    ):
        assert not decide(["who,whom"])
    assert decide(["from_account,to_account"])
    assert not any(decide([row]) for row in ("1,2", "ann,bob,3", "ann,ann"))
    assert decide(["person,team"], nodes={"ann", "bob"})
    assert not decide(["ann,red"], nodes={"ann", "bob"})


def test_a_few_lonely_pairs_do_not_hide_a_header() -> None:
    below = [f"{a},{b}" for a in "abcdefgh" for b in "ijklmnop"]
    assert decide(["quelle,ziel", *below, "lonely,alone"])
    assert not decide(["quelle,ziel", *below, "lonely,alone", "other,pair"])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["source,target", "ann,bob"], True),
        (["#node1,node2", "ann,bob"], True),
        (["TO,year,From", "ann,1999,bob"], True),
        (["source,target"], True),
        (["ann,2"], False),
        (["1,2", "2,3"], False),
        (["1,2,", "2,3,0.5"], False),
        ([",from,to", "1,ann,bob"], True),
    ],
)
def test_obvious_decisions_are_not_logged(
    rows: list[str], expected: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        assert decide(rows) is expected
    assert not caplog.messages


def test_the_caller_decides() -> None:
    assert not decide(["source,target", "ann,bob"], header=False)
    assert decide(CYCLE, header=True)
    assert decide(CYCLE, header=False, given=["ann"])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["account_no,segment", "ann,gold", "bob,silver"], True),
        (["ann,gold", "bob,silver"], False),
        (["typo,gold", "ann,gold", "bob,silver"], False),
        (["account_no,7", "ann,3", "bob,4"], False),
        (["name,segment", "x,gold", "y,silver"], False),
        (["name,segment", "x1,gold", "y1,gold2"], True),
    ],
    ids=["header", "node", "label again", "number", "unknown ids", "unknown ids with digits"],
)
def test_tables_of_labels_are_compared_with_the_nodes(rows: list[str], expected: bool) -> None:
    nodes = {"ann", "bob", "cleo"}
    assert decide(rows, roles=NODE_COLUMNS, nodes=nodes) is expected


@pytest.mark.parametrize(
    ("first", "expected"), [("typo,1,2.5", False), ("typo,3,4", False), ("key,0,1", True), ("key,1,2", True)]
)
def test_numbers_in_the_first_row_of_features(first: str, expected: bool) -> None:
    rows = [first, "ann,5,6", "bob,7,8"]
    assert decide(rows, roles={"id": NODE_COLUMNS["id"]}, nodes={"ann", "bob"}) is expected


def test_a_weight_in_the_first_row_makes_no_header() -> None:
    assert not decide(["x,y,0.5", *(f"{edge},2" for edge in CYCLE)])
    assert not decide(["x,y,1", *(f"{edge},2" for edge in CYCLE)])


def test_a_missing_number_in_the_first_row_makes_no_header() -> None:
    """Before, the row of ann was taken for a header, since NA is no number."""
    assert not decide(["ann,NA", "bob,3"], roles={"id": NODE_COLUMNS["id"]}, nodes={"ann", "bob"})


def test_logs_of_text() -> None:
    rows = [
        "client,article",
        *(f"{user},{item}" for user in ("ann", "bob", "cleo") for item in ("tea", "jam")),
    ]
    assert decide(rows, roles=INTERACTION_COLUMNS)
    assert not decide(rows[1:], roles=INTERACTION_COLUMNS)


def test_names_match_roles_by_their_words_if_only_one_does() -> None:
    assert match_names(["Date", "from_account", "ToAccount", "w"], EDGE_COLUMNS) == {
        "source": 1,
        "target": 2,
        "weight": 3,
    }
    assert match_names(["from_a", "from_b"], EDGE_COLUMNS) == {}
    assert match_names(["source", "from_where", "target"], EDGE_COLUMNS) == {"source": 0, "target": 2}


def test_keys_are_two_columns() -> None:
    assert find_keys(["date", "from", "to"], EDGE_COLUMNS) == [1, 2]
    assert find_keys(["a", "b", "c"], EDGE_COLUMNS) == [0, 1]
    assert find_keys(["target", "b"], EDGE_COLUMNS) == [0, 1]
    assert find_keys(["b", "source"], EDGE_COLUMNS) == [0, 1]

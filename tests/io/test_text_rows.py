"""Encodings, comments and delimiters."""

from __future__ import annotations

from io import StringIO

import pytest

from nodecopy.errors import InputError
from nodecopy.io.tables import check_signature, find_delimiter, split_rows


def read(text: str, suffix: str) -> list[tuple[int, list[str]]]:
    return list(split_rows(StringIO(text, newline=""), suffix)[0])


@pytest.mark.parametrize(
    ("text", "suffix", "delimiter"),
    [
        ("a,b\n", ".csv", ","),
        ("a;b\n", ".csv", ";"),
        ("a\tb\n", ".csv", "\t"),
        ("a|b\n", ".csv", "|"),
        ("a b\n", ".csv", None),
        ("1::2::5\n", ".csv", "::"),
        ("fe80::1,fe80::2\n", ".csv", ","),  # before, double colons came first
        ("a::b;c::d\n", ".csv", ";"),
        ("std::map std::set\n", ".txt", None),
        ("alone\n", ".csv", ","),
        ('"a;b",c\n', ".csv", ","),
        ("a,b;c\nd,e\n", ".csv", ","),
        ("Doe, Jane;Oslo\nAnn;Rome\n", ".csv", ";"),
        ("Doe, Jane | Oslo\nAnn | Rome\n", ".txt", "|"),
        ("a | b\nb | c\n", ".txt", "|"),  # white space gave three columns
        ("a;b;1,5\nb;c;2\n", ".csv", ";"),
        ("id;x\na;1,5\nb;-2,25\n", ".csv", ";"),
        ("1;2,5\n2;3,5\n", ".csv", ";"),
        ("a,b\n", ".tsv", "\t"),
        ("a b\n", ".txt", None),
        ("a\tb\n", ".txt", "\t"),
        ("New York\tOslo\n", ".txt", "\t"),
        ("1\t2 5\n", ".txt", None),
        ("a, b\nb, c\n", ".txt", ","),
        ("a,b c\nd e\n", ".txt", None),
        ("1::31::2.5\n1::1029::3\n", ".txt", "::"),
        ("std::map,std::set\nint,char\n", ".csv", ","),
        ("", ".csv", ","),
    ],
)
def test_delimiters(text: str, suffix: str, delimiter: str | None) -> None:
    assert find_delimiter(text, suffix) == delimiter


def test_lines_are_numbered_below_comments() -> None:
    text = "# SNAP\n# FromNodeId\tToNodeId\n\n1\t2\n2\t3\n"
    for suffix in (".tsv", ".csv", ".txt"):
        rows, comments = split_rows(StringIO(text, newline=""), suffix)
        assert list(rows) == [(4, ["1", "2"]), (5, ["2", "3"])]
        assert comments == ["SNAP", "FromNodeId\tToNodeId"]


def test_hashes_in_tables_are_ids_and_in_txt_comments() -> None:
    assert read("#python,#ai\n#ai,#r\n", ".csv") == [(1, ["#python", "#ai"]), (2, ["#ai", "#r"])]
    assert read("1 2\n# a comment\n% another\n2 3\n", ".txt") == [(1, ["1", "2"]), (4, ["2", "3"])]
    assert read("1\t2\n#a\tcomment\n2\t3\n", ".txt") == [(1, ["1", "2"]), (3, ["2", "3"])]


def test_spreadsheets_state_their_delimiter() -> None:
    assert read("sep=;\na,b;c\n", ".csv") == [(2, ["a,b", "c"])]


def test_quotes_between_spaces() -> None:
    assert read('"from" "to"\n"1"  "New York" "Oslo"\n', ".txt") == [
        (1, ["from", "to"]),
        (2, ["1", "New York", "Oslo"]),
    ]


@pytest.mark.parametrize(
    ("start", "cure"),
    [
        ("a,b".encode("utf-16"), "UTF-16; save it as 'CSV UTF-8'"),
        (b"a\0,b", "the file is binary, not text"),
        (b"PK\x03\x04abc", "save the sheet as 'CSV UTF-8'"),
        (b"\x1f\x8babc", r"add \.gz to its name"),
    ],
)
def test_files_that_are_no_text_in_utf_8(start: bytes, cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        check_signature(start)


def test_blanks_around_cells() -> None:
    """Before, those behind a cell were part of it: 'a ' was another id than 'a'."""
    assert read("a ,b\t\n c, a\n", ".csv") == [(1, ["a", "b"]), (2, ["c", "a"])]
    text = '"a ",b ,"say ""x"" "\n "two\nlines ", c ,\n d ,e , f\n'
    assert read(text, ".csv") == [
        (1, ["a ", "b", 'say "x" ']),
        (3, ["two\nlines ", "c", ""]),
        (4, ["d", "e", "f"]),
    ]

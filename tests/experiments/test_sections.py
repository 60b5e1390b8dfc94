from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments.spec import (
    Reader,
    key,
    make_choice_reader,
    make_list_reader,
    read_class,
    read_count,
    read_flag,
    read_mapping,
    read_name,
    read_section,
    read_share,
    read_text,
)


@dataclass
class Shelf:
    name: str
    path: str = key(read_class, "class")
    books: int = key(read_count, default=1)


def test_a_section_becomes_a_dataclass() -> None:
    assert read_section(Shelf, {"class": "a.B", "books": 3}, "[shelf]", name="x") == Shelf("x", "a.B", 3)
    assert read_section(Shelf, {"class": "a.B"}, "[shelf]", name="x").books == 1


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, r"\[shelf\] must have class; it has nothing"),
        ({"books": 2}, r"\[shelf\] must have class; it has books"),
        ({"class": "a.B", "bocks": 2}, r"key of \[shelf\] must be one of books, class; .*mean books"),
        ({"class": "a.B", "name": "y"}, r"key of \[shelf\] .*got 'name'"),
        ({"class": "a.B", "books": 0}, r"books of \[shelf\] must be an integer of at least 1; got 0"),
        ([], r"\[shelf\] must be a section of keys and values; got \[\]"),
    ],
)
def test_mistakes_in_a_section_are_named(section: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_section(Shelf, section, "[shelf]", name="x")


@pytest.mark.parametrize(
    ("read", "right", "wrong"),
    [
        (read_text, "word", ["", " ", 1]),
        (read_name, "table5-a_b.c", ["Table", "a/b", "-a", "a--b"]),
        (read_flag, False, [0, "false"]),
        (read_class, "package.module.Class", ["Class", "a:B", 1, ".B"]),
        (read_count, 1, [0, 1.0, True]),
        (read_share, 0.5, [1.5, -0.1, "x"]),
        (read_mapping, {"a": 1}, [[], "a"]),
        (make_choice_reader({"a": 0, "b": 1}), "a", ["c", 1]),
    ],
)
def test_readers(read: Reader, right: Any, wrong: list[Any]) -> None:
    assert read(right, "x") == right
    for value in wrong:
        with pytest.raises(InputError, match=r"x must "):
            read(value, "x")


def test_lists() -> None:
    assert make_list_reader(read_count)([1, 2], "x") == (1, 2)
    for wrong in ([], [1, 1], 1, [0]):
        with pytest.raises(InputError, match="x must be"):
            make_list_reader(read_count)(wrong, "x")
    assert make_list_reader(read_count, may_be_empty=True)([], "x") == ()
    with pytest.raises(InputError, match="x must be"):
        make_list_reader(read_count, may_be_empty=True)("ab", "x")

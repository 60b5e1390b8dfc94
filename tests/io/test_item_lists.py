"""Lines of a user and that user's items."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.io import read_interactions
from nodecopy.io.interactions import holds_item_lists

LISTS = "0 5 3 5\n7 3\n2\n\n"


def write(folder: Path, text: str, name: str = "train.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_lists_are_recognised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        log = read_interactions(write(tmp_path, LISTS))
    assert log == Interactions([[1, 1], [0, 0], [1, 0]], [0, 2, 7], [3, 5])
    assert (
        "train.txt: each line holds a user and that user's items. lists=False reads a table." in caplog.text
    )


@pytest.mark.parametrize(
    "text",
    [
        "0 5 3\n7 3 2\n",  # equal lengths: a table
        "0 5 3\n0 3\n",  # a user twice
        "0 5 3\n1 3.5\n",
        "user item rating\n1 2\n",
        "0,5,3\n1,3\n",
        "1 The Matrix 5\n2 Up 4\n",
    ],
)
def test_others_are_not(text: str, tmp_path: Path) -> None:
    assert not holds_item_lists(write(tmp_path, text))


def test_text_ids_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, "ann tea jam\nbob tea\nann ham\n")
    assert read_interactions(path, lists=True) == Interactions(
        [[1, 1, 1], [0, 0, 1]], ["ann", "bob"], ["ham", "jam", "tea"]
    )


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2 has 2 columns where the first row has 4"):
        read_interactions(write(tmp_path, LISTS), lists=False)
    with pytest.raises(InputError, match=r"lists of items can be read from \.txt files only"):
        read_interactions(write(tmp_path, "user,item\n1,2\n", "log.csv"), lists=True)
    with pytest.raises(InputError, match="the file holds no rows"):
        read_interactions(write(tmp_path, "\n"), lists=True)

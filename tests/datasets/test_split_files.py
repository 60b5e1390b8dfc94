"""Splits in files of other programs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nodecopy import Interactions, datasets
from nodecopy.errors import DataWarning, InputError

HEADER = "user_id:token\titem_id:token\n"


def write(folder: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(folder / name.replace("_", "."))
        paths[-1].write_text(text)
    return paths


def test_lists_of_lightgcn(tmp_path: Path) -> None:
    """Items of the test part alone are items of all parts; a user may have no test items."""
    train, test, valid = write(
        tmp_path,
        train_txt="0 10 11 12\n1 11\n2 10 12\n",
        test_txt="0 14\n1 10 12\n2\n",
        valid_txt="0 12 11\n2 10\n",
    )
    split = datasets.read_split(train, test, valid)
    items = [10, 11, 12, 14]
    assert split.train == Interactions([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]], item_ids=items)
    assert split.validation == Interactions([[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]], item_ids=items)
    assert split.test == Interactions([[0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]], item_ids=items)


def test_lists_of_equal_length_are_no_ratings_beside_other_lists(tmp_path: Path) -> None:
    train, test = write(tmp_path, train_txt="0 10 11 12\n1 11\n", test_txt="0 13 14\n1 10 12\n")
    assert datasets.read_split(train, test).test.n_interactions == 4


def test_atomic_files_have_a_validation_part_of_their_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train, valid, test = write(
        tmp_path,
        x_train_inter=HEADER + "1\ta\n2\tb\n",
        x_valid_inter=HEADER + "1\tb\n",
        x_test_inter=HEADER + "2\ta\n",
    )
    split = datasets.read_split([train, valid], test, valid)
    assert split.train == Interactions([[1, 1], [0, 1]], [1, 2], ["a", "b"])
    assert split.validation == Interactions([[0, 1], [0, 0]], [1, 2], ["a", "b"])
    with caplog.at_level("INFO", "nodecopy"):
        assert datasets.read_split(train, test, valid) == split
    assert "the validation part is outside the training part and was added to it" in caplog.text
    valid.write_text(HEADER + "1\tb\n2\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"validation must be inside train; 1 of its 2 .* train\.union"):
        datasets.read_split(train, test, valid)
    with pytest.raises(InputError, match=r"validation must have no pair .* in common with test; got 1"):
        datasets.read_split(train, test, test)


def test_ids_are_texts_if_some_are() -> None:
    train = pd.DataFrame({"user": [1, 2, 2], "item": ["7", "8", "x"]})
    test = pd.DataFrame({"user": [1, 2], "item": [8, 7]})
    split = datasets.read_split(train, test)
    assert split.test == Interactions([[0, 1, 0], [1, 0, 0]], [1, 2], ["7", "8", "x"])


def test_a_pair_in_both_parts_is_an_error() -> None:
    train = pd.DataFrame({"user": [1, 2], "item": [7, 8]})
    with pytest.raises(InputError, match=r"test must have no pair .* in common with train; got 1"):
        datasets.read_split(train, train.iloc[:1])


def test_files_without_common_ids_are_a_warning() -> None:
    train = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    for column, name in (("user", "users"), ("item", "items")):
        test = pd.DataFrame({"user": ["b", "a"], "item": ["x", "y"]})
        test[column] = ["u1", "u2"]
        with pytest.warns(DataWarning, match=f"test: none of its {name} are in train"):
            datasets.read_split(train, test)

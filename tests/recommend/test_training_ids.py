from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend.base import IGNORE, align, find_ids, history_rows, one_hot

IDS = np.array([30, 10, 20])


def test_find_ids_returns_positions() -> None:
    assert find_ids([20, 30, 20], IDS, "items").tolist() == [2, 0, 2]
    assert find_ids([], IDS, "items").tolist() == []
    with pytest.raises(InputError, match="items must hold integers, as in training; got '10'"):
        find_ids(["10"], IDS, "items")
    with pytest.raises(InputError, match=r"items must hold known ids; got 11, which .* them\.$"):
        find_ids([10, 11], IDS, "items")
    with pytest.raises(InputError, match=r"got 11, .* unknown='ignore' leaves such ids out"):
        find_ids([10, 11], IDS, "items", hint=IGNORE)
    with pytest.raises(InputError, match=r"items must be a list of ids; got 10. Write \[10\]."):
        find_ids(10, IDS, "items")


def test_history_rows_are_binary() -> None:
    assert history_rows([[20, 30, 20], [], [10]], IDS).toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert history_rows([], IDS).shape == (0, 3)


@pytest.mark.parametrize(
    ("histories", "message"),
    [
        ([10, 20], "histories must hold one list of item ids per user; got 10 in place of a list. Write"),
        (["10"], "got '10' in place of a list"),
        ("10", "got '10' in place of a list"),
        ([None], "got None in place of a list"),
        ([[[10]]], r"got \[\[10\]\] in place of a list"),
        ([[10, 99]], "histories must hold known ids; got 99, .* unknown='ignore' leaves such ids out"),
        ([[1.5]], "histories must hold integers or strings; got float64"),
        ([["tea"]], "histories must hold integers, as in training; got 'tea'"),
    ],
)
def test_wrong_histories(histories: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        history_rows(histories, IDS)


def test_one_hot() -> None:
    assert one_hot(np.array([2, 0, 2]), 3).toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_unknown_ids_are_left_out_on_request() -> None:
    assert find_ids([20, 99, 30], IDS, "items", "ignore").tolist() == [2, 0]
    assert history_rows([[20, 99], [99]], IDS, "ignore").toarray().tolist() == [[0, 0, 1], [0, 0, 0]]
    with pytest.raises(InputError, match="unknown must be one of 'error', 'ignore'; got 'drop'"):
        find_ids([20], IDS, "items", "drop")
    with pytest.raises(InputError, match="items must hold integers, as in training; got 'a'"):
        find_ids(["a"], IDS, "items", "ignore")


TRAIN = Interactions([[1, 1], [0, 1]], ["ann", "bob"], [1, 2])


def test_tables_are_aligned_by_their_ids() -> None:
    other = Interactions([[5, 0], [1, 1]], ["bob", "ann"], [2, 1])
    assert align(other, TRAIN, "test") == Interactions([[1, 1], [0, 5]], ["ann", "bob"], [1, 2])
    part = Interactions.from_table(["bob"], [1])
    assert align(part, TRAIN, "test") == Interactions([[0, 0], [1, 0]], ["ann", "bob"], [1, 2])
    assert align(TRAIN, TRAIN, "test") is TRAIN
    assert align(sparse.csr_array([[0, 0], [1, 0]]), TRAIN, "test") == align(part, TRAIN, "test")


def test_users_and_items_that_were_not_in_training(caplog: pytest.LogCaptureFixture) -> None:
    other = Interactions.from_table(["ann", "cleo", "bob"], [2, 1, 3])
    with pytest.raises(InputError, match=r"test: users must hold known ids; got 'cleo'.* Leave such"):
        align(other, TRAIN, "test")
    with caplog.at_level("INFO", "nodecopy"):
        aligned = align(other, TRAIN, "test", "ignore")
    assert aligned == Interactions([[0, 1], [0, 0]], ["ann", "bob"], [1, 2])
    assert "test: 2 of 3 interactions are of unknown users or items" in caplog.text
    history = align(other, TRAIN, "history", "ignore", keep_users=True)
    assert history == Interactions([[0, 1], [0, 0], [1, 0]], ["ann", "bob", "cleo"], [1, 2])
    with pytest.raises(InputError, match="test: items must hold integers, as in training; got 'tea'"):
        align(Interactions.from_table(["ann"], ["tea"]), TRAIN, "test")


def test_frames_keep_ids_of_the_type_of_training() -> None:
    pandas = pytest.importorskip("pandas")
    train = Interactions([[1, 1], [0, 1]], ["1", "x"], ["7", "y"])
    frame = pandas.DataFrame({"user": [1], "item": [7]})
    assert align(frame, train, "test") == Interactions([[1, 0], [0, 0]], ["1", "x"], ["7", "y"])

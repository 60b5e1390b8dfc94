from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend.training_ids import check_same_ids, find_ids, history_rows, one_hot

IDS = np.array([30, 10, 20])


def test_find_ids_returns_positions() -> None:
    assert find_ids([20, 30, 20], IDS, "items").tolist() == [2, 0, 2]
    assert find_ids([], IDS, "items").tolist() == []
    with pytest.raises(InputError, match="items must hold integers, as in training; got '10'"):
        find_ids(["10"], IDS, "items")
    with pytest.raises(InputError, match="items must hold known ids; got 11"):
        find_ids([10, 11], IDS, "items")


def test_history_rows_are_binary() -> None:
    assert history_rows([[20, 30, 20], [], [10]], IDS).toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert history_rows([], IDS).shape == (0, 3)


def test_one_hot() -> None:
    assert one_hot(np.array([2, 0, 2]), 3).toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_the_same_ids_in_another_order_are_refused() -> None:
    train, other = Interactions([[1, 1]], [0], [1, 2]), Interactions([[1, 1]], [0], [2, 1])
    check_same_ids(Interactions([[0, 1]], [0], [1, 2]), train, "test")
    with pytest.raises(InputError, match=r"test must be of the users and items of training.* same order"):
        check_same_ids(other, train, "test")

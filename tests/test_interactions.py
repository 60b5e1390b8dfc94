"""Interactions: rules, and inputs that are refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy import Interactions
from nodecopy.errors import InputError
from tests.strategies import interactions


@settings(max_examples=60)
@given(interactions())
def test_copies_and_pickles_are_equal_and_frozen(log: Interactions) -> None:
    _ = log.matrix
    for twin in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log), log):
        assert twin == log
        arrays = [twin.rows.indices, twin.rows.weights, twin.matrix.data, twin.user_ids, twin.item_ids]
        assert not any(array.flags.writeable for array in arrays if array is not None)
    users, items, ratings = log.table()
    again = Interactions.from_table(users, items, ratings, user_ids=log.user_ids, item_ids=log.item_ids)
    assert again == log
    assert log.binary() == again.binary()
    assert not log.binary().is_weighted


def test_the_latest_row_counts() -> None:
    users, items, ratings = [0, 0, 0], [1, 1, 1], [1, 2, 3]
    assert Interactions.from_table(users, items, ratings).matrix.toarray().tolist() == [[3]]
    assert Interactions.from_table(users, items, ratings, [5, 9, 9]).matrix.toarray().tolist() == [[3]]
    assert Interactions.from_table(users, items, ratings, [5, 9, 1]).matrix.toarray().tolist() == [[2]]
    dates = np.array(["2020-01-03", "2020-01-01", "2020-01-02"], "datetime64[D]")
    assert Interactions.from_table(users, items, ratings, dates).matrix.toarray().tolist() == [[1]]


def test_at_least() -> None:
    log = Interactions([[5, 1, 5], [5, 0, 0], [0, 5, 5]], ["a", "b", "c"], ["x", "y", "z"])
    kept = log.at_least(rating=4, per_user=2, per_item=2)
    assert kept.user_ids.tolist() == ["a", "c"]
    assert kept.item_ids.tolist() == ["z"]
    assert kept.matrix.toarray().tolist() == [[5], [5]]
    assert log.at_least() == log


def test_empty() -> None:
    empty = Interactions.from_table([], [])
    assert repr(empty) == "Interactions(0 users, 0 items, 0 interactions, binary)"
    assert empty.at_least(per_user=3) == empty


def test_frozen_and_unhashable() -> None:
    log = Interactions([[1, 0]])
    with pytest.raises(AttributeError, match="frozen"):
        log.rows = None  # type: ignore[assignment]
    with pytest.raises(TypeError):
        hash(log)
    assert log != "log"
    assert log != Interactions([[1, 0]], item_ids=[1, 0])


def test_union_and_difference() -> None:
    first, second = Interactions([[2, 0, 1], [0, 3, 0]]), Interactions([[1, 1, 0], [0, 1, 0]])
    assert first.union(second) == Interactions([[1, 1, 1], [0, 1, 0]])
    assert first.difference(second) == Interactions([[0, 0, 1], [0, 0, 0]])
    assert second.difference(first) == Interactions([[0, 1, 0], [0, 0, 0]])
    with pytest.raises(InputError, match=r"other must be of the same .* has other user_ids"):
        first.union(Interactions(second.matrix, user_ids=["a", "b"]))


def test_times_follow_their_interactions() -> None:
    """The latest row of a pair counts, with the time of the first; a rating of zero is no interaction."""
    log = Interactions.from_table(
        ["b", "a", "a", "b", "a"], ["x", "y", "y", "z", "z"], [1, 2, 3, 0, 5], times=[7, 9, 8, 6, 5]
    )
    users, items, ratings = log.table()
    assert list(zip(users.tolist(), items.tolist(), strict=True)) == [("a", "y"), ("a", "z"), ("b", "x")]
    assert ratings is not None
    assert ratings.tolist() == [2, 5, 1]
    assert log.times is not None
    assert log.times.tolist() == [8, 5, 7]
    assert log.binary().times is log.times
    kept = log.at_least(rating=2)
    assert (kept.user_ids.tolist(), kept.times.tolist()) == (["a"], [8, 5])  # type: ignore[union-attr]
    part = log.select(np.array([True, False, True]))
    assert part.times.tolist() == [8, 7]  # type: ignore[union-attr]
    assert part.difference(log.select(np.array([True, False, False]))).times.tolist() == [7]  # type: ignore[union-attr]
    assert log.union(part).times is log.without_times().times is log.with_rows(log.rows).times is None
    again = Interactions.from_parts(pickle.loads(pickle.dumps(log)).to_parts())
    assert again.times.tolist() == [8, 5, 7]  # type: ignore[union-attr]
    dates = np.array(["2024-05-01", "2024-04-01"], "datetime64[D]")
    assert Interactions([[1, 0], [0, 1]], times=dates).times.tolist() == dates.tolist()  # type: ignore[union-attr]
    for times, message in (
        ([1], "times must hold one entry per interaction, 2 in all"),
        (["a", "b"], "times must be numbers or dates"),
    ):
        with pytest.raises(InputError, match=message):
            Interactions([[1, 0], [0, 1]], times=times)


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: Interactions([[np.nan]]), "matrix must hold finite numbers"),
        (lambda: Interactions([[1]], user_ids=[1, 2]), "user_ids must hold one entry"),
        (lambda: Interactions([[1, 1]], item_ids=["a", "a"]), "item_ids must be unique; got 'a'"),
        (lambda: Interactions.from_table([1, 2], [1]), "items must hold one entry per row, 2 in all; got 1"),
        (lambda: Interactions.from_table(np.array(["a", None]), [1, 2]), "without missing values; got None"),
        (lambda: Interactions.from_table([1], [1], [-1]), "ratings must not be negative; got -1"),
        (lambda: Interactions.from_table([1], [1], times=["today"]), "times must be numbers or dates"),
        (lambda: Interactions.from_table([1], [1], user_ids=[2]), "users must hold known ids; got 1"),
        (lambda: Interactions.from_table(np.array([1, "1"], object), [1, 1]), "users must not hold both 1 a"),
        (lambda: Interactions.from_table([1], [2**70]), "items must fit into 64 bits with a sign; got 118"),
    ],
)
def test_errors(call: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()

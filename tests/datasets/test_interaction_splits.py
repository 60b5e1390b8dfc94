"""Splits of interactions: sizes, disjointness, seeds, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import datasets
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions


@given(st.integers(0, 60), st.integers(0, 10), st.integers(0, 10), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_interaction_split_has_every_interaction_once(n: int, first: int, second: int, seed: int) -> None:
    first, second = min(first, second), abs(second - first)
    fractions = (first / 10, second / 10, (10 - first - second) / 10)
    positions = np.random.default_rng(seed).choice(80, n, replace=False)
    entries = (np.arange(1.0, n + 1), (positions // 10, positions % 10))
    whole = Interactions(sparse.csr_array(entries, shape=(8, 10)), user_ids=np.arange(50, 58))
    parts = datasets.interaction_split(whole, fractions, rng=seed)
    bounds = [first * n // 10, (first + second) * n // 10, n]
    assert [part.n_interactions for part in parts] == np.diff([0, *bounds]).tolist()
    total = sum(part.matrix.toarray() for part in parts)
    assert np.array_equal(total, whole.matrix.toarray())
    for part in parts:
        assert np.array_equal(part.user_ids, whole.user_ids)
        assert np.array_equal(part.item_ids, whole.item_ids)
        assert Interactions(part.matrix, part.user_ids, part.item_ids) == part


def test_interaction_split_depends_on_its_seed_and_stays_binary() -> None:
    whole = Interactions(np.ones((20, 10)))
    first, again, other = (datasets.interaction_split(whole, rng=seed) for seed in (2, 2, 3))
    assert first == again
    assert first.train != other.train
    assert not any(part.is_weighted for part in first)
    assert [part.n_interactions for part in first] == [140, 20, 40]


@pytest.mark.parametrize("fractions", [(0.5, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5)])
def test_fractions_must_add_up(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="fractions must be three numbers of at least 0 that add up to 1"):
        datasets.interaction_split(Interactions(np.ones((3, 3))), fractions, rng=0)


def test_there_are_three_fractions() -> None:
    with pytest.raises(InputError, match="fractions must hold one entry per part, 3 in all; got 2"):
        datasets.interaction_split(Interactions(np.ones((3, 3))), (0.5, 0.5), rng=0)


TRAIN, TEST = Interactions([[1, 1, 0], [0, 1, 1]]), Interactions([[0, 0, 1], [1, 0, 0]])


def test_a_fixed_split_keeps_its_parts() -> None:
    validation = Interactions([[0, 1, 0], [0, 0, 1]])
    assert datasets.fixed_split(TRAIN, TEST, validation) == (TRAIN, validation, TEST)


def test_a_tenth_of_train_is_the_validation_part_if_there_is_none() -> None:
    train = Interactions(np.ones((20, 10)))
    first, again = (datasets.fixed_split(train, Interactions(np.zeros((20, 10)))) for _ in range(2))
    assert first.train == train
    assert first.validation == again.validation
    assert first.validation.n_interactions == 20
    assert first.validation.difference(train).n_interactions == 0


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((TRAIN, TEST, TEST), "validation must be inside train; 2 of its 2 interactions are not"),
        ((TRAIN, TEST, Interactions([[1, 0, 1], [0, 0, 0]])), "1 of its 2 interactions are not"),
        ((TRAIN, TRAIN), "test must have no pair of user and item in common with train; got 4"),
        ((TRAIN, Interactions([[1, 0]])), "test must be of the same users and items"),
        ((TRAIN, TEST, Interactions(TRAIN.matrix, item_ids=["a", "b", "c"])), "which has other item_ids"),
    ],
)
def test_parts_that_do_not_fit(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        datasets.fixed_split(*parts)


def timed_log(n_users: int = 12, n_items: int = 9, seed: int = 0) -> Interactions:
    draws = np.random.default_rng(seed)
    row, column = np.nonzero(draws.random((n_users, n_items)) < 0.6)
    times = draws.integers(30, size=len(row))
    return Interactions.from_table(row, column, times=times, user_ids=range(n_users), item_ids=range(n_items))


def as_set(part: Interactions) -> set[tuple[int, int]]:
    users, items, _ = part.table()
    return set(zip(users.tolist(), items.tolist(), strict=True))


@given(
    seed=st.integers(0, 2**32), shares=st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.0, 0.5), (0.6, 0.4, 0.0)])
)
@settings(max_examples=30, deadline=None)
def test_time_split_puts_every_part_before_the_next(seed: int, shares: Any) -> None:
    log = timed_log(seed=seed)
    parts = datasets.time_split(log, shares)
    assert sorted(pair for part in parts for pair in as_set(part)) == sorted(as_set(log))
    latest = -1
    for part, share in zip(parts, shares, strict=True):
        assert part.times is not None
        assert bool(part.n_interactions) or share < 0.2
        if part.n_interactions:
            assert part.times.min() > latest
            latest = part.times.max()
    assert parts.train.n_interactions <= shares[0] * log.n_interactions


@given(seed=st.integers(0, 2**32), n_test=st.integers(1, 3), n_validation=st.integers(0, 2))
@settings(max_examples=30, deadline=None)
def test_last_item_split_against_sorting(seed: int, n_test: int, n_validation: int) -> None:
    log = timed_log(seed=seed)
    assert log.times is not None
    users, items, _ = log.table()
    expected: list[set[tuple[int, int]]] = [set(), set(), set()]
    for user in range(log.n_users):
        own = np.flatnonzero(users == user)
        ranked = items[own[np.argsort(log.times[own], kind="stable")]].tolist()
        n = len(ranked)
        bounds = (n - n_test - n_validation, n - n_test) if n > n_test + n_validation else (n, n)
        for part, names in zip(expected, np.split(ranked, bounds), strict=True):
            part |= {(user, item) for item in names}
    parts = datasets.last_item_split(log, n_test, n_validation)
    assert [as_set(part) for part in parts] == expected


@given(seed=st.integers(0, 2**32), history=st.sampled_from([0.2, 0.5, 0.8]))
@settings(max_examples=30, deadline=None)
def test_user_split_separates_users(seed: int, history: float) -> None:
    log = timed_log(20)
    split = datasets.user_split(log, (0.5, 0.2, 0.3), history_share=history, rng=seed)
    tables = [split.train, split.validation.history, split.test.history]
    assert [table.n_users for table in tables] == [10, 4, 6]
    assert sorted(np.concatenate([table.user_ids for table in tables]).tolist()) == list(range(20))
    everything = [split.train, *split.validation, *split.test]
    assert all(np.array_equal(table.item_ids, log.item_ids) for table in everything)
    assert sorted(pair for table in everything for pair in as_set(table)) == sorted(as_set(log))
    for users in (split.validation, split.test):
        assert np.array_equal(users.history.user_ids, users.test.user_ids)
        degrees = users.history.rows.degrees + users.test.rows.degrees
        expected = np.clip(np.round(history * degrees), 1, np.maximum(degrees - 1, 1))
        assert users.history.rows.degrees.tolist() == np.where(degrees > 0, expected, 0).tolist()
    again = datasets.user_split(log, (0.5, 0.2, 0.3), history_share=history, rng=seed)
    assert again == split


def test_splits_that_cannot_be_made() -> None:
    log, plain = timed_log(), Interactions(np.ones((3, 3)))
    for call, message in (
        (lambda: datasets.time_split(plain), "time_split needs the times of interactions"),
        (lambda: datasets.last_item_split(plain), "last_item_split needs the times of interactions"),
        (lambda: datasets.time_split(log, (0.9, 0.2, 0.1)), "fractions must be three numbers .* add up to 1"),
        (lambda: datasets.last_item_split(log, 0), "n_test must be an integer of at least 1; got 0"),
        (lambda: datasets.user_split(log, (1.5, -0.5, 0.0)), "fractions must be three numbers of at least 0"),
        (
            lambda: datasets.user_split(log, history_share=1.5),
            r"history_share must be above 0 .* got 1\.5",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call()
    same = Interactions.from_table([0, 0, 1], [0, 1, 1], times=[5, 5, 5])
    with pytest.raises(InputError, match=r"times must leave a training part of 0\.7; 3 of 3 interactions"):
        datasets.time_split(same)


def test_splits_take_data_frames_and_refuse_other_objects() -> None:
    pandas = pytest.importorskip("pandas")
    log = timed_log()
    users, items, _ = log.table()
    frame = pandas.DataFrame({"user": users, "item": items, "time": log.times})
    assert datasets.last_item_split(frame) == datasets.last_item_split(log)
    assert datasets.time_split(frame) == datasets.time_split(log)
    assert datasets.interaction_split(frame, rng=0) == datasets.interaction_split(log, rng=0)
    assert datasets.user_split(frame, rng=0) == datasets.user_split(log, rng=0)
    with pytest.raises(
        InputError, match=r"interactions must be Interactions, .*; got list. read_interactions"
    ):
        datasets.time_split([("ann", "tea")])
    with pytest.raises(InputError, match=r"train must be Interactions; got pandas.DataFrame. read_split"):
        datasets.fixed_split(frame, log)

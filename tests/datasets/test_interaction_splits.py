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

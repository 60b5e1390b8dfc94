"""The signed-rank test against enumeration, and Monte Carlo p-values against their definition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nodecopy.errors import InputError
from nodecopy.metrics.significance import MonteCarloTest, TailCount, is_significantly_better, signed_rank_p


def enumerate_p(differences: list[float]) -> float:
    """Return the exact two-sided p-value without ties or zeros: the share of signs at least as extreme."""
    ranks = stats.rankdata(np.abs(differences))
    middle = ranks.sum() / 2
    extreme = abs(ranks[np.array(differences) > 0].sum() - middle)
    signs = itertools.product((0, 1), repeat=len(ranks))
    return float(np.mean([abs(ranks @ np.array(sign) - middle) >= extreme - 1e-9 for sign in signs]))


@pytest.mark.parametrize(
    "differences", [[1.0, 2, 3, 4, 5], [1.0, -2, 3, 4, 5, -6, 7], [-1.0, -2, 3], [5.0], [-3.0, 1, 2]]
)
def test_p_value_by_enumerating_signs(differences: list[float]) -> None:
    assert signed_rank_p(differences, np.zeros(len(differences))) == pytest.approx(enumerate_p(differences))


def test_p_value_against_scipy() -> None:
    draws = np.random.default_rng(0)
    first, second = draws.normal(0.2, 1, 60), draws.normal(size=60)
    assert signed_rank_p(first, second) == pytest.approx(stats.wilcoxon(first, second).pvalue)


def test_pairs_without_a_difference_are_left_out() -> None:
    assert signed_rank_p([1, 2, 3, 7, 7], [0, 0, 0, 7, 7]) == signed_rank_p([1, 2, 3], [0, 0, 0])
    assert signed_rank_p([1, 2], [1, 2]) == 1
    assert not is_significantly_better([1, 2], [1, 2])


def test_ties_of_binary_fractions() -> None:
    steps = np.array([1, 1, 1, 1, 2, -1, 2, 1, 1])
    base = np.array([700, 735, 701, 640, 999, 512, 3, 250, 333])
    assert signed_rank_p((base + steps) / 1000, base / 1000) == signed_rank_p(base + steps, base)


def test_better_is_one_sided_in_direction() -> None:
    low, high = np.arange(10.0), np.arange(10.0) + np.linspace(1, 2, 10)
    assert is_significantly_better(high, low)
    assert not is_significantly_better(low, high)
    assert not is_significantly_better(high, low, level=0.001)


def test_a_higher_mean_is_not_enough() -> None:
    """One large success among many small failures has a positive mean and negative ranks."""
    differences = np.array([-1.0 - number / 100 for number in range(20)] + [100.0])
    assert differences.mean() > 0
    assert signed_rank_p(differences, np.zeros(21)) < 0.05
    assert not is_significantly_better(differences, np.zeros(21))


@settings(max_examples=30)  # with few pairs and ties, SciPy goes through all signs
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=30))
def test_p_value_is_symmetric(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs).T / 1000
    p = signed_rank_p(first, second)
    assert 0 <= p <= 1
    assert p == pytest.approx(signed_rank_p(second, first))
    assert not (is_significantly_better(first, second) and is_significantly_better(second, first))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([], [], r"first must hold the result of at least one trial; got none"),
        ([1, 2], [1], r"second must hold one entry per trial, 2 in all; got 1"),
        ([1, math.nan], [1, 2], r"first must hold finite numbers; got nan"),
    ],
)
def test_errors(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        signed_rank_p(first, second)
    with pytest.raises(InputError, match=message):
        is_significantly_better(first, second)


@pytest.mark.parametrize(
    ("stop_after", "counts", "p_value"),
    [
        (3, (3, 5, True), 3 / 5),
        (4, (3, 5, False), 4 / 6),
        (2, (2, 3, True), 2 / 3),
        (None, (3, 5, False), 4 / 6),
    ],
)
def test_complete_counts(stop_after: int | None, counts: tuple[int, int, bool], p_value: float) -> None:
    tail = TailCount(stop_after)
    for is_extreme in (False, True, True, False, True):
        tail.add(is_extreme)
    assert (tail.n_extreme, tail.n_samples, tail.is_complete) == counts
    assert tail.p_value == pytest.approx(p_value)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_p_values_by_their_definition(alternative: str) -> None:
    values = np.random.default_rng(0).integers(0, 10, 200)  # with ties
    count = MonteCarloTest(8, alternative)
    for value in values.tolist():
        count.add(value)
    upper, lower = ((values >= 8).sum() + 1) / 201, ((values <= 8).sum() + 1) / 201
    expected = {"two-sided": min(1, 2 * min(upper, lower)), "greater": upper, "less": lower}[alternative]
    assert count.p_value == pytest.approx(expected)
    side = lower if alternative == "less" else upper
    factor = 2 if alternative == "two-sided" else 1
    assert count.p_value_error == pytest.approx(factor * math.sqrt(side * (1 - side) / 201))
    assert not count.is_clear


def test_a_two_sided_test_is_clear_when_both_sides_are() -> None:
    count = MonteCarloTest(0.0, stop_after=2)
    for value in (1.0, 1.0, -1.0):
        count.add(value)
    assert not count.is_clear
    count.add(-1.0)
    assert count.is_clear

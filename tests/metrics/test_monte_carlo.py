from __future__ import annotations

import math

import numpy as np
import pytest

from nodecopy.metrics.significance import MonteCarloTest, TailCount


@pytest.mark.parametrize(
    ("stop_after", "counts", "p_value"),
    [
        (3, (3, 5, True), 3 / 5),
        (4, (3, 5, False), 4 / 6),
        (2, (2, 3, True), 2 / 3),
        (None, (3, 5, False), 4 / 6),
    ],
)
def test_a_count_ends_with_the_sample_that_completes_it(
    stop_after: int | None, counts: tuple[int, int, bool], p_value: float
) -> None:
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


def test_undefined_samples_are_extreme_on_both_sides() -> None:
    count = MonteCarloTest(0.0)
    for value in (math.nan, *[1.0] * 8):
        count.add(value)
    assert count.p_value == pytest.approx(2 * (1 + 1) / (9 + 1))

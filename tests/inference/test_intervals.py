from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from nodecopy.inference.results import METHODS, count_needed_samples, estimate_interval

SKEWED = np.random.default_rng(0).exponential(size=5_000) + 3.0


def test_the_interval_lies_around_the_observed_value_whatever_the_bias() -> None:
    for method in ("basic", "normal"):
        first = estimate_interval("x", 10.0, SKEWED, level=0.95, method=method)
        second = estimate_interval("x", 10.0, SKEWED + 100, level=0.95, method=method)
        assert (first.low, first.high) == pytest.approx((second.low, second.high))
        assert first.bias == pytest.approx(SKEWED.mean() - 10)


def test_methods_by_their_definitions() -> None:
    mean, low, high = SKEWED.mean(), *np.quantile(SKEWED, [0.05, 0.95], method="weibull")
    rows = {
        m: estimate_interval("x", 1.0, SKEWED, level=0.9, method=m) for m in ("basic", "percentile", "normal")
    }
    assert tuple(rows["basic"][4:]) == pytest.approx((1 - (high - mean), 1 + (mean - low)))
    assert tuple(rows["percentile"][4:]) == pytest.approx((low, high))
    width = stats.norm.isf(0.05) * SKEWED.std(ddof=1)
    assert tuple(rows["normal"][4:]) == pytest.approx((1 - width, 1 + width))


def test_studentised_intervals_use_the_error_of_each_sample() -> None:
    """With errors proportional to the value, the upper end is farther away than by the basic method."""
    constant = np.full(len(SKEWED), SKEWED.std(ddof=1))
    settings: dict[str, Any] = {"level": 0.9, "method": "studentised"}
    basic = estimate_interval("x", 1.0, SKEWED, level=0.9, method="basic")
    same = estimate_interval("x", 1.0, SKEWED, errors=constant, **settings)
    assert tuple(same[4:]) == pytest.approx(tuple(basic[4:]))
    wider = estimate_interval("x", 1.0, SKEWED, errors=constant * (SKEWED - 2.5), **settings)
    assert wider.high > basic.high


def test_a_factor_scales_deviations() -> None:
    for method in set(METHODS) - {"studentised"}:
        plain, double = (
            estimate_interval("x", SKEWED.mean(), SKEWED, level=0.9, method=method, factor=factor)
            for factor in (1.0, 2.0)
        )
        assert double.high - double.low == pytest.approx(2 * (plain.high - plain.low))


def test_a_simultaneous_band_holds_for_all_nodes_at_once() -> None:
    values = np.random.default_rng(1).normal(size=(2_000, 50))
    observed = np.zeros(50)
    band = estimate_interval("x", observed, values, level=0.9, method="normal", simultaneous=True)
    each = estimate_interval("x", observed, values, level=0.9, method="normal")
    deviations = values - values.mean(axis=0)
    inside = [((e.low <= deviations) & (deviations <= e.high)).all(axis=1).mean() for e in (band, each)]
    assert inside[0] == pytest.approx(0.9, abs=0.005)
    assert inside[1] < 0.05


def test_a_band_of_constant_values_has_no_width() -> None:
    band = estimate_interval("x", np.ones(3), np.ones((9, 3)), level=0.9, method="basic", simultaneous=True)
    assert np.array_equal(band.low, band.high)


def test_few_samples_cover_as_stated() -> None:
    """Normal samples and observed values, 20,000 times with 40 samples each; five standard errors."""
    rng, n = np.random.default_rng(0), 20_000
    row = estimate_interval("x", rng.normal(size=n), rng.normal(size=(40, n)), level=0.9, method="basic")
    covered = (np.asarray(row.low) <= 0) & (np.asarray(row.high) >= 0)
    assert covered.mean() == pytest.approx(0.9, abs=5 * 0.3 / np.sqrt(n))


def test_samples_without_an_error_are_left_out_of_studentised_intervals() -> None:
    """They counted as samples without a deviation, which made intervals narrower."""
    values = np.random.default_rng(0).normal(size=200)
    errors = np.ones(200)
    errors[:60] = 0.0
    errors[60:100] = np.nan
    settings: dict[str, Any] = {"level": 0.9, "method": "studentised"}
    given = estimate_interval("x", 0.0, values, errors=errors, **settings)
    deviations = values - values.mean()
    lower, upper = np.quantile(deviations[100:], [0.05, 0.95], method="weibull") * values.std(ddof=1)
    assert (given.low, given.high) == pytest.approx((-upper, -lower))


@pytest.mark.parametrize(("level", "n"), [(0.95, 39), (0.9, 19), (0.99, 199)])
def test_the_number_of_samples_that_a_level_needs(level: float, n: int) -> None:
    assert count_needed_samples(level) == n
    values = np.arange(n, dtype=np.float64)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="weibull")
    assert (low, high) == pytest.approx((0, n - 1))  # the first and the last, and no more is cut off

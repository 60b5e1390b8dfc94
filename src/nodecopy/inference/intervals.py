"""Intervals from the values of a statistic in samples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy.inference.bootstrap_results import Estimate

METHODS = ("basic", "percentile", "normal", "studentised")
Floats = NDArray[np.float64]
MIN_DEFINED = 20
"""Samples in which a value of an array must be defined to have an interval."""
ROUNDING = 1e-6
"""Part of a sample that is rounding."""
BLOCK_SIZE = 2**21
"""Values of an array that are handled at once."""


def count_needed_samples(level: float) -> int:
    """Return how many samples it takes for quantiles with both tails of a level."""
    return int(np.ceil(2 / (1 - level) - 1 - ROUNDING))


def estimate_interval(
    name: str,
    observed: Any,
    values: Floats,
    *,
    level: float,
    method: str,
    factor: float = 1.0,
    errors: Floats | None = None,
    simultaneous: bool = False,
) -> Estimate:
    """Return the estimate of a statistic.

    The parameter is the expectation of the statistic over drawing the graph again, of which the observed
    value is an unbiased estimate if the statistic was fixed in advance. So deviations of
    samples are taken from their own mean.

    Parameters
    ----------
    name, observed
        The statistic and its observed value, a number or an array of one per node.
    values
        Values in the samples, one row per sample.
    level, method
        As in :func:`.bootstrap`.
    factor
        What deviations are multiplied by.
    errors
        The standard error in each sample, for ``"studentised"``.
    simultaneous
        Whether the intervals of all nodes hold at once with probability ``level``.
    """
    settings: dict[str, Any] = {"level": level, "method": method, "factor": factor}
    if not np.ndim(observed):
        return Estimate(name, observed, *map(float, _estimate(observed, values, errors, None, **settings)))
    blocks, ratio = _column_blocks(values), None
    if simultaneous:
        largest = [_largest_ratios(values[:, block], factor) for block in blocks]
        ratio = float(np.quantile(np.max(largest, axis=0), level, method="weibull"))
    parts = [
        _estimate(
            observed[block], values[:, block], None if errors is None else errors[:, block], ratio, **settings
        )
        for block in blocks
    ]
    return Estimate(name, observed, *(np.concatenate(part) for part in zip(*parts, strict=True)))


def _estimate(
    observed: Any,
    values: Floats,
    errors: Floats | None,
    ratio: float | None,
    *,
    level: float,
    method: str,
    factor: float,
) -> tuple[Any, Any, Any, Any]:
    """Return standard error, bias and interval; ``ratio`` is half the width of a simultaneous band."""
    from scipy.special import ndtri

    deviations, mean, error = _deviations(values, factor)
    tails = [(1 - level) / 2, (1 + level) / 2]
    if ratio is not None or method == "normal":
        width = (float(ndtri(tails[1])) if ratio is None else ratio) * error
        low, high = observed - width, observed + width
    elif method == "studentised":
        assert errors is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(errors > 0, deviations / errors, np.nan)  # left out where there is no error
        lower, upper = _tail_quantiles(ratios, tails)
        low, high = observed - upper * error, observed - lower * error
    else:
        lower, upper = _tail_quantiles(deviations, tails)
        if method == "basic":
            low, high = observed - upper, observed - lower
        else:
            low, high = mean + lower, mean + upper
    return error, mean - observed, low, high


def _deviations(values: Floats, factor: float) -> tuple[Floats, Any, Any]:
    """Return the deviations from the mean, the mean and the standard error.

    Values of an array may be undefined in some samples, which are left out. With less than ``MIN_DEFINED``
    defined values there is no interval.
    """
    if values.ndim > 1 and not np.isfinite(values).all():
        is_rare = np.isfinite(values).sum(axis=0) < MIN_DEFINED
        values = np.where(is_rare | ~np.isfinite(values), np.nan, values)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # columns of nan
            mean = np.nanmean(values, axis=0)
            deviations = (values - mean) * factor
            return deviations, mean, np.nanstd(deviations, axis=0, ddof=1)
    mean = values.mean(axis=0)
    deviations = (values - mean) * factor
    return deviations, mean, deviations.std(axis=0, ddof=1)


def _largest_ratios(values: Floats, factor: float) -> Floats:
    """Return the largest deviation in each sample, in standard errors."""
    deviations, _, error = _deviations(values, factor)
    ratios = np.abs(deviations) / np.where(error > 0, error, 1.0)
    return np.asarray(np.nan_to_num(ratios).max(axis=1, initial=0.0))


def _column_blocks(values: Floats) -> list[slice]:
    """Return slices of columns, of which copies need little memory."""
    step = max(BLOCK_SIZE // max(len(values), 1), 1)
    return [slice(first, first + step) for first in range(0, max(values.shape[1], 1), step)]


def _tail_quantiles(values: Floats, tails: list[float]) -> Any:
    """Return quantiles between which a further value lies with the stated probability.

    Of fewer values than :func:`count_needed_samples` they are the smallest and the largest.
    """
    if np.isnan(values).any():
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            return np.nanquantile(values, tails, axis=0, method="weibull")
    return np.quantile(values, tails, axis=0, method="weibull")

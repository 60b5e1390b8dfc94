"""Intervals from the values of a statistic in samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy.inference.bootstrap_results import Estimate

METHODS = ("basic", "percentile", "normal", "studentised")
Floats = NDArray[np.float64]


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
    value is an unbiased estimate. So deviations of samples are taken from their own mean.

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
    from scipy.special import ndtri

    mean = values.mean(axis=0)
    deviations = (values - mean) * factor
    error = deviations.std(axis=0, ddof=1)
    tails = [(1 - level) / 2, (1 + level) / 2]
    if simultaneous and np.ndim(observed):
        ratios = np.abs(deviations) / np.where(error > 0, error, 1.0)
        width = np.quantile(ratios.max(axis=1), level) * error
        low, high = observed - width, observed + width
    elif method == "normal":
        width = float(ndtri(tails[1])) * error
        low, high = observed - width, observed + width
    elif method == "studentised":
        assert errors is not None
        ratios = deviations / np.where(errors > 0, errors, np.inf)
        lower, upper = _tail_quantiles(ratios, tails)
        low, high = observed - upper * error, observed - lower * error
    else:
        lower, upper = _tail_quantiles(deviations, tails)
        if method == "basic":
            low, high = observed - upper, observed - lower
        else:
            low, high = mean + lower, mean + upper
    return Estimate(name, observed, *map(_plain, (error, mean - observed, low, high)))


def _tail_quantiles(values: Floats, tails: list[float]) -> Any:
    """Return quantiles between which a further value lies with the stated probability, even for few."""
    return np.quantile(values, tails, axis=0, method="weibull")


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)

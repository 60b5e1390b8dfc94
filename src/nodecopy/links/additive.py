"""An additive logistic regression: log-odds that are a sum of functions of single signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.arrays import Bools, Floats
from nodecopy._core.checks import check_finite, check_numbers, check_real
from nodecopy._core.linalg import fit_penalised_logistic
from nodecopy.errors import InputError

N_KNOTS = 6  # of the piecewise linear function of a signal
PENALTY, MAX_STEPS = 3.0, 100
SMALL_SHARE = 0.01  # a logarithm has this quantile of the positive values added


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Log-odds a + f_1(x_1) + ... + f_m(x_m) with continuous, piecewise linear functions f.

    Functions have knots at quantiles and are constant beyond the values that they were learnt from. They
    are centred: the mean of each is zero over the pairs without an edge, so that a contribution compares a
    pair with a random one.

    Attributes
    ----------
    intercept
        The log-odds of a pair whose contributions are all zero.
    shifts
        The number that is added before the logarithm of a signal; zero for signals without.
    high
        The largest values of the (logarithms of) signals.
    knots, slopes
        Of each function, ``[m, n_knots + 1]``: where slopes change, from the smallest value, and by how much.
    centres
        What is subtracted from each function.
    """

    intercept: float
    shifts: Floats
    high: Floats
    knots: Floats
    slopes: Floats
    centres: Floats

    @classmethod
    def fit(
        cls,
        values: NDArray[Any],
        is_edge: Bools,
        *,
        is_logarithmic: Sequence[bool],
        offset: Floats,
        weights: Floats,
    ) -> AdditiveModel:
        """Fit the functions to the signals of edges and of pairs without an edge.

        ``offset`` are the log-odds by which edges are over-represented among pairs such as these, and
        ``weights`` how often each pair counts.
        """
        columns = zip(values.T, is_logarithmic, strict=True)
        shifts = np.array([_shift(x) if log else 0.0 for x, log in columns])
        x = _transform(values, shifts)
        knots = np.quantile(x, np.arange(N_KNOTS + 1) / (N_KNOTS + 1), axis=0).T
        scales = np.maximum(x.std(axis=0), 1e-9)
        # A knot that occurs again has no slope.
        is_new = np.diff(knots, prepend=-np.inf) > 0
        inputs = (np.maximum(x[:, :, None] - knots, 0.0) * (is_new / scales[:, None])).reshape(len(x), -1)
        means = inputs.mean(axis=0)
        fitted = fit_penalised_logistic(
            np.column_stack([np.ones(len(x)), inputs - means]),
            is_edge.astype(np.float64),
            penalty=np.array([0.0] + [PENALTY] * len(means)),  # all but the intercept
            max_steps=MAX_STEPS,
            offset=offset,
            weights=weights,
        )
        slopes = fitted[1:].reshape(knots.shape) / scales[:, None]
        model = cls(0.0, shifts, x.max(axis=0), knots, slopes, np.zeros(len(knots)))
        # Pairs without an edge are weighted as they are sampled: by the inverse of the odds of the offset.
        contributions = model.contributions(values[~is_edge])
        centres = np.average(contributions, axis=0, weights=np.exp(offset[~is_edge]))
        intercept = float(fitted[0] - means @ fitted[1:] + centres.sum())
        return cls(intercept, shifts, model.high, knots, slopes, centres)

    def check(self, n_signals: int) -> None:
        """Check the model of a file."""
        check_real(self.intercept, "intercept of AdditiveModel")
        for part in ("shifts", "high", "centres", "knots", "slopes"):
            values = getattr(self, part)
            shape = (n_signals, N_KNOTS + 1) if part in ("knots", "slopes") else (n_signals,)
            if values.shape != shape:
                raise InputError(f"{part} of AdditiveModel", f"must have shape {shape}; got {values.shape}.")
            check_finite(check_numbers(values, part), f"{part} of AdditiveModel")

    def contributions(self, values: NDArray[Any]) -> Floats:
        """Return what each signal adds to the log-odds of each pair."""
        x = np.minimum(_transform(values, self.shifts), self.high)
        total = -np.broadcast_to(self.centres, x.shape)
        for knots, slopes in zip(self.knots.T, self.slopes.T, strict=True):
            total += slopes * np.maximum(x - knots, 0.0)
        return total

    def log_odds(self, values: NDArray[Any]) -> Floats:
        """Return the log-odds of an edge for each pair."""
        return np.asarray(self.intercept + self.contributions(values).sum(axis=1))


def _shift(x: NDArray[Any]) -> float:
    positive = x[x > 0]
    return float(np.quantile(positive, SMALL_SHARE)) if len(positive) else 1.0


def _transform(values: NDArray[Any], shifts: Floats) -> Floats:
    x = values.astype(np.float64)
    return np.where(shifts > 0, np.log(np.maximum(x, 0.0) + np.where(shifts > 0, shifts, 1.0)), x)

"""Significance: the signed-rank test of two methods on the same trials, and Monte Carlo tests."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.checks import check_finite, check_numbers, check_real, check_vector
from nodecopy.errors import InputError


def signed_rank_p(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test for the results of two methods by trial.

    Pairs without a difference are left out, as Wilcoxon did; if no pair differs, the p-value is 1.
    Differences are rounded to 12 decimals, so that 0.735 - 0.734 and 0.701 - 0.700 tie.
    """
    return _p_value(_differences(first, second))


def is_significantly_better(first: ArrayLike, second: ArrayLike, *, level: float = 0.05) -> bool:
    """Return whether ``first`` is better by the signed-rank test: p below ``level``, ranks in its favour.

    The paper marks the best method by this test against the second best, at the 5 % level.
    """
    from scipy.stats import rankdata

    check_real(level, "level", low=0, high=1)
    differences = _differences(first, second)
    in_favour = float((rankdata(np.abs(differences)) * np.sign(differences)).sum())
    return in_favour > 0 and _p_value(differences) < level


def _p_value(differences: NDArray[np.float64]) -> float:
    from scipy.stats import wilcoxon

    different = differences[differences != 0]
    return float(wilcoxon(different).pvalue) if len(different) else 1.0


def _differences(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    a = check_vector(check_numbers(first, "first"), "first").astype(np.float64)
    b = check_vector(check_numbers(second, "second"), "second", length=len(a), per="trial").astype(np.float64)
    if not len(a):
        raise InputError("first", "must hold the result of at least one trial; got none.")
    check_finite(a, "first")
    check_finite(b, "second")
    return np.round(a - b, 12)


ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass
class TailCount:
    """Samples at least as extreme as the observed value on one side, counted until ``stop_after`` are."""

    stop_after: int | None = None
    n_extreme: int = 0
    n_samples: int = 0

    @property
    def is_complete(self) -> bool:
        return self.stop_after is not None and self.n_extreme >= self.stop_after

    def add(self, is_extreme: bool) -> None:
        if not self.is_complete:
            self.n_extreme += is_extreme
            self.n_samples += 1

    @property
    def p_value(self) -> float:
        """The p-value of Besag and Clifford: h / l once h are extreme, else (h + 1) / (n + 1)."""
        if self.is_complete:
            return self.n_extreme / self.n_samples
        return (self.n_extreme + 1) / (self.n_samples + 1)


class MonteCarloTest:
    """The p-value of a Monte Carlo test: how often samples are at least as extreme as the observed value.

    Undefined samples count as extreme on both sides. After ``stop_after`` extreme samples a side is not
    counted further.
    """

    def __init__(
        self, observed: float, alternative: str = "two-sided", stop_after: int | None = None
    ) -> None:
        self.observed = observed
        sides = ("greater", "less") if alternative == "two-sided" else (alternative,)
        self._tails = {side: TailCount(stop_after) for side in sides}

    def add(self, value: float) -> None:
        for side, tail in self._tails.items():
            is_beyond = value >= self.observed if side == "greater" else value <= self.observed
            tail.add(bool(is_beyond or not math.isfinite(value)))

    @property
    def is_clear(self) -> bool:
        """Whether every side has ended, so that further samples change nothing."""
        return all(tail.is_complete for tail in self._tails.values())

    @property
    def _smaller_tail(self) -> TailCount:
        return min(self._tails.values(), key=lambda tail: tail.p_value)

    @property
    def p_value(self) -> float:
        """The p-value; the two-sided one is twice the smaller one of the sides."""
        return min(len(self._tails) * self._smaller_tail.p_value, 1.0)

    @property
    def p_value_error(self) -> float:
        tail = self._smaller_tail
        return len(self._tails) * math.sqrt(tail.p_value * (1 - tail.p_value) / (tail.n_samples + 1))

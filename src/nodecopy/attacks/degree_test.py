"""Nettack's test that flips leave the degree distribution unchanged: one power law, or two?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_DEGREE = 2
"""Smallest degree that the power law describes."""
MAX_RATIO = 0.004
"""Largest likelihood ratio that is not noticed: the chi-square quantile of probability 0.05."""


class DegreeTest:
    """Likelihood-ratio test of the degrees after a flip against those before the attack on a target.

    Parameters
    ----------
    degrees
        The degrees before the attack on the target.
    """

    def __init__(self, degrees: NDArray[Any]) -> None:
        counted = degrees[degrees >= MIN_DEGREE]
        self._start = len(counted), float(np.log(counted).sum())
        self._now = self._start

    def passes(self, first: Any, second: Any, change: Any) -> NDArray[np.bool_]:
        """Return whether flips would pass unnoticed; arguments as in :meth:`ratio`."""
        return np.asarray(self.ratio(first, second, change) < MAX_RATIO)

    def ratio(self, first: Any, second: Any, change: Any) -> NDArray[np.float64]:
        """Return the likelihood ratio after each of some alternative flips.

        Parameters
        ----------
        first, second
            Degrees of both ends before the flip.
        change
            1 where the flip adds an edge, -1 where it removes one.
        """
        n, log_sum = self._after(first, second, change)
        n_start, start = self._start
        separate = _log_likelihood(n, log_sum) + _log_likelihood(n_start, start)
        return np.asarray(2 * (separate - _log_likelihood(n + n_start, log_sum + start)))

    def record(self, first: int, second: int, change: int) -> None:
        """Take into account a flip that is made; arguments as in :meth:`ratio`."""
        n, log_sum = self._after(np.array([first]), np.array([second]), np.array([change]))
        self._now = int(n[0]), float(log_sum[0])

    def _after(self, first: Any, second: Any, change: Any) -> tuple[Any, Any]:
        """Return the number of counted degrees and the sum of their logarithms after a flip."""
        n, log_sum = self._now
        for degree in (first, second):
            n = n + _counts(degree + change) - _counts(degree)
            log_sum = log_sum + _logs(degree + change) - _logs(degree)
        return n, log_sum


def _counts(degree: Any) -> Any:
    return (degree >= MIN_DEGREE).astype(np.int64)


def _logs(degree: Any) -> Any:
    return np.log(np.where(degree >= MIN_DEGREE, degree, 1))


def _log_likelihood(n: Any, log_sum: Any) -> Any:
    """Return the log-likelihood of n degrees with that sum of logarithms under the best power law."""
    n = np.asarray(n, np.float64)
    # Without any counted degree the likelihood is one.
    alpha = 1 + np.divide(n, log_sum - n * np.log(MIN_DEGREE - 0.5), out=np.ones_like(n), where=n > 0)
    return n * np.log(alpha) + n * alpha * np.log(MIN_DEGREE) - (alpha + 1) * log_sum

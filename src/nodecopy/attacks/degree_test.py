"""Nettack's test that flips leave the degree distribution as it was: two power laws or one?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST = 2
"""Degrees below this one have no part in the power law."""
CUTOFF = 0.004
"""Largest likelihood ratio that goes unnoticed: the chi-square quantile of probability 0.05."""


class DegreeTest:
    """Likelihood-ratio test of the degrees after a flip against those before the attack on a victim.

    Parameters
    ----------
    degrees
        Before the attack.
    """

    def __init__(self, degrees: NDArray[Any]) -> None:
        counted = degrees[degrees >= LOWEST]
        self._start = len(counted), float(np.log(counted).sum())
        self._now = self._start

    def unnoticed(self, first: Any, second: Any, change: Any) -> NDArray[np.bool_]:
        """Whether flips would pass: degrees of both ends now, and 1 where an edge is added, -1 removed."""
        n, total = self._after(first, second, change)
        return np.asarray(self._ratio(n, total) < CUTOFF)

    def flip(self, first: int, second: int, change: int) -> None:
        """Take note of a flip that was made; degrees as before it."""
        n, total = self._after(np.array([first]), np.array([second]), np.array([change]))
        self._now = int(n[0]), float(total[0])

    def _after(self, first: Any, second: Any, change: Any) -> tuple[Any, Any]:
        n, total = self._now
        for degree in (first, second):
            n = n + _counts(degree + change) - _counts(degree)
            total = total + _logs(degree + change) - _logs(degree)
        return n, total

    def _ratio(self, n: Any, total: Any) -> Any:
        n_start, start = self._start
        separate = _log_likelihood(n, total) + _log_likelihood(n_start, start)
        return 2 * (separate - _log_likelihood(n + n_start, total + start))


def _counts(degree: Any) -> Any:
    return (degree >= LOWEST).astype(np.int64)


def _logs(degree: Any) -> Any:
    return np.log(np.where(degree >= LOWEST, degree, 1))


def _log_likelihood(n: Any, total: Any) -> Any:
    """Of n degrees whose logarithms add up to ``total``, under the power law that fits them best."""
    n = np.asarray(n, np.float64)
    # Without a degree that counts, nothing is said: the likelihood is one.
    alpha = 1 + np.divide(n, total - n * np.log(LOWEST - 0.5), out=np.ones_like(n), where=n > 0)
    return n * np.log(alpha) + n * alpha * np.log(LOWEST) - (alpha + 1) * total

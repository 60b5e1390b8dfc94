"""Tests of whether one method is better than another on the same trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import check_finite, check_real, check_vector
from nodecopy.errors import InputError


def signed_rank_p(first: ArrayLike, second: ArrayLike) -> float:
    """Return the p-value of the two-sided Wilcoxon signed-rank test for paired results.

    Pairs without a difference are left out, as Wilcoxon did; if no pair differs, the p-value is 1.
    Differences are rounded to 12 decimals first, so that 0.735 - 0.734 and 0.701 - 0.700 tie despite binary
    rounding.

    Parameters
    ----------
    first, second
        Results of two methods, one per trial, in the same order of trials.

    Examples
    --------
    >>> signed_rank_p([0.71, 0.72, 0.73, 0.74, 0.75, 0.76], [0.70, 0.70, 0.70, 0.70, 0.70, 0.70])
    0.03125
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
    a = check_vector(first, "first")
    b = check_vector(second, "second", length=len(a), per="trial")
    if not len(a):
        raise InputError("first must hold the result of at least one trial; got none.")
    for values, name in ((a, "first"), (b, "second")):
        if values.dtype.kind not in "biuf":
            raise InputError(f"{name} must hold numbers; got {values.dtype}.")
        check_finite(values, name)
    return np.round(a.astype(np.float64) - b.astype(np.float64), 12)

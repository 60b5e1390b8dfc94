"""Slow and plain computations that tests of recommenders compare with."""

from __future__ import annotations

from typing import Any

import numpy as np


def ridge_without_itself(X: Any, A: Any, regularisation: float) -> Any:
    """Return the regression of each column of A on the other columns of X, one at a time."""
    n = A.shape[1]
    B = np.zeros((n, n))
    for item in range(n):
        rest = [other for other in range(n) if other != item]
        left = X[:, rest].T @ X[:, rest] + regularisation * np.eye(n - 1)
        B[rest, item] = np.linalg.solve(left, X[:, rest].T @ A[:, item])
    return B

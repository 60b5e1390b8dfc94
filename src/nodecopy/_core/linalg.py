"""Linear algebra that several packages share."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds
from scipy.special import expit
from threadpoolctl import threadpool_limits

from nodecopy._core.arrays import Array, Floats


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread; with more, digits depend on the machine."""
    return threadpool_limits(1, "blas")  # type: ignore[no-any-return]


def truncated_svd(matrix: Any, rank: int) -> tuple[Array, Array, Array]:
    """Return the ``rank`` largest singular values of a sparse matrix and their vectors."""
    start = np.random.default_rng(0).uniform(0.5, 1.0, min(matrix.shape))
    with one_blas_thread():
        u, s, vt = svds(matrix, k=rank, v0=start)
    return u, s, vt


def fit_logistic(
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    *,
    max_steps: int,
    logit_change: Callable[[Floats], float] | None = None,
    tolerance: float = 0.0,
) -> Floats:
    """Return the weights that maximise the log-likelihood of a logistic regression, by Newton's method.

    ``derivatives`` maps weights to the gradient and the negative Hessian. ``logit_change`` maps a step to a
    bound on the change of any logit, by which steps are damped (Sun and Tran-Dinh, 2019), until it is below
    ``tolerance``. Without it, ``max_steps`` are taken.
    """
    weights = start
    for _ in range(max_steps):
        gradient, curvature = derivatives(weights)
        step = np.asarray(np.linalg.solve(curvature, gradient), np.float64)
        change = 0.0 if logit_change is None else logit_change(step)
        weights = weights + step * (math.log1p(change) / change if change else 1.0)
        if logit_change is not None and change < tolerance:
            break
    return weights


def fit_penalised_logistic(inputs: Floats, outcomes: Floats, *, penalty: float, max_steps: int) -> Floats:
    """Return the weights of a logistic regression with the penalty ``penalty / 2 * sum(weights**2)``."""
    curvature = penalty * np.eye(inputs.shape[1])

    def derivatives(weights: Floats) -> tuple[Floats, Floats]:
        p = expit(inputs @ weights)
        gradient = inputs.T @ (outcomes - p) - curvature @ weights
        return gradient, inputs.T @ (inputs * (p * (1 - p))[:, None]) + curvature

    return fit_logistic(derivatives, np.zeros(inputs.shape[1]), max_steps=max_steps)

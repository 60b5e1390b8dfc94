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

LOGIT_TOLERANCE = 1e-6  # largest change of a logit in the last step


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


def fit_penalised_logistic(
    inputs: Floats,
    outcomes: Floats,
    *,
    penalty: float | Floats,
    max_steps: int,
    offset: Floats | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the weights of a logistic regression with the penalty ``sum(penalty / 2 * weights**2)``.

    ``offset`` is added to the logits and ``weights`` are those of the rows. With an offset, steps are damped
    until they converge.
    """
    curvature = penalty * np.eye(inputs.shape[1])

    def derivatives(solution: Floats) -> tuple[Floats, Floats]:
        p = expit(inputs @ solution if offset is None else inputs @ solution + offset)
        residuals, variances = outcomes - p, p * (1 - p)
        if weights is not None:
            residuals, variances = weights * residuals, weights * variances
        gradient = inputs.T @ residuals - curvature @ solution
        return gradient, inputs.T @ (inputs * variances[:, None]) + curvature

    def change(step: Floats) -> float:
        return float(np.abs(inputs @ step).max(initial=0.0))

    start, damped = np.zeros(inputs.shape[1]), {} if offset is None else {"logit_change": change}
    return fit_logistic(derivatives, start, max_steps=max_steps, tolerance=LOGIT_TOLERANCE, **damped)

"""Multinomial logistic regression with an L2 penalty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from nodecopy.classify.trial import Trial

MAX_ITERATIONS = 500


def classify_embeddings(
    trial: Trial, embeddings: NDArray[np.floating], strengths: Sequence[float]
) -> list[NDArray[np.float32]]:
    """Return the class probabilities of all nodes, by a regression on training nodes for each strength."""
    rows = embeddings[trial.train].astype(np.float64)
    regressions = softmax_regressions(rows, trial.label_probabilities, strengths, trial.weights)
    return [
        softmax(embeddings @ coefficients + intercepts, axis=1).astype(np.float32)
        for coefficients, intercepts in regressions
    ]


def softmax_regressions(
    rows: NDArray[np.float64],
    targets: NDArray[np.floating],
    strengths: Sequence[float],
    sample_weights: NDArray[np.floating] | None = None,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the coefficients and intercepts of a regression for each strength.

    Each regression starts from the solution of the one before.

    The loss is that of scikit-learn: C times the sum of cross-entropies plus half the sum of squared
    coefficients. Intercepts are not penalised.

    Parameters
    ----------
    rows
        ``[n_samples, n_features]``.
    targets
        Class probabilities of the samples, ``[n_samples, n_classes]``.
    strengths
        The values of C, the inverse strengths of the penalty.
    sample_weights
        Weights of the samples in the sum; one by default.
    """
    weights = np.ones(len(rows)) if sample_weights is None else sample_weights
    # The coefficients are combinations of rows: with few rows, there are few numbers to find.
    basis, reduced = (rows.T, None) if len(rows) > rows.shape[1] else np.linalg.qr(rows.T)
    coordinates = rows if reduced is None else reduced.T
    shape = (coordinates.shape[1] + 1, targets.shape[1])
    solution = np.zeros(shape)

    def loss(flat: NDArray[np.float64], strength: float) -> tuple[float, NDArray[np.float64]]:
        values = flat.reshape(shape)
        log_p = log_softmax(coordinates @ values[:-1] + values[-1], axis=1)
        residuals = strength * weights[:, None] * (np.exp(log_p) * targets.sum(axis=1)[:, None] - targets)
        gradient = np.vstack([coordinates.T @ residuals + values[:-1], residuals.sum(axis=0)])
        cross_entropy = -(weights[:, None] * targets * log_p).sum()
        return strength * cross_entropy + 0.5 * (values[:-1] ** 2).sum(), gradient.ravel()

    for strength in strengths:
        result = minimize(
            loss, solution.ravel(), (strength,), "L-BFGS-B", jac=True, options={"maxiter": MAX_ITERATIONS}
        )
        solution = result.x.reshape(shape)
        coefficients = solution[:-1] if reduced is None else basis @ solution[:-1]
        yield coefficients, solution[-1]

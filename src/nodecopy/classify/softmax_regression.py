"""Multinomial logistic regression with an L2 penalty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from nodecopy._core.linalg import one_blas_thread
from nodecopy.nn.threads import choose_threads

CPU = torch.device("cpu")
MAX_ITERATIONS = 500
TOLERANCE = 1e-4
"""Largest entry of the gradient, of the loss per unit of weight, at which a regression is finished; that of
scikit-learn."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Relative decrease of the loss below which there is nothing to gain; that of scikit-learn."""
MAX_STRENGTH = 1e9
"""Largest inverse strength of the penalty; far beyond it, the first step of the optimiser overflows."""


def softmax_regressions(
    rows: NDArray[np.float64],
    targets: NDArray[np.floating],
    strengths: Sequence[float],
    sample_weights: NDArray[np.floating] | None = None,
    device: torch.device = CPU,
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the coefficients and intercepts of a regression for each strength.

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
    device
        Where the loss is computed.
    """
    with one_blas_thread():
        # The coefficients are combinations of rows: with few rows, there are few numbers to find.
        basis, reduced = (rows.T, None) if len(rows) > rows.shape[1] else np.linalg.qr(rows.T)
        weights = np.ones(len(rows)) if sample_weights is None else sample_weights
        loss = _Loss(rows if reduced is None else reduced.T, weights[:, None] * targets, device)
        solution, results = np.zeros(loss.shape), []
        with choose_threads(rows.size, device):
            for strength in strengths:
                solution = loss.minimise(solution, strength)
                coefficients = solution[:-1] if reduced is None else basis @ solution[:-1]
                results.append((coefficients, solution[-1]))
    return results


class _Loss:
    """The loss of coefficients, the last row of which are the intercepts, and its gradient.

    It is computed by torch, whose number of threads can be set.
    """

    def __init__(
        self, rows: NDArray[np.float64], weighted_targets: NDArray[np.floating], device: torch.device
    ) -> None:
        self.rows = torch.from_numpy(np.ascontiguousarray(rows)).to(device)
        self.targets = torch.from_numpy(weighted_targets.astype(np.float64)).to(device)
        self.totals = self.targets.sum(dim=1, keepdim=True)
        self.shape = (rows.shape[1] + 1, weighted_targets.shape[1])

    def minimise(self, start: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
        """Return the coefficients of least loss."""
        largest = TOLERANCE * strength * self.totals.sum().item()
        result = minimize(
            self.evaluate,
            start.ravel(),
            (strength,),
            "L-BFGS-B",
            jac=True,
            options={"maxiter": MAX_ITERATIONS, "gtol": largest, "ftol": ROUNDING},
        )
        solution: NDArray[np.float64] = result.x.reshape(self.shape)
        return solution

    def evaluate(self, flat: NDArray[np.float64], strength: float) -> tuple[float, NDArray[np.float64]]:
        """Return the loss and its gradient."""
        values = torch.from_numpy(flat).view(self.shape).to(self.rows.device)
        log_p = torch.addmm(values[-1], self.rows, values[:-1]).log_softmax(dim=1)
        residuals = log_p.exp().mul_(self.totals).sub_(self.targets).mul_(strength)
        gradient = torch.cat([self.rows.T @ residuals + values[:-1], residuals.sum(dim=0, keepdim=True)])
        value = 0.5 * values[:-1].square().sum() - strength * (self.targets * log_p).sum()
        return value.item(), gradient.flatten().cpu().numpy()

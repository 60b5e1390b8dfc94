"""Temperature scaling: one number, fitted to labelled nodes, that calibrates class probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import check_numbers, check_real
from nodecopy.errors import InputError
from nodecopy.metrics.classification import MIN_PROBABILITY, select_nodes

MAX_TEMPERATURE = 20.0
"""The largest temperature; the smallest is its reciprocal."""


@dataclass(frozen=True)
class TemperatureScaling:
    """Calibrate class probabilities by a temperature (Guo et al., 2017).

    Probabilities p become proportional to p^(1 / temperature). A temperature above 1 makes predictions less
    confident, one below 1 more; the predicted classes stay the same. The mean prediction of an ensemble is
    scaled, not each of its samples.

    Parameters
    ----------
    temperature
        1 changes nothing.

    Examples
    --------
    Three of four predictions are correct, at a confidence of 0.9:

    >>> probabilities = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]
    >>> scaling = TemperatureScaling.fit(probabilities, [0, 0, 0, 1])
    >>> round(scaling.temperature, 3), scaling.apply(probabilities)[0].round(3).tolist()
    (2.0, [0.75, 0.25])
    """

    temperature: float = 1.0

    @property
    def is_at_bound(self) -> bool:
        """Whether the temperature is 1/20 or 20, up to 1 %: the labelled nodes do not determine it."""
        return abs(math.log(self.temperature)) > math.log(MAX_TEMPERATURE) - 0.01

    @classmethod
    def fit(
        cls, probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None
    ) -> TemperatureScaling:
        """Return the scaling with the least negative log-likelihood on labelled nodes.

        The temperature is between 1/20 and 20; it is near 1/20 if all predictions are correct.

        Parameters
        ----------
        probabilities, labels, nodes
            As in :func:`~nodecopy.metrics.classification.nll`. The nodes must not be training nodes, whose
            predictions are too good: take validation nodes.
        """
        from scipy.optimize import minimize_scalar
        from scipy.special import logsumexp

        p, codes = select_nodes(probabilities, labels, nodes)
        logits, places = _logits(p), np.arange(len(codes))

        def loss(log_temperature: float) -> float:
            scaled = logits / math.exp(log_temperature)
            return float((logsumexp(scaled, axis=1) - scaled[places, codes]).mean())

        limit = math.log(MAX_TEMPERATURE)
        optimum = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
        return cls(math.exp(optimum.x))

    def apply(self, probabilities: ArrayLike) -> NDArray[np.floating]:
        """Return calibrated probabilities, in the precision of those given; 0 counts as 2^-23."""
        p = check_numbers(probabilities, "probabilities")
        if p.ndim != 2 or not p.shape[1]:
            raise InputError(
                f"probabilities must have one row per node and one column per class; got shape {p.shape}."
            )
        scaled = _logits(p) / check_real(self.temperature, "temperature", low=1 / MAX_TEMPERATURE)
        scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        scaled /= scaled.sum(axis=1, keepdims=True)
        calibrated: NDArray[np.floating] = scaled.astype(p.dtype if p.dtype.kind == "f" else np.float64)
        return calibrated


def _logits(p: NDArray[Any]) -> NDArray[np.float64]:
    logits: NDArray[np.float64] = np.log(p.astype(np.float64).clip(MIN_PROBABILITY))
    return logits

"""Gradient descent by Adam, one step at a time: the engine's one way to change weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class Descent:
    """Weights on their way down.

    Parameters
    ----------
    weights
        Tensors, or groups of them with settings of their own, as ``torch.optim`` takes them.
    learning_rate
        Of Adam.
    """

    def __init__(self, weights: Iterable[Any], learning_rate: float) -> None:
        self._optimiser = torch.optim.Adam(weights, lr=learning_rate, fused=True)

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step down its gradient."""
        self._optimiser.zero_grad(set_to_none=True)
        loss().backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()

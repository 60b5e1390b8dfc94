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
    learning_rate, betas
        Of Adam.
    replayed
        Whether steps are recorded and played back on a GPU, see :mod:`.replay`.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        replayed: bool = False,
    ) -> None:
        self._optimiser = torch.optim.Adam(
            weights, lr=learning_rate, betas=betas, fused=True, capturable=replayed
        )
        self._weights = [weight for group in self._optimiser.param_groups for weight in group["params"]]

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step down its gradient; other weights in the loss stay as they are."""
        self._optimiser.zero_grad(set_to_none=True)
        loss().backward(inputs=self._weights)  # type: ignore[no-untyped-call]
        self._optimiser.step()

"""Steps of Adam: the one place in which the engine changes weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class AdamStepper:
    """Weights that are changed by steps of Adam.

    Parameters
    ----------
    weights
        Tensors, or groups of them with settings of their own, as ``torch.optim`` takes them.
    learning_rate, betas
        Of Adam.
    capturable
        Whether steps can be recorded by a :class:`~nodecopy.nn.cuda_graph.CudaGraphStep`.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        capturable: bool = False,
    ) -> None:
        self._optimiser = torch.optim.Adam(
            weights, lr=learning_rate, betas=betas, fused=True, capturable=capturable
        )
        self._weights = [weight for group in self._optimiser.param_groups for weight in group["params"]]

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step along its gradient; other weights in the loss do not change."""
        self._optimiser.zero_grad(set_to_none=True)
        loss().backward(inputs=self._weights)  # type: ignore[no-untyped-call]
        self._optimiser.step()

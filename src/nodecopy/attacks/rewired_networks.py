"""Trained networks as functions of a few rows of the adjacency."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor


class RewiredNetwork(ABC):
    """The logits of a trained network while some rows of the adjacency are changed.

    Parameters
    ----------
    rows
        Nodes that may be rewired, ``[R]``.
    present
        ``[R, n_nodes]``: the rows of the adjacency before the change.
    """

    def __init__(self, rows: Tensor, present: Tensor) -> None:
        self.rows, self.present = rows, present

    @abstractmethod
    def logits(self, V: Tensor) -> Tensor:
        """Return the logits of all nodes, ``[n_nodes, n_classes]``, after a change V of the rows."""

    @abstractmethod
    def copied_logits(self, V: Tensor, donors: Tensor, target: int) -> Tensor:
        """Return the logits ``[P, n_classes]`` at each donor if it had the target's features."""

    def free_pairs(self) -> Tensor:
        """Return a mask ``[R, n_nodes]`` of the pairs that may be flipped: no loops, each pair once."""
        free = torch.ones_like(self.present, dtype=torch.bool)
        free[:, self.rows] = torch.ones(len(self.rows), len(self.rows), device=free.device).tril(-1).bool()
        return free

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        """Return how much the flip of each pair in ``left`` promises to raise a loss, ``[R, n_nodes]``."""
        V = V.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(self, V), V, materialize_grads=True)
        # An edge can only be removed, another pair only connected.
        return torch.where(left, gradient * (1 - 2 * self.present), -torch.inf)


Loss: TypeAlias = Callable[[RewiredNetwork, Tensor], Tensor]
"""A loss to raise, as a function of a network and the change V of its adjacency."""

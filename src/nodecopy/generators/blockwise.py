"""Computations over all pairs of nodes in blocks of rows, so that no N x N matrix is held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

LOGITS_AT_ONCE = {"cpu": 2**18, "cuda": 2**26}
"""Logits held at once, by device: what fits into a core's cache, and what keeps a GPU busy in 256 MiB."""


def split_rows(n_nodes: int, logits_at_once: int = LOGITS_AT_ONCE["cpu"]) -> Iterator[slice]:
    """Yield consecutive blocks of rows of an N x N matrix, each of about ``logits_at_once`` entries."""
    step = max(1, logits_at_once // n_nodes)
    return (slice(start, min(start + step, n_nodes)) for start in range(0, n_nodes, step))


def split_triangle(n_nodes: int, logits_at_once: int) -> Iterator[slice]:
    """Yield blocks of rows that, with the columns from their first row on, cover all unordered pairs."""
    start = 0
    while start < n_nodes:
        rows = slice(start, min(n_nodes, start + max(1, logits_at_once // (n_nodes - start))))
        yield rows
        start = rows.stop


def attach_gradients(function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> Tensor:
    """Return the value of a function that computes its gradients along with its value.

    ``function`` takes the tensors and returns a scalar followed by its gradient in each of them. Only the
    gradients are kept for the backward pass.
    """
    value: Tensor = _ValueAndGradients.apply(function, *tensors)  # type: ignore[no-untyped-call]
    return value


class _ValueAndGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> Tensor:
        value, *gradients = function(*tensors)
        ctx.save_for_backward(*gradients)
        return value

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *(outer * gradient for gradient in ctx.saved_tensors))

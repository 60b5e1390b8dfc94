"""The loss of inner-product decoders over all N^2 pairs, exact, without an N x N matrix.

Nearly all pairs are no edges, and for those the cross-entropy of a logit x is softplus(x). So the sum
runs over all pairs as if none were an edge, a block of rows at a time, and the few positive ones are
corrected after. Its gradient needs the same blocks, so it is made in the same pass and nothing but
one N x d matrix is kept for the backward pass.

Beside it the loss for large graphs, whose N^2 pairs nobody can wait for: edges, and as many random pairs,
drawn anew every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from nodecopy.nn.stack import SparseStack

LOGITS_AT_ONCE = {"cpu": 2**18, "cuda": 2**26}
"""Logits held at once: what stays in a core's cache, and what keeps a GPU busy in 256 MiB."""
HALF_ROOT = 0.5**0.5
"""Vectors scaled by it have inner products of half the size."""


def triangle_blocks(n_nodes: int, logits_at_once: int) -> Iterator[slice]:
    """Rows to take at once, each with the columns from its first row on: they meet every unordered pair."""
    start = 0
    while start < n_nodes:
        rows = slice(start, min(n_nodes, start + max(1, logits_at_once // (n_nodes - start))))
        yield rows
        start = rows.stop


class _Loss:
    """A loss of Z, ``[N, d]``, that makes its gradient along with its value."""

    def __call__(self, z: Tensor, *, with_value: bool = True) -> Tensor:
        """The loss of Z.

        Training needs the gradient alone; the value, which is 0 then, would take as long again or less.
        """
        loss: Tensor = _ValueAndGradient.apply(z, self, with_value)  # type: ignore[no-untyped-call]
        return loss

    def value_and_gradient(self, z: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class PairLoss(_Loss):
    """Weighted cross-entropy of the logits Z Z^T against A + I, as in Kipf and Welling's code.

    Entry (i, j) weighs ``positive_weight`` = (N^2 - sum A) / sum A where A + I has a one, else one, and
    the mean over all N^2 entries is multiplied by N^2 / (2 (N^2 - sum A)). The diagonal counts among
    the targets, not in those two numbers; this follows their code.

    Parameters
    ----------
    adjacency
        Binary and symmetric, with some edges and an empty diagonal.
    device
        Where Z lives.
    logits_at_once
        Logits held at once; a matter of speed and memory only.
    """

    def __init__(
        self, adjacency: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        n_nodes, n_ones = adjacency.shape[0], adjacency.nnz
        looped = sparse.csr_array(adjacency + sparse.eye_array(n_nodes, dtype=np.float32))
        self.positives = SparseStack([looped], device)
        self.positive_weight = (n_nodes**2 - n_ones) / n_ones
        self.scale = 1 / (2 * (n_nodes**2 - n_ones))
        cores = torch.get_num_threads() if device.type == "cpu" else 1
        self.logits_at_once = logits_at_once or cores * LOGITS_AT_ONCE[device.type]

    def value_and_gradient(self, z: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        value, gradient = self._if_none_were_edges(z, with_value)
        logits = torch.sparse.sampled_addmm(self.positives.plain, z, z.T, beta=0).values()
        slopes = -self.positive_weight * torch.sigmoid(-logits) - torch.sigmoid(logits)
        gradient += self.positives.product(z[None], slopes)[0]
        if with_value:
            corrections = self.positive_weight * softplus(-logits) - softplus(logits)
            value += corrections.sum(dtype=torch.float64)
        # Twice, since a node is the first of its pairs and, in the mirrored ones, the second.
        return (self.scale * value).to(z.dtype), 2 * self.scale * gradient

    def _if_none_were_edges(self, z: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        """Sum of softplus(z_i . z_j) and half its gradient; each unordered pair of blocks is met once.

        The slope sigma(x) is 1/2 + tanh(x/2)/2: tanh is the faster of the two, and the halves add up to
        a column sum. What runs over columns is kept transposed, as its products are faster so.
        """
        value, down = z.new_zeros((), dtype=torch.float64), HALF_ROOT * z
        across = down.T.contiguous()
        gradient, gradient_across = torch.empty_like(down), torch.zeros_like(across)
        # Once for all blocks: to get memory and give it back takes as long as a product.
        room = z.new_empty(max(len(z), min(len(z) ** 2, self.logits_at_once)))
        for block in triangle_blocks(len(z), self.logits_at_once):
            rows, columns = down[block], across[:, block.start :]
            halves = room[: len(rows) * columns.shape[1]].view(len(rows), -1)
            torch.mm(rows, columns, out=halves)
            if with_value:
                each = 2 * softplus(halves, beta=2)
                value += 2 * each.sum(dtype=torch.float64) - each[:, : len(rows)].sum(dtype=torch.float64)
            slopes = halves.tanh_()
            torch.mm(slopes, down[block.start :], out=gradient[block])
            gradient_across[:, block.stop :].addmm_(rows.T, slopes[:, len(rows) :])
        return value, HALF_ROOT * (gradient + gradient_across.T) + z.sum(dim=0) / 2


class SampledPairLoss(_Loss):
    """Cross-entropy of the logits z_i . z_j: the mean over edges, and that over as many random pairs.

    A shuffle of the nodes gives every node a partner; there are as many shuffles as makes at least as many
    pairs as A has ones. What a shuffle did to rows another one undoes, so gradients need no scattering.
    The few of these pairs that are edges, or a node with itself, count like the others.

    Parameters
    ----------
    adjacency
        Binary and symmetric, with some edges and an empty diagonal.
    device
        Where Z lives.
    draws
        Shuffles at every call.
    """

    def __init__(self, adjacency: sparse.csr_array, device: torch.device, draws: Generator) -> None:
        n_nodes, self.draws = adjacency.shape[0], draws
        self.positives = SparseStack([adjacency], device)
        self.in_order = np.tile(np.arange(n_nodes), (-(-adjacency.nnz // n_nodes), 1))

    def value_and_gradient(self, z: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        logits = torch.sparse.sampled_addmm(self.positives.plain, z, z.T, beta=0).values()
        slopes = torch.sigmoid(-logits) * (-2 / len(logits))  # twice: a row is both ends of its edges
        gradient = self.positives.product(z[None], slopes)[0]
        shuffled, back = self._shuffled(z.device)
        partners = z[shuffled]
        others = (z * partners).sum(dim=-1)
        weights = (others.sigmoid() / others.numel())[..., None]
        gradient += (weights * partners).sum(dim=0)
        gradient += (weights * z).flatten(0, 1)[back].sum(dim=0)
        value = softplus(-logits).mean() + softplus(others).mean() if with_value else z.new_zeros(())
        return value, gradient

    def _shuffled(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The partner of each node, by shuffle; and where in all of them the node itself is the partner."""
        shuffled = self.draws.permuted(self.in_order, axis=1)
        back = np.empty_like(shuffled)
        np.put_along_axis(back, shuffled, self.in_order, axis=1)
        back += np.arange(len(back))[:, None] * back.shape[1]
        return torch.from_numpy(shuffled).to(device), torch.from_numpy(back).to(device)


class _ValueAndGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, loss: _Loss, with_value: bool) -> Tensor:
        value, gradient = loss.value_and_gradient(z, with_value)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return outer * gradient, None, None

"""The loss of a decoder that says which node has which feature, a block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from nodecopy.generators.pair_loss import LOGITS_AT_ONCE


class PresenceLoss:
    """Weighted cross-entropy of the logits Z W + b against "is not zero", the mean over all entries.

    Entries that are not zero weigh as much as all zeros together. As in :class:`.PairLoss` the gradient is
    made in the same pass, so no nodes x features matrix is held.

    Parameters
    ----------
    features
        Nodes x features, with some entries.
    device
        Where Z, W and b live.
    logits_at_once
        Logits held at once; a matter of speed and memory only.
    """

    def __init__(
        self, features: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        present = sparse.csr_array(features, copy=True)
        present.eliminate_zeros()
        n_rows, n_columns = present.shape
        self.scale = 1 / (n_rows * n_columns)
        self.positive_weight = (n_rows * n_columns - present.nnz) / present.nnz
        self.rows_at_once = max(1, (logits_at_once or LOGITS_AT_ONCE[device.type]) // n_columns)
        row = np.repeat(np.arange(n_rows), np.diff(present.indptr)) % self.rows_at_once
        self._indptr = present.indptr
        self._places = torch.from_numpy(row * n_columns + present.indices).to(device)

    def __call__(self, z: Tensor, weight: Tensor, bias: Tensor, *, with_value: bool = True) -> Tensor:
        """The loss; without the value, which is then 0, it is faster."""
        loss: Tensor = _PresenceLoss.apply(z, weight, bias, self, with_value)  # type: ignore[no-untyped-call]
        return loss

    def value_and_gradients(
        self, z: Tensor, weight: Tensor, bias: Tensor, with_value: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        value = z.new_zeros((), dtype=torch.float64)
        of_z, of_weight, of_bias = torch.empty_like(z), torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(z), self.rows_at_once):
            block = slice(start, min(len(z), start + self.rows_at_once))
            logits = torch.addmm(bias, z[block], weight)
            present = self._places[self._indptr[block.start] : self._indptr[block.stop]]
            if with_value:
                at = logits.view(-1)[present]
                corrections = self.positive_weight * softplus(-at) - softplus(at)
                value += softplus(logits).sum(dtype=torch.float64) + corrections.sum(dtype=torch.float64)
            slopes = logits.sigmoid_()
            flat = slopes.view(-1)
            flat[present] = self.positive_weight * (flat[present] - 1)
            torch.mm(slopes, weight.T, out=of_z[block])
            of_weight.addmm_(z[block].T, slopes)
            of_bias += slopes.sum(dim=0)
        scale = self.scale
        return (scale * value).to(z.dtype), scale * of_z, scale * of_weight, scale * of_bias


class _PresenceLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, weight: Tensor, bias: Tensor, features: PresenceLoss, with_value: bool
    ) -> Tensor:
        value, *gradients = features.value_and_gradients(z, weight, bias, with_value)
        ctx.save_for_backward(*gradients)
        return value

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        of_z, of_weight, of_bias = ctx.saved_tensors
        return outer * of_z, outer * of_weight, outer * of_bias, None, None

"""The loss of a decoder of features: which features are present at which node, in blocks of rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from nodecopy.generators.blockwise import LOGITS_AT_ONCE, attach_gradients


class PresenceLoss:
    """Weighted cross-entropy of the logits Z W + b against "is not zero", the mean over all entries.

    Non-zero entries together have the same weight as all zeros together. As in :class:`.PairLoss`, the
    gradients are computed in the same pass, so no nodes x features matrix is held.

    Parameters
    ----------
    features
        Nodes x features, with at least one non-zero entry.
    device
        The device of Z, W and b.
    logits_at_once
        Logits held at once, by default :data:`.LOGITS_AT_ONCE`. It affects speed and memory only.
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
        self._positions = torch.from_numpy(row * n_columns + present.indices).to(device)

    def __call__(self, z: Tensor, weight: Tensor, bias: Tensor, *, with_value: bool = True) -> Tensor:
        """Return the loss, or 0 with the same gradients if ``with_value`` is false, which takes less time."""
        return attach_gradients(partial(self.value_and_gradients, with_value=with_value), z, weight, bias)

    def value_and_gradients(
        self, z: Tensor, weight: Tensor, bias: Tensor, with_value: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the loss and its gradients in Z, W and b."""
        value = z.new_zeros((), dtype=torch.float64)
        by_z, by_weight, by_bias = torch.empty_like(z), torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(z), self.rows_at_once):
            block = slice(start, min(len(z), start + self.rows_at_once))
            logits = torch.addmm(bias, z[block], weight)
            present = self._positions[self._indptr[block.start] : self._indptr[block.stop]]
            if with_value:
                positive = logits.view(-1)[present]
                corrections = self.positive_weight * softplus(-positive) - softplus(positive)
                value += softplus(logits).sum(dtype=torch.float64) + corrections.sum(dtype=torch.float64)
            slopes = logits.sigmoid_()
            flat = slopes.view(-1)
            flat[present] = self.positive_weight * (flat[present] - 1)
            torch.mm(slopes, weight.T, out=by_z[block])
            by_weight.addmm_(z[block].T, slopes)
            by_bias += slopes.sum(dim=0)
        scale = self.scale
        return (scale * value).to(z.dtype), scale * by_z, scale * by_weight, scale * by_bias

"""Losses of decoders: over all N^2 pairs of nodes, over edges and sampled pairs, or over features of nodes.

Nearly all pairs are not edges, and for those the cross-entropy of a logit x is softplus(x). So the sum over
all pairs treats every pair as a non-edge, in blocks of rows, and the terms of the edges are corrected
afterwards. The gradient is computed in the same pass, and only one N x d matrix is kept for the backward
pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np
import torch
from numpy.random import Generator
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from nodecopy.generators.blockwise import LOGITS_AT_ONCE, attach_gradients, split_triangle
from nodecopy.nn.stack import SparseStack

HALF_ROOT = 0.5**0.5
"""Vectors scaled by it have inner products of half the size."""


class BlockwiseLoss(ABC):
    """A loss of given tensors that computes its gradients along with its value.

    Sums over all entries of a matrix of logits are computed in blocks of rows, so that the matrix is never
    held.
    """

    def __call__(self, *tensors: Tensor, with_value: bool = True) -> Tensor:
        """Return the loss, or 0 with the same gradients if ``with_value`` is false, which takes less time."""
        return attach_gradients(partial(self.value_and_gradients, with_value=with_value), *tensors)

    @abstractmethod
    def value_and_gradients(self, *tensors: Tensor, with_value: bool) -> tuple[Tensor, ...]:
        """Return the loss and its gradient in each of the tensors."""


class PairLoss(BlockwiseLoss):
    """Weighted cross-entropy of the logits Z Z^T against A + I, as in Kipf and Welling's code.

    Entry (i, j) has the weight ``positive_weight`` = (N^2 - sum A) / sum A where A + I is one, otherwise one,
    and the mean over all N^2 entries is multiplied by N^2 / (2 (N^2 - sum A)). As in their code, the diagonal
    is among the targets, but not in these two numbers.

    Parameters
    ----------
    adjacency
        Binary and symmetric, with at least one edge and an empty diagonal.
    device
        The device of Z.
    logits_at_once
        Logits held at once, by default :data:`.LOGITS_AT_ONCE`. It affects speed and memory only.
    """

    def __init__(
        self, adjacency: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        n_nodes, n_ones = adjacency.shape[0], adjacency.nnz
        with_diagonal = sparse.csr_array(adjacency + sparse.eye_array(n_nodes, dtype=np.float32))
        self.positives = SparseStack([with_diagonal], device)
        self.positive_weight = (n_nodes**2 - n_ones) / n_ones
        self.scale = 1 / (2 * (n_nodes**2 - n_ones))
        cores = torch.get_num_threads() if device.type == "cpu" else 1
        self.logits_at_once = logits_at_once or cores * LOGITS_AT_ONCE[device.type]

    def value_and_gradients(self, *tensors: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        (z,) = tensors
        value, gradient = self._sum_as_non_edges(z, with_value)
        logits = torch.sparse.sampled_addmm(self.positives.tensor, z, z.T, beta=0).values()
        slopes = -self.positive_weight * torch.sigmoid(-logits) - torch.sigmoid(logits)
        gradient += self.positives.product(z[None], slopes)[0]
        if with_value:
            corrections = self.positive_weight * softplus(-logits) - softplus(logits)
            value += corrections.sum(dtype=torch.float64)
        # Twice, because a node is the first of its pairs and the second of the mirrored ones.
        return (self.scale * value).to(z.dtype), 2 * self.scale * gradient

    def _sum_as_non_edges(self, z: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        """Return the sum of softplus(z_i . z_j) and half its gradient, from unordered pairs of blocks.

        The slope sigma(x) is 1/2 + tanh(x/2)/2: tanh is the faster function, and the halves add up to a
        column sum. Matrices indexed by columns are transposed because their products are faster that way.
        """
        value, by_row = z.new_zeros((), dtype=torch.float64), HALF_ROOT * z
        by_column = by_row.T.contiguous()
        gradient, column_gradient = torch.empty_like(by_row), torch.zeros_like(by_column)
        # Allocated once for all blocks, because an allocation takes as long as a product.
        buffer = z.new_empty(max(len(z), min(len(z) ** 2, self.logits_at_once)))
        for block in split_triangle(len(z), self.logits_at_once):
            rows, columns = by_row[block], by_column[:, block.start :]
            halves = buffer[: len(rows) * columns.shape[1]].view(len(rows), -1)
            torch.mm(rows, columns, out=halves)
            if with_value:
                terms = 2 * softplus(halves, beta=2)
                value += 2 * terms.sum(dtype=torch.float64) - terms[:, : len(rows)].sum(dtype=torch.float64)
            slopes = halves.tanh_()
            torch.mm(slopes, by_row[block.start :], out=gradient[block])
            column_gradient[:, block.stop :].addmm_(rows.T, slopes[:, len(rows) :])
        return value, HALF_ROOT * (gradient + column_gradient.T) + z.sum(dim=0) / 2


class SampledPairLoss(BlockwiseLoss):
    """Cross-entropy of the logits z_i . z_j: the mean over edges plus the mean over as many random pairs.

    A random permutation of the nodes gives every node a partner; there are as many permutations as needed for
    at least as many pairs as A has ones. The inverse permutations turn the sums of the gradient into gathers.
    The few random pairs that are edges or self-pairs are treated like the others.

    Parameters
    ----------
    adjacency
        Binary and symmetric, with at least one edge and an empty diagonal.
    device
        The device of Z.
    rng
        Generator of the permutations, which are drawn again in every call.
    """

    def __init__(self, adjacency: sparse.csr_array, device: torch.device, rng: Generator) -> None:
        n_nodes, self.rng = adjacency.shape[0], rng
        self.positives = SparseStack([adjacency], device)
        self.identities = np.tile(np.arange(n_nodes), (-(-adjacency.nnz // n_nodes), 1))

    def value_and_gradients(self, *tensors: Tensor, with_value: bool) -> tuple[Tensor, Tensor]:
        (z,) = tensors
        logits = torch.sparse.sampled_addmm(self.positives.tensor, z, z.T, beta=0).values()
        slopes = torch.sigmoid(-logits) * (-2 / len(logits))  # twice: a row is both ends of its edges
        gradient = self.positives.product(z[None], slopes)[0]
        permutations, inverses = (numbers.to(z.device) for numbers in self.draw_permutations())
        partners = z[permutations]
        sampled = (z * partners).sum(dim=-1)
        weights = (sampled.sigmoid() / sampled.numel())[..., None]
        gradient += (weights * partners).sum(dim=0)
        gradient += (weights * z).flatten(0, 1)[inverses].sum(dim=0)
        value = softplus(-logits).mean() + softplus(sampled).mean() if with_value else z.new_zeros(())
        return value, gradient

    def draw_permutations(self) -> tuple[Tensor, Tensor]:
        """Draw the partner of each node, one row per permutation, and the inverses.

        The inverses are positions in all permutations together: where each node is the partner.
        """
        permutations = self.rng.permuted(self.identities, axis=1)
        inverses = np.empty_like(permutations)
        np.put_along_axis(inverses, permutations, self.identities, axis=1)
        inverses += np.arange(len(inverses))[:, None] * inverses.shape[1]
        return torch.from_numpy(permutations), torch.from_numpy(inverses)


class PresenceLoss(BlockwiseLoss):
    """Weighted cross-entropy of the logits Z W + b against "is not zero", the mean over all entries.

    Non-zero entries together have the same weight as all zeros together.

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

    def value_and_gradients(self, *tensors: Tensor, with_value: bool) -> tuple[Tensor, ...]:
        z, weight, bias = tensors
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

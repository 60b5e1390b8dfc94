"""B sparse matrices of one shape as one block-diagonal CSR matrix, multiplied in one product.

The sampled graphs of one model share rows of A, so their products could also be written as one
product with A and gathers. On Cora's size the block-diagonal product is not what costs time (the
features are), so the plain form stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from nodecopy.errors import InputError
from nodecopy.nn.masks import Masks
from nodecopy.rows import IntArray


class SparseStack:
    """B sparse ``n_rows x n_columns`` matrices; its transpose is kept for the backward pass.

    Parameters
    ----------
    matrices
        The B matrices.
    device
        Where the product is computed.
    """

    def __init__(self, matrices: Sequence[sparse.csr_array], device: torch.device) -> None:
        self.shape = (len(matrices), *matrices[0].shape)
        lengths = [np.diff(matrix.indptr) for matrix in matrices]
        starts = np.arange(len(matrices)) * self.shape[2]
        indices = [matrix.indices + start for matrix, start in zip(matrices, starts, strict=True)]
        values = np.concatenate([matrix.data for matrix in matrices])
        self.entries = np.array([matrix.nnz for matrix in matrices])
        self._take(np.concatenate(lengths), np.concatenate(indices), values, device)

    @classmethod
    def repeated(cls, matrix: sparse.csr_array, n_models: int, device: torch.device) -> SparseStack:
        """The same matrix for every model."""
        return cls([matrix] * n_models, device)

    def _take(self, lengths: IntArray, indices: IntArray, values: Any, device: torch.device) -> None:
        n_models, n_rows, n_columns = self.shape
        if max(len(indices), n_models * max(n_rows, n_columns)) >= 2**31:
            raise InputError(
                f"a stack must have fewer than 2**31 entries; got {len(indices)}: use fewer models."
            )
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        order = sparse.csr_array(
            (np.arange(len(indices), dtype=np.int32), indices.astype(np.int32), indptr.astype(np.int32)),
            shape=(n_models * n_rows, n_models * n_columns),
        ).T.tocsr()
        self._index = _on(device, indptr), _on(device, indices)
        self._index_t = _on(device, order.indptr), _on(device, order.indices)
        self._order_t = _on(device, order.data)
        self.values = torch.from_numpy(values.astype(np.float32)).to(device)
        self._values_t = self.values.index_select(0, self._order_t)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The model of every stored entry, and its number within that model."""
        model = np.repeat(np.arange(len(self.entries)), self.entries)
        number = np.arange(len(model)) - np.repeat(np.cumsum(self.entries) - self.entries, self.entries)
        device = self.values.device
        return torch.from_numpy(model).to(device), _on(device, number)

    def factors(self, masks: Masks, *, step: int, place: int) -> Tensor:
        """A mask for every stored entry of every model."""
        if (self.entries == self.entries[0]).all():
            return masks.draw(int(self.entries[0]), step=step, place=place)
        return masks.draw_at(*self.places, step=step, place=place)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """``[B, n_columns, d]`` to ``[B, n_rows, d]``."""
        return self.product(dense)

    def product(self, dense: Tensor, factors: Tensor | None = None) -> Tensor:
        """The product, with every stored value times its factor (a dropout mask) where given."""
        values, values_t = self.values, self._values_t
        if factors is not None:
            values = values * factors.reshape(-1)
            values_t = values.index_select(0, self._order_t)
        n_models, n_rows, n_columns = self.shape
        flat = dense.reshape(n_models * n_columns, -1)
        matrix = _csr(self._index, values, (n_models * n_rows, n_models * n_columns))
        transpose = _csr(self._index_t, values_t, (n_models * n_columns, n_models * n_rows))
        out: Tensor = _Product.apply(flat, matrix, transpose)
        return out.view(n_models, n_rows, -1)


class _Product(torch.autograd.Function):
    """Sparse times dense; torch's own backward would build the gradient of the sparse matrix too."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return ctx.transpose @ gradient.contiguous(), None, None


def normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 with the degrees of A + I (Kipf and Welling, 2017)."""
    looped = sparse.csr_array(
        adjacency.astype(np.float32) + sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    )
    scale = 1.0 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel())
    row = np.repeat(np.arange(looped.shape[0]), np.diff(looped.indptr))
    looped.data = looped.data * scale[row] * scale[looped.indices]
    return looped


def _on(device: torch.device, array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int32)).to(device)


def _csr(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here watch them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)

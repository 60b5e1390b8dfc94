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


class SparseStack:
    """B sparse matrices; their transposes are kept for the backward pass.

    Parameters
    ----------
    matrices
        The B matrices; smaller ones are padded with empty rows and columns.
    device
        Where the product is computed.
    dtype
        In which precision.
    """

    def __init__(
        self,
        matrices: Sequence[sparse.csr_array],
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        n_rows, n_columns = np.array([matrix.shape for matrix in matrices]).max(axis=0).tolist()
        self.shape = (len(matrices), n_rows, n_columns)
        self.entries = np.array([matrix.nnz for matrix in matrices])
        self._check_size()
        lengths = np.zeros((len(matrices), n_rows), np.int64)
        for number, matrix in enumerate(matrices):
            lengths[number, : matrix.shape[0]] = np.diff(matrix.indptr)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        starts = np.repeat(np.arange(len(matrices)) * n_columns, self.entries)
        indices = np.concatenate([matrix.indices for matrix in matrices]) + starts
        order = _transposed(indptr, indices, (len(matrices) * n_rows, len(matrices) * n_columns))
        self._index = _on(device, indptr), _on(device, indices)
        self._index_t = _on(device, order.indptr), _on(device, order.indices)
        self._order_t = _on(device, order.data)
        values = torch.from_numpy(np.concatenate([matrix.data for matrix in matrices]))
        self._set_values(values.to(device, dtype))

    @classmethod
    def repeated(cls, matrix: sparse.csr_array, n_models: int, device: torch.device) -> SparseStack:
        """The same matrix for every model, laid out on the device itself."""
        stack = object.__new__(cls)
        stack.shape = (n_models, *matrix.shape)
        stack.entries = np.full(n_models, matrix.nnz)
        stack._check_size()
        order = _transposed(matrix.indptr, matrix.indices, matrix.shape)
        stack._index = _repeated(matrix, n_models, device)
        stack._index_t = _repeated(order, n_models, device)
        number = torch.arange(n_models, dtype=torch.int32, device=device)[:, None]
        stack._order_t = (_on(device, order.data)[None, :] + number * matrix.nnz).reshape(-1)
        stack._set_values(torch.from_numpy(matrix.data.astype(np.float32)).to(device).repeat(n_models))
        return stack

    def _check_size(self) -> None:
        n_entries = int(self.entries.sum())
        if max(n_entries, self.shape[0] * max(self.shape[1:])) >= 2**31:
            raise InputError(
                f"a stack must have fewer than 2**31 entries; got {n_entries}: use fewer models."
            )

    def _set_values(self, values: Tensor) -> None:
        self.values = values
        self._values_t = values.index_select(0, self._order_t)

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
        out: Tensor = _Product.apply(flat, matrix, transpose)  # type: ignore[no-untyped-call]
        return out.view(n_models, n_rows, -1)


class _Product(torch.autograd.Function):
    """Sparse times dense; torch's own backward would build the gradient of the sparse matrix too."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
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


def _transposed(indptr: Any, indices: Any, shape: tuple[int, int]) -> sparse.csr_array:
    """The transpose of a pattern; its values say which entry of the original each entry was."""
    numbers = np.arange(len(indices), dtype=np.int32)
    pattern = sparse.csr_array((numbers, indices.astype(np.int32), indptr.astype(np.int32)), shape=shape)
    return sparse.csr_array(pattern.T)


def _repeated(matrix: sparse.csr_array, n_models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row pointers and columns of ``n_models`` copies along the diagonal."""
    number = torch.arange(n_models, dtype=torch.int32, device=device)[:, None]
    ends = _on(device, matrix.indptr[1:])[None, :] + number * matrix.nnz
    columns = _on(device, matrix.indices)[None, :] + number * matrix.shape[1]
    return torch.cat([torch.zeros(1, dtype=torch.int32, device=device), ends.reshape(-1)]), columns.reshape(
        -1
    )


def _on(device: torch.device, array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int32)).to(device)


def _csr(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here watch them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)

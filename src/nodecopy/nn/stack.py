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

from nodecopy._core.csr import IntArray
from nodecopy.errors import InputError
from nodecopy.nn.masks import Masks


class SparseStack:
    """B sparse matrices; what the backward pass needs of their transposes is kept once it was needed.

    Parameters
    ----------
    matrices
        The B matrices; smaller ones are padded with empty rows and columns. One object B times is laid
        out on the device itself.
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
        first, n_models = matrices[0], len(matrices)
        n_rows, n_columns = np.array([matrix.shape for matrix in matrices]).max(axis=0).tolist()
        self.shape = (n_models, n_rows, n_columns)
        self.entries = np.array([matrix.nnz for matrix in matrices])
        self._check_size()
        same = all(matrix is first for matrix in matrices)
        self._copies, self._pattern = (
            (n_models, first) if same else (1, _block_diagonal(matrices, self.shape))
        )
        self.index = _repeated(self._pattern, self._copies, device)
        values = torch.from_numpy(self._pattern.data.copy()).to(device, dtype)
        self.values = values.repeat(self._copies)

    def _check_size(self) -> None:
        n_entries = int(self.entries.sum())
        if max(n_entries, self.shape[0] * max(self.shape[1:])) >= 2**31:
            raise InputError(
                f"a stack must have fewer than 2**31 entries; got {n_entries}: use fewer models."
            )

    @cached_property
    def transpose(self) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """The transpose: its pattern, the entry of the original that each entry was, its values."""
        device, pattern = self.values.device, self._pattern
        numbers = np.arange(pattern.nnz, dtype=np.int32)
        order = sparse.csr_array(
            sparse.csr_array((numbers, pattern.indices, pattern.indptr), shape=pattern.shape).T
        )
        copy = torch.arange(self._copies, dtype=torch.int32, device=device)[:, None]
        origin = (_on(device, order.data)[None, :] + copy * pattern.nnz).reshape(-1)
        return _repeated(order, self._copies, device), origin, self.values.index_select(0, origin)

    @cached_property
    def plain(self) -> Tensor:
        """The stack as torch multiplies it."""
        return csr_tensor(self.index, self.values, self._flat_shape)

    @cached_property
    def plain_transpose(self) -> Tensor:
        index, _, values = self.transpose
        return csr_tensor(index, values, self._flat_shape[::-1])

    @property
    def _flat_shape(self) -> tuple[int, int]:
        n_models, n_rows, n_columns = self.shape
        return n_models * n_rows, n_models * n_columns

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The model of every stored entry, and its number within that model."""
        device = self.values.device
        entries = torch.from_numpy(self.entries).to(device)
        model = torch.repeat_interleave(entries)
        number = torch.arange(len(model), device=device) - (entries.cumsum(0) - entries)[model]
        return model, number.int()

    @cached_property
    def row_numbers(self) -> Tensor:
        """The row of every stored entry, models one after another."""
        return torch.repeat_interleave(self.index[0].diff().long())

    def column_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of every column, ``[B, 1, n_columns]``; what is not stored counts as zero."""
        n_models, n_rows, n_columns = self.shape
        columns, values = self.index[1].cpu().numpy(), self.values.cpu().numpy().astype(np.float64)
        mean, square = (
            np.bincount(columns, part, n_models * n_columns) / n_rows for part in (values, values**2)
        )
        moments = np.stack([mean, np.maximum(square - mean**2, 0.0)]).astype(np.float32)
        both = torch.from_numpy(moments).to(self.values).view(2, n_models, 1, n_columns)
        return both[0], both[1]

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
        n_models, n_rows, n_columns = self.shape
        flat = dense.reshape(n_models * n_columns, -1)
        values = self.values if factors is None else self.values * factors.reshape(-1)
        matrix = self.plain if factors is None else csr_tensor(self.index, values, self._flat_shape)
        if not (torch.is_grad_enabled() and flat.requires_grad):
            return (matrix @ flat).view(n_models, n_rows, -1)
        if factors is None:
            transpose = self.plain_transpose
        else:
            index, origin, _ = self.transpose
            transpose = csr_tensor(index, values.index_select(0, origin), self._flat_shape[::-1])
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


def normalised(adjacency: sparse.csr_array, rows: IntArray | None = None) -> sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 with the degrees of A + I (Kipf and Welling, 2017), or some of its rows."""
    n_nodes = adjacency.shape[0]
    scale = (1.0 / np.sqrt(adjacency.sum(axis=1) + 1.0)).astype(np.float32)
    chosen, part = (np.arange(n_nodes), adjacency) if rows is None else (rows, adjacency[rows])
    identity = sparse.csr_array(
        (np.ones(len(chosen), np.float32), chosen, np.arange(len(chosen) + 1)), shape=(len(chosen), n_nodes)
    )
    looped = sparse.csr_array(part.astype(np.float32) + identity)
    looped.data *= np.repeat(scale[chosen], np.diff(looped.indptr))
    looped.data *= scale[looped.indices]
    return looped


def _block_diagonal(matrices: Sequence[sparse.csr_array], shape: tuple[int, int, int]) -> sparse.csr_array:
    n_models, n_rows, n_columns = shape
    lengths = np.zeros((n_models, n_rows), np.int32)
    for number, matrix in enumerate(matrices):
        lengths[number, : matrix.shape[0]] = np.diff(matrix.indptr)
    indptr = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=indptr[1:])
    indices = np.concatenate(
        [matrix.indices.astype(np.int32) + number * n_columns for number, matrix in enumerate(matrices)],
        dtype=np.int32,
    )
    values = np.concatenate([matrix.data for matrix in matrices])
    return sparse.csr_array((values, indices, indptr), shape=(n_models * n_rows, n_models * n_columns))


def _repeated(matrix: sparse.csr_array, n_models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row pointers and columns of ``n_models`` copies along the diagonal."""
    number = torch.arange(n_models, dtype=torch.int32, device=device)[:, None]
    ends = _on(device, matrix.indptr[1:])[None, :] + number * matrix.nnz
    columns = _on(device, matrix.indices)[None, :] + number * matrix.shape[1]
    return torch.cat([torch.zeros(1, dtype=torch.int32, device=device), ends.reshape(-1)]), columns.reshape(
        -1
    )


def _on(device: torch.device, array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.int32)).to(device)  # a copy: graphs are read-only


def csr_tensor(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A torch tensor of row pointers and columns, unchecked."""
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here watch them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)

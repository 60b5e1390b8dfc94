"""B sparse matrices of one shape as one block-diagonal CSR matrix, multiplied in one product.

Matrices of a truncated SVD (Entezari et al., 2020) are multiplied through their factors, never N x N.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import IntArray
from nodecopy._core.linalg import truncated_svd
from nodecopy.errors import InputError


def build_csr_tensor(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a torch tensor of row pointers and columns, unchecked."""
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here cover them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)


INPUT, HIDDEN, FIRST_EDGES, SECOND_EDGES = range(4)
"""The places of dropout masks in a network."""
GOLDEN, MIX_1, MIX_2 = 0x1E3779B9, 0x21F0AAAD, 0x735A2D97


class Masks:
    """The dropout masks of B models with keys; a share ``rate`` of entries, in steps of 1/256, is dropped."""

    def __init__(self, keys: Tensor, rate: float) -> None:
        self.keys, self.threshold = keys, round(256 * rate)

    def draw(self, n: int, *, step: int, place: int) -> Tensor:
        """Return ``[B, n]`` factors: zero for dropped entries, otherwise what keeps the expectation."""
        position = torch.arange(-(-n // 4), dtype=torch.int32, device=self.keys.device)
        words = _mix(position ^ self._key(step, place))
        return self._factors(words.view(torch.uint8)[:, :n])

    def draw_at(self, model: Tensor, position: Tensor, *, step: int, place: int) -> Tensor:
        """Return the factors of :meth:`draw` at given models and positions; models may differ in size."""
        words = _mix((position >> 2) ^ self._key(step, place)[model, 0])
        return self._factors((words >> ((position & 3) << 3)) & 0xFF)

    def _key(self, step: int, place: int) -> Tensor:
        products = GOLDEN * (2 * step + 1), MIX_2 * (place + 1)
        by_step, by_place = ((product + 2**31) % 2**32 - 2**31 for product in products)  # as signed 32 bits
        return _mix(self.keys[:, None] + by_step ^ by_place)

    def _factors(self, numbers: Tensor) -> Tensor:
        return (numbers >= self.threshold) * (256.0 / (256 - self.threshold))


def draw_keys(seeds: Sequence[SeedSequence], device: torch.device) -> Tensor:
    """Return the key of each model, given its seed."""
    words = np.array([seed.generate_state(1, np.uint32)[0] for seed in seeds], np.uint32)
    return torch.from_numpy(words.view(np.int32)).to(device)


def _mix(x: Tensor) -> Tensor:
    """Return a hash of 32-bit integers."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * MIX_1
    x ^= (x >> 15) & 0x1FFFF
    x *= MIX_2
    x ^= (x >> 15) & 0x1FFFF
    return x


class SparseStack:
    """B sparse matrices of one shape; their transposes are computed in the first backward pass.

    Smaller matrices are padded with empty rows and columns. One object B times is repeated on the device.
    """

    def __init__(
        self, matrices: Sequence[sparse.csr_array], device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        first, n_models = matrices[0], len(matrices)
        n_rows, n_columns = np.array([matrix.shape for matrix in matrices]).max(axis=0).tolist()
        self.shape = (n_models, n_rows, n_columns)
        self.flat_shape = (n_models * n_rows, n_models * n_columns)
        self.entries = np.array([matrix.nnz for matrix in matrices])
        if max(int(self.entries.sum()), *self.flat_shape) >= 2**31:
            raise InputError(f"a stack must have fewer than 2**31 entries; got {self.entries.sum()}.")
        same = all(matrix is first for matrix in matrices)
        self._copies, self._pattern = (
            (n_models, first) if same else (1, _block_diagonal(matrices, self.shape))
        )
        self.device, self.dtype = device, dtype

    @cached_property
    def index(self) -> tuple[Tensor, Tensor]:
        """Row pointers and columns of the block-diagonal matrix."""
        return _repeat_pattern(self._pattern, self._copies, self.device)

    @cached_property
    def values(self) -> Tensor:
        """The stored values of the block-diagonal matrix."""
        return torch.tensor(self._pattern.data, dtype=self.dtype, device=self.device).repeat(self._copies)

    def matrix(self, model: int) -> sparse.csr_array:
        """Return the matrix of one model, possibly padded."""
        if self._copies > 1:
            return self._pattern
        _, n_rows, n_columns = self.shape
        indptr = self._pattern.indptr[model * n_rows : (model + 1) * n_rows + 1]
        entries = slice(indptr[0], indptr[-1])
        columns = self._pattern.indices[entries] - np.int32(model * n_columns)
        parts = self._pattern.data[entries], columns, indptr - indptr[0]
        return sparse.csr_array(parts, shape=(n_rows, n_columns))

    @cached_property
    def tensor(self) -> Tensor:
        """The block-diagonal matrix as a torch tensor."""
        return build_csr_tensor(self.index, self.values, self.flat_shape)

    @cached_property
    def transpose(self) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """The pattern of the transpose, the number of each entry in the original, and the transpose."""
        device, pattern = self.device, self._pattern
        if device.type != "cpu":
            return self._sort_transpose()
        numbers = np.arange(pattern.nnz, dtype=np.int32)
        order = sparse.csr_array(
            sparse.csr_array((numbers, pattern.indices, pattern.indptr), shape=pattern.shape).T
        )
        copy = torch.arange(self._copies, dtype=torch.int32, device=device)[:, None]
        entries = torch.tensor(order.data, dtype=torch.int32, device=device)
        origin = (entries[None, :] + copy * pattern.nnz).reshape(-1)
        index = _repeat_pattern(order, self._copies, device)
        values = self.values.index_select(0, origin)
        return index, origin, build_csr_tensor(index, values, self.flat_shape[::-1])

    def _sort_transpose(self) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """Return the same as :attr:`transpose`, sorted on the device."""
        rows, columns = self.row_numbers, self.index[1]
        columns, origin = torch.sort(columns, stable=True)
        ends = torch.arange(self.flat_shape[1] + 1, dtype=torch.int32, device=self.device)
        index = torch.searchsorted(columns, ends).int(), rows.index_select(0, origin).int()
        values = self.values.index_select(0, origin)
        return index, origin.int(), build_csr_tensor(index, values, self.flat_shape[::-1])

    @cached_property
    def positions(self) -> tuple[Tensor, Tensor]:
        """The model of every stored entry, and the entry's number within that model."""
        device = self.device
        entries = torch.from_numpy(self.entries).to(device)
        model = torch.repeat_interleave(entries)
        number = torch.arange(len(model), device=device) - (entries.cumsum(0) - entries)[model]
        return model, number.int()

    @cached_property
    def row_numbers(self) -> Tensor:
        """The row of every stored entry, models one after another."""
        return torch.repeat_interleave(self.index[0].diff().long())

    @cached_property
    def column_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of every column, ``[B, 1, n_columns]``, with zeros for entries not stored."""
        n_models, n_rows, n_columns = self.shape
        columns, values = self.index[1].cpu().numpy(), self.values.cpu().numpy().astype(np.float64)
        mean, square = (
            np.bincount(columns, part, n_models * n_columns) / n_rows for part in (values, values**2)
        )
        moments = np.stack([mean, np.maximum(square - mean**2, 0.0)]).astype(np.float32)
        both = torch.from_numpy(moments).to(self.values).view(2, n_models, 1, n_columns)
        return both[0], both[1]

    def draw_factors(self, masks: Masks, *, step: int, place: int) -> Tensor:
        """Return a dropout factor for every stored entry of every model."""
        if (self.entries == self.entries[0]).all():
            return masks.draw(int(self.entries[0]), step=step, place=place)
        return masks.draw_at(*self.positions, step=step, place=place)

    def product(self, dense: Tensor, factors: Tensor | None = None) -> Tensor:
        """Return the product, ``[B, n_columns, d]`` to ``[B, n_rows, d]``.

        Every stored value is multiplied by its factor (a dropout mask) if factors are given.
        """
        n_models, n_rows, n_columns = self.shape
        flat = dense.reshape(n_models * n_columns, -1)
        values = self.values if factors is None else self.values * factors.reshape(-1)
        matrix = self.tensor if factors is None else build_csr_tensor(self.index, values, self.flat_shape)
        if not (torch.is_grad_enabled() and flat.requires_grad):
            return (matrix @ flat).view(n_models, n_rows, -1)
        index, origin, transpose = self.transpose
        if factors is not None:
            transpose = build_csr_tensor(index, values.index_select(0, origin), self.flat_shape[::-1])
        out: Tensor = _Product.apply(flat, matrix, transpose)  # type: ignore[no-untyped-call]
        return out.view(n_models, n_rows, -1)

    __matmul__ = product


class _Product(torch.autograd.Function):
    """Sparse times dense; torch's own backward would build the gradient of the sparse matrix too."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ gradient.contiguous(), None, None


def normalise_adjacency(adjacency: sparse.csr_array, rows: IntArray | None = None) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2, or some of its rows, where D has the degrees of A + I."""
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


def _repeat_pattern(matrix: sparse.csr_array, n_models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row pointers and columns of ``n_models`` copies along the diagonal."""
    number = torch.arange(n_models, dtype=torch.int32, device=device)[:, None]
    ends, columns = (
        torch.tensor(part, dtype=torch.int32, device=device)[None, :] + number * size
        for part, size in ((matrix.indptr[1:], matrix.nnz), (matrix.indices, matrix.shape[1]))
    )
    start = torch.zeros(1, dtype=torch.int32, device=device)
    return torch.cat([start, ends.reshape(-1)]), columns.reshape(-1)


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix ``left @ right.T`` plus a diagonal, as its factors."""

    left: NDArray[np.float32]
    right: NDArray[np.float32]
    diagonal: NDArray[np.float32]


def approximate_adjacency(adjacency: sparse.csr_array, rank: int) -> LowRank:
    """Return D^-1/2 (A_k + I) D^-1/2, where A_k is the best approximation of A of that rank.

    D holds the row sums of A_k. A sum below zero, which is possible for the approximation, counts as zero.
    The rank is at most the number of nodes less one.
    """
    n = adjacency.shape[0]
    rank = min(rank, n - 1)
    if not adjacency.nnz or not rank:
        zeros = np.zeros((n, 1), np.float32)
        return LowRank(zeros, zeros, np.ones(n, np.float32))
    u, s, vt = truncated_svd(adjacency.astype(np.float64), rank)
    left = u * s
    scale = 1.0 / np.sqrt(1.0 + np.maximum(left @ vt.sum(axis=1), 0.0))
    parts: list[Any] = [left * scale[:, None], vt.T * scale[:, None], scale**2]
    return LowRank(*(part.astype(np.float32) for part in parts))


class LowRankStack:
    """B low-rank matrices of one shape; the counterpart of a :class:`SparseStack`."""

    def __init__(self, matrices: Sequence[LowRank], device: torch.device) -> None:
        rank = max(matrix.left.shape[1] for matrix in matrices)
        self.left, self.right = (
            torch.from_numpy(np.stack([_pad_columns(getattr(m, side), rank) for m in matrices])).to(device)
            for side in ("left", "right")
        )
        self.diagonal = torch.from_numpy(np.stack([m.diagonal for m in matrices])).to(device)[:, :, None]

    def __matmul__(self, dense: Tensor) -> Tensor:
        """``[B, n, d]`` to ``[B, n, d]``."""
        return self.left @ (self.right.transpose(1, 2) @ dense) + self.diagonal * dense


def _pad_columns(factor: NDArray[np.float32], rank: int) -> NDArray[np.float32]:
    return np.pad(factor, ((0, 0), (0, rank - factor.shape[1])))

"""Attention over the edges of B graphs: no more numbers than edges, and a backward pass of sparse products.

Everything is summed row by row, so that results are the same every time, on a GPU too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import elu

from nodecopy.nn.csr_products import build_csr_tensor
from nodecopy.nn.stack import SparseStack


def attend(graphs: SparseStack, dense: Tensor, own: Tensor, other: Tensor, factors: Tensor | None) -> Tensor:
    """Return weighted means over neighbours: row i is the sum over j of a_ij times row j of ``dense``.

    The sum is over the stored entries (i, j) of the graphs, whose values are not used. The weights a_i are
    the softmax of ELU(own_i + other_j) over j, each times its factor (a dropout mask) if factors are given.
    ``dense`` is ``[B, n, d]``, scores are ``[B, n]``.
    """
    flat = dense.reshape(-1, dense.shape[2])
    flat_factors = None if factors is None else factors.reshape(-1)
    scores = own.reshape(-1), other.reshape(-1)
    out: Tensor = _Attention.apply(flat, *scores, flat_factors, graphs)  # type: ignore[no-untyped-call]
    return out.view_as(dense)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: Tensor, own: Tensor, other: Tensor, factors: Tensor | None, graphs: SparseStack
    ) -> Tensor:
        rows, columns = graphs.row_numbers, graphs.index[1]
        raw = own.index_select(0, rows) + other.index_select(0, columns)
        scores = elu(raw)
        # The largest score of a row, so that no exponential overflows.
        top = torch.full_like(own, -1.0).scatter_reduce(0, rows, scores, "amax")
        weights = (scores - top.index_select(0, rows)).exp()
        weights = weights / _sums(weights, graphs.index, len(own)).index_select(0, rows)
        masked = weights if factors is None else weights * factors
        ctx.graphs, ctx.has_factors = graphs, factors is not None
        ctx.save_for_backward(dense, raw, weights, masked if factors is None else factors)
        return build_csr_tensor(graphs.index, masked, (len(own), len(own))) @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        graphs: SparseStack = ctx.graphs
        dense, raw, weights, factors = ctx.saved_tensors
        rows, columns, n = graphs.row_numbers, graphs.index[1], len(dense)
        index, origin, _ = graphs.transpose
        gradient = gradient.contiguous()
        masked = weights * factors if ctx.has_factors else weights
        by_dense = build_csr_tensor(index, masked.index_select(0, origin), (n, n)) @ gradient
        by_weight = (gradient.index_select(0, rows) * dense.index_select(0, columns)).sum(dim=1)
        if ctx.has_factors:
            by_weight = by_weight * factors
        common = _sums(weights * by_weight, graphs.index, n).index_select(0, rows)
        by_raw = weights * (by_weight - common) * torch.where(raw > 0, 1.0, raw.clamp(max=0).exp())
        by_other = _sums(by_raw.index_select(0, origin), index, n)
        return by_dense, _sums(by_raw, graphs.index, n), by_other, None, None


def _sums(values: Tensor, index: tuple[Tensor, Tensor], n: int) -> Tensor:
    """Return the sum of every row's values."""
    return (build_csr_tensor(index, values, (n, n)) @ values.new_ones(n, 1))[:, 0]

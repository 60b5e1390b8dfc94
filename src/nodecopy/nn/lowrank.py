"""Convolutions through the factors of a truncated SVD (Entezari et al., 2020), never N x N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.linalg import truncated_svd


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
    """B low-rank matrices of one shape; the counterpart of a :class:`~nodecopy.nn.stack.SparseStack`."""

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

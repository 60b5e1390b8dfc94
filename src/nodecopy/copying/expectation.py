"""The exact expectation of a sampled adjacency, without a dense N x N matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Floats, IntArray
from nodecopy._core.checks import check_indices, check_vector

MAX_BLOCK_ENTRIES = 2**22  # entries of the expectation that a product holds in memory at once


@dataclass(frozen=True, eq=False)
class CopiedRows:
    """The expectation of the copied rows, p = keep A + (1 - keep) P A, stored as means of donor rows."""

    means: sparse.csr_array
    row_of: IntArray
    keep: float
    observed: sparse.csr_array

    def rows(self, nodes: IntArray) -> sparse.csr_array:
        return sparse.csr_array(
            (1 - self.keep) * self.means[self.row_of[nodes]] + self.keep * self.observed[nodes]
        )

    def columns(self, nodes: IntArray) -> sparse.csr_array:
        n = len(self.row_of)
        member = sparse.csr_array((np.ones(n), (self.row_of, np.arange(n))), (self.means.shape[0], n))
        copied = sparse.csr_array(self.means[:, nodes].T) @ member
        return sparse.csr_array((1 - self.keep) * copied + self.keep * self.observed[:, nodes].T)

    def entries(self, first: IntArray, second: IntArray) -> Floats:
        copied = np.asarray(self.means[self.row_of[first], second])
        return (1 - self.keep) * copied + self.keep * np.asarray(self.observed[first, second])

    def matmul(self, other: Any) -> Any:
        return (1 - self.keep) * (self.means @ other)[self.row_of] + self.keep * (self.observed @ other)


@dataclass(frozen=True, eq=False)
class ExpectedAdjacency:
    """The expectation E[A_G], available by rows, by entries, by products or as a whole.

    Parameters
    ----------
    layers
        Pairs of a height and the expectation of copied rows: one, or for a weighted maximum one per distinct
        weight, since weights are sums of the heights of binary graphs.
    rule
        How rows are made symmetric: ``"maximum"``, ``"one-endpoint"`` or ``None`` (directed, interactions).

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> star = Graph([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    >>> expected = NodeCopying(SameLabel([0, 1, 1])).fit(star).expected_adjacency()
    >>> expected.entries([0, 1], [1, 2]).tolist()
    [1.0, 0.0]
    """

    layers: tuple[tuple[float, CopiedRows], ...]
    rule: str | None
    shape: tuple[int, int]

    def rows(self, nodes: ArrayLike) -> sparse.csr_array:
        """Return some rows as a sparse matrix."""
        chosen = check_indices(nodes, "nodes", size=self.shape[0])
        total = sparse.csr_array((len(chosen), self.shape[1]))
        for height, layer in self.layers:
            p = layer.rows(chosen)
            if self.rule is not None:
                p = self._symmetric(p, layer.columns(chosen))
            total = sparse.csr_array(total + height * p)
        if self.rule is not None:
            own = chosen[np.repeat(np.arange(len(chosen)), np.diff(total.indptr))]
            total.data[own == total.indices] = 0.0
        total.eliminate_zeros()
        return total

    def entries(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """Return the expectations of some entries."""
        i = check_indices(first, "first", size=self.shape[0])
        j = check_indices(second, "second", size=self.shape[1])
        check_vector(j, "second", length=len(i), per="entry")
        total = np.zeros(len(i))
        for height, layer in self.layers:
            p = layer.entries(i, j)
            total += height * (p if self.rule is None else self._symmetric(p, layer.entries(j, i)))
        return total if self.rule is None else np.where(i == j, 0.0, total)

    def tocsr(self) -> sparse.csr_array:
        """Return the whole matrix, which can be much denser than the graph."""
        return self.rows(np.arange(self.shape[0]))

    def toarray(self) -> Floats:
        """Return the whole matrix as a dense array."""
        return np.asarray(self.tocsr().toarray())

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a matrix or vector without storing the expectation."""
        if self.rule is None:
            ((_, layer),) = self.layers
            return layer.matmul(other)
        step = max(1, MAX_BLOCK_ENTRIES // max(1, self.shape[1]))
        blocks = [
            self.rows(np.arange(start, min(start + step, self.shape[0]))) @ other
            for start in range(0, self.shape[0], step)
        ]
        if blocks and sparse.issparse(blocks[0]):
            return sparse.csr_array(sparse.vstack(blocks))
        return np.concatenate(blocks) if blocks else np.zeros((0, *np.shape(other)[1:]))

    def _symmetric(self, p: Any, q: Any) -> Any:
        if self.rule == "one-endpoint":
            return (p + q) / 2
        return p + q - p * q  # elementwise: these are sparse arrays, not matrices

"""Fitted donor laws: who may give their neighbourhood to whom, and how likely.

Two forms cover every law. :class:`DonorLists`: nodes share lists, and a donor is drawn uniformly from
a node's list (same label, K nearest neighbours). :class:`DonorRows`: each node has a row of
probabilities (Jaccard, any similarity). Either way the copied rows have expectation P A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, index_dtype

PARTS = 2**40
"""Draws round similarities up to whole parts of the row's largest, which is so many."""


class DonorDistribution(ABC):
    """The independent distributions p(zeta^i = m) of all nodes i."""

    n_nodes: int

    @abstractmethod
    def draw(self, uniforms: NDArray[np.float64], keep: float, *, compiled: bool = False) -> IntArray:
        """One donor per node from one uniform per node; the node itself with probability ``keep``."""

    @abstractmethod
    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        """``means, row_of`` such that row i of P A is ``means[row_of[i]]``; nodes with one law share one."""

    @abstractmethod
    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> NDArray[np.float64]:
        """For each node i the probability that its donor m has ``group_of[m] == wanted[i]``."""

    def probabilities(self) -> sparse.csr_array:
        """The matrix P: row i holds the probabilities of node i's donors."""
        means, row_of = self.mean_rows(sparse.eye_array(self.n_nodes, format="csr"))
        return sparse.csr_array(means[row_of])


@dataclass(frozen=True, eq=False)
class DonorLists(DonorDistribution):
    """Node i's donor is uniform over ``members[offsets[l]:offsets[l + 1]]`` with ``l = list_of[i]``."""

    list_of: IntArray
    offsets: IntArray
    members: IntArray

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return len(self.list_of)

    @classmethod
    def from_groups(cls, group_of: IntArray) -> DonorLists:
        """Nodes of one group (numbered from 0) share a list."""
        dtype = index_dtype(len(group_of))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(group_of))])
        members = np.argsort(group_of, kind="stable")
        return cls(group_of.astype(dtype), offsets.astype(dtype), members.astype(dtype))

    def draw(self, uniforms: NDArray[np.float64], keep: float, *, compiled: bool = False) -> IntArray:
        if compiled:
            from nodecopy.copying import kernels

            donors = np.empty(self.n_nodes, self.members.dtype)
            kernels.draw_from_lists(uniforms, keep, self.list_of, self.offsets, self.members, donors)
            return donors
        start, end = self.offsets[self.list_of], self.offsets[self.list_of + 1]
        ticket = (_rescaled(uniforms, keep) * (end - start)).astype(self.members.dtype)
        ticket = np.minimum(ticket, end - start - 1)  # a rescaled uniform can round to one
        return _keep_some(self.members[start + ticket], uniforms, keep)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        sizes = np.diff(self.offsets)
        shares = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
        shape = (len(sizes), matrix.shape[0])
        means = sparse.csr_array((shares, self.members, self.offsets), shape=shape) @ matrix
        return sparse.csr_array(means), self.list_of

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> NDArray[np.float64]:
        sizes = np.diff(self.offsets)
        n_groups = int(max(group_of.max(initial=0), wanted.max(initial=0))) + 1
        keys = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes) * n_groups + group_of[self.members]
        found, counts = np.unique_counts(keys)
        asked = self.list_of.astype(np.int64) * n_groups + wanted
        place = np.minimum(np.searchsorted(found, asked), len(found) - 1)
        hits = np.where((found[place] == asked) & (wanted >= 0), counts[place], 0)
        return np.asarray(hits / sizes[self.list_of])


@dataclass(frozen=True, eq=False)
class DonorRows(DonorDistribution):
    """Node i's donor is m with probability P[i, m]; each row of P adds up to one."""

    P: sparse.csr_array
    cumulative: NDArray[np.float64]

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return int(self.P.shape[0])

    @classmethod
    def from_similarity(cls, similarity: sparse.csr_array) -> DonorRows:
        """Normalise non-negative rows; a node that is similar to nobody keeps its own neighbours."""
        similarity = similarity.astype(np.float64)  # a copy, which may be changed
        similarity.eliminate_zeros()
        similarity.sort_indices()
        alone = (np.diff(similarity.indptr) == 0).astype(np.float64)
        similarity = sparse.csr_array(similarity + sparse.diags_array(alone, format="csr"))
        similarity.eliminate_zeros()
        start, lengths = similarity.indptr[:-1], np.diff(similarity.indptr)
        # Scaled by the row's largest entry first, so that sums neither overflow nor vanish.
        values = similarity.data / np.repeat(np.maximum.reduceat(similarity.data, start), lengths)
        P = sparse.csr_array((values, similarity.indices, similarity.indptr), shape=similarity.shape)
        # Added up as whole parts, which no order of summation and no row before can change, so that a
        # database finds the same numbers; unsigned integers may overflow, their differences are right.
        parts = np.ceil(values * PARTS).astype(np.uint64)
        running = np.cumsum(parts)
        sums = running - np.repeat(running[start] - parts[start], lengths)
        cumulative = sums / np.repeat(sums[P.indptr[1:] - 1], lengths)
        P.data = values / np.repeat(np.add.reduceat(values, start), lengths)
        return cls(P, cumulative)

    def draw(self, uniforms: NDArray[np.float64], keep: float, *, compiled: bool = False) -> IntArray:
        indptr, indices = self.P.indptr, self.P.indices
        if compiled:
            from nodecopy.copying import kernels

            donors = np.empty(self.n_nodes, indices.dtype)
            kernels.draw_from_rows(uniforms, keep, indptr, indices, self.cumulative, donors)
            return donors
        wanted = _rescaled(uniforms, keep)
        low, high = indptr[:-1].copy(), indptr[1:] - 1
        while (low < high).any():
            middle = (low + high) >> 1
            above = self.cumulative[middle] > wanted
            high = np.where((low < high) & above, middle, high)
            low = np.where((low < high) & ~above, middle + 1, low)
        return _keep_some(indices[low], uniforms, keep)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        return sparse.csr_array(self.P @ matrix), np.arange(self.n_nodes)

    def probabilities(self) -> sparse.csr_array:
        return self.P

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> NDArray[np.float64]:
        node = np.repeat(np.arange(self.n_nodes), np.diff(self.P.indptr))
        hit = group_of[self.P.indices] == wanted[node]
        totals = np.bincount(node[hit], weights=self.P.data[hit], minlength=self.n_nodes)
        return totals.astype(np.float64)


def _rescaled(uniforms: NDArray[np.float64], keep: float) -> NDArray[np.float64]:
    """What is left of a uniform once the share ``keep`` is taken off; zero for nodes that keep their own."""
    if keep == 1.0:
        return np.zeros_like(uniforms)
    return np.where(uniforms < keep, 0.0, (uniforms - keep) / (1.0 - keep))


def _keep_some(donors: IntArray, uniforms: NDArray[np.float64], keep: float) -> IntArray:
    return np.where(uniforms < keep, np.arange(len(donors), dtype=donors.dtype), donors)

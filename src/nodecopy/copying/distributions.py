"""Donor distributions: the probabilities with which each node takes the neighbourhood of each other node.

In :class:`DonorLists` a donor is drawn uniformly from a list that nodes may share (same label, nearest
neighbours). In :class:`DonorRows` each node has a row of probabilities (Jaccard, any similarity). The exact
expectation of a sampled adjacency follows from them without a dense N x N matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Floats, IntArray, as_csr, index_dtype
from nodecopy._core.checks import check_finite, check_indices, check_numbers, check_vector
from nodecopy.errors import InputError

TOLERANCE = 1e-5  # of sums of probabilities that were rounded to units
SIMILARITY_UNITS = 2**40  # the largest similarity of a row; every one is rounded up to whole units


class DonorDistribution(ABC):
    """The independent distributions p(zeta^i = m) of all nodes i."""

    n_nodes: int

    @abstractmethod
    def draw(self, uniforms: Floats, keep: float, *, compiled: bool = False) -> IntArray:
        """Return one donor per node from one uniform number per node.

        A node is its own donor with probability ``keep``, and otherwise draws one. ``compiled`` selects the
        compiled kernels, which give the same donors.
        """

    @abstractmethod
    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        """Return ``means, row_of``: row i of P A is ``means[row_of[i]]``; equal distributions share a row."""

    @abstractmethod
    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> Floats:
        """Return for each node i the probability that its donor m has ``group_of[m] == wanted[i]``."""

    def probabilities(self) -> sparse.csr_array:
        """Return the matrix P: row i holds the probabilities of the donors of node i."""
        means, row_of = self.mean_rows(sparse.eye_array(self.n_nodes, format="csr"))
        return sparse.csr_array(means[row_of])


@dataclass(frozen=True, eq=False)
class DonorLists(DonorDistribution):
    """Uniform distributions over lists: the donors in list l are ``members[offsets[l]:offsets[l + 1]]``.

    Node i draws from list ``list_of[i]``, which is not empty.
    """

    list_of: IntArray
    offsets: IntArray
    members: IntArray

    def __post_init__(self) -> None:
        offsets = check_vector(self.offsets, "offsets of DonorLists")
        n_members = len(check_vector(self.members, "members of DonorLists"))
        sizes = np.diff(offsets)
        bounds = offsets[[0, -1]].tolist() if len(offsets) and offsets.dtype.kind in "iu" else None
        if bounds != [0, n_members] or (offsets[1:] < offsets[:-1]).any():
            raise InputError("offsets of DonorLists", f"must ascend from 0 to len(members) = {n_members}.")
        check_indices(self.list_of, "list_of of DonorLists", size=len(sizes))
        check_indices(self.members, "members of DonorLists", size=self.n_nodes)
        if not sizes[self.list_of].all():
            raise InputError("members of DonorLists", "must hold at least one donor for every node.")

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return len(self.list_of)

    @classmethod
    def from_groups(cls, group_of: IntArray) -> DonorLists:
        """Return lists in which nodes of the same group (numbered from 0) are each other's donors."""
        dtype = index_dtype(len(group_of))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(group_of))])
        members = np.argsort(group_of, kind="stable")
        return cls(group_of.astype(dtype), offsets.astype(dtype), members.astype(dtype))

    def draw(self, uniforms: Floats, keep: float, *, compiled: bool = False) -> IntArray:
        if compiled:
            from nodecopy.copying import kernels

            donors = np.empty(self.n_nodes, self.members.dtype)
            kernels.draw_from_lists(uniforms, keep, self.list_of, self.offsets, self.members, donors)
            return donors
        start, end = self.offsets[self.list_of], self.offsets[self.list_of + 1]
        position = (_rescale(uniforms, keep) * (end - start)).astype(self.members.dtype)
        position = np.minimum(position, end - start - 1)  # a rescaled uniform can round to one
        return _replace_by_self(self.members[start + position], uniforms, keep)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        sizes = np.diff(self.offsets)
        shares = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
        lists = sparse.csr_array((shares, self.members, self.offsets), (len(sizes), matrix.shape[0]))
        return sparse.csr_array(lists @ matrix), self.list_of

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> Floats:
        sizes = np.diff(self.offsets)
        n_groups = int(max(group_of.max(initial=0), wanted.max(initial=0))) + 1
        keys = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes) * n_groups + group_of[self.members]
        distinct, counts = np.unique_counts(keys)
        wanted_keys = self.list_of.astype(np.int64) * n_groups + wanted
        position = np.minimum(np.searchsorted(distinct, wanted_keys), len(distinct) - 1)
        is_match = (distinct[position] == wanted_keys) & (wanted >= 0)
        return np.asarray(np.where(is_match, counts[position], 0) / sizes[self.list_of])


@dataclass(frozen=True, eq=False)
class DonorRows(DonorDistribution):
    """Distributions with a row of probabilities per node; use :meth:`from_similarity` to build them.

    The rows of the square matrix ``P`` add up to one; ``cumulative`` has their cumulative sums.
    """

    P: sparse.csr_array
    cumulative: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "P", as_csr(self.P, "P of DonorRows"))
        name = "cumulative of DonorRows"
        cumulative = check_vector(self.cumulative, name, length=self.P.nnz, per="entry of P")
        if cumulative.dtype != np.float64:
            raise InputError(name, f"must be in double precision; got {cumulative.dtype}.")
        starts = self.P.indptr[:-1]
        if self.P.shape[0] != self.P.shape[1] or not np.diff(self.P.indptr).all():
            raise InputError("P of DonorRows must be square and hold at least one donor for every node.")
        steps = np.diff(cumulative, prepend=0.0)
        steps[starts] = cumulative[starts]
        is_right = (self.P.data >= 0) & (steps >= 0) & (np.abs(steps - self.P.data) <= TOLERANCE)
        if not is_right.all() or not (cumulative[self.P.indptr[1:] - 1] == 1).all():
            raise InputError(name, "must rise to 1 in every row, by the probabilities in P.")

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return int(self.P.shape[0])

    @classmethod
    def from_similarity(cls, similarity: sparse.csr_array) -> DonorRows:
        """Normalise non-negative rows; a node whose row is empty becomes its own donor."""
        similarity = as_csr(similarity, "similarity of DonorRows").astype(np.float64)  # a copy
        check_finite(similarity.data, "similarity of DonorRows")
        if similarity.nnz and similarity.data.min() < 0:
            raise InputError("similarity of DonorRows", f"must not be negative; got {similarity.data.min()}.")
        similarity.eliminate_zeros()
        similarity.sort_indices()
        is_empty = np.diff(similarity.indptr) == 0
        if is_empty.any():
            own = sparse.diags_array(is_empty.astype(np.float64), format="csr")
            similarity = sparse.csr_array(similarity + own)
            similarity.eliminate_zeros()
        start, lengths = similarity.indptr[:-1], np.diff(similarity.indptr)
        # Divided by the largest entry of the row first, so that sums neither overflow nor underflow.
        values = similarity.data / np.repeat(np.maximum.reduceat(similarity.data, start), lengths)
        P = sparse.csr_array((values, similarity.indices, similarity.indptr), shape=similarity.shape)
        # Sums of whole units depend neither on the order of summation nor on earlier rows, so that a
        # database computes the same numbers. Unsigned integers may overflow; their differences are right.
        units = np.ceil(values * SIMILARITY_UNITS).astype(np.uint64)
        running = np.cumsum(units)
        sums = running - np.repeat(running[start] - units[start], lengths)
        cumulative = sums / np.repeat(sums[P.indptr[1:] - 1], lengths)
        P.data = values / np.repeat(np.add.reduceat(values, start), lengths)
        return cls(P, cumulative)

    def draw(self, uniforms: Floats, keep: float, *, compiled: bool = False) -> IntArray:
        indptr, indices = self.P.indptr, self.P.indices
        if compiled:
            from nodecopy.copying import kernels

            donors = np.empty(self.n_nodes, indices.dtype)
            kernels.draw_from_rows(uniforms, keep, indptr, indices, self.cumulative, donors)
            return donors
        rescaled = _rescale(uniforms, keep)
        low, high = indptr[:-1].copy(), indptr[1:] - 1
        while (low < high).any():
            middle = (low + high) >> 1
            is_above = self.cumulative[middle] > rescaled
            high = np.where((low < high) & is_above, middle, high)
            low = np.where((low < high) & ~is_above, middle + 1, low)
        return _replace_by_self(indices[low], uniforms, keep)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        return sparse.csr_array(self.P @ matrix), np.arange(self.n_nodes)

    def probabilities(self) -> sparse.csr_array:
        return self.P

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> Floats:
        node = np.repeat(np.arange(self.n_nodes), np.diff(self.P.indptr))
        is_match = group_of[self.P.indices] == wanted[node]
        totals = np.bincount(node[is_match], weights=self.P.data[is_match], minlength=self.n_nodes)
        return totals.astype(np.float64)


@dataclass(frozen=True, eq=False)
class KeepingDistribution(DonorDistribution):
    """A node is its own donor with its probability in ``keep_probabilities``, else ``other`` draws one."""

    other: DonorDistribution
    keep_probabilities: Floats

    def __post_init__(self) -> None:
        name = "keep_probabilities"
        p = check_numbers(check_vector(self.keep_probabilities, name, length=self.n_nodes), name)
        if not ((p >= 0) & (p <= 1)).all():  # NaN is neither
            raise InputError(name, f"must lie between 0 and 1; got {p[~((p >= 0) & (p <= 1))][0]}.")

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return self.other.n_nodes

    def draw(self, uniforms: Floats, keep: float, *, compiled: bool = False) -> IntArray:
        p = keep + (1 - keep) * self.keep_probabilities
        below_one = np.nextafter(1.0, 0.0)  # a rescaled uniform can round to one
        donors = self.other.draw(np.minimum(_rescale(uniforms, p), below_one), 0.0, compiled=compiled)
        return _replace_by_self(donors, uniforms, p)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        means, row_of = self.other.mean_rows(matrix)
        copied = sparse.diags_array(1 - self.keep_probabilities) @ means[row_of]
        mixed = copied + sparse.diags_array(self.keep_probabilities) @ sparse.csr_array(matrix)
        return sparse.csr_array(mixed), np.arange(self.n_nodes)

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> Floats:
        p, copied = self.keep_probabilities, self.other.match_probabilities(group_of, wanted)
        return np.asarray((1 - p) * copied + p * (group_of == wanted))


def _rescale(uniforms: Floats, keep: float | Floats) -> Floats:
    zeros = np.zeros_like(uniforms)
    return np.asarray(np.divide(uniforms - keep, 1.0 - keep, out=zeros, where=uniforms >= keep))


def _replace_by_self(donors: IntArray, uniforms: Floats, keep: float | Floats) -> IntArray:
    return np.where(uniforms < keep, np.arange(len(donors), dtype=donors.dtype), donors)


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

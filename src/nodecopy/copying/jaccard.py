"""The donor law by the Jaccard index of two users' items, or of two nodes' neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import Rows, check_row_data, is_dense_product_faster, largest_entries
from nodecopy._core.params import Configurable
from nodecopy._core.validation import check_integer, check_real
from nodecopy.copying.distributions import DonorRows
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

MAX_BLOCK_ENTRIES = 2**22
"""Similarities that :class:`Jaccard` holds in memory at once, unless one node has more."""
MAX_CACHED_ENTRIES = 2**16
"""Entries of a block of a dense matrix that stays in the cache."""
MIN_COMPILED_PRODUCTS = 2**25
"""Multiplications from which compiled code finds the most similar users; it takes a second to load."""


@dataclass(eq=False)
class Jaccard(Configurable):
    """Draw donors in proportion to the Jaccard index of their items or neighbours.

    Parameters
    ----------
    include_self
        Whether a user (or node) may be its own donor (default), as in the paper's sum over all users.
    exponent
        Power of the index, 1 by default; larger values favour the most similar users.
    max_donors
        Number of most similar users that may be donors, ties go to the lowest index; all by default.

    Notes
    -----
    The index ignores weights. A user without a possible donor keeps its own row.

    Examples
    --------
    >>> from nodecopy import Interactions, Jaccard, NodeCopying
    >>> log = Interactions([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> NodeCopying(Jaccard(include_self=False)).fit(log).distribution_.probabilities().toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    include_self: bool = True
    exponent: float = 1.0
    max_donors: int | None = None
    crosses_components: ClassVar[bool] = False  # nodes of two components share no neighbours

    def fit(self, data: Graph | Interactions) -> DonorRows:
        check_real(self.exponent, "exponent of Jaccard", low=0.0)
        if self.max_donors is not None:
            check_integer(self.max_donors, "max_donors of Jaccard", low=1, high=math.inf)
        rows = check_row_data(data).rows
        pattern = Rows(rows.indptr, rows.indices, None, rows.n_columns).csr
        transpose = sparse.csr_array(pattern.T)
        factors: tuple[Any, Any] = pattern, transpose
        # A row of the product has at most as many entries as multiplications.
        n_entries: Any = pattern @ np.diff(transpose.indptr).astype(np.float64)
        if is_dense_product_faster(pattern):
            dense = pattern.toarray()
            factors = dense, dense.T
            n_entries = np.full(rows.n_rows, float(rows.n_rows))
        elif self.max_donors is not None and n_entries.sum() >= MIN_COMPILED_PRODUCTS:
            from nodecopy.copying.jaccard_kernels import most_similar_rows  # imports numba, which is slow

            index = most_similar_rows(
                pattern, transpose, min(self.max_donors, pattern.shape[0]), self.include_self
            )
            return DonorRows.from_similarity(self._sharpen(index))
        degrees = rows.degrees.astype(np.float64)
        block_of = np.cumsum(n_entries) // MAX_BLOCK_ENTRIES
        bounds = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), rows.n_rows]
        blocks = [self._similarities(slice(*bound), *factors, degrees) for bound in pairwise(bounds)]
        empty = sparse.csr_array((0, rows.n_rows))
        return DonorRows.from_similarity(sparse.csr_array(sparse.vstack([empty, *blocks], format="csr")))

    def _similarities(self, some: slice, pattern: Any, transpose: Any, degrees: Any) -> sparse.csr_array:
        users = np.arange(some.start, some.stop)
        similarity, thresholds = self._index(users, pattern[some] @ transpose, degrees)
        if self.max_donors is not None:
            n_donors = min(self.max_donors, similarity.shape[1])
            similarity = largest_entries(similarity, n_donors, thresholds)
        similarity.sort_indices()
        return self._sharpen(similarity)

    def _sharpen(self, similarity: sparse.csr_array) -> sparse.csr_array:
        """Raise similarities to the exponent.

        They are divided by the user's largest one first: a large exponent would underflow to zero otherwise.
        """
        lengths, is_positive = np.diff(similarity.indptr), similarity.data > 0
        largest = np.maximum.reduceat(similarity.data, similarity.indptr[:-1][lengths > 0])
        largest = np.maximum(largest, np.finfo(float).tiny)
        similarity.data = (similarity.data / np.repeat(largest, lengths[lengths > 0])) ** self.exponent
        similarity.data *= is_positive
        return similarity

    def _index(self, users: Any, shared: Any, degrees: Any) -> tuple[sparse.csr_array, Any]:
        """Return the Jaccard index of some users with all users, from the number of items they share.

        Of a dense matrix only entries that may be among the ``max_donors`` largest are stored; the smallest
        of them, by user, is the second result, which is ``None`` for a sparse matrix.
        """
        if isinstance(shared, np.ndarray):
            return self._dense_index(users, shared, degrees)
        lengths = np.diff(shared.indptr)
        union = np.repeat(degrees[users], lengths)
        union += degrees[shared.indices]
        union -= shared.data
        index = np.divide(shared.data, union, out=union)
        if not self.include_self:
            index[np.repeat(users.astype(shared.indices.dtype), lengths) == shared.indices] = 0.0
        return sparse.csr_array((index, shared.indices, shared.indptr), shape=shared.shape), None

    def _dense_index(self, users: Any, shared: Any, degrees: Any) -> tuple[sparse.csr_array, Any]:
        """Return what :meth:`_index` does, computed by blocks of rows that fit into the cache."""
        thresholds, none = np.empty(len(users)), np.zeros(0, np.int64)
        parts: list[tuple[Any, Any, Any]] = [(none, np.zeros(0), none)]
        n_users = shared.shape[1]
        step = 1 + MAX_CACHED_ENTRIES // max(n_users, 1)
        for first in range(0, len(users), step):
            rows = slice(first, first + step)
            union = degrees[users[rows], None] + degrees
            union -= shared[rows]
            index = np.divide(shared[rows], np.maximum(union, 1.0, out=union), out=union)
            if not self.include_self:
                index[np.arange(len(index)), users[rows]] = 0.0
            thresholds[rows] = _smallest_accepted(index, self.max_donors)
            positions = np.flatnonzero(index >= thresholds[rows, None])
            row, columns = np.divmod(positions, n_users)
            parts.append((columns, index.ravel()[positions], np.bincount(row, minlength=len(index))))
        columns, data, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        indptr = np.append(0, np.cumsum(counts))
        return sparse.csr_array((data, columns, indptr), shape=shared.shape), thresholds


def _smallest_accepted(index: NDArray[np.float64], max_donors: int | None) -> NDArray[np.float64]:
    """Return the ``max_donors``-th largest entry of each row, at least the smallest positive number."""
    tiny = np.full(len(index), np.finfo(float).tiny)
    if max_donors is None or max_donors >= index.shape[1]:
        return tiny
    return np.maximum(np.partition(index, -max_donors, axis=1)[:, -max_donors], tiny)

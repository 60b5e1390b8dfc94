"""Items that a user did not take, drawn uniformly; any set of pairs can be kept out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray


class NegativeSampler:
    """Draws, for given users, items outside a set of forbidden pairs.

    The r-th allowed item of a user is r plus the number of forbidden items before it. Forbidden item
    number t (from 0) of a user, f_t, lies before it exactly if f_t - t <= r, and f_t - t never falls
    within a user: one binary search over all users' numbers answers, and no draw is ever rejected.

    Parameters
    ----------
    forbidden
        Users x items; what is stored is never drawn.

    Attributes
    ----------
    pool_sizes
        How many items each user can be given; users with none must not be asked for.
    """

    def __init__(self, forbidden: sparse.csr_array) -> None:
        pattern = sparse.csr_array(forbidden, copy=True)
        pattern.sum_duplicates()
        n_users, n_items = pattern.shape
        taken = np.diff(pattern.indptr)
        user = np.repeat(np.arange(n_users, dtype=np.int64), taken)
        number = np.arange(pattern.nnz) - np.repeat(pattern.indptr[:-1], taken)
        self.pool_sizes: IntArray = n_items - taken
        self._indptr, self._stride = pattern.indptr.astype(np.int64), n_items + 1
        self._allowed_before = user * self._stride + (pattern.indices - number)

    def draw(self, users: IntArray, rng: Generator) -> NDArray[np.int64]:
        """One item for each of the users."""
        rank = rng.integers(self.pool_sizes[users])
        keys = users.astype(np.int64) * self._stride + rank
        found = np.searchsorted(self._allowed_before, keys, side="right") - self._indptr[users]
        return np.asarray(rank + found, dtype=np.int64)


def with_pools(observed: sparse.csr_array, likely: Any) -> sparse.csr_array:
    """Observed and likely pairs together; a user who would have no negatives left keeps the observed ones."""
    both = sparse.csr_array(observed.astype(bool) + likely.astype(bool))
    exhausted = np.diff(both.indptr) == both.shape[1]
    likely = sparse.csr_array(likely, copy=True).astype(bool)
    likely.data &= ~np.repeat(exhausted, np.diff(likely.indptr))
    likely.eliminate_zeros()
    return sparse.csr_array(observed.astype(bool) + likely)

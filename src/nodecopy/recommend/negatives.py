"""Negative sampling: items drawn uniformly outside a set of forbidden pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray


class NegativeSampler:
    """Draw, for given users, items outside a set of forbidden pairs.

    The r-th allowed item of a user is r plus the number of forbidden items before it. The forbidden item
    f_t with number t (from 0) of a user lies before it exactly if f_t - t <= r, and f_t - t does not
    decrease within a user. One binary search over the numbers of all users finds it, and no draw is
    rejected.

    Parameters
    ----------
    forbidden
        Users x items; the stored entries are never drawn.

    Attributes
    ----------
    pool_sizes
        Number of items that each user can be given; users with none must not be passed to :meth:`draw`.
    """

    def __init__(self, forbidden: sparse.csr_array) -> None:
        pattern = sparse.csr_array(forbidden, copy=True)
        pattern.sum_duplicates()
        n_users, n_items = pattern.shape
        n_forbidden = np.diff(pattern.indptr)
        user = np.repeat(np.arange(n_users, dtype=np.int64), n_forbidden)
        number = np.arange(pattern.nnz) - np.repeat(pattern.indptr[:-1], n_forbidden)
        self.pool_sizes: IntArray = n_items - n_forbidden
        self._indptr, self._stride = pattern.indptr.astype(np.int64), n_items + 1
        self._allowed_before = user * self._stride + (pattern.indices - number)

    def draw(self, users: IntArray, rng: Generator) -> NDArray[np.int64]:
        """Return one item for each of the users."""
        rank = rng.integers(self.pool_sizes[users])
        keys = users.astype(np.int64) * self._stride + rank
        n_before = np.searchsorted(self._allowed_before, keys, side="right") - self._indptr[users]
        return np.asarray(rank + n_before, dtype=np.int64)


def forbid_likely_pairs(observed: sparse.csr_array, likely: Any) -> sparse.csr_array:
    """Return the observed and likely pairs; a user with no negatives left gets only the observed ones."""
    both = sparse.csr_array(observed.astype(bool) + likely.astype(bool))
    is_exhausted = np.diff(both.indptr) == both.shape[1]
    likely = sparse.csr_array(likely, copy=True).astype(bool)
    likely.data &= ~np.repeat(is_exhausted, np.diff(likely.indptr))
    likely.eliminate_zeros()
    return sparse.csr_array(observed.astype(bool) + likely)

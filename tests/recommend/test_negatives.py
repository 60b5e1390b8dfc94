from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nodecopy.recommend.bpr import NegativeSampler, forbid_likely_pairs
from tests.strategies import matrices


class Ranks:
    """A generator that returns given ranks."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks

    def integers(self, sizes: np.ndarray) -> np.ndarray:
        assert (np.array(self.ranks) < sizes).all()
        return np.array(self.ranks)


@given(matrices((4, 7)))
def test_every_rank_is_the_next_allowed_item(forbidden: sparse.csr_array) -> None:
    sampler = NegativeSampler(forbidden)
    for user, row in enumerate(forbidden.toarray()):
        allowed = np.flatnonzero(row == 0)
        assert sampler.pool_sizes[user] == len(allowed)
        users = np.full(len(allowed), user)
        items = sampler.draw(users, Ranks(list(range(len(allowed)))))  # type: ignore[arg-type]
        assert items.tolist() == allowed.tolist()


def test_uniform_over_the_pool() -> None:
    """20,000 draws from 3 items: each count is within 5 standard deviations (67) of a third."""
    forbidden = sparse.csr_array(np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0]]))
    items = NegativeSampler(forbidden).draw(np.zeros(20_000, int), np.random.default_rng(0))
    counts = np.bincount(items, minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert abs(counts[[1, 3, 4]] - 20_000 / 3).max() < 5 * 67


def test_unsorted_and_repeated_entries() -> None:
    forbidden = sparse.csr_array((np.ones(4), np.array([3, 0, 3, 1]), np.array([0, 4])), shape=(1, 4))
    sampler = NegativeSampler(forbidden)
    assert sampler.pool_sizes.tolist() == [1]
    assert sampler.draw(np.array([0, 0]), np.random.default_rng(0)).tolist() == [2, 2]
    assert forbidden.indices.tolist() == [3, 0, 3, 1]


@given(st.integers(0, 2**32))
def test_every_user_keeps_some_negatives(seed: int) -> None:
    draws = np.random.default_rng(seed)
    observed, likely = draws.random((5, 3)) < 0.3, draws.random((5, 3)) < 0.8
    forbidden = forbid_likely_pairs(sparse.csr_array(observed), sparse.csr_array(likely)).toarray()
    for user in range(5):
        both = observed[user] | likely[user]
        assert np.array_equal(forbidden[user], observed[user] if both.all() else both)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Interactions, Jaccard
from nodecopy._core import arrays as csr
from nodecopy.copying import donors as jaccard_law
from tests.copying.oracles import Matrix
from tests.strategies import interactions


def P(donors: Jaccard, data: Interactions) -> Matrix:
    return np.asarray(donors.fit(data).probabilities().toarray())


def jaccard(sets: list[set[int]], include_self: bool, exponent: float, top: int | None) -> Matrix:
    n = len(sets)
    S = np.zeros((n, n))
    for i in range(n):
        for m in range(n):
            shared = len(sets[i] & sets[m])
            if shared and (include_self or i != m):
                S[i, m] = shared / len(sets[i] | sets[m])
        if top is not None:
            S[i, sorted(range(n), key=lambda m, i=i: (-S[i, m], m))[top:]] = 0  # type: ignore[misc]
        S[i] = np.where(S[i] > 0, S[i] ** exponent, 0)
        if not S[i].any():
            S[i, i] = 1
    return np.asarray(S / S.sum(axis=1, keepdims=True))


@settings(deadline=None)
@given(
    interactions(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.none() | st.integers(1, 4),
    st.sampled_from([1, 20, jaccard_law.MAX_BLOCK_ENTRIES]),
    st.sampled_from([-1.0, np.inf]),
)
def test_jaccard_against_sets(
    log: Interactions, include_self: bool, exponent: float, top: int | None, block: int, dense_from: float
) -> None:
    """Also with blocks of one user and of a few, by dense and by sparse products."""
    sets = [set(np.flatnonzero(row).tolist()) for row in log.matrix.toarray()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaccard_law, "MAX_BLOCK_ENTRIES", block)
        patch.setattr(jaccard_law, "MAX_CACHED_ENTRIES", block)
        patch.setattr(csr, "MIN_DENSE_SHARE", dense_from)
        result = P(Jaccard(include_self, exponent, top), log)
    np.testing.assert_allclose(
        result, jaccard(sets, include_self, exponent, top).reshape(result.shape), rtol=1e-12
    )


def test_jaccard_by_hand() -> None:
    log = Interactions([[1, 1, 0, 0], [0, 5, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]])
    first = np.array([1, 1 / 2, 1 / 4, 0])
    np.testing.assert_allclose(P(Jaccard(), log)[0], first / first.sum())
    np.testing.assert_allclose(P(Jaccard(include_self=False), log)[0], [0, 2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(P(Jaccard(include_self=False, exponent=2), log)[0], [0, 4 / 5, 1 / 5, 0])
    np.testing.assert_allclose(P(Jaccard(include_self=False, max_donors=1), log)[0], [0, 1, 0, 0])
    assert P(Jaccard(), log)[3].tolist() == [0, 0, 0, 1]  # who took nothing keeps nothing


def test_jaccard_takes_the_first_of_equals() -> None:
    log = Interactions([[1, 1], [1, 0], [0, 1], [1, 0]])
    assert P(Jaccard(include_self=False, max_donors=2), log)[0].tolist() == [0, 0.5, 0.5, 0]


def test_more_donors_than_fit_into_an_integer_are_all() -> None:
    log = Interactions(np.ones((3, 3)))
    every, limited = Jaccard().fit(log), Jaccard(max_donors=2**63).fit(log)
    assert np.array_equal(every.probabilities().toarray(), limited.probabilities().toarray())

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nodecopy.recommend import similarity
from tests.strategies import matrices


@given(
    matrices((7, 5), weighted=False), st.integers(1, 7), st.sampled_from([0.0, 2.0]), st.sampled_from([1, 99])
)
def test_nearest_rows_against_sets(pattern: sparse.csr_array, top: int, shrinkage: float, block: int) -> None:
    sets = [set(np.flatnonzero(row).tolist()) for row in pattern.toarray()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "PAIRS_AT_ONCE", block)
        found = similarity.nearest_rows(pattern, top, shrinkage).toarray()
    for i in range(7):
        cosine = {
            j: len(sets[i] & sets[j]) / (math.sqrt(len(sets[i]) * len(sets[j])) + shrinkage)
            for j in range(7)
            if j != i and sets[i] & sets[j]
        }
        nearest = sorted(cosine, key=lambda j, c=cosine: (-c[j], j))[:top]  # type: ignore[misc]
        wanted = [cosine[j] if j in nearest else 0.0 for j in range(7)]
        np.testing.assert_allclose(found[i], wanted, rtol=1e-6)


@given(matrices((8, 6), weighted=False), st.sampled_from([0.5, 1.0, 2.0, 20.0]), st.sampled_from([1, 99]))
def test_above_threshold(pattern: sparse.csr_array, degree: float, block: int) -> None:
    every = similarity.nearest_rows(pattern, 8).toarray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "PAIRS_AT_ONCE", block)
        found = similarity.above_threshold(pattern, degree).toarray()
    ranked = np.sort(every[every > 0])[::-1]
    n_wanted = min(int(degree * 8), len(ranked))
    border = ranked[n_wanted - 1] if n_wanted else np.inf
    assert np.array_equal(found, np.where(every >= border, every, 0))
    assert np.array_equal(found, found.T)

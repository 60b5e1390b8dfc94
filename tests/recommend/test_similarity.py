from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nodecopy.recommend import baselines as similarity
from tests.strategies import matrices


@given(
    matrices((7, 5), weighted=False), st.integers(1, 7), st.sampled_from([0.0, 2.0]), st.sampled_from([1, 99])
)
def test_nearest_rows_against_sets(
    pattern: sparse.csr_array, n_neighbours: int, shrinkage: float, block: int
) -> None:
    sets = [set(np.flatnonzero(row).tolist()) for row in pattern.toarray()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "MAX_BLOCK_PAIRS", block)
        result = similarity.nearest_rows(pattern, n_neighbours, shrinkage).toarray()
    for i in range(7):
        cosine = {
            j: len(sets[i] & sets[j]) / (math.sqrt(len(sets[i]) * len(sets[j])) + shrinkage)
            for j in range(7)
            if j != i and sets[i] & sets[j]
        }
        nearest = sorted(cosine, key=lambda j, c=cosine: (-c[j], j))[:n_neighbours]  # type: ignore[misc]
        expected = [cosine[j] if j in nearest else 0.0 for j in range(7)]
        np.testing.assert_allclose(result[i], expected, rtol=1e-6)


@given(matrices((8, 6), weighted=False), st.sampled_from([0.5, 1.0, 2.0, 20.0]), st.sampled_from([1, 99]))
def test_above_threshold(pattern: sparse.csr_array, degree: float, block: int) -> None:
    shared = (pattern @ pattern.T).toarray() * (1 - np.eye(8))
    degrees = pattern.sum(axis=1)
    all_pairs = shared / np.maximum(np.sqrt(np.outer(degrees, degrees)), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "MAX_BLOCK_PAIRS", block)
        result = similarity.above_threshold(pattern, degree).toarray()
    ranked = np.sort(all_pairs[all_pairs > 0])[::-1]
    n_entries = min(int(degree * 8), len(ranked))
    threshold = ranked[n_entries - 1] if n_entries else np.inf
    assert np.array_equal(result, np.where(all_pairs >= threshold, all_pairs, 0).astype(np.float32))
    assert np.array_equal(result, result.T)

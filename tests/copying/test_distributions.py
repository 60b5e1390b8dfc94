from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.copying import DonorDistribution, DonorLists, DonorRows
from tests.copying.oracles import with_keep

ALMOST_ONE = np.nextafter(1.0, 0.0)
N_GRID = 4000


@st.composite
def distributions(draw: st.DrawFn) -> DonorDistribution:
    n = draw(st.integers(1, 7))
    if draw(st.booleans()):
        groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        return DonorLists.from_groups(np.unique(groups, return_inverse=True)[1])
    values = st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.3, 1e-300, 1e300])
    cells = draw(st.lists(values, min_size=n * n, max_size=n * n))
    return DonorRows.from_similarity(sparse.csr_array(np.array(cells).reshape(n, n)))


def frequencies(distribution: DonorDistribution, keep: float) -> NDArray[np.float64]:
    """How often each donor comes over an even grid of uniforms: its probability, up to a grid cell."""
    n = distribution.n_nodes
    counts = np.zeros((n, n))
    for u in (np.arange(N_GRID) + 0.5) / N_GRID:
        counts[np.arange(n), distribution.draw(np.full(n, u), keep)] += 1
    return counts / N_GRID


def lists() -> DonorLists:
    return DonorLists.from_groups(np.array([0, 1, 0, 2, 0]))


def table() -> DonorRows:
    similarity = [[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [0.2, 0.2, 0.2]]
    return DonorRows.from_similarity(sparse.csr_array(np.array(similarity)))


def test_probabilities_by_hand() -> None:
    third = 1 / 3
    shared = [third, 0, third, 0, third]
    wanted = [shared, [0, 1, 0, 0, 0], shared, [0, 0, 0, 1, 0], shared]
    np.testing.assert_allclose(lists().probabilities().toarray(), np.array(wanted), rtol=1e-15)
    wanted = [[0, 0.25, 0.75], [0, 1, 0], [third, third, third]]
    np.testing.assert_allclose(table().probabilities().toarray(), np.array(wanted), rtol=1e-15)


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("make", [lists, table])
def test_draws_have_their_probabilities(make: Any, keep: float) -> None:
    distribution = make()
    wanted = with_keep(distribution.probabilities().toarray(), keep)
    assert np.abs(frequencies(distribution, keep) - wanted).max() <= 2 / N_GRID


@given(distributions(), st.data(), st.sampled_from([0.0, 0.25, 0.3, 0.99, 1.0]))
def test_compiled_draws_are_equal(distribution: DonorDistribution, data: st.DataObject, keep: float) -> None:
    n = distribution.n_nodes
    u = st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, keep * ALMOST_ONE, ALMOST_ONE])
    uniforms = np.array(data.draw(st.lists(u, min_size=n, max_size=n)))
    plain, compiled = (distribution.draw(uniforms, keep, compiled=way) for way in (False, True))
    assert np.array_equal(plain, compiled)
    assert plain.dtype == compiled.dtype
    kept = uniforms < keep
    assert np.array_equal(plain[kept], np.flatnonzero(kept))
    P = distribution.probabilities().toarray()
    stored = P[np.arange(n), plain]
    assert (stored[~kept & (uniforms < 0.999)] > 0).all()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("keep", [0.0, 0.1, 0.3, 0.7])
def test_the_largest_uniform_takes_the_last_donor(keep: float, compiled: bool) -> None:
    """With keep = 0.3 the rescaled uniform rounds to one, a place beyond the list."""
    last = lists().draw(np.full(5, ALMOST_ONE), keep, compiled=compiled)
    assert last.tolist() == [4, 1, 4, 3, 4]
    seven = DonorRows.from_similarity(sparse.csr_array(np.full((7, 7), 0.1)))
    assert seven.cumulative.reshape(7, 7)[:, -1].tolist() == [1.0] * 7
    assert seven.draw(np.full(7, ALMOST_ONE), keep, compiled=compiled).tolist() == [6] * 7


@given(distributions())
def test_rows_of_probabilities_add_up_to_one(distribution: DonorDistribution) -> None:
    P = distribution.probabilities().toarray()
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)


@given(distributions(), st.integers(0, 10**6))
def test_mean_rows_are_p_times_a(distribution: DonorDistribution, seed: int) -> None:
    A = np.random.default_rng(seed).integers(0, 3, (distribution.n_nodes, 4)).astype(float)
    means, row_of = distribution.mean_rows(sparse.csr_array(A))
    P = distribution.probabilities().toarray()
    np.testing.assert_allclose(means.toarray()[row_of], P @ A, atol=1e-12)


@given(distributions(), st.data())
def test_match_probabilities_by_summing(distribution: DonorDistribution, data: st.DataObject) -> None:
    n = distribution.n_nodes
    group_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    wanted = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n)))
    P = distribution.probabilities().toarray()
    by_hand = [sum(P[i, m] for m in range(n) if group_of[m] == wanted[i]) for i in range(n)]
    np.testing.assert_allclose(distribution.match_probabilities(group_of, wanted), by_hand, atol=1e-12)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy.recommend import sparse_ridge as sparse_kernels
from nodecopy.recommend.sparse_ridge import largest_products, largest_sums, solve_neighbourhoods


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([2, 100]))
def test_largest_products(seed: int, n_largest: int, rows_per_task: int) -> None:
    """Against sorted dense products; small integers make ties."""
    draws = np.random.default_rng(seed)
    left = draws.integers(0, 3, (7, 5)) * (draws.random((7, 5)) < 0.5)
    right = draws.integers(0, 3, (5, 8)) * (draws.random((5, 8)) < 0.5)
    importance = draws.integers(1, 3, 8).astype(float)
    zeros = sparse.csr_array(np.ones((5, 8)))  # stored ones and zeros
    zeros.data = right.ravel().astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_kernels, "ROWS_PER_TASK", rows_per_task)
        result = largest_products(sparse.csr_array(left), zeros, n_largest, importance)
    product = left @ right
    for row, ours in zip(product, result.toarray(), strict=True):
        order = sorted(np.flatnonzero(row).tolist(), key=lambda j: (-row[j] * importance[j], j))
        expected = [row[j] if j in order[:n_largest] else 0 for j in range(8)]
        assert ours.tolist() == expected
    assert result.has_sorted_indices


@pytest.mark.parametrize("has_diagonal", [True, False])
@pytest.mark.parametrize("rows_per_task", [2, 100])
def test_largest_sums(rows_per_task: int, has_diagonal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_kernels, "ROWS_PER_TASK", rows_per_task)
    draws = np.random.default_rng(0)
    first, second = (draws.integers(0, 4, (7, 7)) * (draws.random((7, 7)) < 0.5) for _ in range(2))
    importance = draws.random(7)
    terms = [(0.5, sparse.csr_array(first)), (2.0, sparse.csr_array(second))]
    result = largest_sums(terms, 3, importance, has_diagonal)
    total = (0.5 * first + 2 * second) * (1 if has_diagonal else 1 - np.eye(7))
    for row, ours in zip(total, result.toarray(), strict=True):
        best = np.argsort(-row * importance, kind="stable")[:3]
        assert ours.tolist() == [row[j] if j in best else 0 for j in range(7)]


@pytest.mark.parametrize("systems_per_task", [1, 2, 64])
def test_solve_neighbourhoods(systems_per_task: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_kernels, "SYSTEMS_PER_TASK", systems_per_task)
    draws = np.random.default_rng(0)
    half = draws.random((6, 6))
    M = half @ half.T
    targets = draws.random((6, 6)) * (draws.random((6, 6)) < 0.5)
    targets[2] = 0.0
    C_t = sparse.csr_array(targets.astype(np.float32))
    half = np.triu(M) - np.diag(np.diag(M)) / 2  # M is the sum of it and its transpose
    M_csr = sparse.csr_array(half.astype(np.float32))
    penalties = np.linspace(0.5, 1.0, 6, dtype=np.float32)
    solution = solve_neighbourhoods(M_csr, C_t, penalties, 1, 5)
    for row in range(1, 5):
        nodes = np.flatnonzero(targets[row])
        system = M[np.ix_(nodes, nodes)] + np.diag(penalties[nodes])
        expected = np.linalg.solve(system, targets[row, nodes])
        ours, solution = solution[: len(nodes)], solution[len(nodes) :]
        np.testing.assert_allclose(ours, expected, rtol=1e-4)
    assert not len(solution)
    assert not len(solve_neighbourhoods(M_csr, C_t, penalties, 2, 3))

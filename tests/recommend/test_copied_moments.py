"""The moments of the copied input: against every outcome, against samples, against special cases."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Interactions, Jaccard
from nodecopy._core import arrays as csr
from nodecopy.recommend import algebra as dense_algebra
from nodecopy.recommend.algebra import copied_moments
from nodecopy.recommend.copy_ease import donor_matrix
from tests.contracts.recommenders import tastes

SHARES = [(0.3, 0.5), (0.4, 0.4), (0.0, 0.6), (0.7, 0.0), (0.5, 0.5), (0.0, 0.0)]


def random_laws(n_users: int, n_items: int, seed: int) -> tuple[Any, Any]:
    """Return two random donor rules with some zeros."""
    draws = np.random.default_rng(seed)
    rules = []
    for size in (n_users, n_items):
        rule = draws.random((size, size)) * (draws.random((size, size)) < 0.7) + np.eye(size) * 0.1
        rules.append(rule / rule.sum(axis=1, keepdims=True))
    return rules[0], rules[1]


def copy_entries(A: Any, users: Any, items: Any, source: Any) -> Any:
    """Return X, whose entries are the user's own (0), the donor user's (1) or those at the donor item (2)."""
    return np.where(source == 0, A, np.where(source == 1, A[users], A[:, items]))


@pytest.mark.parametrize("weights", [None, np.array([0.5, 3.0])])
@pytest.mark.parametrize(("q1", "q2"), SHARES)
def test_moments_against_all_outcomes(q1: float, q2: float, weights: Any) -> None:
    """Two users, three items: 4 donor users x 27 donor items x 729 sources, each with its probability."""
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    P, Q = random_laws(2, 3, seed=1)
    M, C = np.zeros((3, 3)), np.zeros((3, 3))
    D = np.ones(2) if weights is None else weights
    sources = np.array(list(product(range(3), repeat=6))).reshape(-1, 2, 3)
    probability_of = np.array([1 - q1 - q2, q1, q2])[sources].prod(axis=(1, 2))
    for users in product(range(2), repeat=2):
        for items in product(range(3), repeat=3):
            probability = P[[0, 1], users].prod() * Q[[0, 1, 2], items].prod() * probability_of
            X = copy_entries(A, list(users), list(items), sources)
            M += np.einsum("s,u,sui,suj->ij", probability, D, X, X)
            C += np.einsum("s,u,sui,uj->ij", probability, D, X, A)
    moments = copied_moments(sparse.csr_array(A), sparse.csr_array(P), sparse.csr_array(Q), q1, q2, weights)
    np.testing.assert_allclose(moments[0], M, atol=1e-12)
    np.testing.assert_allclose(moments[1], C, atol=1e-12)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("dense_from", [-1.0, np.inf])
def test_moments_against_samples(is_sparse: bool, dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 samples of 60 x 24; z-scores of 576 entries: their mean square is 1, the largest below 5.

    The seed is fixed; with another one the largest exceeds 5 with probability about 0.0003 per matrix. Small
    blocks, and dense and sparse donor rules and interactions, give the same moments.
    """
    monkeypatch.setattr(csr, "MIN_DENSE_SHARE", dense_from)
    monkeypatch.setattr(dense_algebra, "MIN_DENSE_SHARE", 1.1 if is_sparse else 0.0)
    monkeypatch.setattr(dense_algebra, "MAX_BLOCK_ENTRIES", 500)
    log, q1, q2, n = tastes(), 0.4, 0.35, 4000
    rule = Jaccard(include_self=False, exponent=2.0)
    P, Q = donor_matrix(rule, log), donor_matrix(rule, Interactions(log.matrix.T))
    assert P is not None
    assert Q is not None
    A = log.matrix.toarray().astype(float)
    draws = np.random.default_rng(7)
    totals = {name: np.zeros((2, 24, 24)) for name in "MC"}
    for _ in range(n):
        users, items = (
            (rule.cumsum(axis=1) < draws.random((len(rule), 1))).sum(axis=1).clip(max=len(rule) - 1)
            for rule in (P.toarray(), Q.toarray())
        )
        X = copy_entries(A, users, items, draws.choice(3, size=A.shape, p=[1 - q1 - q2, q1, q2]))
        for name, product_ in (("M", X.T @ X), ("C", X.T @ A)):
            totals[name] += product_, product_**2
    for name, exact in zip("MC", copied_moments(log.matrix, P, Q, q1, q2), strict=True):
        mean, square = totals[name] / n
        error = np.sqrt(np.maximum(square - mean**2, 0) / n)
        certain = error == 0
        np.testing.assert_allclose(exact[certain], mean[certain], atol=1e-9)
        z = (exact - mean)[~certain] / error[~certain]
        assert abs(z).max() < 5
        assert 0.8 < (z**2).mean() < 1.2


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2.0, 60)])
def test_uniform_laws_equal_explicit_ones(weights: Any) -> None:
    log = tastes()
    P, Q = ((np.ones((n, n)) - np.eye(n)) / (n - 1) for n in (log.n_users, log.n_items))
    explicit = copied_moments(log.matrix, sparse.csr_array(P), sparse.csr_array(Q), 0.3, 0.4, weights)
    for implicit, given in zip(
        copied_moments(log.matrix, None, None, 0.3, 0.4, weights), explicit, strict=True
    ):
        np.testing.assert_allclose(implicit, given, atol=1e-9)

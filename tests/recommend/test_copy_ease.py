"""The moments of the copied input: against every outcome, against samples, against special cases."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Interactions, Jaccard, copying
from nodecopy._core import csr
from nodecopy.recommend import EASE, CopyEASE, copy_ease
from nodecopy.recommend.copy_ease import donor_matrix, moments
from tests.contracts.recommenders import tastes

SHARES = [(0.3, 0.5), (0.4, 0.4), (0.0, 0.6), (0.7, 0.0), (0.5, 0.5), (0.0, 0.0)]


def laws(n_users: int, n_items: int, seed: int) -> tuple[Any, Any]:
    """Two random laws with some zeros."""
    draws = np.random.default_rng(seed)
    found = []
    for size in (n_users, n_items):
        law = draws.random((size, size)) * (draws.random((size, size)) < 0.7) + np.eye(size) * 0.1
        found.append(law / law.sum(axis=1, keepdims=True))
    return found[0], found[1]


def copied(A: Any, users: Any, items: Any, source: Any) -> Any:
    """X: by entry the own value (0), the donor user's (1) or that at the donor item (2)."""
    return np.where(source == 0, A, np.where(source == 1, A[users], A[:, items]))


@pytest.mark.parametrize(("q1", "q2"), SHARES)
def test_against_every_outcome(q1: float, q2: float) -> None:
    """Two users, three items: 4 donor users x 27 donor items x 729 sources, each with its probability."""
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    P, Q = laws(2, 3, seed=1)
    M, C = np.zeros((3, 3)), np.zeros((3, 3))
    sources = np.array(list(product(range(3), repeat=6))).reshape(-1, 2, 3)
    chance_of = np.array([1 - q1 - q2, q1, q2])[sources].prod(axis=(1, 2))
    for users in product(range(2), repeat=2):
        for items in product(range(3), repeat=3):
            chance = P[[0, 1], users].prod() * Q[[0, 1, 2], items].prod() * chance_of
            X = copied(A, list(users), list(items), sources)
            M += np.einsum("s,sui,suj->ij", chance, X, X)
            C += np.einsum("s,sui,uj->ij", chance, X, A)
    found = moments(sparse.csr_array(A), sparse.csr_array(P), sparse.csr_array(Q), q1, q2)
    np.testing.assert_allclose(found[0], M, atol=1e-12)
    np.testing.assert_allclose(found[1], C, atol=1e-12)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("dense_from", [-1.0, np.inf])
def test_against_samples(is_sparse: bool, dense_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 samples of 60 x 24; z-scores of 576 entries: their mean square is 1, the largest below 5.

    Fixed seed; for another one the largest exceeds 5 with probability about 0.0003 a matrix. Small blocks
    and both forms of laws and of interactions give the same.
    """
    monkeypatch.setattr(csr, "MIN_DENSE_SHARE", dense_from)
    monkeypatch.setattr(copy_ease, "SPARSE_BELOW", 1.1 if is_sparse else 0.0)
    monkeypatch.setattr(copy_ease, "ENTRIES_AT_ONCE", 500)
    log, q1, q2, n = tastes(), 0.4, 0.35, 4000
    law = Jaccard(include_self=False, exponent=2.0)
    P, Q = donor_matrix(law, log), donor_matrix(law, Interactions(log.matrix.T))
    assert P is not None
    assert Q is not None
    A = log.matrix.toarray().astype(float)
    draws = np.random.default_rng(7)
    totals = {name: np.zeros((2, 24, 24)) for name in "MC"}
    for _ in range(n):
        users, items = (
            (law.cumsum(axis=1) < draws.random((len(law), 1))).sum(axis=1).clip(max=len(law) - 1)
            for law in (P.toarray(), Q.toarray())
        )
        X = copied(A, users, items, draws.choice(3, size=A.shape, p=[1 - q1 - q2, q1, q2]))
        for name, one in (("M", X.T @ X), ("C", X.T @ A)):
            totals[name] += one, one**2
    for name, exact in zip("MC", moments(log.matrix, P, Q, q1, q2), strict=True):
        mean, square = totals[name] / n
        error = np.sqrt(np.maximum(square - mean**2, 0) / n)
        certain = error == 0
        np.testing.assert_allclose(exact[certain], mean[certain], atol=1e-9)
        z = (exact - mean)[~certain] / error[~certain]
        assert abs(z).max() < 5
        assert 0.8 < (z**2).mean() < 1.2


def test_uniform_laws_are_the_laws_of_everybody_else() -> None:
    log = tastes()
    P, Q = ((np.ones((n, n)) - np.eye(n)) / (n - 1) for n in (log.n_users, log.n_items))
    written = moments(log.matrix, sparse.csr_array(P), sparse.csr_array(Q), 0.3, 0.4)
    for short, long in zip(moments(log.matrix, None, None, 0.3, 0.4), written, strict=True):
        np.testing.assert_allclose(short, long, atol=1e-9)


def test_nothing_copied_is_ease() -> None:
    log = tastes()
    plain = EASE(regularisation=7.0).fit(log).weights_
    found = CopyEASE(0.0, 0.0, regularisation=7.0, item_bonus=0.0).fit(log).weights_
    np.testing.assert_allclose(found, plain, atol=1e-5)


def test_the_bonus_is_the_expected_copy_of_items() -> None:
    """Scores grow by bonus times A Q', which the copying model of the transpose expects."""
    log = tastes()
    with_bonus, without = (CopyEASE(item_bonus=bonus).fit(log) for bonus in (0.5, 0.0))
    items = copying.NodeCopying(copy_ease.default_donor_law()).fit(Interactions(log.matrix.T))
    expected = items.expected_adjacency().toarray().T
    users = np.flatnonzero(log.rows.degrees)
    difference = (with_bonus.score() - without.score())[users]
    np.testing.assert_allclose(difference, 0.5 * expected[users], atol=1e-5)


def test_the_diagonal_is_empty_and_single_precision_is_near() -> None:
    log = tastes()
    double, single = (CopyEASE(item_bonus=0.0, precision=name).fit(log) for name in ("double", "single"))
    assert not np.diag(double.weights_).any()
    np.testing.assert_allclose(single.weights_, double.weights_, atol=1e-4)


def test_another_law() -> None:
    log = tastes()
    everybody = copying.Weighted(np.ones((log.n_users, log.n_users)))
    fitted = CopyEASE(user_law=everybody, item_share=0.0, regularisation=5.0).fit(log)
    assert np.isfinite(fitted.weights_).all()

"""The parts of donors in a score, against the equations with dense matrices and a loop over donors."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nodecopy
from nodecopy import Interactions
from nodecopy.copying import Jaccard
from nodecopy.errors import DataWarning, InputError
from nodecopy.recommend import EASE, CopyEASE, ItemKNN
from nodecopy.recommend import ease as donor_system
from nodecopy.recommend.algebra import copied_moments
from nodecopy.recommend.copy_ease import donor_matrix
from nodecopy.recommend.ease import DonorSystem

USER, ITEM, REGULARISATION = 3, 2, 2.0


def random_log(seed: int = 0) -> Interactions:
    matrix = np.random.default_rng(seed).random((15, 9)) < 0.4
    matrix[USER, :2] = True
    matrix[USER, ITEM] = False
    return Interactions(matrix)


def loop_over_donors(
    A: Any, P: Any, Q: Any, w: Any, q1: float, q2: float, bonus: float
) -> tuple[list[float], list[float]]:
    """Return the parts of users and items by the definition of the copied input."""
    n_users, n_items = A.shape
    matrix = sparse.csr_array(A)
    rules = (sparse.csr_array(P), sparse.csr_array(Q))
    M, C = copied_moments(matrix, *rules, q1, q2, w)
    others = [item for item in range(n_items) if item != ITEM]
    inverse = np.linalg.inv(M[np.ix_(others, others)] + REGULARISATION * np.eye(len(others)))
    t = np.zeros(n_items)
    t[others] = inverse @ A[USER, others]
    users, items = np.zeros(n_users), bonus * Q[ITEM] * A[USER]
    for user in np.flatnonzero(A[:, ITEM]):
        users[user] += w[user] * (1 - q1 - q2) * (A[user] @ t)
        for donor in range(n_users):
            users[donor] += w[user] * q1 * P[user, donor] * (A[donor] @ t)
        for item in others:
            for donor in range(n_items):
                items[donor] += w[user] * q2 * Q[item, donor] * A[user, donor] * t[item]
    weights = inverse @ C[others, ITEM]
    assert users.sum() + items.sum() == pytest.approx(
        A[USER, others] @ weights + bonus * Q[ITEM] @ A[USER], rel=1e-6
    )
    return users.tolist(), items.tolist()


@pytest.mark.parametrize("max_inverted_items", [0, 100])
@pytest.mark.parametrize("is_uniform", [False, True])
@pytest.mark.parametrize(("q1", "q2", "bonus"), [(0.0, 0.0, 0.0), (0.3, 0.5, 0.2), (0.6, 0.0, 0.1)])
def test_parts_against_a_loop(
    q1: float,
    q2: float,
    bonus: float,
    is_uniform: bool,
    max_inverted_items: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(donor_system, "MAX_INVERTED_ITEMS", max_inverted_items)
    log = random_log()
    A = log.matrix.toarray()
    rules: list[Any] = []
    for matrix in (log.matrix, log.matrix.T):
        n = matrix.shape[0]
        donors: Any = donor_matrix(Jaccard(include_self=False, max_donors=4), Interactions(matrix))
        rules.append((1 - np.eye(n)) / (n - 1) if is_uniform else donors.toarray())
    w = np.random.default_rng(1).random(log.n_users) + 0.5
    P, Q = (None if is_uniform else sparse.csr_array(rule) for rule in rules)
    system = DonorSystem(log.matrix, REGULARISATION, w, P, Q, q1, q2, bonus)
    users, items = system.parts(log.matrix[[USER]].indices, ITEM)
    expected = loop_over_donors(A, rules[0], rules[1], w, q1, q2, bonus)
    np.testing.assert_allclose(users, expected[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(items, expected[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        EASE(REGULARISATION, n_neighbours=3),
        CopyEASE(regularisation=REGULARISATION, n_neighbours=3),
        CopyEASE(
            regularisation=REGULARISATION,
            item_bonus=0.1,
            n_neighbours=3,
            regularisation_exponent=0.5,
            popularity_penalty=0.3,
        ),
    ],
)
def test_the_sparse_form_uses_the_neighbours_of_the_item(model: EASE | CopyEASE) -> None:
    """With three neighbours nothing is left out of the moments of nine items, so that nothing remains."""
    log = random_log()
    explanation = model.fit(log).explain(USER, ITEM, None)
    assert explanation.score == pytest.approx(model.score([USER])[0, ITEM], abs=1e-6)
    assert explanation.remainder == pytest.approx(0, abs=1e-6)


def test_the_system_follows_parameters_and_interactions() -> None:
    model = CopyEASE(regularisation=REGULARISATION).fit(random_log())
    first = model.explain(USER, ITEM, None)
    model.set_params(user_share=0.1).fit(random_log())
    assert model.explain(USER, ITEM, None).remainder == pytest.approx(0, abs=1e-6)
    model.set_params(regularisation_exponent=0.5, popularity_penalty=0.3).fit(random_log())
    assert model.explain(USER, ITEM, None).remainder == pytest.approx(0, abs=1e-6)
    model.partial_fit(random_log(1))
    explanation = model.explain(USER, ITEM, None)
    assert explanation.remainder == pytest.approx(0, abs=1e-6)
    assert explanation.score != pytest.approx(first.score)


def test_the_uniform_law_needs_no_matrix_between_users() -> None:
    """A dense matrix between 3,000 users would take 72 MB."""
    log = Interactions(np.random.default_rng(0).random((3000, 20)) < 0.2)
    tracemalloc.start()
    try:
        users, items = DonorSystem(log.matrix, REGULARISATION, user_share=0.3).parts(np.array([0, 1]), ITEM)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
    model = CopyEASE(0.3, 0.0, user_donors="uniform", item_bonus=0.0, regularisation=REGULARISATION)
    score = model.fit(log).weights_[:2, ITEM].sum()
    assert users.sum() + items.sum() == pytest.approx(score, abs=1e-6)


def test_equations_that_are_not_solved_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(donor_system, "MAX_INVERTED_ITEMS", 0)
    monkeypatch.setattr(donor_system, "MAX_STEPS", 1)
    model = EASE(REGULARISATION).fit(random_log())
    with pytest.warns(DataWarning, match="conjugate gradients did not converge in 1 steps"):
        explanation = model.explain(USER, ITEM)
    assert abs(explanation.remainder) > 1e-3


def test_parameters_are_checked_before_they_explain() -> None:
    model = CopyEASE().fit(random_log())
    model.user_share = None  # type: ignore[assignment]
    with pytest.raises(InputError, match="user_share of CopyEASE must be"):
        model.explain(USER, ITEM)


@pytest.mark.parametrize(
    ("model", "name"),
    [(CopyEASE(), "item_bonus_"), (CopyEASE(), "user_share"), (ItemKNN(), "shrinkage")],
)
def test_numbers_of_saved_models_are_checked(model: Any, name: str, tmp_path: Path) -> None:
    setattr(model.fit(random_log()), name, "many")
    model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=f"{name} of {type(model).__name__} must be"):
        nodecopy.load(tmp_path / "model.npz")


def test_parameters_that_were_changed_explain_nothing() -> None:
    model = CopyEASE(user_share=0.2).fit(random_log())
    model.user_share = 0.3
    with pytest.raises(InputError, match="parameters of CopyEASE must be those of fit"):
        model.explain(USER, ITEM)
    model.user_share = 0.2
    assert model.explain(USER, ITEM, None).remainder == pytest.approx(0, abs=1e-6)

"""The sparse form: exact where nothing is left out, and the regression on its neighbours where it is."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import nodecopy
from nodecopy import Interactions, datasets
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE, copy_ease, ease
from nodecopy.recommend import algebra as copied_moments
from nodecopy.recommend import algebra as dense_algebra
from nodecopy.recommend.sparse_ridge import solve_sparse, sparse_moments
from tests.contracts.recommenders import tastes

MODELS = [
    EASE(3.0, degree_exponent=0.5),
    CopyEASE(regularisation=3.0),
    CopyEASE(0.3, 0.5, regularisation=3.0, degree_exponent=0.5, item_bonus=0.0),
    CopyEASE(regularisation=3.0, item_bonus=0.1, regularisation_exponent=0.5, popularity_penalty=0.2),
]


@pytest.mark.parametrize("model", MODELS)
def test_all_neighbours_give_the_exact_solution(model: EASE | CopyEASE) -> None:
    log = Interactions(np.random.default_rng(0).random((60, 12)) < 0.5)  # all pairs of items co-occur
    exact = model.set_params(n_neighbours=None).fit(log)
    weights, scores = exact.weights_, exact.score()
    model.set_params(n_neighbours=log.n_items).fit(log)
    np.testing.assert_allclose(model.weights_.toarray(), weights, atol=1e-4)
    np.testing.assert_allclose(model.score(), scores, atol=1e-3)
    (path,) = model.fit_path(log, [model.regularisation])
    np.testing.assert_allclose(path.weights_.toarray(), weights, atol=1e-4)


def test_weights_are_regressions_on_the_neighbours() -> None:
    log, rule = tastes(), copy_ease.default_donors()
    P, Q = (copy_ease.donor_matrix(rule, side) for side in (log, Interactions(log.matrix.T)))
    M, C = copied_moments.copied_moments(log.matrix, P, Q, 0.4, 0.4)
    sparse_M, sparse_C_t = sparse_moments(log.matrix, P, Q, 0.4, 0.4, None, log.n_items)
    B = solve_sparse(sparse_M, sparse_C_t, 2.0, 5).toarray()
    gains = C**2 / (np.diag(M) + 2.0)[:, None]
    np.fill_diagonal(gains, 0.0)
    for item in range(log.n_items):
        neighbours = np.flatnonzero(B[:, item])
        assert set(neighbours) == set(np.argsort(-gains[:, item])[:5] if gains[:, item].any() else [])
        system = M[np.ix_(neighbours, neighbours)] + 2.0 * np.eye(len(neighbours))
        np.testing.assert_allclose(
            B[neighbours, item], np.linalg.solve(system, C[neighbours, item]), rtol=1e-3
        )


def test_accuracy_with_few_neighbours() -> None:
    """On the library, 15 of 80 items predict nearly as well as all of them."""
    split = datasets.interaction_split(datasets.load("library"), rng=0)
    recalls = [
        CopyEASE(n_neighbours=n).fit(split.train).evaluate(split.test, metrics=["recall@20"])["recall@20"]
        for n in (None, 15)
    ]
    assert recalls[1] > recalls[0] - 0.01


def test_many_items_take_the_sparse_form(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(dense_algebra.NumpyAlgebra, "max_items", lambda self: 23)
    with caplog.at_level(logging.INFO, "nodecopy"):
        model = CopyEASE().fit(tastes())
    assert "CopyEASE predicts each item from 100 others, because the exact weights of 24 items" in caplog.text
    assert caplog.text.count("predicts") == 1
    assert "Set n_neighbours to change this." in caplog.text
    assert model.n_neighbours_ == 100
    exact = CopyEASE(n_neighbours=None).fit(tastes())
    assert isinstance(exact.weights_, np.ndarray)
    assert exact.n_neighbours_ is None
    model.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.recommend(k=3)[0], model.recommend(k=3)[0])
    user, item = tastes().user_ids[0], tastes().item_ids[5]
    assert model.explain(user, item, 24).items.values.sum() == pytest.approx(
        model.score([user])[0, 5], abs=1e-5
    )


@pytest.mark.parametrize(("n_items", "n_neighbours"), [(10**5, 100), (10**6, 40), (10**9, 10)])
def test_neighbours_by_memory(n_items: int, n_neighbours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ease, "usable_memory", lambda: 16e9)
    assert CopyEASE().sparse_neighbours(n_items) == EASE().sparse_neighbours(n_items) == n_neighbours
    assert CopyEASE(n_neighbours=70).sparse_neighbours(n_items) == 70


def test_tuning() -> None:
    model = CopyEASE(n_neighbours=10).tune(tastes(), k=5, budget=4, rng=0)
    assert len(model.tuning_) == 4


def test_wrong_parameters() -> None:
    with pytest.raises(InputError, match="the sparse form of CopyEASE needs donor rules with few donors"):
        CopyEASE(user_donors="uniform", n_neighbours=5).fit(tastes())
    with pytest.raises(InputError, match="n_neighbours of EASE must be an integer of at least 1; got 0"):
        EASE(n_neighbours=0).fit(tastes())

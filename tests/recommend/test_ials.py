from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from nodecopy import Interactions, load
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.recommend import IALS, Recommender
from nodecopy.recommend import als as ials
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes

needs_implicit = pytest.mark.skipif(
    not importlib.util.find_spec("implicit"), reason="implicit is not installed"
)


@needs_implicit
class TestIALS(RecommenderContract):
    draws = True

    @pytest.fixture(scope="class")
    @classmethod
    def recommender(cls) -> Recommender:
        return IALS(n_factors=4, regularisation=1.0, confidence=5.0)

    def test_own_group_first(self, fitted: Recommender) -> None:
        assert share_of_own_group(fitted) > 0.8


@needs_implicit
def test_factors_of_new_users_minimise_the_weighted_loss() -> None:
    """A ridge regression with weight 5 on the user's items and 1 on all others, solved by lstsq."""
    log = tastes()
    fitted = IALS(n_factors=4, regularisation=2.0, confidence=5.0).fit(log, rng=0)
    history = [1, 7, 12]
    Y = fitted.item_embeddings_.astype(float)
    target, weights = np.zeros(log.n_items), np.ones(log.n_items)
    target[history], weights[history] = 1.0, 5.0
    left = np.vstack([np.sqrt(weights)[:, None] * Y, np.sqrt(2.0) * np.eye(4)])
    factors = np.linalg.lstsq(left, np.concatenate([np.sqrt(weights) * target, np.zeros(4)]), rcond=None)[0]
    np.testing.assert_allclose(
        fitted.score_new([log.item_ids[history]])[0], Y @ factors, rtol=1e-4, atol=1e-5
    )


def test_changed_parameters_take_effect_at_the_next_fit(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    log = tastes()
    model = IALS(4, 2.0, 5.0, device="cpu:0").fit(log, rng=0)
    history = [log.item_ids[[1, 7, 12]]]
    before = model.score_new(history)
    model.set_params(regularisation=1e6, confidence=100.0)
    assert np.array_equal(model.score_new(history), before)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(load(tmp_path / "model.npz").score_new(history), before)


def test_factors_on_a_device_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The factors of items solve the regressions on those of users, whatever the batches."""
    pytest.importorskip("torch")
    monkeypatch.setattr(ials, "MAX_BATCH_ENTRIES", 200)
    A = np.hstack([tastes().matrix.toarray(), np.zeros((60, 1))])
    model = IALS(4, 2.0, 5.0, device="cpu:0").fit(Interactions(A), rng=0)
    X = model.user_embeddings_.astype(float)
    for item, column in enumerate(A.T):
        weights = np.where(column > 0, 5.0, 1.0)
        expected = np.linalg.solve((X.T * weights) @ X + 2.0 * np.eye(4), X.T @ (weights * column))
        np.testing.assert_allclose(model.item_embeddings_[item], expected, atol=1e-5)
    with pytest.raises(InputError, match="regularisation must be larger: the matrix is singular"):
        IALS(24, 0.0, 5.0, n_iterations=3, device="cpu:0").fit(Interactions(np.eye(2)), rng=0)
    assert share_of_own_group(IALS(4, 1.0, 5.0, device="cpu:0").fit(tastes(), rng=0)) > 0.8


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("implicit", "implicit.cpu.als"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"IALS needs implicit.*\[implicit\]"):
        IALS().fit(tastes(), rng=0)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (IALS(n_factors=0), "n_factors of IALS must be an integer of at least 1; got 0"),
        (IALS(n_iterations=0), "n_iterations of IALS must be an integer of at least 1; got 0"),
        (IALS(confidence=0.5), "confidence of IALS must be a number of at least 1"),
        (IALS(regularisation=-1.0), "regularisation of IALS must be a number of at least 0"),
    ],
)
def test_wrong_parameters(recommender: IALS, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes())

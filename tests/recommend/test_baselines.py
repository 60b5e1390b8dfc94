"""Popularity, ItemKNN, hybrids and IALS, against their definitions."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import Interactions, Jaccard, load
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, IALS, CopyEASE, ItemKNN, WeightedHybrid, baselines
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes
from tests.strategies import matrices


@pytest.mark.parametrize("shrinkage", [0.0, 3.0])
def test_scores_of_nearest_items(shrinkage: float) -> None:
    """The score of an item adds up its similarities to those of its five nearest that the user has."""
    log = tastes()
    A = log.matrix.toarray().astype(float)
    counts = A.sum(axis=0)
    cosine = (A.T @ A) / np.maximum(np.sqrt(np.outer(counts, counts)) + shrinkage, 1e-12)
    np.fill_diagonal(cosine, 0.0)
    nearest = np.zeros_like(cosine)
    for item, row in enumerate(cosine):
        best = np.argsort(-row, kind="stable")[:5]
        nearest[item, best] = row[best]
    users = np.flatnonzero(log.rows.degrees)
    fitted = ItemKNN(n_neighbours=5, shrinkage=shrinkage).fit(log)
    np.testing.assert_allclose(fitted.score()[users], (A @ nearest.T)[users], rtol=1e-5, atol=1e-6)


def test_explanations_of_nearest_items_are_those_of_the_fit() -> None:
    """A parameter that is set after the fit does not change scores, and not their donors either."""
    log = tastes()
    user, item = log.user_ids[np.flatnonzero(log.rows.degrees)[0]], log.item_ids[3]
    model = ItemKNN(n_neighbours=5, shrinkage=3.0).fit(log)
    explanation = model.explain(user, item, None)
    assert explanation.score > 0
    assert model.set_params(shrinkage=5.0).explain(user, item, None).to_dict() == explanation.to_dict()
    assert explanation.remainder == pytest.approx(0, abs=1e-9)


@given(
    matrices((7, 5), weighted=False), st.integers(1, 7), st.sampled_from([0.0, 2.0]), st.sampled_from([1, 99])
)
def test_nearest_rows(pattern: sparse.csr_array, n_neighbours: int, shrinkage: float, block: int) -> None:
    sets = [set(np.flatnonzero(row).tolist()) for row in pattern.toarray()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "MAX_BLOCK_PAIRS", block)
        result = baselines.nearest_rows(pattern, n_neighbours, shrinkage).toarray()
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
        patch.setattr(baselines, "MAX_BLOCK_PAIRS", block)
        result = baselines.above_threshold(pattern, degree).toarray()
    ranked = np.sort(all_pairs[all_pairs > 0])[::-1]
    n_entries = min(int(degree * 8), len(ranked))
    threshold = ranked[n_entries - 1] if n_entries else np.inf
    assert np.array_equal(result, np.where(all_pairs >= threshold, all_pairs, 0).astype(np.float32))
    assert np.array_equal(result, result.T)


def test_scores_of_hybrids() -> None:
    """Standardised scores are added up; a fitted part is used as it is; a weight of 1 ranks as the first."""
    log = tastes()
    parts = EASE(regularisation=5.0).fit(log), ItemKNN(n_neighbours=5).fit(log)
    users = np.flatnonzero(log.rows.degrees)
    z = [
        (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
        for scores in (part.score() for part in parts)
    ]
    fused = WeightedHybrid(*parts, weight=0.3).fit(log)
    assert (fused.first_, fused.second_) == parts
    np.testing.assert_allclose(fused.score()[users], (0.3 * z[0] + 0.7 * z[1])[users], atol=1e-4)
    first_only = WeightedHybrid(EASE(regularisation=5.0), ItemKNN(), weight=1.0).fit(log)
    assert np.array_equal(first_only.recommend(k=3)[0][users], parts[0].recommend(k=3)[0][users])


def test_fitted_parts_are_saved_once(tmp_path: Path) -> None:
    """Parameters and fitted parts are the same recommenders, so a file holds the weights of EASE once."""
    log = tastes()
    fused = WeightedHybrid(EASE().fit(log), ItemKNN().fit(log)).fit(log)
    fused.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        shapes = [archive[name].shape for name in archive.files]
    assert shapes.count((log.n_items, log.n_items)) == 1
    loaded = WeightedHybrid.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.score(), fused.score())
    assert np.array_equal(loaded.first_.score(), fused.first_.score())


def test_recommenders_by_name() -> None:
    first, second = (
        WeightedHybrid(*pair).fit(tastes(), rng=0).score()
        for pair in (("ease", "item-knn"), (EASE(), ItemKNN()))
    )
    assert np.array_equal(first, second)


needs_implicit = pytest.mark.skipif(
    not importlib.util.find_spec("implicit"), reason="implicit is not installed"
)


@needs_implicit
class TestIALS(RecommenderContract):
    draws = True
    recommenders = (IALS(n_factors=4, regularisation=1.0, confidence=5.0),)
    min_own_group = 0.8


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
    scores = fitted.score_new([log.item_ids[history]])[0]
    np.testing.assert_allclose(scores, Y @ factors, rtol=1e-4, atol=1e-5)


def test_changed_parameters_take_effect_at_the_next_fit(tmp_path: Path) -> None:
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
    monkeypatch.setattr(baselines, "MAX_BATCH_ENTRIES", 200)
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


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (WeightedHybrid(EASE(), "knn"), "second of WeightedHybrid must be one of .* Did you mean item-knn"),
        (WeightedHybrid(EASE(), 3), "second of WeightedHybrid must be a recommender, or its name; got 3"),  # type: ignore[arg-type]
        (WeightedHybrid(EASE(-1.0), ItemKNN()), "regularisation of EASE must be"),
        (CopyEASE(user_share=0.7, item_share=0.4), r"user_share \+ item_share .* at most 1"),
        (CopyEASE(user_donors="same"), "user_donors of CopyEASE must be a donor rule"),
        (CopyEASE(item_donors=Jaccard), "item_donors of CopyEASE must be a donor rule"),
        (CopyEASE(item_bonus="large"), "item_bonus of CopyEASE must be a number of at least 0"),
    ],
)
def test_wrong_parameters(recommender: Any, message: str) -> None:
    with pytest.raises((InputError, ImportError), match=message):
        recommender.fit(tastes())


def test_the_uniform_control_is_for_small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodecopy.recommend.copy_ease.MAX_UNIFORM", 30)
    with pytest.raises(InputError, match="donors 'uniform' is possible for at most 30 users .* got 60. Use"):
        CopyEASE(user_donors="uniform").fit(tastes())

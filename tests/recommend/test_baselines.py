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
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Jaccard, load
from nodecopy.errors import InputError
from nodecopy.recommend import BPRMF, EASE, IALS, ColdItems, CopyEASE, ItemKNN, WeightedHybrid, baselines
from nodecopy.recommend.base import find_ids, history_rows
from tests.contracts.recommenders import RecommenderContract, tastes
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


def theme_features(noise: float = 0.1) -> NDArray[Any]:
    return np.eye(3)[np.arange(24) % 3] + noise * np.random.default_rng(0).standard_normal((24, 3))


def test_cold_items_are_a_ridge_regression_of_the_weights(tmp_path: Path) -> None:
    """Against the equations, with the penalty of the least leave-one-out error, one regression at a time."""
    log, X = tastes(), theme_features()
    is_cold = np.isin(np.arange(24), [4, 11, 23])
    train = log.select(~is_cold[log.rows.indices])
    model = ColdItems(EASE(regularisation=5.0), log.item_ids, X).fit(train)
    B = EASE(regularisation=5.0).fit(train).weights_[np.ix_(~is_cold, ~is_cold)]
    scaled = (X - X[~is_cold].mean(axis=0)) / X[~is_cold].std(axis=0)

    def regress(known: Any, new: Any, penalty: float) -> Any:
        centred = known - known.mean(axis=0)
        inverse = np.linalg.inv(centred.T @ centred + penalty * np.eye(3))
        return 1 / len(known) + (new - known.mean(axis=0)) @ inverse @ centred.T

    K, A = scaled[~is_cold], train.matrix.toarray()[:, ~is_cold]
    targets = (A @ B).T[:, A.sum(axis=1) > 0]

    def error(penalty: float) -> float:
        rest = [np.arange(21) != item for item in range(21)]
        residuals = [targets[i] - regress(K[r], K[i], penalty) @ targets[r] for i, r in enumerate(rest)]
        return float(np.square(residuals).sum())

    largest = np.linalg.svd(K - K.mean(axis=0))[1][0] ** 2
    a = regress(K, scaled[is_cold], min(largest * baselines.PENALTIES, key=error))
    users = np.flatnonzero(train.rows.degrees)
    cold: Any = find_ids(log.item_ids[is_cold], model.interactions_.item_ids, "items")
    np.testing.assert_allclose(model.score()[users][:, cold], (A @ B @ a.T)[users], atol=1e-4)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").score(), model.score())


@pytest.mark.parametrize("base", ["item-knn", "popularity", CopyEASE(n_neighbours=4), BPRMF(n_epochs=2)])
def test_new_items_of_a_table(base: Any, tmp_path: Path) -> None:
    """Any base scores items that only the table of features holds; their ids are strings as in training."""
    log = tastes()
    rows = [f"{item},{'abc'[i % 3]},{i % 5}" for i, item in enumerate(log.item_ids)]
    (tmp_path / "items.csv").write_text("\n".join(["item,theme,size", *rows, "new,a,2"]))
    model = ColdItems(base, tmp_path / "items.csv").fit(log, rng=0)
    assert model.interactions_.item_ids[-1] == "new"
    assert model.recommend(k=1, items=["new"])[0].tolist() == [["new"]] * log.n_users
    assert log.item_ids.tolist().index(model.similar_items(["new"], 1)[0][0, 0]) % 3 == 0
    scores = model.score_positions(np.arange(9))
    np.testing.assert_allclose(scores[:, model.warm_], model.base_.score_positions(np.arange(9)), rtol=1e-6)


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
    scores = fitted.score_histories(history_rows([log.item_ids[history]], log.item_ids))[0]
    np.testing.assert_allclose(scores, Y @ factors, rtol=1e-4, atol=1e-5)


@needs_implicit
def test_changed_parameters_take_effect_at_the_next_fit(tmp_path: Path) -> None:
    log = tastes()
    model = IALS(4, 2.0, 5.0).fit(log, rng=0)
    history = history_rows([log.item_ids[[1, 7, 12]]], log.item_ids)
    before = model.score_histories(history)
    model.set_params(regularisation=1e6, confidence=100.0)
    assert np.array_equal(model.score_histories(history), before)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(load(tmp_path / "model.npz").score_histories(history), before)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (WeightedHybrid(EASE(), "knn"), "second of WeightedHybrid must be one of .* Did you mean item-knn"),
        (ColdItems("ease", ["x", "y"], np.eye(3)), "features must have a row per item, 2; got 3"),
        (ColdItems("ease", ["x", "y"], np.eye(2)), "items must hold 2 items .* got 0 among 2"),
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
    monkeypatch.setattr("nodecopy.recommend.ease.MAX_UNIFORM", 30)
    with pytest.raises(InputError, match=r"donors 'uniform' is possible for at most 30 users .* got 60"):
        CopyEASE(user_donors="uniform").fit(tastes())

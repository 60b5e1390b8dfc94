"""The contract on recommenders in closed form and on classes that a user writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Interactions, Jaccard
from nodecopy.errors import InputError
from nodecopy.recommend import (
    EASE,
    CopyEASE,
    EmbeddingRecommender,
    Fusion,
    ItemKNN,
    Popularity,
    Recommender,
)
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes

CLOSED_FORMS: dict[str, Recommender] = {
    "popularity": Popularity(),
    "fusion": Fusion(CopyEASE(regularisation=5.0), ItemKNN(n_neighbours=5), weight=0.7),
    "knn": ItemKNN(n_neighbours=5),
    "ease": EASE(regularisation=5.0),
    "ease-single": EASE(regularisation=5.0, precision="single"),
    "copy-ease": CopyEASE(regularisation=5.0),
    "copy-ease-uniform": CopyEASE(regularisation=5.0, user_law="uniform", item_law="uniform"),
    "copy-ease-users": CopyEASE(regularisation=5.0, item_share=0.0, item_bonus=0.0, user_law=Jaccard()),
}


class TestClosedForms(RecommenderContract):
    @pytest.fixture(scope="class", params=CLOSED_FORMS)
    @classmethod
    def recommender(cls, request: pytest.FixtureRequest) -> Recommender:
        return CLOSED_FORMS[request.param]

    def test_own_group_first(self, fitted: Recommender) -> None:
        """The best item is of the user's group for most users; popularity has a third by chance."""
        share = share_of_own_group(fitted)
        assert share < 0.6 if isinstance(fitted, Popularity) else share > 0.8


class CoOccurrence(Recommender):
    """The recommender of the documentation: linear, without parameters."""

    is_linear = True

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self.counts_ = sparse.csr_array(interactions.matrix.T @ interactions.matrix)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray((rows @ self.counts_).toarray())


class RandomProjection(EmbeddingRecommender):
    """Embeddings of a randomised range finder, with a parameter."""

    def __init__(self, n_factors: int = 6) -> None:
        self.n_factors = n_factors

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        draws = np.random.default_rng(seed).standard_normal((interactions.n_items, self.n_factors))
        basis, _ = np.linalg.qr(interactions.matrix.T @ (interactions.matrix @ draws))
        self.item_embeddings_ = basis
        self.user_embeddings_ = np.asarray(interactions.matrix @ basis)


class TestOwnRecommender(RecommenderContract):
    classes = (CoOccurrence,)

    @pytest.fixture(scope="class")
    @classmethod
    def recommender(cls) -> Recommender:
        return CoOccurrence()


class TestOwnEmbeddings(RecommenderContract):
    scores_new_users = False
    draws = True
    classes = (RandomProjection,)

    @pytest.fixture(scope="class")
    @classmethod
    def recommender(cls) -> Recommender:
        return RandomProjection()


def test_similar_items_by_the_model() -> None:
    """EASE has its weights, ItemKNN and the default the cosine of users, embeddings their cosine."""
    log = tastes()
    item, column = log.item_ids[4], 4
    others = np.delete(np.arange(log.n_items), column)

    def similarity(model: Recommender) -> NDArray[Any]:
        items, values = model.fit(log, rng=0).similar_items([item], log.n_items - 1)
        by_item = dict(zip(items[0].tolist(), values[0].tolist(), strict=True))
        return np.array([by_item[other] for other in log.item_ids[others].tolist()])

    A = log.matrix.toarray().astype(float)
    norms = np.sqrt(A.sum(axis=0))
    cosine = (A.T @ A)[column] / np.maximum(norms[column] * norms, 1e-12)
    for model in (Popularity(), ItemKNN(n_neighbours=100), CoOccurrence()):
        np.testing.assert_allclose(similarity(model), cosine[others], rtol=1e-5, atol=1e-6)
    ease = EASE(regularisation=5.0)
    np.testing.assert_allclose(similarity(ease), ease.weights_[column, others], rtol=1e-5, atol=1e-6)
    projection = RandomProjection()
    cosines = similarity(projection)
    unit = projection.item_embeddings_
    norms = np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(cosines, ((unit / norms) @ (unit / norms)[column])[others], atol=1e-5)


def test_seen_is_forgotten_with_the_next_fit() -> None:
    met = tastes()
    half = met.matrix.copy()
    half.data = half.data * (np.arange(met.n_interactions) % 2)
    liked = Interactions(half, met.user_ids, met.item_ids)
    fitted = EASE().fit(liked, seen=met)
    assert (fitted.interactions_, fitted.seen_) == (liked, met)
    assert EASE().fit(liked, seen=Interactions(3 * met.matrix, met.user_ids, met.item_ids)).seen_ == met
    assert fitted.fit(liked).seen_ == liked
    assert next(EASE().fit(liked, seen=met).fit_path(liked, [3.0])).seen_ == liked


def test_recommendations_leave_out_what_is_seen() -> None:
    met = tastes()
    half = met.matrix.copy()
    half.data = half.data * (np.arange(met.n_interactions) % 2)
    fitted = EASE().fit(Interactions(half, met.user_ids, met.item_ids), seen=met)
    frame = fitted.to_pandas(k=met.n_items)
    recommended = set(zip(frame["user"], frame["item"], strict=True))
    users, items, _ = met.table()
    assert not recommended & set(zip(users.tolist(), items.tolist(), strict=True))
    assert len(recommended) == met.n_users * met.n_items - met.n_interactions


def test_a_recommender_without_score_rows_scores_no_new_users() -> None:
    with pytest.raises(InputError, match="RandomProjection scores only the users that it was fitted to"):
        RandomProjection().fit(tastes(), rng=0).score_new([["item 1"]])


class FixedScores(Recommender):
    """Return given scores, whatever the rows."""

    def __init__(self, scores: Any = None) -> None:
        self.scores = scores

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self.n_items_ = interactions.n_items

    def score_rows(self, rows: sparse.csr_array) -> Any:
        return self.scores


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (None, r"must return numbers of shape \(2, 24\), .* got NoneType"),
        (np.ones(24), r"must return numbers of shape \(2, 24\), .* got float64 of shape \(24,\)"),
        (np.ones((1, 24)), r"got float64 of shape \(1, 24\)"),
        (np.ones((2, 5)), r"got float64 of shape \(2, 5\)"),
        (np.full((2, 24), "a"), r"got <U1 of shape \(2, 24\)"),
        (np.full((2, 24), np.inf), "must hold finite numbers; got inf"),
    ],
)
def test_results_of_score_rows_are_checked(scores: Any, message: str) -> None:
    log = tastes()
    fitted = FixedScores(scores).fit(log)
    histories = [log.item_ids[:2], log.item_ids[3:5]]
    for call in (
        lambda: fitted.recommend(log.user_ids[:2], 1),
        lambda: fitted.score_new(histories),
        lambda: fitted.recommend_new(histories, 1),
    ):
        with pytest.raises(InputError, match="score_rows of FixedScores .*" + message):
            call()


def test_sparse_scores_count_as_dense_ones() -> None:
    log = tastes()
    scores = np.arange(48.0).reshape(2, 24)
    fitted = FixedScores(sparse.csr_array(scores)).fit(log)
    assert np.array_equal(fitted.score(log.user_ids[:2]), scores)

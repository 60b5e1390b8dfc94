"""The contract on recommenders in closed form and on classes that a user writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Interactions, Jaccard
from nodecopy.datasets import interaction_split
from nodecopy.errors import InputError
from nodecopy.recommend import (
    EASE,
    CopyEASE,
    EmbeddingRecommender,
    ItemKNN,
    Popularity,
    Recommender,
    WeightedHybrid,
)
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes

CLOSED_FORMS: dict[str, Recommender] = {
    "popularity": Popularity(),
    "fusion": WeightedHybrid(CopyEASE(regularisation=5.0), ItemKNN(n_neighbours=5), weight=0.7),
    "knn": ItemKNN(n_neighbours=5),
    "ease": EASE(regularisation=5.0),
    "ease-single": EASE(regularisation=5.0, precision="single"),
    "copy-ease": CopyEASE(regularisation=5.0),
    "copy-ease-uniform": CopyEASE(regularisation=5.0, user_donors="uniform", item_donors="uniform"),
    "copy-ease-users": CopyEASE(regularisation=5.0, item_share=0.0, item_bonus=0.0, user_donors=Jaccard()),
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


def test_similar_users_by_the_model() -> None:
    """Models without embeddings have the cosine of the users' items."""
    log = tastes()
    A = log.matrix.toarray().astype(float)
    norms = np.maximum(np.sqrt(A.sum(axis=1)), 1e-12)
    users, similarity = EASE().fit(log).similar_users(log.user_ids[[7]], 3)
    cosines = A @ A[7] / norms / norms[7]
    cosines[7] = -1.0
    order = np.argsort(-cosines, kind="stable")[:3]
    assert users[0].tolist() == log.user_ids[order].tolist()
    np.testing.assert_allclose(similarity[0], cosines[order], rtol=1e-6)
    with pytest.raises(InputError, match=r"k must be .* n_users - 1 = 59; got 60"):
        EASE().fit(log).similar_users(log.user_ids[:1], 60)


def test_unknown_items_are_refused_or_ignored() -> None:
    log = tastes()
    fitted, user, (first, second) = EASE().fit(log), log.user_ids[:1], log.item_ids[:2].tolist()
    plain = fitted.recommend(user, 1, items=[first, second], exclude=[second], exclude_seen=False)
    stock: dict[str, Any] = {
        "items": [first, second, "new"],
        "exclude": [second, "old"],
        "exclude_seen": False,
    }
    ignored = fitted.recommend(user, 1, **stock, unknown="ignore")
    assert (ignored[0].tolist(), ignored[1].tolist()) == (plain[0].tolist(), plain[1].tolist())
    assert fitted.to_pandas(user, 1, **stock, unknown="ignore")["item"].tolist() == [first]
    new = fitted.recommend_new([[second, "new"]], 3, unknown="ignore")[0]
    assert new.tolist() == fitted.recommend_new([[second]], 3)[0].tolist()
    assert np.array_equal(fitted.score_new([["new", first]], unknown="ignore"), fitted.score_new([[first]]))
    with pytest.raises(InputError, match="items must hold known ids; got 'new'"):
        fitted.recommend(user, 1, **stock)


def test_users_outside_training_are_evaluated_by_their_history() -> None:
    """Those of training have the same metrics, whether their history is given or not."""
    log = tastes()
    split = interaction_split(log, (0.8, 0.0, 0.2), rng=0)
    fitted, names = EASE().fit(split.train), ["recall@3", "ndcg@3", "novelty@3"]
    train = split.train.at_least()  # without users who have no history
    new_ids = [f"new {user}" for user in train.user_ids.tolist()]
    history = Interactions(3 * train.matrix, new_ids, train.item_ids)
    users, items, _ = split.test.table()
    is_new = np.isin(users, train.user_ids)
    renamed = Interactions.from_table([f"new {user}" for user in users[is_new].tolist()], items[is_new])
    test = Interactions.from_table(users[is_new], items[is_new])
    known = fitted.evaluate(test, metrics=names)
    new = fitted.evaluate(renamed, history=history, metrics=names)
    assert new == pytest.approx(known)
    assert {f"new {user}" for user in known.users.tolist()} == set(new.users.tolist())


def test_a_validation_part_among_the_training_interactions_is_an_error() -> None:
    log = tastes()
    with pytest.raises(InputError, match=r"validation must hold other interactions .* 33 of its 33"):
        EASE().fit(log, validation=interaction_split(log, rng=0).validation)

"""What recommenders share below their lists; ``test_base.py`` runs the contract of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, EmbeddingRecommender, Recommender
from nodecopy.recommend.base import fit_copy
from tests.contracts.recommenders import tastes


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


class NoScores(EmbeddingRecommender):
    """Embeddings of ones."""

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self.user_embeddings_ = np.ones((interactions.n_users, 1))
        self.item_embeddings_ = np.ones((interactions.n_items, 1))


def test_a_recommender_without_score_rows_scores_no_new_users() -> None:
    with pytest.raises(InputError, match="NoScores scores only the users that it was fitted to"):
        NoScores().fit(tastes(), rng=0).score_new([["item 1"]])


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


def test_a_recommender_that_is_fitted_to_the_same_interactions_is_not_fitted_again() -> None:
    log = tastes()
    fitted = EASE().fit(log)
    assert fit_copy(fitted, log, None, SeedSequence(0)) is fitted
    other = fit_copy(
        fitted, Interactions(log.matrix[:9], log.user_ids[:9], log.item_ids), None, SeedSequence(0)
    )
    assert (other.interactions_.n_users, fitted.interactions_) == (9, log)


def test_validation_is_of_the_users_and_items_of_training_and_outside_it() -> None:
    train = Interactions([[1, 1, 0], [0, 1, 1]], ["ann", "bob"], ["ham", "jam", "tea"])
    ids = {"user_ids": train.user_ids, "item_ids": train.item_ids}
    for validation, message in (
        (Interactions.from_table(["ann"], ["ham"]), "validation must hold other .*; 1 of its 1 .*difference"),
        (Interactions.from_table(["cleo"], ["tea"]), "validation: users must .*got 'cleo'.*Leave such"),
        (Interactions.from_table(["ann"], ["rye"]), "validation: items must .*got 'rye'.*Leave such"),
        (Interactions.from_table([], [], **ids), "validation must hold at least one interaction; got Inter"),
    ):
        with pytest.raises(InputError, match=message):
            EASE().fit(train, validation=validation)
    assert EASE().fit(train, validation=Interactions.from_table(["ann"], ["tea"])).weights_.shape == (3, 3)


def test_unknown_users_are_pointed_to_recommend_new() -> None:
    model = EASE().fit(Interactions([[1, 1, 0], [0, 1, 1]]))
    with pytest.raises(InputError, match=r"users must hold known ids; got 7, .* recommend_new takes users"):
        model.recommend([7])
    with pytest.raises(InputError, match=r"known ids.* explain_new takes users outside training"):
        model.explain(7, 0)

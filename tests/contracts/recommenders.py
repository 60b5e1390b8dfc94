"""What every recommender promises; a test class inherits it and says which recommender to try."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions
from nodecopy.datasets import interaction_split
from nodecopy.errors import InputError, NotFittedError
from nodecopy.recommend import Recommender, base, load

N_USERS, N_ITEMS = 60, 24
LONER, UNSEEN = 59, 23
"""A user without history and an item that nobody has."""


def tastes() -> Interactions:
    """Three groups of users, each with its own eight items, and a few strays; ids are words."""
    draw = np.random.default_rng(5)
    group, theme = np.arange(N_USERS) % 3, np.arange(N_ITEMS) % 3
    chance = np.where(group[:, None] == theme, 0.6, 0.05)
    taken = draw.random((N_USERS, N_ITEMS)) < chance
    taken[LONER], taken[:, UNSEEN] = False, False
    users = [f"user {number}" for number in draw.permutation(N_USERS)]
    return Interactions(taken, users, [f"item {number}" for number in draw.permutation(N_ITEMS)])


class RecommenderContract:
    """Inherit and override ``recommender`` (unfitted); fitting happens once per class and parameter."""

    scores_new_users = True
    draws = False

    @pytest.fixture(scope="class")
    @classmethod
    def recommender(cls) -> Recommender:
        raise NotImplementedError("a contract needs a recommender")

    @pytest.fixture(scope="class")
    @classmethod
    def split(cls) -> Any:
        return interaction_split(tastes(), rng=0)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, recommender: Recommender, split: Any) -> Recommender:
        unfitted = copy.deepcopy(recommender)
        assert unfitted.fit(split.train, validation=split.validation, rng=0) is unfitted
        return unfitted

    def test_scores(self, fitted: Recommender, split: Any) -> None:
        scores = fitted.score()
        assert scores.shape == (N_USERS, N_ITEMS)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()
        some = split.train.user_ids[[7, 3, 7]]
        np.testing.assert_allclose(fitted.score(some), scores[[7, 3, 7]], rtol=1e-5, atol=1e-6)
        assert fitted.score([]).shape == (0, N_ITEMS)

    def test_a_data_frame_tells_the_same(self, fitted: Recommender, split: Any) -> None:
        pytest.importorskip("pandas")
        users = split.train.user_ids[[4, 2]]
        frame, (items, scores) = fitted.to_pandas(users, 3), fitted.recommend(users, 3)
        assert frame["user"].tolist() == np.repeat(users, 3).tolist()
        assert frame["rank"].tolist() == [1, 2, 3, 1, 2, 3]
        assert frame["item"].tolist() == items.ravel().tolist()
        assert frame["score"].tolist() == scores.ravel().tolist()

    def test_recommendations_are_the_best_unseen(self, fitted: Recommender, split: Any) -> None:
        train = split.train
        items, scores = fitted.recommend(k=5)
        assert items.shape == scores.shape == (N_USERS, 5)
        assert (np.diff(scores, axis=1) <= 0).all()
        place = {item: number for number, item in enumerate(train.item_ids.tolist())}
        seen = train.matrix.toarray() > 0
        every = np.where(seen, -np.inf, fitted.score())
        for user in range(N_USERS):
            numbers = [place[item] for item in items[user].tolist()]
            assert not seen[user, numbers].any()
            np.testing.assert_allclose(np.sort(every[user])[::-1][:5], scores[user], rtol=1e-5, atol=1e-6)

    def test_seen_items_on_request(self, fitted: Recommender, split: Any) -> None:
        items, scores = fitted.recommend(split.train.user_ids[:2], N_ITEMS, exclude_seen=False)
        assert np.isfinite(scores).all()
        assert sorted(items[1].tolist()) == sorted(split.train.item_ids.tolist())

    def test_more_than_what_is_left(self, fitted: Recommender, split: Any) -> None:
        """Seen items fill the last places, marked by a score of minus infinity."""
        items, scores = fitted.recommend(split.train.user_ids[:3], N_ITEMS)
        seen = split.train.rows.degrees[:3]
        assert np.isneginf(scores).sum(axis=1).tolist() == seen.tolist()
        for user in range(3):
            own = split.train.item_ids[split.train.matrix[[user]].indices]
            assert set(items[user, N_ITEMS - seen[user] :].tolist()) == set(own.tolist())

    def test_blocks_do_not_matter(
        self, fitted: Recommender, split: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, scores = fitted.recommend(k=3)
        monkeypatch.setattr(base, "SCORES_AT_ONCE", 7 * N_ITEMS)
        parts, part_scores = fitted.recommend(k=3)
        np.testing.assert_allclose(part_scores, scores, rtol=1e-5, atol=1e-6)
        assert (parts == whole).mean() > 0.98  # a tie may fall the other way by rounding

    def test_a_user_without_history_gets_what_is_popular(self, fitted: Recommender, split: Any) -> None:
        counts = np.bincount(split.train.rows.indices, minlength=N_ITEMS)
        assert fitted.score(split.train.user_ids[[LONER]])[0].tolist() == counts.tolist()
        assert fitted.score_new([[]])[0].tolist() == counts.tolist()
        items, _ = fitted.recommend_new([[]], 1)
        assert items[0, 0] == split.train.item_ids[counts.argmax()]

    def test_users_not_in_training(self, fitted: Recommender, split: Any) -> None:
        train = split.train
        history = train.item_ids[train.matrix[[4]].indices]
        if not self.scores_new_users:
            with pytest.raises(InputError, match="score_new needs a model that scores any list of items"):
                fitted.score_new([history])
            return
        scores = fitted.score_new([history, np.repeat(history, 2)])
        assert np.array_equal(scores[0], scores[1])
        np.testing.assert_allclose(scores[0], fitted.score(train.user_ids[[4]])[0], rtol=0.02, atol=0.02)
        items, _ = fitted.recommend_new([history], 4)
        assert not set(items[0].tolist()) & set(history.tolist())
        assert fitted.recommend_new([], 4)[0].shape == (0, 4)

    def test_wrong_users_and_items(self, fitted: Recommender) -> None:
        for ask, message in (
            (lambda: fitted.score(["nobody"]), "users must hold known ids; got 'nobody'"),
            (lambda: fitted.score([3]), "users must hold strings, as in training; got 3"),
            (lambda: fitted.recommend(["nobody"]), "users must hold known ids; got 'nobody'"),
            (lambda: fitted.score_new([["nothing"]]), "histories must hold known ids; got 'nothing'"),
            (lambda: fitted.score_new(["item 1"]), "histories must hold one list of item ids per user"),
            (lambda: fitted.recommend(k=N_ITEMS + 1), f"k must be .* n_items = {N_ITEMS}; got {N_ITEMS + 1}"),
            (lambda: fitted.recommend(k=0), "k must be an integer between 1 and"),
        ):
            with pytest.raises(InputError, match=message):
                ask()

    def test_evaluation(self, fitted: Recommender, split: Any) -> None:
        found = fitted.evaluate(split.test, validation=split.validation, k=[3])
        assert set(found) == {"recall@3", "ndcg@3", "coverage@3", "novelty@3"}
        assert fitted.evaluate(split.test, k=[3], convention="printed")["recall@3"] <= found["recall@3"] + 0.1
        other = Interactions(split.test.matrix)
        with pytest.raises(InputError, match="test must be of the users and items of training"):
            fitted.evaluate(other, k=[3])

    def test_same_seed_same_result(self, recommender: Recommender, fitted: Recommender, split: Any) -> None:
        for rng in (0, np.random.SeedSequence(0)):
            again = copy.deepcopy(recommender).fit(split.train, validation=split.validation, rng=rng)
            assert np.array_equal(again.score(), fitted.score())
        other = copy.deepcopy(recommender).fit(split.train, validation=split.validation, rng=1)
        assert np.array_equal(other.score(), fitted.score()) != self.draws

    def test_weights_and_repeated_rows_do_not_count(
        self, recommender: Recommender, fitted: Recommender
    ) -> None:
        """A log with ratings, some rows twice, teaches what its plain table teaches."""
        train = fitted.interactions_
        users, items, _ = train.table()
        twice = np.concatenate([np.arange(len(users)), np.arange(5)])
        ratings = np.linspace(1, 5, len(twice))
        log = Interactions.from_table(
            users[twice], items[twice], ratings, user_ids=train.user_ids, item_ids=train.item_ids
        )
        models = [copy.deepcopy(recommender).fit(one, rng=0) for one in (log, train)]
        assert np.array_equal(models[0].score(), models[1].score())

    def test_input_stays_as_it_was(self, recommender: Recommender, split: Any) -> None:
        before = pickle.loads(pickle.dumps(split))
        settings = repr(recommender)
        one = copy.deepcopy(recommender)
        one.fit(split.train, validation=split.validation, rng=1)
        one.recommend(k=3)
        assert split == before
        assert repr(one) == settings

    def test_saved_and_loaded(self, fitted: Recommender, split: Any, tmp_path: Path) -> None:
        path = tmp_path / "model.npz"
        fitted.save(path)
        loaded = load(path)
        assert type(loaded) is type(fitted)
        assert repr(loaded) == repr(fitted)
        assert np.array_equal(loaded.score(), fitted.score())
        assert loaded.interactions_ == fitted.interactions_
        assert np.array_equal(loaded.recommend(k=4)[0], fitted.recommend(k=4)[0])
        again = loaded.fit(split.train, validation=split.validation, rng=0)
        assert np.array_equal(again.score(), fitted.score())
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]

    def test_pickles(self, fitted: Recommender) -> None:
        assert np.array_equal(pickle.loads(pickle.dumps(fitted)).score(), fitted.score())

    def test_nothing_before_fit(self, recommender: Recommender, split: Any, tmp_path: Path) -> None:
        for ask in (
            recommender.score,
            recommender.recommend,
            lambda: recommender.score_new([[]]),
            lambda: recommender.recommend_new([[]]),
            lambda: recommender.evaluate(split.test),
            lambda: recommender.save(tmp_path / "model.npz"),
        ):
            with pytest.raises(NotFittedError, match=r"call fit\(interactions\) first"):
                ask()

    @pytest.mark.parametrize(
        ("interactions", "message"),
        [
            (np.ones((3, 3)), "interactions must be Interactions; got ndarray"),
            (Interactions(np.zeros((3, 2))), "interactions must hold at least one interaction"),
            (Interactions(np.zeros((0, 0))), "interactions must hold at least one interaction"),
        ],
    )
    def test_wrong_interactions(self, recommender: Recommender, interactions: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            copy.deepcopy(recommender).fit(interactions, rng=0)

    def test_validation_is_of_the_same_users_and_items(self, recommender: Recommender, split: Any) -> None:
        with pytest.raises(InputError, match="validation must be of the users and items of training"):
            copy.deepcopy(recommender).fit(split.train, validation=Interactions(split.test.matrix), rng=0)

    def test_the_smallest_tables(self, recommender: Recommender) -> None:
        for matrix in ([[1]], [[1, 1, 0]], [[1], [1]], [[1, 1], [1, 1]], [[0, 1], [1, 0]]):
            fitted = copy.deepcopy(recommender).fit(Interactions(matrix), rng=0)
            assert np.isfinite(fitted.score()).all()

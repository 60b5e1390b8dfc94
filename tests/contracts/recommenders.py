"""The contract of recommenders as tests; a test class inherits it and names the recommender.

For a recommender of your own::

    class TestMine(RecommenderContract):
        draws = False  # whether two seeds may give two results
        recommenders = (Mine(),)
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodecopy
from nodecopy import Interactions
from nodecopy.datasets import interaction_split
from nodecopy.errors import InputError, NotFittedError
from nodecopy.recommend import Popularity, Recommender
from nodecopy.recommend import base as best_items
from tests.contracts.parameters import parametrise

N_USERS, N_ITEMS = 60, 24
LONER, UNSEEN = 59, 23  # positions of a user without history and of an item that nobody has


def tastes() -> Interactions:
    """Return interactions of three groups of users, each with its own eight items, and some noise."""
    draws = np.random.default_rng(5)
    group, theme = np.arange(N_USERS) % 3, np.arange(N_ITEMS) % 3
    probability = np.where(group[:, None] == theme, 0.6, 0.05)
    taken = draws.random((N_USERS, N_ITEMS)) < probability
    taken[LONER], taken[:, UNSEEN] = False, False
    users = [f"user {number}" for number in draws.permutation(N_USERS)]
    return Interactions(taken, users, [f"item {number}" for number in draws.permutation(N_ITEMS)])


def share_of_own_group(fitted: Recommender) -> float:
    """Return the share of users with a history whose best unseen item is of their own group in ``tastes``."""
    train = fitted.interactions_
    best = fitted.recommend(k=1)[0][:, 0]
    theme = {item: position % 3 for position, item in enumerate(train.item_ids.tolist())}
    users = np.flatnonzero(train.rows.degrees)
    return float(np.mean([theme[best[user]] == user % 3 for user in users]))


class RecommenderContract:
    """Inherit and set ``recommenders`` (unfitted); each is fitted once per class."""

    scores_new_users = True
    draws = False
    min_own_group = 0.0
    """The share of users whose best item is of their own group; a third by chance."""
    classes: tuple[type, ...] = ()
    """Classes from outside the package that a saved file may hold."""
    recommenders: Mapping[str, Recommender] | tuple[Recommender, ...] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        parametrise(metafunc, recommender=self.recommenders)

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

    def test_score(self, fitted: Recommender, split: Any) -> None:
        scores = fitted.score()
        assert scores.shape == (N_USERS, N_ITEMS)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()
        users = split.train.user_ids[[7, 3, 7]]
        np.testing.assert_allclose(fitted.score(users), scores[[7, 3, 7]], rtol=1e-5, atol=1e-6)
        assert fitted.score([]).shape == (0, N_ITEMS)

    def test_recommendations_are_the_best_unseen_items(self, fitted: Recommender, split: Any) -> None:
        train = split.train
        items, scores = fitted.recommend(k=5)
        assert items.shape == scores.shape == (N_USERS, 5)
        assert (np.diff(scores, axis=1) <= 0).all()
        position = {item: number for number, item in enumerate(train.item_ids.tolist())}
        seen = train.matrix.toarray() > 0
        unseen_scores = np.where(seen, -np.inf, fitted.score())
        for user in range(N_USERS):
            columns = [position[item] for item in items[user].tolist()]
            assert not seen[user, columns].any()
            best = np.sort(unseen_scores[user])[::-1][:5]
            np.testing.assert_allclose(scores[user], best, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(scores[user], unseen_scores[user, columns], rtol=1e-5, atol=1e-6)

    def test_own_group_first(self, fitted: Recommender) -> None:
        share = share_of_own_group(fitted)
        assert share < 0.6 if isinstance(fitted, Popularity) else share > self.min_own_group

    def test_items_and_exclude_choose_the_candidates(self, fitted: Recommender, split: Any) -> None:
        """The list of some candidates is the list of all items without the others, in the same order."""
        item_ids, user = split.train.item_ids, split.train.user_ids[[5]]
        stock, sold_out = item_ids[[20, 3, 11, 3, 7, 0]], item_ids[[3, 9]]
        ranked, scores = fitted.recommend(user, N_ITEMS, exclude_seen=False)
        for options, candidates in (
            ({"items": stock}, {*stock.tolist()}),
            ({"exclude": sold_out}, {*item_ids.tolist()} - {*sold_out.tolist()}),
            ({"items": stock, "exclude": sold_out}, {*stock.tolist()} - {*sold_out.tolist()}),
        ):
            keep = [item in candidates for item in ranked[0].tolist()]
            items, best = fitted.recommend(user, len(candidates), exclude_seen=False, **options)
            assert items[0].tolist() == ranked[0][keep].tolist()
            assert best[0].tolist() == scores[0][keep].tolist()

    def test_results_do_not_depend_on_blocks(
        self, fitted: Recommender, split: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, scores = fitted.recommend(k=3)
        monkeypatch.setattr(best_items, "MAX_BLOCK_SCORES", 7 * N_ITEMS)
        parts, part_scores = fitted.recommend(k=3)
        np.testing.assert_allclose(part_scores, scores, rtol=1e-5, atol=1e-6)
        assert (parts == whole).mean() > 0.98  # rounding may break a tie in another way

    def test_a_user_without_history_is_scored_by_popularity(self, fitted: Recommender, split: Any) -> None:
        counts = np.bincount(split.train.rows.indices, minlength=N_ITEMS)
        assert fitted.score(split.train.user_ids[[LONER]])[0].tolist() == counts.tolist()
        items, scores = fitted.recommend_new([[]], N_ITEMS)
        assert scores[0].tolist() == sorted(counts.tolist(), reverse=True)
        assert items[0, 0] == split.train.item_ids[counts.argmax()]

    def test_users_outside_training(self, fitted: Recommender, split: Any) -> None:
        train = split.train
        history = train.item_ids[train.matrix[[4]].indices]
        if not self.scores_new_users:
            with pytest.raises(InputError, match="recommend_new needs a model that scores any list of items"):
                fitted.recommend_new([history])
            return
        scores = fitted.score_histories(
            best_items.history_rows([history, np.repeat(history, 2)], train.item_ids)
        )
        assert np.array_equal(scores[0], scores[1])
        np.testing.assert_allclose(scores[0], fitted.score(train.user_ids[[4]])[0], rtol=0.02, atol=0.02)
        items, _ = fitted.recommend_new([history], 4)
        assert not set(items[0].tolist()) & set(history.tolist())
        rest, _ = fitted.recommend_new([history], 3, exclude=items[0, :1])
        assert rest[0].tolist() == items[0, 1:].tolist()
        assert fitted.recommend_new([], 4)[0].shape == (0, 4)

    def test_similar_items(self, fitted: Recommender, split: Any) -> None:
        """Every item is ranked, except the item itself; most of the nearest are of its own group."""
        item_ids = split.train.item_ids[:UNSEEN]
        items, similarity = fitted.similar_items(item_ids, N_ITEMS - 1)
        assert (np.diff(similarity, axis=1) <= 0).all()
        assert np.isfinite(similarity).all()
        theme = {item: number % 3 for number, item in enumerate(split.train.item_ids.tolist())}
        for item, ranked in zip(item_ids.tolist(), items.tolist(), strict=True):
            assert sorted([item, *ranked]) == sorted(theme)
        nearest = fitted.similar_items(item_ids, 2)[0].tolist()
        own_group = [
            theme[item] == theme[other]
            for item, ranked in zip(item_ids.tolist(), nearest, strict=True)
            for other in ranked
        ]
        assert np.mean(own_group) > 0.6  # a third by chance

    def test_similar_users(self, fitted: Recommender, split: Any) -> None:
        """Every user is ranked, except the user; most of the nearest are of the same group."""
        user_ids = split.train.user_ids[:LONER]
        users, similarity = fitted.similar_users(user_ids, N_USERS - 1)
        assert (np.diff(similarity, axis=1) <= 0).all()
        group = {user: number % 3 for number, user in enumerate(split.train.user_ids.tolist())}
        for user, ranked in zip(user_ids.tolist(), users.tolist(), strict=True):
            assert sorted([user, *ranked]) == sorted(group)
        own_group = [group[user] == group[ranked[0]] for user, ranked in zip(user_ids, users, strict=True)]
        assert np.mean(own_group) > 0.6  # a third by chance

    def test_explanations_add_up_to_the_score(self, fitted: Recommender, split: Any) -> None:
        train = split.train
        user, loner = train.user_ids[[4, LONER]].tolist()
        if not fitted.is_linear:
            with pytest.raises(InputError, match="ItemKNN or a class with is_linear = True; got"):
                fitted.explain(user, train.item_ids[0])
            return
        history = train.item_ids[train.matrix[[4]].indices]
        scores = fitted.score([user])[0]
        for position, item in enumerate(train.item_ids.tolist()):
            explanation = fitted.explain(user, item, None)
            items, values = explanation.items
            assert set(items.tolist()) <= set(history.tolist())
            assert (np.diff(values) <= 0).all()
            score = pytest.approx(scores[position], rel=1e-4, abs=1e-5)
            assert [values.sum(), explanation.score] == [score, score]
            if explanation.donors is not None and explanation.donor_items is not None:
                parts = explanation.donors.values.sum() + explanation.donor_items.values.sum()
                assert parts == score
                assert parts + explanation.remainder == pytest.approx(explanation.score, abs=1e-6)
        best = fitted.explain(user, item, 2, donors=False)
        assert best.items.ids.tolist() == items[:2].tolist()
        assert best.donors is None
        again = fitted.explain_new([*history, *history[:1], "nothing"], item, None, unknown="ignore")
        assert again.to_dict() == fitted.explain(user, item, None).to_dict()
        with pytest.raises(InputError, match="user must have an item of training"):
            fitted.explain(loner, item)

    def test_evaluate(self, fitted: Recommender, split: Any) -> None:
        """Recall@3 equals the share of test items among three recommendations that leave out validation."""
        names = ["ndcg@3", "recall@3", "coverage@3", "novelty@2"]
        metrics = fitted.evaluate(split.test, validation=split.validation, metrics=names)
        assert list(metrics) == names
        test, validation = split.test, split.validation
        recalls = []
        for user in np.flatnonzero(test.rows.degrees):
            hidden = validation.item_ids[validation.matrix[[user]].indices]
            items, _ = fitted.recommend(test.user_ids[[user]], 3, exclude=hidden if len(hidden) else None)
            relevant = test.item_ids[test.matrix[[user]].indices]
            recalls.append(np.isin(relevant, items[0]).mean())
        assert metrics["recall@3"] == pytest.approx(np.mean(recalls), abs=0.02)  # ties by rounding
        printed = fitted.evaluate(test, metrics=["recall@3"], convention="printed")
        assert printed == fitted.evaluate(test, metrics=["recall@3"])  # without validation they agree
        users, items, _ = test.table()
        assert fitted.evaluate(Interactions.from_table(users, items), metrics=["recall@3"]) == printed
        strangers = Interactions.from_table(["nobody", users[0]], [items[0], items[0]])
        with pytest.raises(InputError, match="test: users must hold known ids; got 'nobody'"):
            fitted.evaluate(strangers, metrics=["recall@3"])
        assert len(fitted.evaluate(strangers, metrics=["recall@3"], unknown="ignore").users) == 1

    def test_same_seed_same_result(self, recommender: Recommender, fitted: Recommender, split: Any) -> None:
        for rng in (0, np.random.SeedSequence(0)):
            again = copy.deepcopy(recommender).fit(split.train, validation=split.validation, rng=rng)
            assert np.array_equal(again.score(), fitted.score())
        other = copy.deepcopy(recommender).fit(split.train, validation=split.validation, rng=1)
        assert np.array_equal(other.score(), fitted.score()) != self.draws

    def test_parameters(self, recommender: Recommender, split: Any) -> None:
        """Parameters are read and set by name, in place, and make an equal recommender."""
        params = recommender.get_params(deep=False)
        clone = type(recommender)(**copy.deepcopy(params))
        assert clone.set_params(**copy.deepcopy(params)) is clone
        assert clone.get_params(deep=False).keys() == params.keys()
        models = [copy.deepcopy(model).fit(split.train, rng=0) for model in (clone, recommender)]
        assert np.array_equal(models[0].score(), models[1].score())
        with pytest.raises(InputError, match="nonsense"):
            clone.set_params(nonsense=1)

    def test_weights_and_repeated_rows(self, recommender: Recommender, fitted: Recommender) -> None:
        train = fitted.interactions_
        users, items, _ = train.table()
        twice = np.concatenate([np.arange(len(users)), np.arange(5)])
        ratings = np.linspace(1, 5, len(twice))
        log = Interactions.from_table(
            users[twice], items[twice], ratings, user_ids=train.user_ids, item_ids=train.item_ids
        )
        models = [copy.deepcopy(recommender).fit(table, rng=0) for table in (log, train)]
        assert np.array_equal(models[0].score(), models[1].score())

    def test_seen_items_are_not_recommended(self, recommender: Recommender, split: Any) -> None:
        """Items in ``seen`` are left out of recommendations; scores stay the same."""
        model = copy.deepcopy(recommender).fit(split.train, seen=split.test, rng=0)
        plain = copy.deepcopy(recommender).fit(split.train, rng=0)
        assert np.array_equal(model.score(), plain.score())
        either = (split.train.matrix + split.test.matrix).toarray() > 0
        assert np.array_equal(model.seen_.matrix.toarray() > 0, either)
        _, scores = model.recommend(k=N_ITEMS)
        assert np.isnan(scores).sum() == either.sum()

    def test_input_stays_unchanged(self, recommender: Recommender, split: Any) -> None:
        before = pickle.loads(pickle.dumps(split))
        params = repr(recommender.get_params(deep=False))
        model = copy.deepcopy(recommender)
        model.fit(split.train, validation=split.validation, rng=1)
        model.recommend(k=3)
        assert split == before
        assert repr(model.get_params(deep=False)) == params

    def test_save_and_load(self, fitted: Recommender, split: Any, tmp_path: Path) -> None:
        path = tmp_path / "model.npz"
        fitted.save(path)
        loaded = nodecopy.load(path, classes=self.classes)
        assert type(loaded) is type(fitted)
        assert repr(loaded.get_params(deep=False)) == repr(fitted.get_params(deep=False))
        assert np.array_equal(loaded.score(), fitted.score())
        assert (loaded.interactions_, loaded.seen_) == (fitted.interactions_, fitted.seen_)
        assert np.array_equal(loaded.recommend(k=4)[0], fitted.recommend(k=4)[0])
        some = split.train.item_ids[:3]
        assert np.array_equal(loaded.similar_items(some)[0], fitted.similar_items(some)[0])
        again = loaded.fit(split.train, validation=split.validation, rng=0)
        assert np.array_equal(again.score(), fitted.score())
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]

    def test_pickle(self, fitted: Recommender) -> None:
        assert np.array_equal(pickle.loads(pickle.dumps(fitted)).score(), fitted.score())

    def test_not_fitted(self, recommender: Recommender, split: Any, tmp_path: Path) -> None:
        for ask in (
            recommender.score,
            recommender.recommend,
            lambda: recommender.recommend_new([[]]),
            lambda: recommender.recommend(items=["item 1"]),
            lambda: recommender.similar_items(["item 1"]),
            lambda: recommender.similar_users(["user 1"]),
            lambda: recommender.explain("user 1", "item 1"),
            lambda: recommender.explain_new(["item 1"], "item 1"),
            lambda: recommender.evaluate(split.test),
            lambda: recommender.save(tmp_path / "model.npz"),
        ):
            with pytest.raises(NotFittedError, match=r"call fit\(interactions\) first"):
                ask()

    @pytest.mark.parametrize(
        ("interactions", "message"),
        [
            (np.ones((3, 3)), "interactions must be Interactions.*; got numpy.ndarray"),
            (Interactions(np.zeros((3, 2))), "interactions must hold at least one interaction"),
            (Interactions(np.zeros((0, 0))), "interactions must hold at least one interaction"),
        ],
    )
    def test_wrong_interactions(self, recommender: Recommender, interactions: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            copy.deepcopy(recommender).fit(interactions, rng=0)

    def test_smallest_tables(self, recommender: Recommender) -> None:
        for matrix in ([[1]], [[1, 1, 0]], [[1], [1]], [[1, 1], [1, 1]], [[0, 1], [1, 0]]):
            fitted = copy.deepcopy(recommender).fit(Interactions(matrix), rng=0)
            items, scores = fitted.recommend(k=len(matrix[0]), exclude_seen=False)
            assert np.isfinite(scores).all()
            assert np.sort(items, axis=1).tolist() == [list(range(len(matrix[0])))] * len(matrix)

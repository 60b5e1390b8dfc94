"""The contract on recommenders in closed form and on classes of users; ids, lists, explanations and files."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

import nodecopy
from examples.own.recommender import CoOccurrence
from nodecopy import Interactions, Jaccard
from nodecopy.copying import Weighted
from nodecopy.datasets import interaction_split
from nodecopy.errors import InputError
from nodecopy.recommend import (
    EASE,
    CopyEASE,
    EmbeddingRecommender,
    Explanation,
    ItemKNN,
    Popularity,
    Recommender,
    WeightedHybrid,
    base,
)
from nodecopy.recommend.base import (
    Contributions,
    align,
    find_ids,
    fit_copy,
    history_rows,
    largest_contributions,
    select_best,
)
from tests.contracts.recommenders import RecommenderContract, tastes

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
    recommenders = CLOSED_FORMS
    min_own_group = 0.8


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


class TestOwnEmbeddings(RecommenderContract):
    scores_new_users = False
    draws = True
    classes = (RandomProjection,)
    recommenders = (RandomProjection(),)


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


def test_unknown_items_are_refused_or_ignored() -> None:
    log = tastes()
    fitted, user, (first, second) = EASE().fit(log), log.user_ids[:1], log.item_ids[:2].tolist()
    plain = fitted.recommend(user, 1, items=[first, second], exclude=[second], exclude_seen=False)
    stock: Any = {"items": [first, second, "new"], "exclude": [second, "old"], "exclude_seen": False}
    ignored = fitted.recommend(user, 1, **stock, unknown="ignore")
    assert (ignored[0].tolist(), ignored[1].tolist()) == (plain[0].tolist(), plain[1].tolist())
    assert fitted.to_pandas(user, 1, **stock, unknown="ignore")["item"].tolist() == [first]
    new = fitted.recommend_new([[second, "new"]], 3, unknown="ignore")[0]
    assert new.tolist() == fitted.recommend_new([[second]], 3)[0].tolist()
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


def test_seen_is_forgotten_with_the_next_fit() -> None:
    met = tastes()
    half = met.matrix.copy()
    half.data = half.data * (np.arange(met.n_interactions) % 2)
    liked = Interactions(half, met.user_ids, met.item_ids)
    fitted = EASE().fit(liked, seen=met)
    assert (fitted.interactions_, fitted.seen_) == (liked, met)
    assert EASE().fit(liked, seen=Interactions(3 * met.matrix, met.user_ids, met.item_ids)).seen_ == met
    assert fitted.fit(liked).seen_ == liked


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
        (None, "NoneType"),
        (np.ones(24), r"float64 of shape \(24,\)"),
        (np.ones((2, 5)), r"float64 of shape \(2, 5\)"),
        (np.full((2, 24), "a"), "<U1 of shape"),
        (np.full((2, 24), np.inf), "finite numbers; got inf"),
    ],
)
def test_results_of_score_rows_are_checked(scores: Any, message: str) -> None:
    log = tastes()
    fitted = FixedScores(scores).fit(log)
    with pytest.raises(InputError, match="score_rows of FixedScores .*" + message):
        fitted.recommend(log.user_ids[:2], 1)
    with pytest.raises(InputError, match="score_rows of FixedScores .*" + message):
        fitted.recommend_new([log.item_ids[:2], log.item_ids[3:5]])


def test_sparse_scores_count_as_dense_ones() -> None:
    log = tastes()
    scores = np.arange(48.0).reshape(2, 24)
    fitted = FixedScores(sparse.csr_array(scores)).fit(log)
    assert np.array_equal(fitted.score(log.user_ids[:2]), scores)


def test_a_recommender_that_is_fitted_to_the_same_interactions_is_not_fitted_again() -> None:
    log = tastes()
    fitted = EASE().fit(log)
    assert fit_copy(fitted, log, None, SeedSequence(0)) is fitted
    part = Interactions(log.matrix[:9], log.user_ids[:9], log.item_ids)
    other = fit_copy(fitted, part, None, SeedSequence(0))
    assert (other.interactions_.n_users, fitted.interactions_) == (9, log)


IDS = np.array([30, 10, 20])
TRAIN = Interactions([[1, 1], [0, 1]], ["ann", "bob"], [1, 2])
FEW = EASE(1.0).fit(Interactions([[1, 1, 0], [0, 1, 1]], ["ann", "bob"], ["ham", "jam", "tea"]))


def fit_few(**options: Any) -> Any:
    return EASE().fit(FEW.interactions_, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_ids(["10"], IDS, "items"), "items must hold integers, as in training; got '10'"),
        (lambda: find_ids([10, 11], IDS, "items"), r"items must hold known ids; got 11, which .* them\.$"),
        (lambda: find_ids(10, IDS, "items"), r"items must be a list of ids; got 10. Write \[10\]."),
        (lambda: find_ids([20], IDS, "items", "drop"), "unknown must be one of 'error', 'ignore'"),
        (lambda: FEW.recommend(exclude=["rye"]), "exclude must hold known ids; got 'rye'"),
        (lambda: history_rows([10, 20], IDS), "histories must hold one list .* 10 in place of a list"),
        (lambda: history_rows([[10, 99]], IDS), "got 99, .* unknown='ignore' leaves such ids out"),
        (lambda: align(Interactions.from_table(["ann"], ["tea"]), TRAIN, "test"), "test: items must"),
        (lambda: align(Interactions.from_table(["cleo"], [1]), TRAIN, "test"), "'cleo'.* Leave such"),
        (lambda: fit_few(validation=Interactions.from_table(["ann"], ["ham"])), "1 of its 1 .*difference"),
        (lambda: FEW.recommend(["cleo"]), "got 'cleo', .* recommend_new takes users"),
        (lambda: FEW.explain("cleo", "ham"), "got 'cleo', .* explain_new takes users outside training"),
        (lambda: FEW.similar_users(["ann"], 0), "k must be an integer of at least 1; got 0"),
        (lambda: FEW.explain_new([], "ham"), "history must have an item of training; got none"),
        (lambda: FEW.recommend(items=["ham"], exclude=["ham"]), "items must hold a candidate that is not in"),
        (lambda: fit_few(seen=Interactions([[1]])), "seen: users must hold strings, as in training"),
    ],
)
def test_wrong_ids(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_ids_and_histories() -> None:
    assert find_ids([20, 30, 20], IDS, "items").tolist() == [2, 0, 2]
    assert find_ids([20, 99, 30], IDS, "items", "ignore").tolist() == [2, 0]
    assert history_rows([[20, 30, 20], [], [10]], IDS).toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert history_rows([[20, 99], [99]], IDS, "ignore").toarray().tolist() == [[0, 0, 1], [0, 0, 0]]
    assert history_rows([], IDS).shape == (0, 3)


def test_tables_are_aligned_by_their_ids(caplog: pytest.LogCaptureFixture) -> None:
    other = Interactions([[5, 0], [1, 1]], ["bob", "ann"], [2, 1])
    assert align(other, TRAIN, "test") == Interactions([[1, 1], [0, 5]], ["ann", "bob"], [1, 2])
    part = Interactions.from_table(["bob"], [1])
    assert align(part, TRAIN, "test") == Interactions([[0, 0], [1, 0]], ["ann", "bob"], [1, 2])
    assert align(TRAIN, TRAIN, "test") is TRAIN
    assert align(sparse.csr_array([[0, 0], [1, 0]]), TRAIN, "test") == align(part, TRAIN, "test")
    strangers = Interactions.from_table(["ann", "cleo", "bob"], [2, 1, 3])
    aligned = align(strangers, TRAIN, "test", "ignore")
    assert aligned == Interactions([[0, 1], [0, 0]], ["ann", "bob"], [1, 2])
    assert "test: 2 of 3 interactions are of unknown users or items" in caplog.text
    history = align(strangers, TRAIN, "history", "ignore", keep_users=True)
    assert history == Interactions([[0, 1], [0, 0], [1, 0]], ["ann", "bob", "cleo"], [1, 2])


LETTERS = np.array(["a", "b", "c", "d"])
SCORES = np.array([[1, 4, 3, 3], [5, 0, 5, 2], [0, 0, 0, 0]], np.float32)
SEEN = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]]))


@pytest.mark.parametrize("block", [1, 8, 100])
@pytest.mark.parametrize(
    ("k", "candidates", "exclude_seen", "expected"),
    [
        (2, None, True, ["cd", "ac", "d"]),
        (9, None, True, ["cda", "acdb", "d"]),
        (2, None, False, ["bc", "ac", "ab"]),
        (1, ["b", "d"], True, ["d", "d", "d"]),
        (2, ["a", "b"], True, ["a", "ab", ""]),
    ],
)
def test_select_best(
    k: int, candidates: Any, exclude_seen: bool, expected: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties go to the first item; rows of users with few candidates end with NaN; blocks do not matter."""
    monkeypatch.setattr(base, "MAX_BLOCK_SCORES", block)
    items, scores = select_best(
        lambda users: SCORES[users].copy(),
        len(SCORES),
        k,
        LETTERS,
        None if candidates is None else np.flatnonzero(np.isin(LETTERS, candidates)),
        SEEN if exclude_seen else None,
    )
    assert ["".join(row) for row in items.tolist()] == expected
    position = {item: number for number, item in enumerate(LETTERS.tolist())}
    for user, row in enumerate(items.tolist()):
        for item, score in zip(row, scores[user].tolist(), strict=True):
            assert score == SCORES[user, position[item]] if item else np.isnan(score)


@pytest.mark.parametrize("choice", [{}, {"items": np.arange(0, 10**6, 3)}, {"exclude": np.arange(500)}])
def test_memory_of_a_million_items(choice: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """All scores of 60 users would take 240 MB; blocks of 4 users take 16 MB, and as much to select."""
    n_users, n_items, rng = 60, 10**6, np.random.default_rng(0)
    columns = rng.integers(n_items, size=n_users * 5)
    model = EASE()
    model.interactions_ = model.seen_ = Interactions(
        sparse.csr_array((np.ones(len(columns)), (np.arange(len(columns)) // 5, columns)), (n_users, n_items))
    ).binary()
    weights = rng.random(20 * len(columns)).astype(np.float32)
    targets = rng.integers(n_items, size=len(weights))
    entries = weights, (np.repeat(columns, 20), targets)
    model.weights_ = sparse.csr_array(entries, shape=(n_items, n_items))
    monkeypatch.setattr(base, "MAX_BLOCK_SCORES", 2**22)
    tracemalloc.start()
    items, scores = model.recommend(None, 10, **choice)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6
    assert (scores[:, 0] > 0).all()
    full = model.score([7])[0]
    full[model.seen_.matrix[[7]].indices] = -np.inf
    if "items" in choice:
        full[np.setdiff1d(np.arange(n_items), choice["items"])] = -np.inf
    assert items[7].tolist() == np.argsort(-full, kind="stable")[:10].tolist()


def test_contributions() -> None:
    ids, values = np.array(["a", "b", "c", "d"]), np.array([0.5, 0.0, -1.0, 0.5])
    assert largest_contributions(ids, values, None).ids.tolist() == ["a", "d", "c"]
    assert largest_contributions(ids, values, 2).values.tolist() == [0.5, 0.5]
    part, reason = Contributions(ids[:1], values[:1]), [{"item": "a", "contribution": 0.5}]
    assert Explanation(1.0, part).to_dict() == {"score": 1.0, "items": reason}
    donors = {"donors": [{"user": "a", "contribution": 0.5}], "donor_items": reason, "remainder": 0.25}
    assert Explanation(1.0, part, part, part, 0.25).to_dict() == {"score": 1.0, "items": reason} | donors


# Saved recommenders: files that are damaged, of another kind, or do not fit their users and items


def read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path) as archive:
        return dict(archive)


def test_column_numbers_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    Popularity().fit(tastes()).save(path)
    arrays = read_arrays(path)
    (indices,) = (
        name
        for name, array in arrays.items()
        if array.dtype.kind == "i" and len(array) == tastes().n_interactions
    )
    arrays[indices] = arrays[indices].copy()
    arrays[indices][0] = 10**6
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"must be a valid sparse matrix.* between 0 and"):
        nodecopy.load(path)


@pytest.mark.parametrize("cut", [np.s_[:-1], np.s_[:, :-1]])
def test_weights_of_other_items_are_refused(cut: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    EASE().fit(tastes()).save(path)
    arrays = read_arrays(path)
    (weights,) = (name for name, array in arrays.items() if array.ndim == 2)
    np.savez(path, **arrays | {weights: arrays[weights][cut]})
    with pytest.raises(InputError, match=r"model.npz: (cannot be read|score_rows of EASE must return)"):
        nodecopy.load(path)


def test_files_of_other_trees(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    CopyEASE().fit(tastes()).save(path)
    arrays = read_arrays(path)
    tree = json.loads(str(arrays["tree"]))
    others: list[Any] = [
        {name: part for name, part in tree.items() if name != "params"},
        {name: part for name, part in tree.items() if name != "state"},
        tree | {"params": {"nonsense": 1}},
        tree | {"state": {"weights_": tree["state"]["weights_"]}},
        tree | {"csr": 1},
    ]
    for other in others:
        np.savez(path, **arrays | {"tree": np.array(json.dumps(other))})
        with pytest.raises(InputError, match=r"model.npz: "):
            nodecopy.load(path)


def test_seen_and_rules_with_arrays_are_saved(tmp_path: Path) -> None:
    split = interaction_split(tastes(), rng=0)
    rule = Weighted(np.ones((split.train.n_users, split.train.n_users)))
    fitted = CopyEASE(user_donors=rule).fit(split.train, seen=split.test)
    fitted.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert loaded.seen_ == fitted.seen_ != fitted.interactions_
    assert np.array_equal(loaded.recommend(k=5)[0], fitted.recommend(k=5)[0])
    assert np.array_equal(loaded.fit(split.train).score(), fitted.score())

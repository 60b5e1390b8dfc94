"""Metrics of ranked lists against their definitions, user by user and item by item."""

from __future__ import annotations

import math
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from nodecopy import Interactions
from nodecopy.errors import DataWarning, InputError
from nodecopy.metrics import ranking
from nodecopy.metrics.ranking import MAX_SORTED_RATIO, Evaluation, evaluate, top_items


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Interactions, Interactions, Interactions]:
    """Return scores with many ties and three disjoint tables, with at least one test interaction."""
    n_users, n_items = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    draws = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = draws.integers(draw(st.sampled_from([1, 3, 100])), size=(n_users, n_items)) / 4
    part = draws.choice(4, size=(n_users, n_items), p=[0.4, 0.25, 0.1, 0.25])
    part[0, 0] = 3
    train, validation, test = (Interactions(part == number) for number in (1, 2, 3))
    return scores, train, validation, test


def oracle(
    scores: Any,
    train: Interactions,
    validation: Interactions | None,
    test: Interactions,
    k: int,
    is_printed: bool,
) -> dict[str, float]:
    """Return the metrics by their definitions, user by user and item by item."""
    hidden = train.matrix.toarray() > 0
    if validation is not None:
        hidden |= validation.matrix.toarray() > 0
    relevant = test.matrix.toarray() > 0
    popularity = (train.matrix.toarray() > 0).sum(axis=0)
    by_popularity = sorted(np.flatnonzero(popularity).tolist(), key=lambda item: popularity[item])
    tail = by_popularity[: round(0.2 * len(by_popularity))]
    recall, ndcg, listed, tail_hits = [], [], [], 0
    others: dict[str, list[float]] = {
        name: [] for name in ("precision", "hit_rate", "map", "mrr", "popularity", "diversity")
    }
    vectors = (train.matrix.toarray() > 0).T.astype(float)
    for user in range(test.n_users):
        if not relevant[user].any():
            continue
        candidates = [item for item in range(test.n_items) if not hidden[user, item]]
        ranked = sorted(candidates, key=lambda item: (-scores[user, item], item))
        hits = [bool(relevant[user, item]) for item in ranked]
        gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:k]))
        n_ideal = sum(hits[:100]) if is_printed else int(relevant[user].sum())
        best = sum(1 / math.log2(rank + 2) for rank in range(min(k, n_ideal)))
        recall.append(sum(hits[:k]) / relevant[user].sum())
        ndcg.append(gain / best if best else 0.0)
        listed += ranked[:k]
        tail_hits += sum(relevant[user, item] for item in ranked[:k] if item in tail)
        others["precision"].append(sum(hits[:k]) / k)
        others["hit_rate"].append(float(any(hits[:k])))
        ranks = [rank for rank, hit in enumerate(hits[:k], 1) if hit]
        others["mrr"].append(1 / ranks[0] if ranks else 0.0)
        precisions = [number / rank for number, rank in enumerate(ranks, 1)]
        others["map"].append(sum(precisions) / min(k, relevant[user].sum()))
        shares = [popularity[item] / train.n_users for item in ranked[:k]]
        others["popularity"].append(sum(shares) / len(shares) if shares else 0.0)
        distances = [1 - cosine(vectors[i], vectors[j]) for i, j in combinations(ranked[:k], 2)]
        others["diversity"].append(sum(distances) / len(distances) if distances else 0.0)
    bits = [-math.log2(max(popularity[item], 1) / train.n_users) for item in listed]
    return {
        f"recall@{k}": sum(recall) / len(recall),
        f"ndcg@{k}": sum(ndcg) / len(ndcg),
        f"coverage@{k}": len(set(listed)) / test.n_items,
        f"novelty@{k}": sum(bits) / len(bits) if bits else 0.0,
        f"tail_recall@{k}": tail_hits / max(1, relevant[:, tail].sum()),
        **{f"{name}@{k}": sum(values) / len(values) for name, values in others.items()},
    }


def cosine(first: Any, second: Any) -> float:
    norms = math.sqrt(first @ first) * math.sqrt(second @ second)
    return float(first @ second) / norms if norms else 0.0


@given(problems(), st.integers(1, 9))
def test_both_conventions_against_the_definitions(problem: Any, k: int) -> None:
    scores, train, validation, test = problem
    k = min(k, train.n_items)
    names = [f"{metric}@{k}" for metric in ranking.METRICS]
    formula = evaluate(lambda rows: scores[rows], train, test, validation=validation, metrics=names)
    assert formula == pytest.approx(oracle(scores, train, validation, test, k, is_printed=False))
    printed = evaluate(
        lambda rows: scores[rows], train, test, validation=validation, metrics=names, convention="printed"
    )
    assert printed == pytest.approx(oracle(scores, train, None, test, k, is_printed=True))


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_ndcg_against_scikit_learn(seed: int, k: int) -> None:
    draws = np.random.default_rng(seed)
    scores, test = draws.random((7, 12)), draws.random((7, 12)) < 0.3
    test[:, 0] = True
    train = Interactions(np.zeros((7, 12)))
    metrics = evaluate(lambda rows: scores[rows], train, Interactions(test), metrics=[f"ndcg@{k}"])
    assert metrics[f"ndcg@{k}"] == pytest.approx(ndcg_score(test, scores, k=k))


def test_the_ideal_of_the_printed_convention_ends_at_100() -> None:
    """150 items by descending score, of which the 1st, 3rd and 121st are relevant."""
    scores = -np.arange(150.0)[None]
    test = np.zeros((1, 150))
    test[0, [0, 2, 120]] = 1
    train = Interactions(np.zeros((1, 150)))
    gain = 1 + 1 / math.log2(4)
    for convention, n_ideal in (("formula", 3), ("printed", 2)):
        metrics = evaluate(lambda rows: scores, train, Interactions(test), convention=convention)
        best = sum(1 / math.log2(rank + 2) for rank in range(n_ideal))
        assert metrics["ndcg@10"] == pytest.approx(gain / best)
        assert metrics["recall@10"] == pytest.approx(2 / 3)


def test_results_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(0)
    scores, part = draws.integers(5, size=(40, 30)), draws.choice(3, size=(40, 30))
    train, test = Interactions(part == 1), Interactions(part == 2)
    names = [f"{metric}@5" for metric in ranking.METRICS]
    whole = evaluate(lambda rows: scores[rows], train, test, metrics=names)
    monkeypatch.setattr(ranking, "MAX_BLOCK_SCORES", 70)
    sizes: list[int] = []

    def score(rows: Any) -> Any:
        sizes.append(len(rows))
        return scores[rows]

    monkeypatch.setattr(ranking, "LISTS_PER_BLOCK", 3)
    blocks = evaluate(score, train, test, metrics=names)
    assert set(sizes) == {2}
    assert blocks == whole
    assert set(names) - set(whole.per_user) == {"coverage@5", "novelty@5", "tail_recall@5"}
    for name, values in whole.per_user.items():
        assert np.array_equal(values, blocks.per_user[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": ["ndcg@4"]}, "k of the metric 'ndcg@4' must be .* the number of items = 3; got 4"),
        ({"metrics": "recall@1"}, "metrics must be a list of names such as 'recall@10'; got 'recall@1'"),
        ({"metrics": ["recal@1"]}, r"form 'recall@k', .*; got 'recal@1'. Did you mean recall@1\?"),
        ({"test": Interactions(np.zeros((2, 3)))}, "test must hold at least one interaction"),
        ({"test": Interactions(np.ones((1, 3)))}, "test must be of the users and items of "),
        ({"score": lambda rows: np.full((2, 3), np.nan)}, "scores must hold finite numbers; got nan"),
        ({"score": lambda rows: np.ones((2, 4))}, r"scores must have shape \(2, 3\)"),
    ],
)
def test_wrong_input(changes: dict[str, Any], message: str) -> None:
    train = Interactions([[1, 0, 0], [0, 1, 0]])
    defaults: dict[str, Any] = {
        "score": lambda rows: np.ones((len(rows), 3)),
        "metrics": ["recall@1"],
        "test": Interactions([[0, 1, 0], [1, 0, 0]]),
    }
    arguments = defaults | changes
    with pytest.raises(InputError, match=message):
        evaluate(arguments.pop("score"), train, arguments.pop("test"), **arguments)


def test_test_interactions_in_train_are_misses_with_a_warning() -> None:
    train, test = Interactions([[1, 0, 0], [0, 1, 0]]), Interactions([[1, 1, 0], [0, 0, 1]])
    scores = np.tile([3.0, 2, 1], (2, 1))
    with pytest.warns(DataWarning, match="test: 1 of its 3 interactions are in train or validation too"):
        metrics = evaluate(lambda rows: scores[rows], train, test, metrics=["recall@2"])
    assert metrics.per_user["recall@2"].tolist() == [0.5, 1.0]
    with pytest.warns(DataWarning, match="test: 1 of its 3 interactions"):  # in both parts, counted once
        evaluate(lambda rows: scores[rows], train, test, validation=train, metrics=["recall@2"])


def test_an_evaluation_is_a_dictionary_with_the_values_of_users() -> None:
    train = Interactions([[1, 0], [1, 0], [1, 0]], user_ids=["a", "b", "c"])
    test = Interactions([[0, 1], [0, 0], [0, 1]], user_ids=["a", "b", "c"])
    metrics = evaluate(lambda rows: np.ones((len(rows), 2)), train, test, metrics=["recall@1", "coverage@1"])
    assert metrics == {"recall@1": 1.0, "coverage@1": 0.5}
    again = pickle.loads(pickle.dumps(metrics))
    assert isinstance(again, Evaluation)
    assert again.users.tolist() == ["a", "c"]
    frame = again.to_pandas()
    assert list(frame.columns) == ["user", "recall@1"]
    assert frame["user"].tolist() == ["a", "c"]


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 8),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([np.uint8, np.int64, np.float32, np.float64]),
    st.sampled_from([1, MAX_SORTED_RATIO]),
)
def test_top_items_on_ties(seed: int, n_items: int, k: int, levels: int, dtype: Any, max_ratio: int) -> None:
    """Few levels make many ties; with a small ratio most rows are ranked by counting ties."""
    k = min(k, n_items)
    scores = np.random.default_rng(seed).integers(levels, size=(5, n_items)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        scores[0, ::2] = -np.inf
    expected = [sorted(range(n_items), key=lambda item: (-row[item], item))[:k] for row in scores.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodecopy.metrics.ranking.MAX_SORTED_RATIO", max_ratio)
        assert top_items(scores, k).tolist() == expected

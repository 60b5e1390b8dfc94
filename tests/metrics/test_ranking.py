from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.metrics import ranking
from nodecopy.metrics.ranking import evaluate, per_user, top_items


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
    recall, ndcg, listed = [], [], []
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
    bits = [-math.log2(max(popularity[item], 1) / train.n_users) for item in listed]
    return {
        f"recall@{k}": sum(recall) / len(recall),
        f"ndcg@{k}": sum(ndcg) / len(ndcg),
        f"coverage@{k}": len(set(listed)) / test.n_items,
        f"novelty@{k}": sum(bits) / len(bits) if bits else 0.0,
    }


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
    whole = per_user(lambda rows: scores[rows], train, test)
    monkeypatch.setattr(ranking, "MAX_BLOCK_SCORES", 70)
    sizes: list[int] = []

    def score(rows: Any) -> Any:
        sizes.append(len(rows))
        return scores[rows]

    blocks = per_user(score, train, test)
    assert set(sizes) == {2}
    for name, values in whole.items():
        assert np.array_equal(values, blocks[name])


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 8),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([np.uint8, np.int64, np.float32, np.float64]),
    st.sampled_from([1, ranking.MAX_SORTED_RATIO]),
)
def test_top_items_on_ties(seed: int, n_items: int, k: int, levels: int, dtype: Any, max_ratio: int) -> None:
    """Few levels make many ties; with a small ratio most rows are ranked by counting ties."""
    k = min(k, n_items)
    scores = np.random.default_rng(seed).integers(levels, size=(5, n_items)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        scores[0, ::2] = -np.inf
    expected = [sorted(range(n_items), key=lambda item: (-row[item], item))[:k] for row in scores.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "MAX_SORTED_RATIO", max_ratio)
        assert top_items(scores, k).tolist() == expected


def test_top_items_without_users() -> None:
    assert top_items(np.zeros((0, 4)), 2).shape == (0, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": ["ndcg@4"]}, "k of the metric 'ndcg@4' must be .* n_items = 3; got 4"),
        ({"metrics": ["ndcg@0"]}, "k of the metric 'ndcg@0' must be an integer between 1 and"),
        ({"metrics": []}, r"metrics must be a list of names such as 'recall@10'; got \[\]"),
        ({"metrics": "recall@1"}, "metrics must be a list of names such as 'recall@10'; got 'recall@1'"),
        ({"metrics": ["recal@1"]}, "metrics must be of the form 'recall@k', .*; got 'recal@1'"),
        ({"metrics": ["recall@one"]}, "metrics must be of the form .*; got 'recall@one'"),
        ({"convention": "paper"}, "convention must be one of 'formula', 'printed'; got 'paper'"),
        ({"test": Interactions(np.zeros((2, 3)))}, "test must hold at least one interaction"),
        ({"test": Interactions(np.ones((1, 3)))}, "test must be of the users and items of train"),
        ({"validation": Interactions(np.ones((2, 4)))}, "validation must be of the users and items of train"),
        ({"score": lambda rows: np.full((2, 3), np.nan)}, "scores must be finite; got nan"),
        ({"score": lambda rows: np.ones((2, 4))}, r"scores must have shape \(2, 3\)"),
    ],
)
def test_wrong_input(changes: dict[str, Any], message: str) -> None:
    train = Interactions([[1, 0, 0], [0, 1, 0]])
    defaults: dict[str, Any] = {
        "score": lambda rows: np.ones((len(rows), 3)),
        "metrics": ["recall@1"],
        "test": train,
    }
    arguments = defaults | changes
    with pytest.raises(InputError, match=message):
        evaluate(arguments.pop("score"), train, arguments.pop("test"), **arguments)


def test_wrong_scores() -> None:
    for scores, message in (
        ([1.0, 2.0], "scores must hold numbers, one row per user"),
        ([[1.0, np.nan]], "scores must be numbers; got nan"),
    ):
        with pytest.raises(InputError, match=message):
            top_items(scores, 1)


def test_metrics_of_users_are_recall_and_ndcg() -> None:
    train = Interactions([[1, 0, 0], [0, 1, 0]])
    with pytest.raises(InputError, match="metrics must be of the form 'recall@k', 'ndcg@k' with"):
        per_user(lambda rows: np.ones((len(rows), 3)), train, train, metrics=["coverage@1"])

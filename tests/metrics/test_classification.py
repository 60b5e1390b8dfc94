from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy.errors import InputError
from nodecopy.metrics.classification import (
    accuracy,
    area_under_roc,
    brier,
    expected_calibration_error,
    nll,
    reliability_curve,
    scores,
    selective_accuracy,
)

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])
LABELS = np.array([0, 1, 0, 2])


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Any, Any]:
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 4))
    draws = np.random.default_rng(draw(st.integers(0, 2**32)))
    p = draws.dirichlet(np.full(k, draw(st.sampled_from([0.1, 1.0, 10.0]))), n)
    return p, draws.integers(k, size=n)


def test_by_hand() -> None:
    assert accuracy(P, LABELS) == 0.5
    assert nll(P, LABELS) == pytest.approx(-math.log(0.7 * 0.8 * 0.3 * 0.25) / 4)
    rows = [0.09 + 0.04 + 0.01, 0.01 + 0.04 + 0.01, 0.49 + 0.09 + 0.16, 0.25 + 0.0625 + 0.5625]
    assert brier(P, LABELS) == pytest.approx(sum(rows) / 4)
    # Every confidence (0.7, 0.8, 0.4, 0.5) has a bin of its own.
    assert expected_calibration_error(P, LABELS) == pytest.approx((0.3 + 0.2 + 0.4 + 0.5) / 4)
    # Two bins: (0, 0.5] with 0.4 and 0.5, both wrong, (0.5, 1] with 0.7 and 0.8, both right.
    assert expected_calibration_error(P, LABELS, n_bins=2) == pytest.approx((0.9 + 0.5) / 4)
    assert expected_calibration_error(P, LABELS, n_bins=1) == pytest.approx(abs(2.4 - 2) / 4)


def test_some_nodes() -> None:
    unknown = np.array([0, -1, -1, 2])
    for metric in (accuracy, nll, brier, expected_calibration_error):
        assert metric(P, unknown, [0, 3]) == metric(P[[0, 3]], LABELS[[0, 3]])
        assert metric(P, LABELS) == metric(P, LABELS, [3, 1, 0, 2])


@given(predictions())
def test_scores_and_their_bounds(prediction: tuple[Any, Any]) -> None:
    p, labels = prediction
    values = scores(p, labels)
    assert values == {
        "accuracy": accuracy(p, labels),
        "nll": nll(p, labels),
        "brier": brier(p, labels),
        "ece": expected_calibration_error(p, labels),
    }
    assert 0 <= values["accuracy"] <= 1
    assert 0 <= values["brier"] <= 2
    assert 0 <= values["ece"] <= 1
    assert 0 <= values["nll"] <= math.log(2**23) + 1e-9
    assert values["ece"] >= abs(values["accuracy"] - p.max(axis=1).mean()) - 1e-12  # that of one bin


@given(predictions(), st.integers(1, 20))
def test_the_reliability_curve_gives_the_calibration_error(prediction: tuple[Any, Any], n_bins: int) -> None:
    p, labels = prediction
    confidence, right, n_nodes = reliability_curve(p, labels, n_bins=n_bins)
    assert n_nodes.sum() == len(p)
    assert n_nodes.min() > 0
    assert (np.diff(confidence) > 0).all()
    error = (n_nodes * np.abs(confidence - right)).sum() / len(p)
    assert error == pytest.approx(expected_calibration_error(p, labels, n_bins=n_bins))
    assert (n_nodes * right).sum() / len(p) == pytest.approx(accuracy(p, labels))


@given(predictions())
def test_node_order_is_irrelevant(prediction: tuple[Any, Any]) -> None:
    p, labels = prediction
    assert scores(p[::-1], labels[::-1]) == pytest.approx(scores(p, labels))


def test_best_and_worst_predictions() -> None:
    sure = np.eye(3, dtype=np.float32)
    assert scores(sure, [0, 1, 2]) == {"accuracy": 1, "nll": 0, "brier": 0, "ece": 0}
    assert math.copysign(1, nll(sure, [0, 1, 2])) == 1
    assert scores(sure, [1, 2, 0]) == {
        "accuracy": 0,
        "nll": pytest.approx(23 * math.log(2)),
        "brier": 2,
        "ece": 1,
    }


def test_ties_go_to_the_first_class() -> None:
    assert accuracy([[0.5, 0.5]], [0]) == 1
    assert accuracy([[0.5, 0.5]], [1]) == 0


@pytest.mark.parametrize(
    ("p", "labels", "nodes", "message"),
    [
        ([0.5, 0.5], [0], None, r"one row per node and one column per class; got float64 of shape \(2,\)"),
        ([["a", "b"]], [0], None, r"probabilities must hold numbers"),
        ([[]], [0], None, r"got float64 of shape \(1, 0\)"),
        ([[0.5, math.nan]], [0], None, r"probabilities must hold finite numbers; got nan"),
        ([[0.5, 0.6]], [0], None, r"add up to 1 in every row; got a row that adds up to 1.1"),
        ([[-0.5, 1.5]], [0], None, r"probabilities must not be negative; got -0.5"),
        ([[0.5, 0.5]], [2], None, r"labels of the nodes must lie between 0 and 1; got 2"),
        ([[0.5, 0.5]], [-1], None, r"labels of the nodes must lie between 0 and 1; got -1"),
        ([[0.5, 0.5]], [0.0], None, r"labels of the nodes must hold integers"),
        ([[0.5, 0.5]], [0, 1], None, r"labels must hold one entry per node, 1 in all; got 2"),
        ([[0.5, 0.5]], [0], [1], r"nodes must lie between 0 and 0; got 1"),
        ([[0.5, 0.5]], [0], [], r"nodes must hold at least one node to evaluate; got none"),
    ],
)
def test_errors(p: Any, labels: Any, nodes: Any, message: str) -> None:
    for metric in (accuracy, nll, brier, expected_calibration_error, scores):
        with pytest.raises(InputError, match=message):
            metric(p, labels, nodes)


def test_number_of_bins() -> None:
    with pytest.raises(InputError, match=r"n_bins must be an integer between 1 and 1000000; got 0"):
        expected_calibration_error(P, LABELS, n_bins=0)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 4))
def test_selective_accuracy_by_enumeration(seed: int, n: int, n_levels: int) -> None:
    """Enumerate the sets of nodes that may stay: none that goes is more certain than one that stays."""
    draws = np.random.default_rng(seed)
    correct, uncertainty = draws.random(n) < 0.5, draws.integers(n_levels, size=n)
    for left_out, ours in zip(
        (0.0, 0.1, 0.2, 0.5), selective_accuracy(correct, uncertainty, (0.0, 0.1, 0.2, 0.5)), strict=True
    ):
        n_kept = n - math.floor(left_out * n + 1e-9)
        cut = np.sort(uncertainty)[n_kept - 1]
        allowed = [
            kept
            for kept in map(list, combinations(range(n), n_kept))
            if uncertainty[kept].max() <= cut and (uncertainty < cut).sum() == (uncertainty[kept] < cut).sum()
        ]
        assert ours == pytest.approx(np.mean([correct[kept].mean() for kept in allowed]))


def test_selective_accuracy_of_a_good_and_a_bad_ranking() -> None:
    correct = np.arange(10) < 5
    assert selective_accuracy(correct, np.arange(10)).tolist() == [5 / 9, 5 / 8, 1]
    assert selective_accuracy(correct, -np.arange(10)).tolist() == [4 / 9, 3 / 8, 0]
    assert selective_accuracy(correct, np.zeros(10)) == pytest.approx([0.5] * 3)


@pytest.mark.parametrize(
    ("correct", "uncertainty", "left_out", "message"),
    [
        ([], [], [0.1], "correct must hold at least one node; got none"),
        ([True], [0.1, 0.2], [0.1], "uncertainty must hold one entry per node, 1 in all; got 2"),
        ([True], [math.nan], [0.1], "uncertainty must hold finite numbers; got nan"),
        ([True], [0.1], [0.5, 1], "left_out must hold shares from 0 to less than 1; got 1"),
        ([True], [0.1], [-0.1], "left_out must hold shares from 0 to less than 1; got -0.1"),
        ([1, 2], [0.1, 0.2], [0.1], "correct must hold booleans, or 0 and 1; got 2"),
        ([1, 0.4], [0.1, 0.2], [0.1], "correct must hold booleans, or 0 and 1; got 0.4"),
        (["1", "0"], [0.1, 0.2], [0.1], "correct must hold booleans, or 0 and 1; got '1'"),
    ],
)
def test_errors_of_selective_accuracy(correct: Any, uncertainty: Any, left_out: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        selective_accuracy(correct, uncertainty, left_out)


def test_truth_values_are_booleans_or_0_and_1() -> None:
    for positive in ([1, 0], [1.0, 0.0], np.array([True, False], object)):
        assert area_under_roc([0.5, 0.1], positive) == 1
    with pytest.raises(InputError, match="positive must hold booleans, or 0 and 1; got 3"):
        area_under_roc([0.5, 0.1], [3, 0])


@settings(deadline=None)  # the first example imports scikit-learn
@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 10))
def test_area_under_roc_agrees_with_scikit_learn(seed: int, n: int, n_levels: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draws = np.random.default_rng(seed)
    values, positive = (
        draws.integers(n_levels, size=n),
        draws.permutation(np.arange(n) < draws.integers(1, n)),
    )
    assert area_under_roc(values, positive) == pytest.approx(metrics.roc_auc_score(positive, values))


def test_area_under_roc_needs_both_kinds() -> None:
    with pytest.raises(InputError, match="positives and negatives; got 2 positives of 2"):
        area_under_roc([1, 2], [True, True])

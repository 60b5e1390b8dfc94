"""Metrics of probabilities and uncertainty against definitions and scikit-learn; temperature scaling."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodecopy.errors import InputError
from nodecopy.metrics import TemperatureScaling
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


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 10))
def test_area_under_roc_agrees_with_scikit_learn(seed: int, n: int, n_levels: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draws = np.random.default_rng(seed)
    values = draws.integers(n_levels, size=n)
    positive = draws.permutation(np.arange(n) < draws.integers(1, n))
    assert area_under_roc(values, positive) == pytest.approx(metrics.roc_auc_score(positive, values))


def simulate(temperature: float, n: int = 20_000) -> tuple[Any, Any]:
    """Return predictions that a temperature calibrates, and classes drawn from the calibrated ones."""
    draws = np.random.default_rng(0)
    p = draws.dirichlet([0.7, 0.7, 0.7], n).clip(1e-5)
    p /= p.sum(axis=1, keepdims=True)
    labels = (draws.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return TemperatureScaling(1 / temperature).apply(p), labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_of_a_simulation_is_recovered(temperature: float) -> None:
    """Over 20,000 nodes its standard error is about 1 %; the seed is fixed."""
    p, labels = simulate(temperature)
    scaling = TemperatureScaling.fit(p, labels)
    assert scaling.temperature == pytest.approx(temperature, rel=0.05)
    scaled = scaling.apply(p)
    assert accuracy(scaled, labels) == accuracy(p, labels)
    assert expected_calibration_error(scaled, labels) < 0.02


@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.1, 1.0, 10.0]))
def test_no_temperature_on_a_grid_is_better(seed: int, n: int, concentration: float) -> None:
    draws = np.random.default_rng(seed)
    p, labels = draws.dirichlet([concentration] * 3, n), draws.integers(3, size=n)
    p = p.clip(1e-3) / p.clip(1e-3).sum(axis=1, keepdims=True)
    ours = nll(TemperatureScaling.fit(p, labels).apply(p), labels)
    for temperature in np.exp(np.linspace(-1.5, math.log(20), 40)):
        assert ours <= nll(TemperatureScaling(temperature).apply(p), labels) + 1e-4


def test_bounds() -> None:
    right, wrong = [[0.9, 0.1]], [[0.1, 0.9]]
    assert 1 / 20 <= TemperatureScaling.fit(right, [0]).temperature < 0.1
    assert TemperatureScaling.fit(wrong, [0]).temperature == pytest.approx(20, rel=1e-3)
    assert TemperatureScaling.fit(wrong, [0]).is_at_bound
    assert not TemperatureScaling(2.0).is_at_bound


def test_precision_and_zeros() -> None:
    p = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    assert TemperatureScaling().apply(p).dtype == np.float32
    np.testing.assert_allclose(TemperatureScaling().apply(p), p, atol=1e-6)
    np.testing.assert_allclose(TemperatureScaling(23.0).apply(p)[0], [2 / 3, 1 / 3], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([0.5, 0.5], [0]), "one column per class"),
        (lambda: accuracy([[0.5, 0.6]], [0]), "add up to 1 in every row; got a sum of 1.1"),
        (lambda: nll([[-0.5, 1.5]], [0]), "probabilities must not be negative; got -0.5"),
        (lambda: brier([[0.5, 0.5]], [2]), "labels of the nodes must lie between 0 and 1; got 2"),
        (lambda: scores([[0.5, 0.5]], [0], []), "nodes must hold at least one node to evaluate; got none"),
        (lambda: selective_accuracy([], [], [0.1]), "correct must hold at least one node; got none"),
        (lambda: selective_accuracy([True], [0.1, 0.2]), "uncertainty must hold one entry per node"),
        (lambda: selective_accuracy([True], [0.1], [1]), "left_out must hold shares .*; got 1"),
        (lambda: selective_accuracy([1, 0.4], [0.1, 0.2]), "correct must hold booleans, or 0 and 1; got 0.4"),
        (lambda: area_under_roc([0.5, 0.1], [3, 0]), "positive must hold booleans, or 0 and 1; got 3"),
        (lambda: area_under_roc([1, 2], [True, True]), "positives and negatives; got 2 positives of 2"),
    ],
)
def test_wrong_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()

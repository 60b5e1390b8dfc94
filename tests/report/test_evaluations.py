from __future__ import annotations

from math import comb

import numpy as np
import pytest

from nodecopy.report.sections import (
    MIN_CURVE_NODES,
    HeldOutPredictions,
    accuracy_interval,
    join_trials,
    summarise_evaluation,
)
from tests.report import examples


def evaluation(n: int, accuracy: float, n_splits: int = 1) -> HeldOutPredictions:
    """Two classes; the share ``accuracy`` of the nodes of each split is right, the most certain ones."""
    is_correct = np.arange(n) < accuracy * n
    p = np.where(is_correct, np.linspace(0.95, 0.7, n), 0.4)
    codes = np.zeros(n, np.int64)
    codes[::2] = 1
    probabilities = np.where(codes[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    parts = probabilities, codes, 1 - probabilities.max(axis=1), np.zeros(n, np.int64)
    whole = HeldOutPredictions(*(np.concatenate([part] * n_splits) for part in parts))
    return whole._replace(splits=np.repeat(np.arange(n_splits), n))


@pytest.mark.parametrize(("n_correct", "n"), [(0, 5), (5, 5), (8, 10), (45, 60)])
def test_wilson_intervals_are_those_of_scipy(n_correct: int, n: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(n_correct, n).proportion_ci(method="wilson")
    assert accuracy_interval([n_correct], [n]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_intervals_cover_the_accuracy() -> None:
    """Exact over the binomial distribution: the mean coverage of Wilson's interval is near 95 %."""
    n, coverages = 20, []
    for p in np.linspace(0.05, 0.95, 37):
        hits = [low <= p <= high for low, high in (accuracy_interval([k], [n]) for k in range(n + 1))]
        coverages.append(sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if hits[k]))
    assert np.mean(coverages) == pytest.approx(0.95, abs=0.015)


def test_splits_that_differ_widen_the_interval() -> None:
    from scipy.stats import t

    alike, different = accuracy_interval([70, 70, 70], [100] * 3), accuracy_interval([50, 70, 90], [100] * 3)
    assert alike == pytest.approx(accuracy_interval([210], [300]))
    width = t.ppf(0.975, 2) * np.std([0.5, 0.7, 0.9], ddof=1) / np.sqrt(3)
    assert different == pytest.approx((0.7 - width, 1.0))
    assert accuracy_interval([70, 0], [100, 0]) == accuracy_interval([70], [100])


def test_few_nodes_have_no_curves() -> None:
    few = summarise_evaluation("a", evaluation(MIN_CURVE_NODES - 1, 0.8))
    many = summarise_evaluation("a", evaluation(MIN_CURVE_NODES, 0.8))
    assert few["reliability"] == few["certainty"] == []
    assert len(many["certainty"]) == 20
    assert many["certainty"][-1][:2] == [1, many["accuracy"]]
    assert many["certainty"][-1][2:] == pytest.approx(many["interval"])
    assert sum(point[-1] for point in many["reliability"]) == MIN_CURVE_NODES
    for _, accuracy, low, high, _ in many["reliability"]:
        assert low <= accuracy <= high
    assert (few["n_nodes"], few["n_splits"]) == (MIN_CURVE_NODES - 1, 1)


def test_a_model_has_learned_if_it_is_clearly_above_the_largest_class() -> None:
    assert summarise_evaluation("a", evaluation(100, 0.9))["has_learned"]
    chance = summarise_evaluation("a", evaluation(100, 0.55))
    assert not chance["has_learned"]
    assert chance["majority"] == 0.5


def test_trials_are_joined_with_their_numbers() -> None:
    codes = np.repeat([0, 1], 20)
    joined = join_trials([examples.predicted()] * 2, [np.array([0, 1]), np.array([30, 31, 32])], codes)
    assert joined.splits is not None
    assert joined.splits.tolist() == [0, 0, 1, 1, 1]
    assert joined.codes.tolist() == [0, 0, 1, 1, 1]
    assert summarise_evaluation("a", joined)["n_splits"] == 2

"""Accuracy, calibration and uncertainty on held-out nodes, with intervals of 95 %."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from nodecopy._core.arrays import IntArray
from nodecopy.metrics.classification import (
    confidence_bins,
    reliability_curve,
    scores,
    selective_accuracy,
)
from nodecopy.report.headlines import round_all, round_number

MIN_CURVE_NODES = 30
"""Held-out nodes below which there are no curves: their points would be the accuracies of a few nodes."""
N_BINS = 10
SHARES = np.arange(1, 21) / 20
"""Shares of the most certain nodes at which accuracies are given."""
TAIL = 0.025


class PageEvaluation(NamedTuple):
    """Predictions for nodes of known class: probabilities, classes, uncertainty and number of the split."""

    probabilities: NDArray[Any]
    codes: NDArray[np.int64]
    uncertainty: NDArray[Any]
    splits: NDArray[np.int64] | None = None


def join_trials(predictions: Sequence[Any], tests: Sequence[IntArray], codes: IntArray) -> PageEvaluation:
    """Return the predictions of one or more trials, each at its test nodes."""
    parts = (
        (prediction.probabilities[test], codes[test], prediction.uncertainty().total[test], 0 * test + number)
        for number, (prediction, test) in enumerate(zip(predictions, tests, strict=True))
    )
    return PageEvaluation(*map(np.concatenate, zip(*parts, strict=True)))


def accuracy_interval(n_correct: ArrayLike, n_nodes: ArrayLike) -> tuple[float, float]:
    """Return the interval of 95 % of an accuracy over one or more splits.

    For one split it is Wilson's interval. For several splits it is the wider of that and of Student's
    interval with the variance between splits, since the nodes of a split share a trained model.

    Parameters
    ----------
    n_correct, n_nodes
        Of each split: the number of correct predictions, which may be an expected one, and of predictions.

    Examples
    --------
    >>> [round(bound, 3) for bound in accuracy_interval([8], [10])]
    [0.49, 0.943]
    >>> [round(bound, 3) for bound in accuracy_interval([40, 60], [100, 100])]
    [0.0, 1.0]
    """
    correct, sizes = np.atleast_1d(n_correct).astype(float), np.atleast_1d(n_nodes).astype(float)
    correct, sizes = correct[sizes > 0], sizes[sizes > 0]
    n, k, z = float(sizes.sum()), len(sizes), float(ndtri(1 - TAIL))
    share = float(correct.sum()) / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = min(centre - width, share), max(centre + width, share)
    if k > 1:
        variance = k / (k - 1) * float(((correct - share * sizes) ** 2).sum()) / n**2
        width = float(stdtrit(k - 1, 1 - TAIL)) * math.sqrt(variance)
        low, high = min(low, share - width), max(high, share + width)
    return max(low, 0.0), min(high, 1.0)


def summarise_evaluation(name: str, evaluation: PageEvaluation) -> dict[str, Any]:
    """Return the scores of a classifier with their interval and, for at least 30 nodes, its curves.

    ``majority`` is the accuracy of always predicting the largest class, and ``has_learned`` whether the
    interval of the accuracy lies above it. A point of ``reliability`` holds confidence, accuracy, the bounds
    of its interval and the number of nodes of a bin; one of ``certainty`` the share of the most certain
    nodes, their accuracy and the bounds.
    """
    p, codes = np.asarray(evaluation.probabilities), np.asarray(evaluation.codes)
    is_correct = p.argmax(axis=1) == codes
    splits = np.zeros(len(codes), np.int64) if evaluation.splits is None else evaluation.splits
    low, high = _interval(is_correct, splits)
    majority = float(np.bincount(codes).max()) / len(codes)
    has_curves = len(codes) >= MIN_CURVE_NODES
    return {
        "name": name,
        **{key: round_number(value, 4) for key, value in scores(p, codes).items()},
        "interval": [round_number(low, 4), round_number(high, 4)],
        "majority": round_number(majority, 4),
        "has_learned": low > majority,
        "n_nodes": len(codes),
        "n_splits": len(np.unique(splits)),
        "reliability": _reliability(p, codes, is_correct, splits) if has_curves else [],
        "certainty": _certainty(is_correct, np.asarray(evaluation.uncertainty), splits) if has_curves else [],
    }


def summarise_evaluations(evaluations: Mapping[str, PageEvaluation] | None) -> list[dict[str, Any]]:
    """Return the summary of each classifier, in their order."""
    return [summarise_evaluation(name, evaluation) for name, evaluation in (evaluations or {}).items()]


def _interval(is_correct: NDArray[np.bool_], splits: NDArray[np.int64]) -> tuple[float, float]:
    return accuracy_interval(np.bincount(splits, is_correct), np.bincount(splits))


def _reliability(
    p: NDArray[Any], codes: IntArray, is_correct: NDArray[np.bool_], splits: NDArray[np.int64]
) -> list[list[float | None]]:
    confidence, accuracy, n_nodes = reliability_curve(p, codes, n_bins=N_BINS)
    bins = confidence_bins(p.astype(np.float64), N_BINS)[1]
    intervals = [_interval(is_correct[bins == number], splits[bins == number]) for number in np.unique(bins)]
    return [
        round_all([*point[:2], *interval, point[2]], 4)
        for point, interval in zip(zip(confidence, accuracy, n_nodes, strict=True), intervals, strict=True)
    ]


def _certainty(
    is_correct: NDArray[np.bool_], uncertainty: NDArray[Any], splits: NDArray[np.int64]
) -> list[list[float | None]]:
    groups = [np.flatnonzero(splits == number) for number in np.unique(splits)]
    accuracies = np.array([selective_accuracy(is_correct[g], uncertainty[g], 1 - SHARES) for g in groups])
    n_kept = np.ceil(SHARES * np.array([[len(group)] for group in groups]) - 1e-9).clip(1)
    n_correct = accuracies * n_kept
    means = n_correct.sum(axis=0) / n_kept.sum(axis=0)
    return [
        round_all([share, mean, *accuracy_interval(n_correct[:, i], n_kept[:, i])], 4)
        for i, (share, mean) in enumerate(zip(SHARES, means, strict=True))
    ]

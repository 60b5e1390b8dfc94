"""How good predicted class probabilities are: how often right, and how honest about it.

Every function takes ``probabilities`` [n_nodes, n_classes], one row per node, and ``labels`` [n_nodes],
the column of each node's true class. ``nodes`` chooses the nodes to judge by, all of them by default;
labels elsewhere are not looked at, so they may be -1 (unknown).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import as_array, check_finite, check_indices, check_integer, check_vector
from nodecopy.errors import InputError

SUM_TOLERANCE = 1e-4  # a softmax in single precision over some hundred classes stays well within
SMALLEST = float(np.finfo(np.float32).eps)


def accuracy(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Share of nodes whose most probable class is the true one; the first class of equals counts.

    >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    return _accuracy(*_checked(probabilities, labels, nodes))


def nll(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Negative log-likelihood: mean of -ln p(true class), 0 at best.

    A probability below 2^-23, single precision's resolution, counts as 2^-23: one prediction that
    underflowed to zero would otherwise make the mean infinite.

    >>> round(nll([[0.5, 0.5]], [1]), 4)
    0.6931
    """
    return _nll(*_checked(probabilities, labels, nodes))


def brier(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Brier score: mean over nodes of the sum over classes of (p - [true class])^2, from 0 (best) to 2.

    >>> round(brier([[0.8, 0.2]], [0]), 4)
    0.08
    """
    return _brier(*_checked(probabilities, labels, nodes))


def area_under_roc(scores: ArrayLike, positive: ArrayLike) -> float:
    """How often a positive has the higher score of a positive and a negative; equal ones count half.

    >>> area_under_roc([3, 1, 2, 0], [True, True, False, False])
    0.75
    """
    from scipy.stats import rankdata

    values = np.asarray(scores, np.float64)
    check_finite(values, "scores")
    is_positive = check_vector(positive, "positive", length=len(values)).astype(bool)
    n_positive = int(is_positive.sum())
    n_negative = len(values) - n_positive
    if not n_positive or not n_negative:
        raise InputError(f"positive must hold both kinds; got {n_positive} of {len(values)}.")
    ranks = rankdata(values)[is_positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None, *, n_bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy, 0 at best (Guo et al., 2017).

    Nodes fall into ``n_bins`` bins of equal width by the probability of their most probable class, bin
    b holding those in ((b - 1) / n_bins, b / n_bins]. Each bin's |accuracy - mean confidence| counts
    by its share of the nodes.

    >>> round(expected_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 4)
    0.4
    """
    check_integer(n_bins, "n_bins", low=1)
    return _calibration_error(*_checked(probabilities, labels, nodes), n_bins)


def reliability(
    probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None, *, n_bins: int = 15
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Mean confidence, accuracy and number of nodes of each bin that holds some.

    Bins are those of :func:`expected_calibration_error`, which is the mean gap between the first two.

    >>> confidence, accuracy, n_nodes = reliability([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]], [0, 1, 1])
    >>> confidence.round(2).tolist(), accuracy.tolist(), n_nodes.tolist()
    ([0.6, 0.9], [1.0, 0.5], [1, 2])
    """
    check_integer(n_bins, "n_bins", low=1)
    p, codes = _checked(probabilities, labels, nodes)
    confidence, bins = _bins(p, n_bins)
    n_nodes = np.bincount(bins, minlength=n_bins)
    some = n_nodes > 0
    sums = (np.bincount(bins, what, n_bins)[some] for what in (confidence, p.argmax(axis=1) == codes))
    means = [total / n_nodes[some] for total in sums]
    return means[0], means[1], n_nodes[some]


def scores(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> dict[str, float]:
    """All four: ``accuracy``, ``nll``, ``brier`` and ``ece`` (15 bins)."""
    p, codes = _checked(probabilities, labels, nodes)
    return {
        "accuracy": _accuracy(p, codes),
        "nll": _nll(p, codes),
        "brier": _brier(p, codes),
        "ece": _calibration_error(p, codes, 15),
    }


def _accuracy(p: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    return float((p.argmax(axis=1) == codes).mean())


def _nll(p: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    return float(-np.log(p[np.arange(len(codes)), codes].clip(SMALLEST, 1)).mean()) + 0.0  # never -0


def _brier(p: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    off = p.copy()
    off[np.arange(len(codes)), codes] -= 1
    return float((off**2).sum(axis=1).mean())


def _calibration_error(p: NDArray[np.float64], codes: NDArray[np.int64], n_bins: int) -> float:
    confidence, bins = _bins(p, n_bins)
    excess = confidence - (p.argmax(axis=1) == codes)
    return float(np.abs(np.bincount(bins, excess, n_bins)).sum() / len(codes))


def _bins(p: NDArray[np.float64], n_bins: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The confidence of every node, and the bin that it falls into."""
    confidence: NDArray[np.float64] = p.max(axis=1)
    return confidence, (np.ceil(confidence * n_bins).astype(np.int64) - 1).clip(0, n_bins - 1)


def _checked(
    probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Probabilities and true classes of the nodes to judge by."""
    p = as_array(probabilities, "probabilities")
    if p.ndim != 2 or p.shape[1] == 0 or p.dtype.kind not in "biuf":
        raise InputError(
            f"probabilities must hold numbers, one row per node and one column per class; "
            f"got {p.dtype} of shape {p.shape}."
        )
    codes: NDArray[Any] = check_vector(labels, "labels", length=len(p))
    if nodes is not None:
        chosen = check_indices(nodes, "nodes", size=len(p))
        p, codes = p[chosen], codes[chosen]
    if not len(p):
        raise InputError("nodes must hold at least one node to judge by; got none.")
    codes = check_indices(codes, "labels of the nodes", size=p.shape[1])
    p = p.astype(np.float64)
    check_finite(p, "probabilities")
    if p.min() < -SUM_TOLERANCE:
        raise InputError(f"probabilities must not be negative; got {p.min():g}.")
    sums = p.sum(axis=1)
    worst = sums[np.abs(sums - 1).argmax()]
    if abs(worst - 1) > SUM_TOLERANCE:
        raise InputError(f"probabilities must add up to 1 in every row; got a row that adds up to {worst:g}.")
    return p, codes

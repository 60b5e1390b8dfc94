"""Metrics of predicted class probabilities: accuracy, likelihood and calibration, and of uncertainty.

Metrics of probabilities take ``probabilities`` [n_nodes, n_classes] and ``labels`` [n_nodes], the column of
each node's true class. ``nodes`` holds the positions of the nodes to evaluate, all by default; labels of
other nodes are ignored and may be -1 (unknown).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import Array, Bools, Floats, Ints
from nodecopy._core.checks import (
    as_array,
    check_finite,
    check_indices,
    check_integer,
    check_numbers,
    check_real,
    check_vector,
)
from nodecopy._core.messages import PrintedTable, warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.metrics.structure import LABEL_NAMES

SUM_TOLERANCE = 1e-4  # above the rounding of a softmax in single precision over some hundred classes
N_BINS = 15
MAX_BINS = 10**6
RANK_QUANTILE = 2.58  # standard deviations of a rank-sum test with a two-sided level of 1 %
MIN_PROBABILITY = float(np.finfo(np.float32).eps)


def accuracy(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Return the share of nodes whose most probable class is the true one; ties go to the first class.

    >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    p, codes = select_nodes(probabilities, labels, nodes)
    return float((p.argmax(axis=1) == codes).mean())


def nll(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Return the negative log-likelihood, the mean of -ln p(true class); 0 is best.

    A probability below 2^-23, the resolution of single precision, counts as 2^-23, so that a prediction that
    underflows does not make the mean infinite.

    >>> round(nll([[0.5, 0.5]], [1]), 4)
    0.6931
    """
    p, codes = select_nodes(probabilities, labels, nodes)
    true = p[np.arange(len(codes)), codes].clip(MIN_PROBABILITY, 1)
    return float(-np.log(true).mean()) + 0.0  # never -0


def brier(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> float:
    """Return the Brier score, from 0 (best) to 2: the mean of sum over classes of (p - [true class])^2.

    >>> round(brier([[0.8, 0.2]], [0]), 4)
    0.08
    """
    p, codes = select_nodes(probabilities, labels, nodes)
    p[np.arange(len(codes)), codes] -= 1
    return float((p**2).sum(axis=1).mean())


def selective_accuracy(
    correct: ArrayLike, uncertainty: ArrayLike, left_out: ArrayLike = (0.1, 0.2, 0.5)
) -> Floats:
    """Return the accuracy at the most certain nodes, where shares of the most uncertain ones are left out.

    The number of nodes that stay is rounded up. If nodes of equal uncertainty are cut, the accuracy is the
    expected one over all choices among them.

    Parameters
    ----------
    correct
        Whether the prediction of each node is correct.
    uncertainty
        Of each node, on any scale, such as ``classifier.uncertainty().total``.
    left_out
        Shares of the nodes to leave out, from 0 to less than 1.

    Examples
    --------
    >>> selective_accuracy([True, True, False, True], [0.1, 0.2, 0.9, 0.4], [0, 0.25, 0.5]).tolist()
    [0.75, 1.0, 1.0]
    """
    is_correct = _check_booleans(correct, "correct")
    values = check_vector(check_numbers(uncertainty, "uncertainty"), "uncertainty", length=len(is_correct))
    shares = check_vector(check_numbers(left_out, "left_out"), "left_out", per="share").astype(np.float64)
    if not len(is_correct):
        raise InputError("correct", "must hold at least one node; got none.")
    check_finite(values, "uncertainty")
    if len(wrong := shares[~((shares >= 0) & (shares < 1))]):
        raise InputError("left_out", f"must hold shares from 0 to less than 1; got {wrong[0]:g}.")
    levels, sizes = np.unique(values, return_inverse=True, return_counts=True)[1:]
    level_accuracy = np.bincount(levels, is_correct) / sizes
    n_correct = np.cumsum(np.repeat(level_accuracy, sizes))
    n_kept = np.ceil((1 - shares) * len(is_correct) - 1e-9).clip(1).astype(np.int64)
    return np.asarray(n_correct[n_kept - 1] / n_kept)


def area_under_roc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Return the area under the ROC curve: the share of pairs in which the positive has the higher score.

    Pairs of equal scores count half.

    Parameters
    ----------
    scores
        Of each node; high for positives.
    positive
        Whether each node is a positive. There must be positives and negatives.

    Examples
    --------
    >>> area_under_roc([3, 1, 2, 0], [True, True, False, False])
    0.75
    """
    from scipy.stats import rankdata

    values = check_vector(check_numbers(scores, "scores"), "scores").astype(np.float64)
    check_finite(values, "scores")
    is_positive = _check_booleans(positive, "positive", length=len(values))
    n_positive, n = int(is_positive.sum()), len(values)
    if n_positive in (0, n):
        raise InputError("positive", f"must hold positives and negatives; got {n_positive} positives of {n}.")
    ranks = rankdata(values)[is_positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * (n - n_positive)))


@dataclass(frozen=True, eq=False, repr=False)
class ClassReport(PrintedTable):
    """How well each class is predicted: precision, recall and F1."""

    heads = ("class", "precision", "recall", "f1", "nodes")

    classes: tuple[str, ...]
    confusion: Ints
    """Numbers of nodes, ``[true class, predicted class]``."""

    def cells(self) -> Iterable[Iterable[Any]]:
        return ((name, *values.values()) for name, values in self.by_class().items())

    @property
    def recall(self) -> Floats:
        """The share of the nodes of each class that are predicted to be of it; 0 without nodes."""
        return np.asarray(np.diag(self.confusion) / np.maximum(self.confusion.sum(axis=1), 1))

    @property
    def precision(self) -> Floats:
        """The share of the nodes predicted to be of each class that are of it; 0 without nodes."""
        return np.asarray(np.diag(self.confusion) / np.maximum(self.confusion.sum(axis=0), 1))

    @property
    def f1(self) -> Floats:
        """The harmonic mean of precision and recall."""
        sizes = self.confusion.sum(axis=0) + self.confusion.sum(axis=1)
        return np.asarray(2 * np.diag(self.confusion) / np.maximum(sizes, 1))

    def by_class(self) -> dict[str, dict[str, float]]:
        """Return ``precision``, ``recall``, ``f1`` and ``nodes`` of each class, ready for JSON."""
        columns = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        columns["nodes"] = self.confusion.sum(axis=1)
        return {
            name: {score: values[number].item() for score, values in columns.items()}
            for number, name in enumerate(self.classes)
        }


def ranks_classes(probabilities: Array, codes: Ints, *, every: bool = False) -> bool:
    """Return whether the probability of some class, or of every, ranks its nodes first, by a test at 1 %."""
    ranks = []
    for code, p in enumerate(probabilities.T):
        is_class = codes == code
        n_pairs = int(is_class.sum()) * int((~is_class).sum())
        deviation = ((len(codes) + 1) / (12 * max(n_pairs, 1))) ** 0.5
        ranks.append(n_pairs > 0 and area_under_roc(p, is_class) - 0.5 > RANK_QUANTILE * deviation)
    return all(ranks) if every else any(ranks)


def _check_booleans(values: ArrayLike, name: str, *, length: int | None = None) -> Bools:
    array = check_vector(values, name, length=length)
    if array.dtype.kind == "O":  # booleans of pandas
        array = np.array(array.tolist())
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        others = [value for value in array.tolist() if not isinstance(value, bool) and value not in (0, 1)]
        raise InputError(name, f"must hold booleans, or 0 and 1; got {(others or array.tolist())[0]!r}.")
    return array.astype(bool)


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None, *, n_bins: int = N_BINS
) -> float:
    """Return the expected calibration error (Guo et al., 2017); 0 is best.

    The confidence of a node is the probability of its most probable class. The error is the mean absolute
    difference of accuracy and mean confidence over ``n_bins`` bins of equal width, weighted by their numbers
    of nodes; bin b holds confidences in ((b - 1) / n_bins, b / n_bins].

    >>> round(expected_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 4)
    0.4
    """
    check_integer(n_bins, "n_bins", low=1, high=MAX_BINS)
    p, codes = select_nodes(probabilities, labels, nodes)
    confidence, bins = confidence_bins(p, n_bins)
    excess = confidence - (p.argmax(axis=1) == codes)
    return float(np.abs(np.bincount(bins, excess, n_bins)).sum() / len(codes))


def reliability_curve(
    probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None, *, n_bins: int = N_BINS
) -> tuple[Floats, Floats, Ints]:
    """Return the mean confidence, the accuracy and the number of nodes of each bin that is not empty.

    Bins are those of :func:`expected_calibration_error`.

    >>> confidence, accuracy, n_nodes = reliability_curve([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]], [0, 1, 1])
    >>> confidence.round(2).tolist(), accuracy.tolist(), n_nodes.tolist()
    ([0.6, 0.9], [1.0, 0.5], [1, 2])
    """
    check_integer(n_bins, "n_bins", low=1, high=MAX_BINS)
    p, codes = select_nodes(probabilities, labels, nodes)
    confidence, bins = confidence_bins(p, n_bins)
    n_nodes = np.bincount(bins, minlength=n_bins)
    is_used = n_nodes > 0
    is_correct = p.argmax(axis=1) == codes
    means = [np.bincount(bins, part, n_bins)[is_used] / n_nodes[is_used] for part in (confidence, is_correct)]
    return means[0], means[1], n_nodes[is_used]


def scores(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None) -> dict[str, float]:
    """Return ``accuracy``, ``nll``, ``brier`` and ``ece`` (15 bins) by name."""
    functions = {"accuracy": accuracy, "nll": nll, "brier": brier, "ece": expected_calibration_error}
    return {name: function(probabilities, labels, nodes) for name, function in functions.items()}


def confidence_bins(p: Floats, n_bins: int) -> tuple[Floats, Ints]:
    """Return the confidence of every node, and its bin in a :func:`reliability_curve`."""
    confidence = p.max(axis=1)
    return confidence, (np.ceil(confidence * n_bins).astype(np.int64) - 1).clip(0, n_bins - 1)


def select_nodes(probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None) -> tuple[Floats, Ints]:
    """Return the checked probabilities, a copy, and true classes of the nodes to evaluate."""
    p = as_array(probabilities, "probabilities")
    if p.ndim != 2 or p.shape[1] == 0 or p.dtype.kind not in "biuf":
        allowed = "must hold numbers, one column per class"
        raise InputError("probabilities", f"{allowed}; got {p.dtype} of shape {p.shape}.")
    codes: Array = check_vector(labels, "labels", length=len(p))
    if nodes is not None:
        chosen = check_indices(nodes, "nodes", size=len(p))
        p, codes = p[chosen], codes[chosen]
    if not len(p):
        raise InputError("nodes", "must hold at least one node to evaluate; got none.")
    codes = check_indices(codes, "labels of the nodes", size=p.shape[1])
    p = p.astype(np.float64)
    check_finite(p, "probabilities")
    if p.min() < -SUM_TOLERANCE:
        raise InputError("probabilities", f"must not be negative; got {p.min():g}.")
    sums = p.sum(axis=1)
    worst = sums[np.abs(sums - 1).argmax()]
    if abs(worst - 1) > SUM_TOLERANCE:
        raise InputError("probabilities", f"must add up to 1 in every row; got a sum of {worst:g}.")
    return p, codes


MAX_TEMPERATURE = 20.0  # the smallest is its reciprocal


@dataclass(frozen=True)
class TemperatureScaling:
    """Calibrate class probabilities by a temperature (Guo et al., 2017).

    Probabilities p become proportional to p^(1 / temperature): less confident above 1, more below 1, with the
    same predicted classes. The mean prediction of an ensemble is scaled, not each of its samples.

    Examples
    --------
    Three of four predictions are correct, at a confidence of 0.9:

    >>> probabilities = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]
    >>> scaling = TemperatureScaling.fit(probabilities, [0, 0, 0, 1])
    >>> round(scaling.temperature, 3), scaling.apply(probabilities)[0].round(3).tolist()
    (2.0, [0.75, 0.25])
    """

    temperature: float = 1.0

    @property
    def is_at_bound(self) -> bool:
        """Whether the temperature is 1/20 or 20, up to 1 %: the labelled nodes do not determine it."""
        return abs(math.log(self.temperature)) > math.log(MAX_TEMPERATURE) - 0.01

    @classmethod
    def fit(
        cls, probabilities: ArrayLike, labels: ArrayLike, nodes: ArrayLike | None = None
    ) -> TemperatureScaling:
        """Return the scaling with the least negative log-likelihood on labelled nodes.

        The temperature is between 1/20 and 20, near 1/20 if all predictions are correct. Take validation
        nodes: predictions of training nodes are too good.
        """
        from scipy.optimize import minimize_scalar
        from scipy.special import logsumexp

        p, codes = select_nodes(probabilities, labels, nodes)
        logits = _logits(p)

        def loss(log_temperature: float) -> float:
            scaled = logits / math.exp(log_temperature)
            return float((logsumexp(scaled, axis=1) - scaled[np.arange(len(codes)), codes]).mean())

        limit = math.log(MAX_TEMPERATURE)
        optimum = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
        return cls(math.exp(optimum.x))

    def apply(self, probabilities: ArrayLike) -> NDArray[np.floating]:
        """Return calibrated probabilities, in the precision of those given; 0 counts as 2^-23."""
        p = check_numbers(probabilities, "probabilities")
        if p.ndim != 2 or not p.shape[1]:
            raise InputError("probabilities", f"must have one column per class; got shape {p.shape}.")
        scaled = _logits(p) / check_real(self.temperature, "temperature", low=1 / MAX_TEMPERATURE)
        scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        scaled /= scaled.sum(axis=1, keepdims=True)
        return np.asarray(scaled, p.dtype if p.dtype.kind == "f" else np.float64)


def _logits(p: Array) -> Floats:
    return np.asarray(np.log(p.astype(np.float64).clip(MIN_PROBABILITY)))


def warn_about_missing_labels(graph: Graph, names: Collection[str]) -> None:
    """Warn if some, but not all, nodes have labels on which one of the statistics ``names`` depends."""
    affected = [name for name in LABEL_NAMES if name in names]
    if graph.label_codes is None or not (affected or "modularity" in names):
        return
    labelled = np.flatnonzero(graph.label_codes != UNLABELLED)
    if len(labelled) in (0, graph.n_nodes):
        return
    effects = []
    if "modularity" in names:
        n_others = graph.n_nodes - len(labelled)
        effects.append(f"modularity counts the {n_others:,} others as one community")
    if affected:
        n_edges = graph.subgraph(labelled).n_edges
        subject = f"{', '.join(affected)} {'is' if len(affected) == 1 else 'are'}"
        effects.append(f"{subject} over {n_edges:,} of {graph.n_edges:,} edges, those between labelled nodes")
    warn_about_data(
        f"{len(labelled):,} of {graph.n_nodes:,} nodes have a label: {'; '.join(effects)}. Label all nodes, "
        "such as by predicted classes, for a statistic of the whole graph.",
        *(["labels"] if "modularity" in names else []),
    )

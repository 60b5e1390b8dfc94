"""Controls: parts of our defences, and defences of other authors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

from nodecopy._core.arrays import Array, Bools, FloatArray, Floats, IntArray
from nodecopy._core.checks import check_settings
from nodecopy._core.random import Rng
from nodecopy.classify import GCN, MLP, Classifier, Trial
from nodecopy.defend.base import AttackedState, Correction, Defence
from nodecopy.defend.copying import Copier, DonorDefence
from nodecopy.defend.edges import keep_edges
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph

INVERSE_PENALTY = 3.0  # inverse strength of the penalty of the logistic regression, the C of scikit-learn
MAX_ITERATIONS, MAX_FOLD_ITERATIONS = 100, 30  # of L-BFGS; a fold starts from the solution for all nodes
TOLERANCE = 1e-5
N_FOLDS = 10  # nodes of a fold are predicted by a model that learned from the others
FOLDS_SEED = 0  # seed of the folds and of MLPs: not the trial's, which a file does not hold
EDGES_PER_BLOCK = 2**16  # number of edges whose similarity is computed together


@dataclass(eq=False, repr=False, kw_only=True)
class DonorAverage(DonorDefence):
    """Correct nodes by the mean of the classifier's predictions for their donors, without copying.

    Parameters are as in :class:`.CopyingDefence`, without ``mode``.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.DonorAverage().fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    trust_edges: bool = False

    def build_copier(self, state: AttackedState) -> Copier:
        return partial(_predict_donors, state)


def _predict_donors(state: AttackedState, nodes: IntArray, donors: IntArray) -> FloatArray:
    return state.probabilities[donors]


@dataclass(eq=False, repr=False)
class WithoutEdges(Defence):
    """Correct nodes by the trained classifier's predictions from their features, without any edge.

    A defence should be more accurate than this control. Parameters are as in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.WithoutEdges().fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    classifier: Classifier | str | None = None
    _: KW_ONLY
    retrain: bool = False
    device: str = "cpu"

    def prepare_correction(self, state: AttackedState) -> Correction:
        # The prediction of a node without edges depends on itself only, so all nodes lose theirs at once.
        n = state.graph.n_nodes
        no_edges = sparse.csr_array((n, n), dtype=np.float32)
        return Correction(state.predict(state.graph.replace(adjacency=no_edges)))


@dataclass(eq=False, repr=False)
class DistilledFeatures(Defence):
    """Correct nodes by a classifier of features that learned from the predictions for other nodes.

    It learns without any edge, and corrects nodes that it did not learn from. A defence should be more
    accurate than this control.

    Parameters
    ----------
    classifier, retrain, device
        As in :class:`.CopyingDefence`. With ``retrain``, flips of the targets' edges change nothing.
    model
        ``"logistic"``: logistic regression of the predicted probabilities on features weighted by TF-IDF.
        ``"mlp"``: :class:`.MLP` that learns the predicted classes, weighted by their probability. Neither
        learns from nodes without edges, unless no node has edges.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.DistilledFeatures().fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    classifier: Classifier | str | None = None
    _: KW_ONLY
    model: str = "logistic"
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_settings(self, model=["logistic", "mlp"])

    def prepare_correction(self, state: AttackedState) -> Correction:
        is_linear = self.model == "logistic"
        return Correction(distil(state) if is_linear else distil_mlp(state, self.device))


def split_folds(train: IntArray, n_nodes: int) -> Iterator[tuple[IntArray, Bools]]:
    """Yield, for each fold, the training nodes of the others and a mask of its nodes."""
    folds = np.random.default_rng(FOLDS_SEED).permutation(n_nodes) % N_FOLDS
    for fold in np.unique(folds):
        yield train[folds[train] != fold], folds == fold


def distil(state: AttackedState) -> Floats:
    """Return class probabilities from the features of each node, by logistic regression on other folds."""
    rows, train = state.embeddings.weighted_features, find_training_nodes(state.graph)
    targets = state.probabilities.astype(np.float64)
    start = fit_softmax(rows[train], targets[train])
    probabilities = np.empty_like(targets)
    for others, is_held_out in split_folds(train, len(targets)):
        weights = fit_softmax(rows[others], targets[others], start=start) if len(others) else start
        probabilities[is_held_out] = softmax(rows[is_held_out] @ weights[:-1] + weights[-1], axis=1)
    return probabilities


def find_training_nodes(graph: Graph) -> IntArray:
    """Return the nodes that have edges, or all nodes if none has."""
    has_edges = np.bincount(graph.rows.indices, minlength=graph.n_nodes) + graph.degrees > 0
    return np.flatnonzero(has_edges | ~has_edges.any())


def fit_softmax(rows: sparse.csr_array, targets: Floats, *, start: Floats | None = None) -> Floats:
    """Return the weights ``[n_features + 1, n_classes]`` of a logistic regression, the intercepts last.

    The loss is C times the sum of cross-entropies plus half the sum of squared weights without intercepts.
    """
    columns, shape = sparse.csr_array(rows.T), (rows.shape[1] + 1, targets.shape[1])

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        log_p = log_softmax(rows @ weights[:-1] + weights[-1], axis=1)
        residuals = INVERSE_PENALTY * (np.exp(log_p) - targets)
        gradient = np.vstack([columns @ residuals + weights[:-1], residuals.sum(axis=0)])
        value = -INVERSE_PENALTY * (targets * log_p).sum() + 0.5 * (weights[:-1] ** 2).sum()
        return float(value), gradient.ravel()

    first = np.zeros(shape) if start is None else start
    options: Any = {"maxiter": MAX_ITERATIONS if start is None else MAX_FOLD_ITERATIONS, "ftol": TOLERANCE}
    result = minimize(loss, first.ravel(), (), "L-BFGS-B", jac=True, options=options)
    return np.asarray(result.x.reshape(shape))


def sharpen(probabilities: Floats, predictions: FloatArray) -> Floats:
    """Return log-probabilities after temperature scaling, since a penalty makes them too uncertain."""
    log_p = np.log(np.maximum(probabilities, 1e-5))
    codes = predictions.argmax(axis=1)

    def loss(factor: float) -> float:
        return float(-log_softmax(factor * log_p, axis=1)[np.arange(len(codes)), codes].sum())

    best: Any = minimize_scalar(loss, bounds=(0.3, 5.0), method="bounded")
    return np.asarray(log_softmax(best.x * log_p, axis=1))


def distil_mlp(state: AttackedState, device: str) -> Floats:
    """Return the same by MLPs."""
    p, seed = state.probabilities, SeedSequence(FOLDS_SEED)
    codes, probabilities = p.argmax(axis=1), np.zeros(p.shape)
    for others, is_held_out in split_folds(find_training_nodes(state.graph), len(p)):
        if len(np.unique(codes[others])) < 2:  # nothing to learn
            probabilities[is_held_out] = p[others].mean(axis=0) if len(others) else 1 / p.shape[1]
            continue
        labels = np.full(len(codes), UNLABELLED)
        labels[others] = codes[others]
        trial = Trial(state.graph.replace(labels=labels), others, rng=seed)
        none = np.zeros(0, np.int64)
        trial = trial.with_pseudo_labels(none, none, weights=p[others].max(axis=1), rng=seed)
        (prediction,) = MLP(device=device).fit_trials([trial])
        probabilities[np.ix_(is_held_out, trial.classes)] = prediction.probabilities[is_held_out]
    return probabilities


@dataclass(eq=False, repr=False)
class GCNJaccard(Defence):
    """Train a GCN on the graph without edges between nodes with few common features (Wu et al., 2019).

    Corrected predictions are the GCN's own.

    Parameters
    ----------
    threshold
        Smallest Jaccard similarity of the features (that are not zero) of two neighbours whose edge is kept.
        Edges between two nodes without any feature are kept.
    classifier, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.GCNJaccard(0.1).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    threshold: float = 0.01
    _: KW_ONLY
    classifier: Classifier | str | None = None
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_settings(self, threshold=(0.0, 1.0))
        if graph.features is None:
            raise InputError("a graph must have features for GCNJaccard; this one has none.")

    def preprocess(self, graph: Graph) -> Graph:
        self.check_parameters(graph)
        return keep_edges(graph, jaccard_similarities(graph) >= self.threshold)


def jaccard_similarities(graph: Graph) -> Floats:
    """Return the Jaccard similarity of the ends of every stored entry of A; one if both have no features."""
    features: Any = graph.features
    present = sparse.csr_array(features, copy=True)
    present.eliminate_zeros()
    present.data = np.ones(present.nnz, np.float32)
    sizes = np.diff(present.indptr)
    first, second = graph.rows.row_numbers, graph.rows.indices
    common: list[Array] = [np.zeros(0)]
    for start in range(0, len(first), EDGES_PER_BLOCK):
        part = slice(start, start + EDGES_PER_BLOCK)
        common.append((present[first[part]] * present[second[part]]).sum(axis=1))
    both = np.concatenate(common)
    either = sizes[first] + sizes[second] - both
    return np.asarray(np.divide(both, either, out=np.ones(len(both)), where=either > 0))


@dataclass(eq=False, repr=False)
class GCNSVD(Defence):
    """Train a GCN on the best low-rank approximation of the adjacency (Entezari et al., 2020).

    Self-loops are added to the approximation and the sum is normalised, as in public implementations. No
    dense N x N matrix is computed. Corrected predictions are the GCN's own.

    Parameters
    ----------
    rank
        Rank of the approximation (the paper's K); at most the number of nodes minus one is used.
    classifier, device
        As in :class:`.CopyingDefence`; the classifier must be a GCN, whose own ``rank`` is not used.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.GCNSVD(20).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    rank: int = 50
    _: KW_ONLY
    classifier: Classifier | str | None = None
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_settings(self, rank=1)

    def build_classifier(self) -> Classifier:
        base = super().build_classifier()
        if not isinstance(base, GCN):
            raise InputError("classifier of GCNSVD", f"must be a GCN; got {base!r}.")
        return GCN(**(base.get_params(deep=False) | {"rank": self.rank}))

    def from_classifier(
        self, classifier: Any, graph: Graph, *, targets: ArrayLike | None = None, rng: Rng = None
    ) -> Self:
        """Raise an error: a trained classifier does not use a low-rank approximation."""
        raise InputError("GCNSVD must be trained by fit; it cannot correct a trained classifier.")

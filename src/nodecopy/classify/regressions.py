"""Linear classifiers: regression on propagated features (SGC) and embeddings (DGI), and label propagation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from torch import Tensor
from torch.nn import functional

from nodecopy._core.arrays import Singles, as_matrix, unit_rows
from nodecopy._core.checks import check_integer, check_real, check_settings
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.random import child, generator
from nodecopy.classify.base import (
    Classifier,
    ClassifierSeeds,
    Prediction,
    Trial,
    check_lengths,
    check_trials,
    entropy,
)
from nodecopy.errors import InputError
from nodecopy.features.embeddings import GraphCache, leading_directions, rarity_weights, weigh_by_rarity
from nodecopy.features.scaling import FeatureScaling, WeightScaling, explain_no_counts
from nodecopy.graph import Graph
from nodecopy.nn.engine import MAX_STEPS, Averages
from nodecopy.nn.networks import SparseStack, check_features, draw_glorot, normalise_adjacency
from nodecopy.nn.training import check_device, choose_threads

MAX_STRENGTH = 1e9  # largest ``C``; far beyond it, the first step of the optimiser overflows
STRENGTHS, DEFAULT_STRENGTH = (1000.0, 100.0, 10.0, 1.0), 10.0  # ``C`` of DGI with and without validation
# Of a regression, as in scikit-learn: the largest gradient per unit of weight, and the relative decrease.
MAX_ITERATIONS, TOLERANCE, ROUNDING = 500, 1e-4, float(np.finfo(np.float32).eps)
SLOPE = 0.25  # initial slope of the PReLU below zero


class RegressionClassifier(Classifier):
    """A classifier by logistic regression on embeddings, which do not depend on labels."""

    C: float | None
    device: str = "cpu"  # no parameters, unless the dataclass of a classifier has them
    seed: int | None = 0

    def check_parameters(self) -> None:
        if self.C is not None:
            check_settings(self, C=(1 / MAX_STRENGTH, MAX_STRENGTH))

    def embed(self, trial: Trial) -> tuple[Embedding, NDArray[np.floating]]:
        """Return an embedding fitted to the graph of a trial, which trials on it share, and its value."""
        raise NotImplementedError

    def sample_weights(self, trial: Trial) -> NDArray[np.floating] | None:
        """Return the weights of the training nodes in the regression; ``None`` if all are one."""
        return trial.weights

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        self.check_parameters()
        check_device(self.device)
        embedded = [(trial, *self.embed(trial)) for trial in check_trials(trials)]
        with one_blas_thread():
            predictions = [self._fit_regression(*parts) for parts in embedded]
        return predictions if keep_networks else [replace(each, networks=None) for each in predictions]

    def _fit_regression(self, trial: Trial, embedding: Embedding, rows: NDArray[np.floating]) -> Prediction:
        """Return the prediction with the given penalty, or with the best one on validation nodes."""
        strengths = STRENGTHS if trial.has_validation else (DEFAULT_STRENGTH,)
        strengths = strengths if self.C is None else (self.C,)
        labels, weights = trial.label_probabilities, self.sample_weights(trial)
        solutions = softmax_regressions(rows[trial.train], labels, strengths, weights)
        regressions = [EmbeddingRegression(embedding, *solution) for solution in solutions]
        candidates = [Prediction(*regression.classify(rows)) for regression in regressions]
        best = int(np.argmax(trial.validation_accuracy(candidates))) if len(strengths) > 1 else 0
        details = {}
        if isinstance(embedding, InfomaxEmbedding):
            details = {"C": strengths[best], "epochs": embedding.n_epochs}
        return replace(candidates[best], details=details, networks=regressions[best])


@dataclass(eq=False, repr=False)
class SGC(RegressionClassifier):
    """Classify nodes by logistic regression on features that are propagated along edges (Wu et al., 2019).

    Only the regression is trained, in a fraction of a second.

    Parameters
    ----------
    restart
        The share of a node's own features in each step, as in :class:`APPNP`.
    n_steps
        Steps of propagation.
    rank
        Dimension to which features, weighted by TF-IDF, are first reduced by a truncated SVD.
    C
        Inverse strength of the penalty, as in scikit-learn, with training nodes whose weights add up to one
        per class on average.
    features, weights
        As in :class:`NetworkClassifier`, but ``"auto"`` leaves word counts as they are.

    Notes
    -----
    The published method has no restarts and two steps. Here propagated features have unit length and are then
    scaled to a mean squared distance of one from their mean.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import SGC
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> SGC().fit(digits, few).score() > 0.85
    True
    """

    restart: float = 0.1
    _: KW_ONLY
    n_steps: int = 30
    rank: int = 64
    C: float = 10.0
    features: str = "auto"
    weights: str = "auto"

    @property
    def uses_validation(self) -> bool:
        return False

    def check_parameters(self) -> None:
        check_settings(self, restart=(0, 1), n_steps=0, rank=1)
        super().check_parameters()

    def embed(self, trial: Trial) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        return PropagatedFeatures.fit(trial.graph, self)

    def sample_weights(self, trial: Trial) -> NDArray[np.floating]:
        weights = np.ones(len(trial.train)) if trial.weights is None else trial.weights
        return np.asarray(weights * (trial.n_classes / weights.sum()))


@dataclass(eq=False, repr=False)
class DGI(RegressionClassifier):
    """Classify nodes by logistic regression on embeddings that are trained without labels.

    Deep Graph Infomax (Velickovic et al., 2019) trains the outputs of one graph convolution to differ from
    those with permuted features. They are scaled to unit length.

    Parameters
    ----------
    n_hidden
        Dimension of the embeddings.
    C
        Inverse strength of the penalty, as in scikit-learn. By default the best of 1, 10, 100 and 1000 on the
        validation nodes, ties going to the largest, and 10 without validation nodes.
    learning_rate, n_epochs, features, weights, device
        As in :class:`NetworkClassifier`.
    patience
        Epochs without a lower loss before training stops and takes back the best weights.
    seed
        Of the embeddings. With a fixed seed (default) they are trained once for all trials on a graph, and
        ``rng`` of ``fit`` has no effect; ``None`` draws them from ``rng``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import DGI
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> DGI(64, n_epochs=30).fit(digits, few).score() > 0.7
    True
    """

    n_hidden: int = 512
    _: KW_ONLY
    C: float | None = None
    learning_rate: float = 0.001
    n_epochs: int = 2000
    patience: int = 20
    features: str = "auto"
    weights: str = "auto"
    seed: int | None = 0
    device: str = "cpu"

    def check_parameters(self) -> None:
        check_settings(self, n_hidden=1, n_epochs=1, patience=1, learning_rate=0.0)
        if self.seed is not None:
            check_integer(self.seed, "seed of DGI", low=0, high=math.inf)
        super().check_parameters()

    def embed(self, trial: Trial) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        return InfomaxEmbedding.fit(trial, self)


@dataclass(frozen=True, eq=False)
class Embedding:
    """An embedding of nodes, fitted to one graph, for any graph with as many features."""

    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    @property
    def shape(self) -> tuple[int, int]:
        """The number of features of a graph, and the dimension of the embedding."""
        raise NotImplementedError

    def apply(self, graph: Graph) -> NDArray[np.floating]:
        raise NotImplementedError

    def scale(self, graph: Graph) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Return the scaled features and the propagation matrix of a graph."""
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        return self.feature_scaling.apply(graph.features), matrix


@dataclass(frozen=True, eq=False)
class PropagatedFeatures(Embedding):
    """Features that are weighted by TF-IDF (``rarity``), reduced in rank, and propagated along edges."""

    rarity: NDArray[np.float64]
    directions: NDArray[np.float64] | None
    restart: float
    n_steps: int
    length: float

    def __post_init__(self) -> None:
        check_real(self.restart, "restart", low=0, high=1)
        check_integer(self.n_steps, "n_steps", low=0, high=MAX_STEPS)
        check_real(self.length, "length", low=0)
        check_lengths(self.rarity, "rarity", (None,))
        if self.directions is not None:
            check_lengths(self.directions, "directions", (len(self.rarity), None))

    @classmethod
    def fit(cls, graph: Graph, settings: SGC) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        check_features(graph)
        # Word counts are not scaled as for networks, which may be trained beside it.
        is_counts = not explain_no_counts(as_matrix(graph.features, "features"), graph.feature_encoder)
        options = {"encoder": graph.feature_encoder, "purpose": "for SGC" if is_counts else ""}
        scaling = FeatureScaling.fit(graph.features, settings.features, counts="none", **options)
        weight_scaling = WeightScaling.fit(graph.adjacency, settings.weights)
        rank, restart, n_steps = settings.rank, settings.restart, settings.n_steps
        kinds = scaling.kind, weight_scaling.kind

        def reduce() -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
            scaled = scaling.apply(graph.features)
            rarity = rarity_weights(scaled)
            return rarity, leading_directions(weigh_by_rarity(scaled, rarity), rank)

        def compute() -> tuple[PropagatedFeatures, NDArray[np.float64]]:
            parts = _RECENT_DIRECTIONS.find(graph, (rank, *kinds), reduce)
            fitted = cls(scaling, weight_scaling, *parts, restart, n_steps, 1.0)
            rows, length = scale_distances(fitted.apply(graph))
            return replace(fitted, length=length), rows

        return _RECENT_FEATURES.find(graph, (rank, restart, n_steps, *kinds), compute)

    def apply(self, graph: Graph) -> NDArray[np.float64]:
        features, matrix = self.scale(graph)
        weighted = weigh_by_rarity(features, self.rarity)
        reduced = weighted.toarray() if self.directions is None else unit_rows(weighted @ self.directions)
        rows = propagate(matrix, np.asarray(reduced, np.float32), self.restart, self.n_steps)
        return np.asarray(unit_rows(rows.astype(np.float64)) * self.length)

    @property
    def shape(self) -> tuple[int, int]:
        n_features = len(self.rarity)
        return n_features, n_features if self.directions is None else self.directions.shape[1]


_RECENT_FEATURES = GraphCache[tuple[PropagatedFeatures, NDArray[np.float64]]](8)
_RECENT_DIRECTIONS = GraphCache[tuple[NDArray[np.float64], NDArray[np.float64] | None]]()


def scale_distances(rows: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """Return rows with a mean squared distance of one from their mean, and the factor."""
    variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
    length = float(1 / np.sqrt(variance or 1.0))
    return np.asarray(rows * length), length


@dataclass(frozen=True, eq=False)
class InfomaxEmbedding(Embedding):
    """One graph convolution that Deep Graph Infomax trained without labels, with the slope of its PReLU."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    slope: NDArray[np.float32]
    n_epochs: int

    def __post_init__(self) -> None:
        check_lengths(self.bias, "bias", (None,))
        check_lengths(self.weights, "weights", (None, len(self.bias)))
        check_lengths(self.slope, "slope", (1,))

    @classmethod
    def fit(cls, trial: Trial, settings: DGI) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        graph, device, seed = trial.graph, check_device(settings.device), settings.seed
        check_features(graph)
        scaling = FeatureScaling.fit(graph.features, settings.features, encoder=graph.feature_encoder)
        weight_scaling = WeightScaling.fit(graph.adjacency, settings.weights)
        sizes = settings.n_hidden, settings.learning_rate, settings.n_epochs, settings.patience

        def train() -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
            rng = generator(child(trial.rng, ClassifierSeeds.NETWORKS) if seed is None else seed)
            features, matrix = Embedding(scaling, weight_scaling).scale(graph)
            trained = cls(scaling, weight_scaling, *train_infomax(features, matrix, settings, rng, device))
            return trained, trained.apply(graph)

        if seed is None:
            return train()
        key = (int(seed), scaling.kind, weight_scaling.kind, str(device), *sizes)
        return _RECENT_EMBEDDINGS.find(graph, key, train)

    def apply(self, graph: Graph) -> NDArray[np.float32]:
        features, matrix = self.scale(graph)
        outputs = matrix @ (features @ self.weights) + self.bias
        return np.asarray(unit_rows(np.where(outputs > 0, outputs, self.slope * outputs)))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.weights), len(self.bias)


_RECENT_EMBEDDINGS = GraphCache[tuple[InfomaxEmbedding, NDArray[np.float32]]]()


@dataclass(frozen=True, eq=False)
class EmbeddingRegression:
    """A trained logistic regression on embeddings, ``[rank, n_classes]``, which predicts on graphs."""

    embedding: Embedding
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def __post_init__(self) -> None:
        check_lengths(self.intercepts, "intercepts", (None,))
        check_lengths(self.coefficients, "coefficients", (self.embedding.shape[1], self.n_classes))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.intercepts)

    def predict(self, graph: Graph, device: str) -> Averages:
        """Return the prediction on a graph; it is computed on the CPU, whatever the device."""
        check_features(graph, self.embedding.shape[0])
        return self.classify(self.embedding.apply(graph))

    def classify(self, rows: NDArray[np.floating]) -> Averages:
        probabilities = softmax(rows @ self.coefficients + self.intercepts, axis=1).astype(np.float32)
        return probabilities, entropy(probabilities)


def softmax_regressions(
    rows: NDArray[np.floating],
    targets: NDArray[np.floating],
    strengths: Sequence[float],
    sample_weights: NDArray[np.floating] | None = None,
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the coefficients and intercepts of a regression for each strength C of the inverse penalty.

    The loss is that of scikit-learn: C times the weighted sum of cross-entropies with the ``targets`` plus
    half the sum of squared coefficients. Each regression starts from the solution of the previous one.
    """
    # The coefficients are combinations of rows: with few rows, there are few numbers to find.
    basis, reduced = (rows.T, None) if len(rows) > rows.shape[1] else np.linalg.qr(rows.T)
    inputs = np.ascontiguousarray(rows if reduced is None else reduced.T, np.float32)
    weights = np.ones(len(rows)) if sample_weights is None else sample_weights
    targets = (weights[:, None] * targets).astype(np.float32)
    totals = targets.sum(axis=1, keepdims=True)

    def evaluate(flat: NDArray[np.float64], strength: float) -> tuple[float, NDArray[np.float64]]:
        values = flat.reshape(-1, targets.shape[1])
        single = values.astype(np.float32)
        logits = inputs @ single[:-1] + single[-1]
        logits -= logits.max(axis=1, keepdims=True)
        residuals = np.exp(logits)
        sums = residuals.sum(axis=1, keepdims=True)
        loss = float((totals * np.log(sums)).sum() - (targets * logits).sum())
        residuals *= totals / sums
        residuals -= targets
        gradient = strength * np.vstack([inputs.T @ residuals, residuals.sum(axis=0)]).astype(np.float64)
        gradient[:-1] += values[:-1]
        return strength * loss + 0.5 * float(np.square(values[:-1]).sum()), gradient.ravel()

    solution, results = np.zeros((inputs.shape[1] + 1) * targets.shape[1]), []
    for strength in strengths:
        largest = TOLERANCE * strength * float(totals.sum())
        options: Any = {"maxiter": MAX_ITERATIONS, "gtol": largest, "ftol": ROUNDING}
        solution = minimize(evaluate, solution, (strength,), "L-BFGS-B", jac=True, options=options).x
        values = solution.reshape(-1, targets.shape[1])
        results.append((values[:-1] if reduced is None else basis @ values[:-1], values[-1]))
    return results


class Infomax:
    """A graph convolution trained to separate its outputs h from those with permuted features.

    Outputs are scored by h M s, where s is the sigmoid of the mean output of the observed graph.
    """

    def __init__(
        self,
        features: sparse.csr_array,
        matrix: sparse.csr_array,
        n_hidden: int,
        rng: Generator,
        device: torch.device,
    ) -> None:
        self.features, self.matrix = SparseStack([features], device), SparseStack([matrix], device)
        self.parameters: Sequence[Tensor] = [
            draw_glorot([rng], features.shape[1], n_hidden, device),
            torch.zeros(n_hidden, device=device),
            torch.full((1,), SLOPE, device=device),
            draw_glorot([rng], n_hidden, n_hidden, device),
        ]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def embed(self, *permutations: Tensor) -> list[Tensor]:
        """Return the outputs of the nodes, and those with the rows of the features permuted."""
        weight, bias, slope, _ = self.parameters
        projected = self.features @ weight
        inputs = [projected, *(projected[:, permutation] for permutation in permutations)]
        return [functional.prelu((self.matrix @ rows)[0] + bias, slope) for rows in inputs]

    def loss(self, permutation: Tensor) -> Tensor:
        """Return the mean cross-entropy of the question whether an output is of the observed graph."""
        outputs, corrupted = self.embed(permutation)
        direction = self.parameters[3][0] @ outputs.mean(dim=0).sigmoid()
        of_observed = functional.softplus(-(outputs @ direction))
        of_corrupted = functional.softplus(corrupted @ direction)
        return (of_observed.mean() + of_corrupted.mean()) / 2


def train_infomax(
    features: sparse.csr_array, matrix: sparse.csr_array, settings: DGI, rng: Generator, device: torch.device
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], int]:
    """Return the layer of the epoch with the lowest loss, and the number of epochs that were trained."""
    with choose_threads(features.shape[0] * settings.n_hidden, device):
        model = Infomax(features, matrix, settings.n_hidden, rng, device)
        optimiser = torch.optim.Adam(model.parameters, lr=settings.learning_rate)
        lowest, best_epoch, epoch = np.inf, 0, 0
        best = [parameter.detach().clone() for parameter in model.parameters]
        for epoch in range(1, settings.n_epochs + 1):
            loss = model.loss(torch.from_numpy(rng.permutation(features.shape[0])).to(device))
            value = loss.item()
            if value < lowest:
                lowest, best_epoch = value, epoch
                best = [parameter.detach().clone() for parameter in model.parameters]
            elif epoch - best_epoch >= settings.patience:
                break
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    weights, bias, slope = (parameter.cpu().numpy() for parameter in best[:3])
    return weights[0], bias, slope, epoch


ALPHAS: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.99)  # compared on validation nodes
DEFAULT_ALPHA = 0.95  # the value without validation nodes


@dataclass(eq=False, repr=False)
class LabelPropagation(Classifier):
    """Classify nodes by the labels that reach them along edges; features are not used.

    In each step a node takes the share ``alpha`` of its score of a class from its neighbours, by
    D^-1/2 A D^-1/2, and the rest from its own label, if it is a training node. Scores are scaled to
    probabilities, which are equal, with a warning, if no label reaches a node. In directed graphs A + A^T
    replaces A.

    Parameters
    ----------
    alpha
        The share of neighbours, below 1. By default that of 0.5, 0.8, 0.9, 0.95 and 0.99 with the highest
        validation accuracy, ties going to the first, and 0.95 without validation nodes.
    n_steps
        Steps of propagation.
    weights
        Of edges, as in :class:`NetworkClassifier`.

    Notes
    -----
    ``prediction_.details`` holds ``alpha`` and the number of nodes that no label reaches (``unreached``).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import LabelPropagation
    >>> fitted = LabelPropagation().fit(datasets.load("karate"), [0, 33])  # two labels
    >>> fitted.score() > 0.9
    True
    """

    needs_features: ClassVar[bool] = False

    alpha: float | None = None
    n_steps: int = 50
    _: KW_ONLY
    weights: str = "auto"

    def log_choices(self) -> None:
        """Log how labels have spread, and warn of nodes that none has reached."""
        details, nodes = self.prediction_.details, self.trial_.validation
        if self.trial_.graph.directed:
            log_decision("label propagation: labels spread along both directions of the directed edges.")
        if self.alpha is None:
            since = "the default without validation nodes"
            if nodes is not None and len(nodes):
                since = f"the most accurate of {len(ALPHAS)} values on the validation nodes ({len(nodes)})"
            log_decision(f"label propagation: alpha is {details['alpha']}, {since}.", "alpha")
        if details["unreached"]:
            warn_about_data(
                f"no label reaches {details['unreached']} of {len(self.node_ids_)} nodes in {self.n_steps} "
                f"steps along edges: their predicted class is the first, {self.classes_[0]}. Label a node in "
                "each connected component, or use a classifier that reads features."
            )

    def predict_trial(self, trial: Trial) -> Prediction:
        check_integer(self.n_steps, "n_steps of LabelPropagation", low=1)
        nodes, best = trial.validation, 0
        alphas = ALPHAS if trial.has_validation else (DEFAULT_ALPHA,)
        if self.alpha is not None:
            alphas = (check_real(self.alpha, "alpha of LabelPropagation", low=0, high=1),)
            if np.float32(alphas[0]) == 1:
                allowed = f"must be below 1, for labels to count; got {self.alpha!r}. Use 0.99."
                raise InputError("alpha of LabelPropagation", allowed)
        matrix, labels = spreading_matrix(trial.graph, self.weights), trial.label_probabilities
        own = np.zeros((trial.graph.n_nodes, trial.n_classes), np.float32)
        own[trial.train] = labels if trial.weights is None else trial.weights[:, None] * labels
        spread = [propagate(matrix, own, 1 - alpha, self.n_steps) for alpha in alphas]
        candidates = [normalise(scores) for scores in spread]
        if len(alphas) > 1:
            best = int(
                np.argmax([(p[nodes].argmax(axis=1) == trial.codes[nodes]).mean() for p in candidates])
            )
        n_unreached = int((spread[best].sum(axis=1) == 0).sum())
        details = {"alpha": alphas[best], "unreached": n_unreached}
        return Prediction(candidates[best], entropy(candidates[best]), details)


def propagate(matrix: Any, own: NDArray[Any], restart: float, n_steps: int, device: str = "cpu") -> Singles:
    """Return ``own`` after steps of propagation with restarts."""
    rows: Any = own
    if device != "cpu":
        matrix = SparseStack([matrix], torch.device(device)).tensor
        rows = own = torch.from_numpy(own).to(device)  # type: ignore[assignment]
    for _ in range(n_steps):
        rows = (1 - restart) * (matrix @ rows) + restart * own
    return np.asarray(rows if device == "cpu" else rows.cpu().numpy(), np.float32)


def normalise(scores: NDArray[Any]) -> NDArray[Any]:
    """Return rows scaled to a sum of one; equal probabilities if all are zero."""
    total = scores.sum(axis=1, keepdims=True)
    equal = np.full(scores.shape, 1 / scores.shape[1], scores.dtype)
    return np.asarray(np.divide(scores, total, where=total > 0, out=equal))


def spreading_matrix(graph: Graph, weights: str) -> sparse.csr_array:
    """Return D^-1/2 A D^-1/2 with scaled weights, where A + A^T replaces A in directed graphs."""
    adjacency = WeightScaling.fit(graph.adjacency, weights).apply(graph.adjacency).astype(np.float32)
    if graph.directed:
        adjacency = adjacency + adjacency.T
    degrees = adjacency.sum(axis=1)
    inverse = np.divide(1, np.sqrt(degrees), where=degrees > 0, out=np.zeros_like(degrees))
    roots = sparse.diags_array(inverse)
    return sparse.csr_array(roots @ adjacency @ roots)

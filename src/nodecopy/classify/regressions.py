"""Simplified graph convolution (Wu et al., 2019): logistic regression on propagated features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from nodecopy._core.arrays import as_matrix, unit_rows
from nodecopy._core.checks import as_array, check_finite, check_integer, check_real, type_name
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.random import Rng, child, generator
from nodecopy.classify.base import Classifier, ClassifierSeeds, Trial, check_trials
from nodecopy.classify.ensemble import MAX_STEPS, Prediction, check_scalings, entropy
from nodecopy.errors import InputError
from nodecopy.features.embeddings import RecentGraphs, leading_directions, rarity_weights, weigh_by_rarity
from nodecopy.features.scaling import FeatureScaling, WeightScaling, explain_no_counts
from nodecopy.graph import Graph
from nodecopy.nn.infomax import train_infomax
from nodecopy.nn.networks import check_features
from nodecopy.nn.stack import normalise_adjacency
from nodecopy.nn.training import check_device, choose_threads

# A logistic regression on embeddings of nodes that can be computed for any graph.


class Embedding(Protocol):
    """An embedding of nodes that was fitted to one graph and can be applied to any with as many features."""

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""

    @property
    def rank(self) -> int:
        """Return the dimension of the embedding."""

    def apply(self, graph: Graph) -> NDArray[np.floating]:
        """Return the embeddings of the nodes of a graph."""

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""


@dataclass(frozen=True, eq=False)
class EmbeddingRegression:
    """A trained logistic regression on embeddings, with all that is needed to predict again.

    Parameters
    ----------
    embedding
        How nodes are embedded.
    coefficients, intercepts
        Of the regression, ``[rank, n_classes]`` and ``[n_classes]``.
    """

    embedding: Embedding
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph; it is computed on the CPU, whatever the device."""
        check_features(graph)
        given: Any = graph.features
        if given.shape[1] != self.embedding.n_features:
            raise InputError(
                f"features of the graph must have {self.embedding.n_features} columns, as in fit; got "
                f"{given.shape[1]}."
            )
        return self.classify(self.embedding.apply(graph))

    def classify(self, rows: NDArray[np.floating]) -> Prediction:
        """Return the prediction for nodes with these embeddings."""
        probabilities = softmax(rows @ self.coefficients + self.intercepts, axis=1).astype(np.float32)
        return Prediction(probabilities, entropy(probabilities))

    def check(self, n_classes: int) -> None:
        """Raise an error unless the parts fit each other and the number of classes, as in a whole file."""
        if not callable(getattr(self.embedding, "apply", None)):
            raise InputError(f"embedding of the regression must embed; got {type_name(self.embedding)}.")
        self.embedding.check()
        check_floats(self.coefficients, "coefficients", (self.embedding.rank, n_classes))
        check_floats(self.intercepts, "intercepts", (n_classes,))


def check_floats(array: Any, name: str, shape: tuple[int | None, ...]) -> None:
    """Raise an error unless this is an array of finite floats; ``None`` stands for any length."""
    array = as_array(array, name)
    is_right = len(shape) == array.ndim and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype.kind != "f" or not is_right:
        raise InputError(name, f"must be floats of shape {shape}; got {array.dtype} of {array.shape}.")
    check_finite(array, name)


# Features that are reduced in rank and propagated along edges.


@dataclass(frozen=True, eq=False)
class PropagatedFeatures:
    """How the features of a graph are reduced and propagated; fitted to one graph and applied to any.

    Parameters
    ----------
    feature_scaling, weight_scaling
        Of features and edge weights.
    rarity
        The TF-IDF weight of each feature.
    directions
        The directions of features that are kept, ``[n_features, rank]``; ``None`` keeps all.
    restart, n_steps
        As in :class:`SGC`.
    length
        The length of propagated rows, such that their mean squared distance from their mean is one in the
        graph that this was fitted to.
    """

    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling
    rarity: NDArray[np.float64]
    directions: NDArray[np.float64] | None
    restart: float
    n_steps: int
    length: float

    @classmethod
    def fit(
        cls, graph: Graph, *, rank: int, restart: float, n_steps: int, features: str, weights: str
    ) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        """Return what is fitted to a graph, and its propagated features.

        They are computed once for graphs that differ in labels only.
        """
        check_features(graph)
        # Word counts are not scaled as for networks, which may be trained beside it.
        is_counts = not explain_no_counts(as_matrix(graph.features, "features"), graph.feature_encoder)
        scaling = FeatureScaling.fit(
            graph.features,
            features,
            encoder=graph.feature_encoder,
            counts="none",
            purpose="for SGC" if is_counts else "",
        )
        weight_scaling = WeightScaling.fit(graph.adjacency, weights)

        def compute() -> tuple[PropagatedFeatures, NDArray[np.float64]]:
            scaled = scaling.apply(graph.features)
            rarity = rarity_weights(scaled)
            directions = leading_directions(weigh_by_rarity(scaled, rarity), rank)
            fitted = cls(scaling, weight_scaling, rarity, directions, restart, n_steps, 1.0)
            rows = fitted.apply(graph)
            variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
            length = float(1 / np.sqrt(variance or 1.0))
            return replace(fitted, length=length), rows * length

        return _RECENT_FEATURES.find(
            graph, (rank, restart, n_steps, scaling.kind, weight_scaling.kind), compute
        )

    def apply(self, graph: Graph) -> NDArray[np.float64]:
        """Return the propagated features of a graph with as many features."""
        weighted = weigh_by_rarity(self.feature_scaling.apply(graph.features), self.rarity)
        reduced = weighted.toarray() if self.directions is None else unit_rows(weighted @ self.directions)
        own = np.asarray(reduced, np.float32)
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        rows = own
        for _ in range(self.n_steps):
            rows = np.asarray((1 - self.restart) * (matrix @ rows) + self.restart * own)
        propagated: NDArray[np.float64] = unit_rows(rows.astype(np.float64)) * self.length
        return propagated

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""
        return len(self.rarity)

    @property
    def rank(self) -> int:
        """Return the dimension of propagated features."""
        return len(self.rarity) if self.directions is None else int(self.directions.shape[1])

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_real(self.restart, "restart", low=0, high=1)
        check_integer(self.n_steps, "n_steps", low=0, high=MAX_STEPS)
        check_real(self.length, "length", low=0)
        check_floats(self.rarity, "rarity", (None,))
        if self.directions is not None:
            check_floats(self.directions, "directions", (len(self.rarity), None))


_RECENT_FEATURES = RecentGraphs[tuple[PropagatedFeatures, NDArray[np.float64]]]()


# Multinomial logistic regression with an L2 penalty.


CPU = torch.device("cpu")
MAX_ITERATIONS = 500
TOLERANCE = 1e-4
"""Largest entry of the gradient, of the loss per unit of weight, at which a regression is finished; that of
scikit-learn."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Relative decrease of the loss below which there is nothing to gain; that of scikit-learn."""
MAX_STRENGTH = 1e9
"""Largest inverse strength of the penalty; far beyond it, the first step of the optimiser overflows."""


def softmax_regressions(
    rows: NDArray[np.float64],
    targets: NDArray[np.floating],
    strengths: Sequence[float],
    sample_weights: NDArray[np.floating] | None = None,
    device: torch.device = CPU,
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the coefficients and intercepts of a regression for each strength.

    Each regression starts from the solution of the one before.

    The loss is that of scikit-learn: C times the sum of cross-entropies plus half the sum of squared
    coefficients. Intercepts are not penalised.

    Parameters
    ----------
    rows
        ``[n_samples, n_features]``.
    targets
        Class probabilities of the samples, ``[n_samples, n_classes]``.
    strengths
        The values of C, the inverse strengths of the penalty.
    sample_weights
        Weights of the samples in the sum; one by default.
    device
        Where the loss is computed.
    """
    with one_blas_thread():
        # The coefficients are combinations of rows: with few rows, there are few numbers to find.
        basis, reduced = (rows.T, None) if len(rows) > rows.shape[1] else np.linalg.qr(rows.T)
        weights = np.ones(len(rows)) if sample_weights is None else sample_weights
        loss = _Loss(rows if reduced is None else reduced.T, weights[:, None] * targets, device)
        solution, results = np.zeros(loss.shape), []
        with choose_threads(rows.size, device):
            for strength in strengths:
                solution = loss.minimise(solution, strength)
                coefficients = solution[:-1] if reduced is None else basis @ solution[:-1]
                results.append((coefficients, solution[-1]))
    return results


class _Loss:
    """The loss of coefficients, the last row of which are the intercepts, and its gradient.

    It is computed by torch, whose number of threads can be set.
    """

    def __init__(
        self, rows: NDArray[np.float64], weighted_targets: NDArray[np.floating], device: torch.device
    ) -> None:
        self.rows = torch.from_numpy(np.ascontiguousarray(rows)).to(device)
        self.targets = torch.from_numpy(weighted_targets.astype(np.float64)).to(device)
        self.totals = self.targets.sum(dim=1, keepdim=True)
        self.shape = (rows.shape[1] + 1, weighted_targets.shape[1])

    def minimise(self, start: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
        """Return the coefficients of least loss."""
        largest = TOLERANCE * strength * self.totals.sum().item()
        result = minimize(
            self.evaluate,
            start.ravel(),
            (strength,),
            "L-BFGS-B",
            jac=True,
            options={"maxiter": MAX_ITERATIONS, "gtol": largest, "ftol": ROUNDING},
        )
        solution: NDArray[np.float64] = result.x.reshape(self.shape)
        return solution

    def evaluate(self, flat: NDArray[np.float64], strength: float) -> tuple[float, NDArray[np.float64]]:
        """Return the loss and its gradient."""
        values = torch.from_numpy(flat).view(self.shape).to(self.rows.device)
        log_p = torch.addmm(values[-1], self.rows, values[:-1]).log_softmax(dim=1)
        residuals = log_p.exp().mul_(self.totals).sub_(self.targets).mul_(strength)
        gradient = torch.cat([self.rows.T @ residuals + values[:-1], residuals.sum(dim=0, keepdim=True)])
        value = 0.5 * values[:-1].square().sum() - strength * (self.targets * log_p).sum()
        return value.item(), gradient.flatten().cpu().numpy()


@dataclass(eq=False, repr=False)
class SGC(Classifier):
    """Classify nodes by logistic regression on features that are propagated along edges.

    Nothing but the regression is trained, so that it takes a fraction of a second. With few labels it is more
    accurate than networks on some graphs, also as the base of :class:`SelfTraining`, whose default averages
    both.

    Parameters
    ----------
    restart
        The share of a node's own features in each step, as in :class:`APPNP`: the smaller, the farther
        features are propagated.
    n_steps
        Steps of propagation.
    rank
        Dimension to which features, weighted by TF-IDF, are reduced before, by a truncated SVD.
    C
        Inverse strength of the penalty of the regression, as in scikit-learn, of training nodes whose weights
        add up to one per class on average. So it means the same with few and with many labels.
    features
        ``"auto"`` (default) standardises features unless they are word counts; other values are as in
        :class:`NetworkClassifier`.
    weights
        Scaling of edge weights, as in :class:`NetworkClassifier`.

    Notes
    -----
    The published method has no restarts and two steps. Propagated features have unit length, and are then
    scaled so that their mean squared distance from their mean is one, for ``C`` to mean the same on graphs in
    which propagation leaves little difference between nodes.

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

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        check_real(self.restart, "restart of SGC", low=0, high=1)
        check_integer(self.n_steps, "n_steps of SGC", low=0)
        check_integer(self.rank, "rank of SGC", low=1)
        if check_real(self.C, "C of SGC", low=0, high=MAX_STRENGTH) == 0:
            raise InputError("C of SGC must be above 0; got 0.")
        trials = check_trials(trials)
        graphs = {id(trial.graph): trial.graph for trial in trials}
        embeddings = {key: self._propagate(graph) for key, graph in graphs.items()}
        predictions = []
        for trial in trials:
            embedding, rows = embeddings[id(trial.graph)]
            weights = np.ones(len(trial.train)) if trial.weights is None else trial.weights
            scaled = weights * (trial.n_classes / weights.sum())
            (solution,) = softmax_regressions(rows[trial.train], trial.label_probabilities, (self.C,), scaled)
            regression = EmbeddingRegression(embedding, *solution)
            prediction = regression.classify(rows)
            predictions.append(replace(prediction, networks=regression) if keep_networks else prediction)
        return predictions

    def _propagate(self, graph: Graph) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        """Return how features are propagated, and those of a graph."""
        return PropagatedFeatures.fit(
            graph,
            rank=self.rank,
            restart=self.restart,
            n_steps=self.n_steps,
            features=self.features,
            weights=self.weights,
        )


# Embeddings by a layer that Deep Graph Infomax trains without labels.


@dataclass(frozen=True, eq=False)
class InfomaxEmbedding:
    """One graph convolution with trained weights: fitted to one graph and applied to any.

    Parameters
    ----------
    feature_scaling, weight_scaling
        Of features and edge weights.
    weights, bias, slope
        Of the layer, ``[n_features, n_hidden]`` and ``[n_hidden]``, and the slope of its PReLU, ``[1]``.
    n_epochs
        Epochs of its training.
    """

    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    slope: NDArray[np.float32]
    n_epochs: int

    @classmethod
    def fit(
        cls, graph: Graph, seed: Any, *, features: str, weights: str, device: torch.device, **training: Any
    ) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        """Return what is trained on a graph, and the embeddings of its nodes.

        With an integer as the seed, it is trained once for graphs that differ in labels only. ``training``
        holds the parameters of :func:`~nodecopy.nn.infomax.train_infomax`.
        """
        check_features(graph)
        scaling = FeatureScaling.fit(graph.features, features, encoder=graph.feature_encoder)
        weight_scaling = WeightScaling.fit(graph.adjacency, weights)

        def train() -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
            matrix = normalise_adjacency(weight_scaling.apply(graph.adjacency))
            layer = train_infomax(
                scaling.apply(graph.features), matrix, rng=generator(seed), device=device, **training
            )
            trained = cls(scaling, weight_scaling, *layer)
            return trained, trained.apply(graph)

        if not isinstance(seed, (int, np.integer)):
            return train()
        key = (int(seed), scaling.kind, weight_scaling.kind, str(device), *training.items())
        return _RECENT_EMBEDDINGS.find(graph, key, train)

    def apply(self, graph: Graph) -> NDArray[np.float32]:
        """Return the embeddings of the nodes of a graph, with unit length."""
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        outputs = matrix @ (self.feature_scaling.apply(graph.features) @ self.weights) + self.bias
        return np.asarray(unit_rows(np.where(outputs > 0, outputs, self.slope * outputs)))

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""
        return len(self.weights)

    @property
    def rank(self) -> int:
        """Return the dimension of the embedding."""
        return len(self.bias)

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_floats(self.bias, "bias", (None,))
        check_floats(self.weights, "weights", (None, len(self.bias)))
        check_floats(self.slope, "slope", (1,))


_RECENT_EMBEDDINGS = RecentGraphs[tuple[InfomaxEmbedding, NDArray[np.float32]]]()


# Deep Graph Infomax (Velickovic et al., 2019) with logistic regression on its embeddings.


STRENGTHS = (1000.0, 100.0, 10.0, 1.0)
"""Values of ``C`` that are compared on validation nodes."""
DEFAULT_STRENGTH = 10.0
"""The value without validation nodes."""


@dataclass(eq=False, repr=False)
class DGI(Classifier):
    """Classify nodes by logistic regression on embeddings that are trained without labels.

    The embeddings are those of Deep Graph Infomax: the outputs of one graph convolution, trained to
    differ from those of the graph with permuted features. They are scaled to unit length.

    Parameters
    ----------
    n_hidden
        Dimension of the embeddings.
    C
        Inverse strength of the penalty of the regression, as in scikit-learn. By default that of 1, 10, 100
        and 1000 with the highest accuracy on validation nodes, ties going to the largest, and 10 without
        validation nodes.
    learning_rate
        Of Adam.
    n_epochs
        Epochs of training, at most.
    patience
        Epochs without a lower loss before training stops and takes back the best weights.
    features, weights
        Scaling of features and edge weights, as in :class:`NetworkClassifier`.
    seed
        Of the embeddings, which depend on the graph and not on its labels: with a fixed seed, as by default,
        they are trained once for all trials on a graph, and ``rng`` of ``fit`` has no effect. ``None`` draws
        them from ``rng``, so that the variance over seeds includes theirs.
    device
        ``"cpu"`` or ``"cuda"``.

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

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        for name in ("n_hidden", "n_epochs", "patience"):
            check_integer(getattr(self, name), f"{name} of DGI", low=1)
        if self.seed is not None:
            check_integer(self.seed, "seed of DGI", low=0, high=math.inf)
        check_real(self.learning_rate, "learning_rate of DGI", low=0)
        if self.C is not None and check_real(self.C, "C of DGI", low=0, high=MAX_STRENGTH) == 0:
            raise InputError("C of DGI must be above 0; got 0.")
        device = check_device(self.device)
        trials = check_trials(trials)
        if self.seed is None:
            embeddings = [
                self._embed(trial.graph, child(trial.rng, ClassifierSeeds.NETWORKS), device)
                for trial in trials
            ]
        else:
            graphs = {id(trial.graph): trial.graph for trial in trials}
            by_graph = {key: self._embed(graph, self.seed, device) for key, graph in graphs.items()}
            embeddings = [by_graph[id(trial.graph)] for trial in trials]
        pairs = zip(trials, embeddings, strict=True)
        predictions = [self._classify(trial, *embedding, device) for trial, embedding in pairs]
        return predictions if keep_networks else [replace(each, networks=None) for each in predictions]

    def _embed(
        self, graph: Graph, seed: Rng, device: torch.device
    ) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        """Return the trained layer, and the embeddings of a graph."""
        return InfomaxEmbedding.fit(
            graph,
            seed,
            features=self.features,
            weights=self.weights,
            device=device,
            n_hidden=self.n_hidden,
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            patience=self.patience,
        )

    def _classify(
        self, trial: Trial, embedding: InfomaxEmbedding, rows: NDArray[np.float32], device: torch.device
    ) -> Prediction:
        """Return the prediction of the regression with the best penalty."""
        nodes = trial.validation
        has_validation = nodes is not None and len(nodes) > 0
        strengths = STRENGTHS if has_validation else (DEFAULT_STRENGTH,)
        if self.C is not None:
            strengths = (self.C,)
        solutions = softmax_regressions(
            rows[trial.train].astype(np.float64), trial.label_probabilities, strengths, trial.weights, device
        )
        regressions = [EmbeddingRegression(embedding, *solution) for solution in solutions]
        candidates = [regression.classify(rows) for regression in regressions]
        best = 0
        if len(strengths) > 1:
            scores = [
                (candidate.probabilities[nodes].argmax(axis=1) == trial.codes[nodes]).mean()
                for candidate in candidates
            ]
            best = int(np.argmax(scores))
        details = {"C": strengths[best], "epochs": embedding.n_epochs}
        return replace(candidates[best], details=details, networks=regressions[best])

"""The contract of classifiers: a trial (graph, training nodes, seed) in, a prediction out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import check_ids
from nodecopy._core.checks import (
    as_array,
    check_finite,
    check_real,
    check_sequence,
    check_type,
    check_unique,
    list_names,
    type_name,
)
from nodecopy._core.estimator import Saveable
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import UNLABELLED, Graph, class_codes, training_classes
from nodecopy.io import convert_graph, training_nodes
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import ClassReport, ranks_classes

SUM_TOLERANCE = 1e-3  # how far probabilities that a classifier returns may be below 0, and their sum from 1
MAX_EXCESS = 0.2  # nearly uniform probabilities are at most this share above 1 / n_classes
MIN_UNIFORM_SHARE = 0.8  # share of nodes with nearly uniform probabilities above which nothing was learned
MIN_HOMOPHILY = 0.1  # of edges between labelled nodes: 0 is the share of equal classes by chance, 1 are all
HOMOPHILY_QUANTILE = 2.33  # standard deviations of a one-sided test with a level of 1 %
MIN_LABELLED_EDGES = 20  # fewer edges between labelled nodes do not tell


@dataclass(frozen=True, eq=False, init=False)
class Trial:
    """A classification problem: a graph, the nodes whose labels may be read, and a seed.

    A classifier reads the labels of ``train`` and ``validation`` only. Classes are the distinct labels of the
    training nodes. Other classes are left out with a :class:`~nodecopy.errors.DataWarning`.

    Parameters
    ----------
    graph, train, validation, rng
        As in :meth:`Classifier.fit`.

    Attributes
    ----------
    classes, n_classes
        The labels that are classes, in ascending order, and their number.
    codes
        The class number of every node, -1 without a class.
    weights, predictions
        As in :meth:`with_pseudo_labels`, for all training nodes; ``None`` without pseudo-labels.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, Trial
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> trials = [Trial(club, [0, 33], rng=seed) for seed in range(3)]
    >>> len(GCN(n_epochs=50).fit_trials(trials))
    3
    """

    graph: Graph
    train: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    rng: SeedSequence
    classes: NDArray[np.int64] = field(init=False, repr=False)
    codes: NDArray[np.int64] = field(init=False, repr=False)
    n_classes: int = field(init=False)
    weights: NDArray[np.float32] | None = field(init=False, repr=False, default=None)
    predictions: NDArray[np.float32] | None = field(init=False, repr=False, default=None)

    def __init__(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> None:
        train, graph = training_nodes(graph, train), convert_graph(graph, "graph")
        if graph.label_codes is None:
            raise InputError("a graph must have labels to be classified; this one has none.")
        n_labels = len(class_codes(graph.label_codes)[0])
        if n_labels < 2:
            raise InputError(f"a graph must have labels of at least two classes; got {n_labels}.")
        labelled = np.flatnonzero(graph.label_codes != UNLABELLED)
        chosen = labelled if train is None else check_nodes(graph, train, "train")
        watched = None if validation is None else check_nodes(graph, validation, "validation")
        if train is None and watched is not None:
            chosen = np.setdiff1d(chosen, watched)
        if not len(chosen):
            raise InputError("train", "must hold at least one node; got none.")
        if watched is not None and len(both := np.intersect1d(chosen, watched)):
            raise InputError("validation", f"must hold other nodes than train; got node {both[0]} in both.")
        if len(np.unique(graph.label_codes[chosen])) < 2:
            name = np.asarray(graph.labels)[chosen[0]]
            raise InputError("train", f"must hold nodes of at least two classes; got only class {name}.")
        classes, codes = training_classes(graph, chosen)
        if watched is not None:
            is_known = codes[watched] != UNLABELLED
            if not is_known.all():
                left_out = f"are left out ({int((~is_known).sum())} of {len(watched)})"
                log_decision(f"validation: nodes of a class that no training node has {left_out}.")
            watched = watched[is_known]
        vars(self).update(graph=graph, train=chosen, validation=watched, rng=seed_sequence(rng))
        vars(self).update(classes=classes, codes=codes, n_classes=len(classes))

    @property
    def has_validation(self) -> bool:
        """Whether there are validation nodes."""
        return self.validation is not None and len(self.validation) > 0

    @property
    def labelled(self) -> NDArray[np.int64]:
        """Training and validation nodes."""
        return self.train if self.validation is None else np.concatenate([self.train, self.validation])

    @property
    def label_probabilities(self) -> NDArray[np.float32]:
        """Class probabilities of the training nodes, which are zero or one."""
        probabilities: NDArray[np.float32] = np.eye(self.n_classes, dtype=np.float32)[self.codes[self.train]]
        return probabilities

    def validation_accuracy(self, predictions: Sequence[Prediction]) -> list[float]:
        """Return the share of validation nodes that each prediction classifies correctly."""
        nodes: Any = self.validation
        predicted = [prediction.probabilities[nodes].argmax(axis=1) for prediction in predictions]
        return [float((codes == self.codes[nodes]).mean()) for codes in predicted]

    def with_graph(self, graph: Graph) -> Trial:
        """Return the same problem on a graph with the same nodes and labels and other edges or features."""
        changed = copy.copy(self)
        vars(changed).update(graph=graph)
        return changed

    def with_pseudo_labels(
        self,
        nodes: NDArray[np.int64],
        codes: NDArray[np.int64],
        *,
        weights: NDArray[np.float32] | None = None,
        predictions: NDArray[np.float32] | None = None,
        rng: Rng = None,
    ) -> Trial:
        """Return the problem with further training nodes, whose classes are pseudo-labels.

        Parameters
        ----------
        nodes, codes
            The further nodes and their class numbers.
        weights
            Weights of all training nodes in the loss, these nodes last; equal by default.
        predictions
            Class probabilities of all nodes.
        rng
            Seed of the new trial.
        """
        changed, relabelled = copy.copy(self), self.codes.copy()
        relabelled[nodes] = codes
        vars(changed).update(train=np.concatenate([self.train, nodes]), codes=relabelled, weights=weights)
        vars(changed).update(predictions=predictions, rng=seed_sequence(rng))
        return changed


def check_nodes(graph: Graph, nodes: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return the positions of labelled nodes, each of which may be given once."""
    chosen = graph.positions(nodes, name)
    if len(chosen) == graph.n_nodes > 2 and chosen.max() <= 1:
        allowed, got = "positions, a boolean mask or node ids", "a mask of integers"
        raise InputError(name, f"must be {allowed}; got {got}. Pass np.asarray({name}, bool).")
    check_unique(chosen, name)
    assert graph.label_codes is not None
    unlabelled = chosen[graph.label_codes[chosen] == UNLABELLED]
    if len(unlabelled):
        raise InputError(name, f"must hold labelled nodes; got node {unlabelled[0]}, which has no label.")
    return chosen


def check_trials(trials: Any) -> list[Trial]:
    """Return trials as a list."""
    allowed = "a list of trials, Trial(graph, train)"
    given = check_sequence(trials, "trials", allowed)
    return [check_type(trial, Trial, "trials", allowed) for trial in given]


@runtime_checkable
class TrainedModel(Protocol):
    """What was trained for a prediction, and predicts on other graphs; it is saved with the classifier."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def predict(self, graph: Graph, device: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return probabilities and mean entropies, as in :class:`Prediction`, on a graph."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The class probabilities of every node, averaged over whatever the classifier samples.

    Parameters
    ----------
    probabilities
        ``[n_nodes, n_classes]``.
    mean_entropy
        Mean entropy of the sampled predictions, or the entropy of a single prediction.
    details
        Further results, ready for JSON.
    networks
        The trained networks, if they are kept.
    """

    probabilities: NDArray[np.float32]
    mean_entropy: NDArray[np.float32]
    details: dict[str, Any] = field(default_factory=dict)
    networks: TrainedModel | None = field(default=None, repr=False)

    @classmethod
    def from_array(
        cls, probabilities: ArrayLike | Prediction, graph: Graph, name: str, n_classes: int | None = None
    ) -> Prediction:
        """Return checked probabilities as a prediction; errors call them ``name``."""
        given = probabilities.probabilities if isinstance(probabilities, Prediction) else probabilities
        array = _check_numbers(given, name)
        if array.ndim != 2 or len(array) != graph.n_nodes:
            raise InputError(name, f"must have {graph.n_nodes} rows, one per node; got shape {array.shape}.")
        if n_classes is not None and array.shape[1] != n_classes:
            raise InputError(name, f"must have {n_classes} columns, one per class; got shape {array.shape}.")
        array = _check_probabilities(array, name)
        if isinstance(probabilities, Prediction):
            return probabilities
        return cls(array, entropy(array))

    @classmethod
    def from_samples(cls, samples: ArrayLike | Iterable[ArrayLike]) -> Prediction:
        """Return the mean of sampled predictions, with their mean entropy.

        Parameters
        ----------
        samples
            Class probabilities, ``[n_samples, n_nodes, n_classes]`` or an iterable of arrays.

        Examples
        --------
        >>> from nodecopy.classify import Prediction
        >>> prediction = Prediction.from_samples([[[1.0, 0.0]], [[0.0, 1.0]]])  # two networks disagree
        >>> prediction.probabilities.tolist(), prediction.uncertainty().aleatoric.tolist()
        ([[0.5, 0.5]], [0.0])
        """
        array = _check_numbers(list(samples) if isinstance(samples, Iterator) else samples, "samples")
        if array.ndim != 3 or not len(array):
            shape = "[n_samples, n_nodes, n_classes], with at least one sample"
            raise InputError("samples", f"must have the shape {shape}; got shape {array.shape}.")
        array = _check_probabilities(array, "samples")
        return cls(array.mean(axis=0), entropy(array).mean(axis=0))

    def check(self, n_nodes: int, n_classes: int) -> None:
        """Raise an error unless this is a prediction for so many nodes and classes."""
        shape, name = (n_nodes, n_classes), "probabilities of the prediction"
        check_lengths(self.probabilities, name, shape)
        _check_probabilities(self.probabilities, name)
        check_lengths(self.mean_entropy, "mean_entropy", (n_nodes,))
        if self.networks is not None and self.networks.n_classes != n_classes:
            raise InputError("networks", f"must predict {n_classes} classes; got {self.networks.n_classes}.")

    def uncertainty(self) -> Uncertainty:
        """Return the entropy of the mean, the mean entropy, and the difference of both."""
        total = np.maximum(entropy(self.probabilities), 0)
        aleatoric = np.clip(self.mean_entropy, 0, total)  # larger only by rounding
        return Uncertainty(total, aleatoric, total - aleatoric)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Entropies in nats: total = aleatoric (within samples) + epistemic (between samples)."""

    total: NDArray[np.float32]
    aleatoric: NDArray[np.float32]
    epistemic: NDArray[np.float32]


def describe_edges(graph: Graph) -> dict[str, Any]:
    """Return what predictions may depend on: whether edges are directed and weighted, and their settings."""
    return {"directed": graph.directed, "weighted": graph.is_weighted} | (graph.edge_settings or {})


def entropy(probabilities: NDArray[Any]) -> NDArray[Any]:
    """Return the entropy of each row, in nats."""
    safe = np.where(probabilities > 0, probabilities, 1)
    entropies: NDArray[Any] = -(probabilities * np.log(safe)).sum(axis=-1)
    return entropies


def check_lengths(array: NDArray[Any], name: str, shape: tuple[int | None, ...]) -> None:
    """Raise an error unless an array has a shape, in which ``None`` stands for any length."""
    if len(shape) != array.ndim or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        raise InputError(name, f"must have the shape {shape}; got {array.shape}.")


def _check_numbers(given: Any, name: str) -> NDArray[Any]:
    array = as_array(given, name)
    if array.dtype.kind not in "biuf":
        got = type_name(given) if array.ndim == 0 else array.dtype
        raise InputError(name, f"must be a dense array of class probabilities; got {got}.")
    return array


def _check_probabilities(array: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Return class probabilities in single precision; the last axis numbers the classes."""
    check_finite(array, name)
    array = array.astype(np.float32)
    is_wrong = (array < -SUM_TOLERANCE).any(axis=-1) | (abs(array.sum(axis=-1) - 1) > SUM_TOLERANCE)
    if is_wrong.any():
        row = np.array2string(array[is_wrong][0], precision=3, threshold=6, edgeitems=2)
        allowed = "probabilities, at least 0 and with a sum of 1 in each row"
        raise InputError(name, f"must be {allowed}; got a row {row}.")
    return array


def warn_if_not_learned(
    prediction: Prediction, classes: Sequence[Any], trial: Trial | None = None, advice: Iterable[str] = ()
) -> None:
    """Warn if all nodes have the same predicted class, or 80 % have nearly uniform probabilities.

    A class of most labels may be predicted for all nodes, if probabilities rank the labelled nodes, and
    probabilities may be nearly uniform, if those of every class rank its labelled nodes first.
    """
    largest, n_classes = prediction.probabilities.max(axis=1), len(classes)
    predicted = np.unique(prediction.probabilities.argmax(axis=1))
    is_uniform = largest * n_classes - 1 <= MAX_EXCESS
    is_flat = is_uniform.mean() >= MIN_UNIFORM_SHARE
    if not is_flat and len(predicted) > 1:
        return
    if trial is not None:
        p, codes = prediction.probabilities[trial.labelled], trial.codes[trial.labelled]
        has_most_labels = 2 * (codes == predicted[0]).sum() > len(codes)
        if (is_flat or has_most_labels) and ranks_classes(p, codes, every=is_flat):
            return
    if is_flat:
        bound = f"{(1 + MAX_EXCESS) / n_classes:.2f}, and {1 / n_classes:.2f} would be uniform"
        sign = f"the largest probability of {is_uniform.mean():.0%} of the nodes is at most {bound}"
    else:
        name = classes[predicted[0]]
        sign = f"all {len(largest)} nodes are predicted to be of class {name}, one of {n_classes}"
    checks = ", ".join([*advice, "and that the labels belong to the nodes"])
    warn_about_data(f"the classifier has learned almost nothing: {sign}. Check {checks}.")


def warn_if_heterophilous(trial: Trial) -> None:
    """Warn if edges between labelled nodes hardly prefer equal classes, given the classes of their ends."""
    codes, rows = np.full(trial.graph.n_nodes, UNLABELLED), trial.graph.rows
    codes[trial.labelled] = trial.codes[trial.labelled]
    ends = np.stack([rows.row_numbers, rows.indices])
    ends = ends[:, (codes[ends] != UNLABELLED).all(axis=0) & (ends[0] != ends[1])]
    n_edges = ends.shape[1] if trial.graph.directed else ends.shape[1] // 2
    n_independent = min(n_edges, len(np.unique(ends)))  # edges of a node depend on each other
    if n_independent < MIN_LABELLED_EDGES:
        return
    share = float((codes[ends[0]] == codes[ends[1]]).mean())
    chance = float(((np.bincount(codes[ends].ravel()) / ends.size) ** 2).sum())
    bound = chance + MIN_HOMOPHILY * (1 - chance)
    if share + HOMOPHILY_QUANTILE * (bound * (1 - bound) / n_independent) ** 0.5 < bound:
        warn_about_data(
            f"{share:.0%} of the {n_edges} edges between labelled nodes connect nodes of the same class, and "
            f"{chance:.0%} would by chance: what is propagated along edges may mislead. Compare with "
            "MLP(), which uses features only (nodecopy classify --method mlp)."
        )


class Classifier(Saveable):
    """A node classifier: ``fit`` it to a graph, then ask for predictions on its nodes.

    A subclass writes :meth:`predict_trial`, and :meth:`predict_graph` to predict on other graphs. It may
    override :meth:`fit_trials` to train many trials at once. Its constructor only stores its arguments.

    Attributes
    ----------
    prediction_
        The prediction for the observed graph, with the trained networks.
    classes_, node_ids_
        Classes and nodes, as the observed graph names them.
    feature_encoder_
        The encoder of features that were read from a table, or ``None``; pass it to ``read_graph`` as
        ``encoder`` to encode new rows in the same way.
    graph_kind_
        Whether the observed graph is directed and weighted, and its ``edge_settings``. A graph to predict on
        must have the same, or is converted. ``None`` if it is unknown.
    temperature_
        The temperature of :meth:`calibrate`, or 1.
    trial_
        The arguments of ``fit``. It is not saved.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = GCN(n_epochs=50).fit(club, [0, 33], rng=0)
    >>> fitted.predict_proba().shape, fitted.classes_.tolist(), fitted.score() > 0.9
    ((34, 2), ['Mr. Hi', 'Officer'], True)

    A classifier of your own, which predicts the class frequencies of the training nodes for all nodes:

    >>> from nodecopy.classify import Classifier
    >>> class Frequencies(Classifier):
    ...     def predict_trial(self, trial):
    ...         counts = np.bincount(trial.codes[trial.train])
    ...         return np.tile(counts / counts.sum(), (trial.graph.n_nodes, 1))
    >>> Frequencies().fit_trials([Trial(club, [0, 1, 2, 33])])[0].probabilities[5].tolist()
    [0.75, 0.25]
    """

    needs_features: ClassVar[bool] = True  # advice in warnings depends on it
    uses_edges: ClassVar[bool] = True  # whether the prediction of a node depends on edges
    optional_state: ClassVar[set[str]] = {"trial_"}

    prediction_: Prediction
    classes_: NDArray[Any]
    node_ids_: NDArray[Any]
    feature_encoder_: Any = None
    graph_kind_: dict[str, Any] | None = None
    temperature_: float = 1.0
    trial_: Trial

    @property
    def uses_validation(self) -> bool:
        """Whether validation nodes may change predictions; if not, experiments compute trials only once."""
        return True

    def predict_trial(self, trial: Trial) -> ArrayLike | Prediction:
        """Return the class probabilities of every node, ``[n_nodes, n_classes]``, or a :class:`Prediction`.

        Read only the labels of ``trial.train`` and ``trial.validation``, and draw from ``trial.rng``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define predict_trial(trial).")

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        """Return the prediction of each trial, which does not depend on the other trials.

        The trials must share their features and labels, since their networks are trained together. With
        ``keep_networks`` the predictions hold the trained networks.
        """
        name = f"predict_trial of {type(self).__name__}"
        return [
            Prediction.from_array(self.predict_trial(trial), trial.graph, name, trial.n_classes)
            for trial in check_trials(trials)
        ]

    def fit(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        *,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Self:
        """Train on the labels of some nodes of a graph.

        A :class:`~nodecopy.errors.DataWarning` says if one class is predicted for all nodes, if 80 % of them
        have nearly uniform probabilities, or if edges between labelled nodes hardly prefer equal classes.

        Parameters
        ----------
        graph
            The observed graph. Only the labels of ``train`` and ``validation`` are read.
        train
            Training nodes: positions, a boolean mask or node ids, of at least two classes. By default all
            labelled nodes that are not in ``validation``.
        validation
            Nodes for early stopping and model selection; none by default.
        rng
            Seed or generator; fresh entropy by default.
        """
        trial = Trial(graph, train, validation, rng)
        (prediction,) = self.fit_trials([trial], keep_networks=True)
        return self.set_prediction(trial, prediction)

    def set_prediction(self, trial: Trial, prediction: Prediction) -> Self:
        """Store the prediction of a trial, warn if nothing was learned, and log what was decided."""
        self.trial_, names = trial, trial.graph.label_names
        classes = trial.classes if names is None else np.array(names)[trial.classes]
        self._set_fitted(trial.graph, prediction, classes, trial)
        if self._part("uses_edges"):
            warn_if_heterophilous(trial)
        self.log_choices()
        return self

    def _set_fitted(
        self, graph: Graph, prediction: Prediction, classes: NDArray[Any], trial: Trial | None = None
    ) -> None:
        self.prediction_, self.classes_, self.node_ids_ = prediction, classes, graph.node_ids
        self.feature_encoder_, self.temperature_ = graph.feature_encoder, 1.0
        self.graph_kind_ = describe_edges(graph) if self._part("uses_edges") else {}
        if isinstance(weights := self._part("weights"), str) and weights == "binary":
            self.graph_kind_.pop("weighted", None)
        is_by_edges = self._part("uses_edges") and not self.needs_features
        about = "most edges connect nodes of the same class" if is_by_edges else "features differ by class"
        advice = [f"that {about}"]
        scaling = getattr(prediction.networks, "feature_scaling", None)
        if scaling is not None and scaling.kind != "standardise":
            advice.append(f"that features are no measurements (they were scaled by {scaling.kind!r})")
        if hasattr(self, "n_epochs"):
            advice.append("that n_epochs is large enough")
        warn_if_not_learned(prediction, classes.tolist(), trial, advice)

    def _part(self, name: str) -> Any:
        """Return an attribute of the base, if there is one that has it, or of the classifier."""
        return getattr(getattr(self, "base", None), name, getattr(self, name, None))

    def log_choices(self) -> None:
        """Log what ``fit`` has decided for the user; by default nothing."""

    def check_fitted(self) -> Prediction:
        """Return the prediction for the observed graph, or raise ``NotFittedError``."""
        if not hasattr(self, "prediction_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet: call fit(graph, train) first.")
        return self.prediction_

    def predict_graph(self, graph: Graph) -> ArrayLike | Prediction:
        """Return the prediction of the trained networks on a graph with as many features.

        Subclasses without networks override this; results are as in :meth:`predict_trial`.
        """
        networks = self.check_fitted().networks
        if networks is None:
            reason = "predicts on the graph given to fit only, unless it defines predict_graph(graph)"
            raise InputError("graph", f"must be left out: a {type(self).__name__} {reason}.")
        return Prediction(*networks.predict(graph, self.network_device()))

    def prediction_on(self, graph: Graph | None = None) -> Prediction:
        """Return the prediction for the observed graph, or the checked one for another graph."""
        observed = self.check_fitted()
        if graph is None:
            return observed
        return self.evaluate_graph(self.check_graph(graph))

    def evaluate_graph(self, graph: Graph) -> Prediction:
        """Return the prediction for a graph, whatever its kind."""
        name, n_classes = f"predict_graph of {type(self).__name__}", len(self.classes_)
        return Prediction.from_array(self.predict_graph(graph), graph, name, n_classes)

    def check_graph(self, graph: Graph) -> Graph:
        """Return a graph of the same kind as that of ``fit``, or raise an error.

        Directions and weights that the graph of ``fit`` did not have are left out.
        """
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        fitted, given = self.feature_encoder_, graph.feature_encoder
        if fitted is not None and given is not None and not fitted.has_same_columns(given):
            names, got = (", ".join(encoder.feature_names_) for encoder in (fitted, given))
            got = f"{got}. Read them by read_graph(..., encoder=feature_encoder_)."
            raise InputError(f"features of the graph must have the columns {names}, as in fit; got {got}")
        kind = self.graph_kind_ or {}
        if kind.get("directed") is False and graph.directed:
            log_decision("graph: its edges are used without directions, as in fit.")
            graph = graph.undirected()
        for name, setting in describe_edges(graph).items():
            if name != "weighted" and kind.get(name, setting) != setting:
                got = f"{setting!r}. Read or build the graph as in fit."
                raise InputError(name, f"must be {kind[name]!r}, as in fit; got {got}")
        if graph.is_weighted and kind.get("weighted") is False:
            log_decision("graph: its edges are used without weights, as in fit.")
            graph = graph.binary()
        elif kind.get("weighted") and not graph.is_weighted:
            warn_about_data("the graph has no edge weights, as that of fit had: all edges have the weight 1.")
        return graph

    def check_labels(self, graph: Graph) -> NDArray[Any]:
        """Return the labels of a graph as texts; some of them must be classes of ``fit``."""
        if graph.label_codes is None:
            raise InputError("graph", "must have labels to compare predictions with; this one has none.")
        labels, names = np.asarray(graph.labels).astype(str), self.classes_.astype(str)
        given = np.unique(labels[graph.label_codes != UNLABELLED])
        if len(given) and not np.isin(given, names).any():
            got = f"{list_names(given)}. Leave them out, or give them the names of fit."
            raise InputError("labels", f"must be classes of fit, {list_names(names)}; got {got}")
        return labels

    def network_device(self) -> str:
        """Return the device on which networks predict, which is that of the base, if there is one."""
        base, device = getattr(self, "base", None), getattr(self, "device", "cpu")
        return base.network_device() if isinstance(base, Classifier) else str(device)

    def predict_proba(self, graph: Graph | None = None) -> NDArray[np.float32]:
        """Return the probability of each class (columns: ``classes_``) for each node.

        Parameters
        ----------
        graph
            A graph with as many features; by default the observed graph.
        """
        return self._calibrated(self.prediction_on(graph))

    def _calibrated(self, prediction: Prediction) -> NDArray[np.float32]:
        p, temperature = prediction.probabilities, self.temperature_
        return p if temperature == 1 else TemperatureScaling(temperature).apply(p).astype(np.float32)

    def predict(self, graph: Graph | None = None) -> NDArray[Any]:
        """Return the likeliest class of each node, as the observed graph names it."""
        codes = self.prediction_on(graph).probabilities.argmax(axis=1)  # calibration may round to ties
        names: NDArray[Any] = self.classes_[codes]
        return names

    def calibrate(self, nodes: ArrayLike | None = None) -> Self:
        """Calibrate the probabilities by a temperature that is fitted to labelled nodes.

        Until the next ``fit`` it changes :meth:`predict_proba` and :meth:`table`, but not predicted classes
        and :meth:`uncertainty`. See :class:`~nodecopy.metrics.TemperatureScaling`.

        Parameters
        ----------
        nodes
            Labelled nodes that are not training nodes, by default the validation nodes. Dozens are needed,
            some of them misclassified.

        Examples
        --------
        >>> from nodecopy import datasets
        >>> from nodecopy.classify import GCN
        >>> digits = datasets.load("digits")
        >>> split = datasets.label_split(digits.labels, 5, validation=200, rng=0)
        >>> fitted = GCN(n_epochs=50).fit(digits, split.train, validation=split.validation, rng=0)
        >>> fitted.calibrate().temperature_ < 1  # few epochs: the network is not confident enough
        True
        """
        p = self.check_fitted().probabilities
        if not hasattr(self, "trial_"):
            reason = "must be called before a classifier is saved: a file holds no labels."
            raise InputError("calibrate", reason)
        trial = self.trial_
        chosen = trial.validation if nodes is None else check_nodes(trial.graph, nodes, "nodes")
        if chosen is None or not len(chosen):
            way_out = "got none. Pass them, or fit(..., validation=nodes)."
            raise InputError("nodes", f"must hold labelled nodes that are not training nodes; {way_out}")
        if len(both := np.intersect1d(chosen, trial.train)):
            raise InputError("nodes", f"must hold other nodes than train; got node {both[0]}.")
        is_class = np.asarray(trial.graph.labels)[chosen, None] == self.classes_
        is_known = is_class.any(axis=1)
        if not is_known.any():
            raise InputError("nodes", "must hold nodes of the classes of train; got none of them.")
        p, codes = p[chosen[is_known]], is_class[is_known].argmax(axis=1)
        scaling = TemperatureScaling.fit(p, codes)
        self.temperature_ = scaling.temperature
        n_left_out = int((~is_known).sum())
        others = f"; nodes of a class that no training node has are left out ({n_left_out})"
        fitted = f"fitted to {len(p)} labelled nodes{others if n_left_out else ''}"
        log_decision(f"calibration: the temperature is {scaling.temperature:.3g}, {fitted}.")
        n, n_right, reason = len(p), int((p.argmax(axis=1) == codes).sum()), ""
        if n_right in (0, n):
            reason = f"{'all' if n_right else 'none'} of the {n} nodes are predicted correctly"
        elif scaling.is_at_bound:
            reason = f"it is at the bound of what is allowed ({n_right} of {n} nodes are predicted correctly)"
        if reason:
            sign = f"the temperature {scaling.temperature:.3g} does not calibrate the probabilities: {reason}"
            warn_about_data(f"{sign}. Calibrate by dozens of labelled nodes, some of them misclassified.")
        return self

    def uncertainty(self, graph: Graph | None = None) -> Uncertainty:
        """Return the entropy of each prediction, split into noise and disagreement between samples."""
        return self.prediction_on(graph).uncertainty()

    def score(self, nodes: ArrayLike | None = None, *, graph: Graph | None = None) -> float:
        """Return the accuracy: the share of nodes whose predicted class is their label.

        A node of a class that was left out of ``classes_`` counts as wrong.

        Parameters
        ----------
        nodes
            Labelled nodes: positions, a boolean mask or node ids. By default all of ``graph``, or those of
            the observed graph that are neither in ``train`` nor in ``validation``.
        graph
            The graph to predict on, with labels; by default the observed graph.
        """
        labels, predicted = self._compare(nodes, graph)
        return float((predicted == labels).mean())

    def report(self, nodes: ArrayLike | None = None, *, graph: Graph | None = None) -> ClassReport:
        """Return the confusion matrix, and precision, recall and F1 of each class.

        Nodes of a class that was left out of ``classes_`` are left out.

        Parameters
        ----------
        nodes, graph
            As in :meth:`score`.

        Examples
        --------
        >>> from nodecopy import datasets
        >>> from nodecopy.classify import SelfTraining
        >>> fitted = SelfTraining().fit(datasets.load("karate"), [0, 33])  # two labels
        >>> fitted.report().confusion.tolist()
        [[15, 1], [0, 16]]
        """
        names = self.classes_.astype(str)
        pairs = [pair for pair in zip(*self._compare(nodes, graph), strict=True) if pair[0] in names]
        confusion = np.zeros((len(names), len(names)), np.int64)
        for label, predicted in pairs:
            confusion[names == label, names == predicted] += 1
        return ClassReport(tuple(names.tolist()), confusion)

    def _compare(
        self, nodes: ArrayLike | None, graph: Graph | None
    ) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
        """Return the labels and the predicted classes of nodes."""
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        predicted = self.predict(graph)
        if graph is None and not hasattr(self, "trial_"):
            reason = "must be given to score a classifier that was loaded: a file holds no labels."
            raise InputError("graph", reason)
        labelled = self.trial_.graph if graph is None else graph
        labels: Any = self.check_labels(labelled)
        if nodes is not None:
            chosen = check_nodes(labelled, nodes, "nodes")
        else:
            chosen = np.flatnonzero(np.asarray(labelled.label_codes) != UNLABELLED)
            for used in (self.trial_.train, self.trial_.validation) if graph is None else ():
                chosen = chosen if used is None else np.setdiff1d(chosen, used)
        if not len(chosen):
            got = "none. By default they are those not used in fit: give the nodes to score."
            raise InputError("nodes", f"must hold at least one labelled node; got {got}")
        return labels[chosen], predicted[chosen].astype(str)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: a classifier that is fitted to graphs, not to arrays."""
        utils = import_optional("sklearn.utils", "__sklearn_tags__")
        return utils.Tags(
            estimator_type="classifier",
            classifier_tags=utils.ClassifierTags(),
            target_tags=utils.TargetTags(required=False),
            input_tags=utils.InputTags(two_d_array=False),
            no_validation=True,
        )

    def table(self, graph: Graph | None = None) -> dict[str, NDArray[Any]]:
        """Return columns with a row per node: ids, classes, probabilities and uncertainty (in nats)."""
        prediction = self.prediction_on(graph)
        entropies, probabilities = prediction.uncertainty(), self._calibrated(prediction)
        codes = prediction.probabilities.argmax(axis=1)
        columns = {f"p_{name}": p for name, p in zip(self.classes_, probabilities.T, strict=True)}
        columns |= {f"{part.name}_uncertainty": getattr(entropies, part.name) for part in fields(entropies)}
        rounded = {name: np.round(column.astype(np.float64), 7) for name, column in columns.items()}
        ids = self.node_ids_ if graph is None else graph.node_ids
        return {"id": ids, "predicted": self.classes_[codes], **rounded}

    def to_pandas(self, graph: Graph | None = None) -> Any:
        """Return :meth:`table` as a data frame with the ids as its index."""
        return import_optional("pandas", "to_pandas").DataFrame(self.table(graph)).set_index("id")

    def get_state(self) -> dict[str, Any]:
        """Return what was fitted by name, without the graph and its labels."""
        state = super().get_state()
        return {name: value for name, value in state.items() if name not in self.optional_state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_state` returned, and check that its parts fit each other."""
        super().set_state(state)
        if not state:  # a part of another classifier, which fits copies of it
            return
        for array, name in ((self.classes_, "classes_"), (self.node_ids_, "node_ids_")):
            check_ids(array, name, len(array))
        check_real(self.temperature_, "temperature_", low=1e-9)
        self.prediction_.check(len(self.node_ids_), len(self.classes_))


class ClassifierSeeds(IntEnum):
    """Children of a trial's seed by purpose; stored results depend on these numbers, so they never change.

    Round r of a purpose adds r. Numbers from 10**7 are left to methods that train a classifier.
    """

    NETWORKS = 0  # weights and dropout masks of a round; round 0 is trained on the observed graph
    LABEL_PRIOR = 1  # the perceptron of SBMGCN, which has one round of networks only
    GRAPHS = 1000  # graphs sampled in a round of BayesianGCN
    SELF_TRAINING = 3000  # rounds of SelfTraining; the child's child r is the seed of round r
    GRAPH_MODEL = 10**6  # fits of BayesianGCN's graph model; the child's child r belongs to round r


MAX_ROUNDS = ClassifierSeeds.GRAPHS - ClassifierSeeds.NETWORKS  # so that no seeds coincide

"""The contract of defences: classifiers whose predictions at attacked nodes are corrected."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, FloatArray, IntArray, Ints, Singles
from nodecopy._core.checks import check_indices, check_sequence, check_type, check_unique, show, type_name
from nodecopy._core.files import PathLike
from nodecopy._core.imports import from_name
from nodecopy._core.messages import log_decisions_once, mute_decisions
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.classify import CLASSIFIERS, GCN, Classifier, ModuleClassifier, Prediction, Trial
from nodecopy.classify.base import TrainedModel, check_trials, entropy
from nodecopy.defend.edges import remove_edges_of
from nodecopy.errors import InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.graph import Graph
from nodecopy.io import convert_graph


class DefenceSeeds(IntEnum):
    """Which child of a trial's seed is used for what; stored results depend on these numbers."""

    DONOR_EMBEDDING = 10**7
    DONOR_DRAWS = 10**7 + 1


@dataclass(frozen=True, eq=False)
class AttackedState:
    """The input of a correction: an attacked graph and the classifier's predictions on it.

    Parameters
    ----------
    graph, probabilities
        The attacked graph as the classifier sees it, and its predictions for all nodes.
    classifier, networks
        The classifier, and its networks; ``None`` for a classifier from outside the package.
    seed
        Seed of the correction.
    complete_graph
        The graph with all edges, if the classifier was trained without the edges of the targets.
    trial
        The trial on which the classifier was trained; ``None`` if it is unknown.
    targets
        The nodes without whose edges the classifier was trained, if there are any.
    with_all_edges
        The predictions of a classifier that was trained with these edges, if the defence needs it.
    """

    graph: Graph
    probabilities: Singles
    classifier: Any
    networks: TrainedModel | None
    seed: SeedSequence
    complete_graph: Graph
    trial: Trial | None = None
    targets: IntArray | None = None
    with_all_edges: Singles | None = None

    @cached_property
    def embeddings(self) -> NodeEmbeddings:
        return NodeEmbeddings(self.graph)

    def predict(self, graph: Graph) -> Singles:
        """Return the classifier's predictions on another graph."""
        return evaluate(self.classifier, self.networks, graph).probabilities


class Correction:
    """Corrected predictions of the nodes of one graph.

    A subclass that computes them on demand overrides :meth:`predict_proba`.

    Parameters
    ----------
    probabilities
        The corrected probabilities of all nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy.defend import Correction
    >>> Correction(np.array([[0.9, 0.1], [0.2, 0.8]])).predict_proba(np.array([1])).tolist()
    [[0.2, 0.8]]
    """

    def __init__(self, probabilities: FloatArray) -> None:
        self.probabilities = probabilities

    def predict_proba(self, nodes: IntArray) -> FloatArray:
        """Return the corrected probabilities of some nodes, given by position."""
        return np.asarray(self.probabilities[nodes])

    def details(self) -> dict[str, Any]:
        """Return further results for all nodes by name; none by default."""
        return {}


class Defence(Classifier):
    """A classifier whose predictions at nodes that may have been attacked are corrected.

    ``fit(graph, train, targets=...)`` trains a classifier on the attacked graph. ``predict`` and all other
    methods of a classifier return corrected predictions at the targets, by default all nodes, and the
    classifier's own elsewhere, as :meth:`undefended` does.

    A subclass writes :meth:`prepare_correction`, and where it needs them :meth:`check_parameters`,
    :meth:`build_classifier` and :meth:`preprocess`. Of its parameters, ``classifier``, ``retrain`` and
    ``device`` are known here.

    Attributes
    ----------
    prediction_, undefended_
        The predictions for the observed graph, with and without the defence.
    targets_
        Positions of the targets, or ``None``.
    classifier_
        The classifier that ``fit`` has trained, or the one given to :meth:`from_classifier`.
    seed_
        The seed of the correction.
    state_, correction_
        The input of the correction, and the correction; they are not saved.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defence = CopyingDefence().fit(digits, range(100), targets=[203, 207], rng=0)
    >>> defence.predict()[[203, 207]].shape, defence.undefended_proba().shape
    ((2,), (300, 10))

    A defence of your own, which corrects a node by the mean prediction of its neighbours:

    >>> from nodecopy.defend import Correction, Defence
    >>> class NeighbourMean(Defence):
    ...     def prepare_correction(self, state):
    ...         total = state.graph.adjacency @ state.probabilities + state.probabilities
    ...         return Correction(total / total.sum(axis=1, keepdims=True))
    >>> NeighbourMean().fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    classifier: Classifier | str | None = None
    retrain: bool = False
    device: str = "cpu"
    detects: ClassVar[bool] = False  # whether it finds attacked nodes, so that retrain needs no targets
    needs_all_edges: ClassVar[bool] = False  # whether retrain needs predictions with all edges, too
    optional_state: ClassVar[set[str]] = {"trial_", "state_", "correction_"}

    undefended_: Prediction
    targets_: Ints | None
    classifier_: Any
    seed_: Any
    state_: AttackedState
    correction_: Correction

    def prepare_correction(self, state: AttackedState) -> Correction:
        """Return the correction of the nodes of a graph; by default nothing is corrected."""
        return Correction(state.probabilities)

    def check_parameters(self, graph: Graph) -> None:
        """Raise an error for wrong parameters before anything is trained."""

    def build_classifier(self) -> Classifier:
        """Return the classifier to train: the parameter ``classifier``, by default a GCN."""
        if self.classifier is None:
            return GCN(device=self.device)
        if self.retrain and isinstance(self.classifier, ModuleClassifier):
            raise InputError("retrain", "must be False for a module, which was trained elsewhere; got True.")
        classifier = from_name(self.classifier, CLASSIFIERS, "classifier", self.device)
        if isinstance(classifier, Classifier):
            return classifier
        got = f"{show(classifier)}; from_classifier takes others"
        raise InputError("classifier", f"must be a classifier such as GCN(), or its name; got {got}.")

    def preprocess(self, graph: Graph) -> Graph:
        """Return the graph on which the classifier is trained and predicts; by default unchanged."""
        return graph

    def fit(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        *,
        validation: ArrayLike | None = None,
        targets: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Self:
        """Train on the labels of some nodes of an attacked graph, and correct the predictions.

        Parameters
        ----------
        graph, train, validation, rng
            As in :meth:`.Classifier.fit`.
        targets
            Nodes that may have been attacked and are corrected: positions, a boolean mask or node ids, each
            once; by default all. Only with ``retrain`` or ``trust_edges`` do corrections depend on them.
        """
        with log_decisions_once():
            trial = Trial(graph, train, validation, rng)
            self.targets_ = self._check_targets(trial.graph, targets)
            (prediction,) = self.train_classifiers([trial])
            self.set_prediction(trial, prediction)
            self.undefended_, self.seed_ = prediction, trial.rng
            self.classifier_ = self._fitted_classifier(trial, prediction)
            if self._prunes:
                trained = self.train_corrections([trial], [self.targets_], [prediction])
                prediction, self.state_, self.correction_ = next(trained)
            else:
                self.state_ = self.build_state(self.classifier_, trial.graph, prediction, trial)
                self.correction_ = self.prepare_correction(self.state_)
            self.prediction_ = correct_prediction(prediction, self.correction_, self.targets_)
        return self

    def from_classifier(
        self, classifier: Any, graph: Graph, *, targets: ArrayLike | None = None, rng: Rng = None
    ) -> Self:
        """Correct the predictions of a classifier that is already trained, instead of calling ``fit``.

        Parameters
        ----------
        classifier
            A fitted classifier; a trained ``torch.nn.Module``, as :class:`.ModuleClassifier` takes it; or any
            object whose ``predict_proba(graph)`` returns one row per node.
        graph, targets, rng
            As in :meth:`fit`; ``rng`` is the seed of the correction.
        """
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        if isinstance(classifier, Classifier):
            classifier.check_fitted()
            graph = classifier.check_graph(graph)
        self.check_parameters(graph)
        if self.retrain:
            raise InputError("retrain", "must be False for a classifier trained elsewhere; got True.")
        if isinstance(classifier, torch.nn.Module):
            classifier = ModuleClassifier(classifier).fit(graph)
        if isinstance(classifier, Classifier):
            observed = classifier.check_fitted()
            observed = classifier.undefended_ if isinstance(classifier, Defence) else observed
            prediction = _evaluate_fitted(classifier, graph)
            prediction = replace(prediction, networks=observed.networks, details=observed.details)
        else:
            prediction = evaluate(classifier, None, graph)
        classes = getattr(classifier, "classes_", np.arange(prediction.probabilities.shape[1]))
        vars(self).pop("trial_", None)
        self.targets_ = self._check_targets(graph, targets)
        self.classifier_, self.undefended_, self.temperature_ = classifier, prediction, 1.0
        self.classes_, self.node_ids_ = np.asarray(classes), graph.node_ids
        self.feature_encoder_ = getattr(classifier, "feature_encoder_", None) or graph.feature_encoder
        self.graph_kind_ = getattr(classifier, "graph_kind_", None)
        self.seed_ = seed_sequence(rng)
        self.state_ = self.build_state(classifier, graph, prediction, None)
        self.correction_ = self.prepare_correction(self.state_)
        self.prediction_ = correct_prediction(prediction, self.correction_, self.targets_)
        return self

    def fit_trials(
        self,
        trials: Sequence[Trial],
        *,
        targets: Sequence[ArrayLike] | None = None,
        keep_networks: bool = False,
    ) -> list[Prediction]:
        """Return the corrected prediction of each trial, without networks; all are trained at once.

        ``targets`` are those of each trial, as in :meth:`fit`.
        """
        trials = check_trials(trials)
        given = [None] * len(trials) if targets is None else targets
        given = check_sequence(given, "targets", "a list of nodes for each trial")
        if len(given) != len(trials):
            raise InputError("targets", f"must hold {len(trials)} lists, one per trial; got {len(given)}.")
        parts = [self._check_targets(trial.graph, part) for trial, part in zip(trials, given, strict=True)]
        predictions = []
        for (plain, _, correction), part in zip(self.train_corrections(trials, parts), parts, strict=True):
            corrected = correct_prediction(plain, correction, part)
            predictions.append(replace(corrected, details=plain.details | correction.details()))
        return predictions

    def train_classifiers(self, trials: Sequence[Trial]) -> list[Prediction]:
        """Return predictions with networks and without correction."""
        if trials:
            self.check_parameters(trials[0].graph)
        graphs = {id(trial.graph): trial.graph for trial in trials}  # trials often share a graph
        graphs = {key: self.preprocess(graph) for key, graph in graphs.items()}
        changed = [trial.with_graph(graphs[id(trial.graph)]) for trial in trials]
        classifier = self.build_classifier()
        if isinstance(classifier, Defence):
            return classifier.train_classifiers(changed)
        return classifier.fit_trials(changed, keep_networks=True)

    def train_corrections(
        self, trials: Sequence[Trial], targets: Sequence[Ints | None], with_all_edges: Any = None
    ) -> Iterator[tuple[Prediction, AttackedState, Correction]]:
        trained: Sequence[Trial] = trials
        if self._prunes:
            pairs: Any = zip(trials, targets, strict=True)
            trained = [trial.with_graph(remove_edges_of(trial.graph, part)) for trial, part in pairs]
        if with_all_edges is None:
            is_needed = self._prunes and self.needs_all_edges
            with_all_edges = self.train_classifiers(trials) if is_needed else [None] * len(trials)
        predictions = self.train_classifiers(trained)
        parts = trials, trained, targets, with_all_edges, predictions
        for trial, used, part, complete, prediction in zip(*parts, strict=True):
            classifier = self._fitted_classifier(used, prediction)
            state = self.build_state(classifier, used.graph, prediction, trial)
            if self._prunes:
                state = replace(state, targets=part, with_all_edges=complete and complete.probabilities)
            yield prediction, state, self.prepare_correction(state)

    def predict_graph(self, graph: Graph) -> Prediction:
        """Return the corrected prediction on another graph.

        The targets are those of ``fit`` if the graph has the same nodes; otherwise all nodes are corrected.
        """
        prediction, _, correction = self.prepare_graph(graph)
        is_same = np.array_equal(graph.node_ids, self.node_ids_)
        return correct_prediction(prediction, correction, self.targets_ if is_same else None)

    def prepare_graph(self, graph: Graph | None) -> tuple[Prediction, AttackedState, Correction]:
        self.check_fitted()
        if graph is None:
            return self.undefended_, self._check_state(), self.correction_
        if self._prunes:
            graph = self._check_graph(graph)
            trial = self.check_trial(self._trial_on(graph))
            targets = self._check_targets(trial.graph, self.targets_)  # retrain may have been set after fit
            with mute_decisions():  # fit has logged them
                return next(self.train_corrections([trial], [targets]))
        prediction, state = self.attacked_state(graph)
        return prediction, state, self.prepare_correction(state)

    def attacked_state(self, graph: Graph | None) -> tuple[Prediction, AttackedState]:
        """Return the same of the classifier that was trained with all edges, without a correction."""
        self.check_fitted()
        if graph is None:
            prediction, state = self.undefended_, self._check_state()
            if not self._prunes:
                return prediction, state
            graph = self.trial_.graph
        else:
            graph = self._check_graph(graph)
            prediction = replace(self._undefended_on(graph), networks=self.undefended_.networks)
        return prediction, self.build_state(self.classifier_, graph, prediction, self._trial_on(graph))

    def undefended(self, graph: Graph | None = None) -> Array:
        """Return the class of each node that the classifier predicts without the defence."""
        codes = self.undefended_proba(graph).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def undefended_proba(self, graph: Graph | None = None) -> Singles:
        """Return the class probabilities of each node without the defence; see :meth:`predict_proba`."""
        self.check_fitted()
        prediction = self.undefended_ if graph is None else self._undefended_on(self.check_graph(graph))
        return prediction.probabilities

    def save(self, path: PathLike) -> None:
        """Write parameters, trained networks and predictions to an ``.npz`` file, without the graph.

        :func:`nodecopy.load` reads the file, which does not hold the training nodes: a loaded defence with
        ``retrain`` predicts on other graphs only after another ``fit``, or with ``retrain`` set to False.
        """
        self.check_fitted()
        if self.undefended_.networks is None:
            raise InputError("classifier", "must be one of nodecopy's own to be saved with its defence.")
        super().save(path)

    def get_state(self) -> dict[str, Any]:
        state = super().get_state()
        if "classifier_" not in state:
            return state
        # The networks are those of the prediction, so the parameters of the classifier are enough.
        unfitted = type(self.classifier_)(**self.classifier_.get_params(deep=False))
        seed = {name: getattr(self.seed_, name) for name in ("entropy", "spawn_key", "pool_size")}
        return state | {"classifier_": unfitted, "seed_": seed}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if not state:
            return
        check_type(self.classifier_, Classifier, "classifier_", "a classifier")
        self.undefended_.check(len(self.node_ids_), len(self.classes_))
        if self.targets_ is not None:
            check_unique(check_indices(self.targets_, "targets_", size=len(self.node_ids_)), "targets_")
        try:
            self.seed_ = SeedSequence(**state["seed_"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("seed_", "must be the parts of a seed.") from error

    def build_state(
        self, classifier: Any, graph: Graph, prediction: Prediction, trial: Trial | None
    ) -> AttackedState:
        """Return the input of a correction; without a ``trial``, the seed is that of ``fit``."""
        seen = complete = _preprocess(self, classifier, graph)
        if trial is not None and trial.graph is not graph:
            complete = _preprocess(self, classifier, trial.graph)
        seed, networks = self.seed_ if trial is None else trial.rng, prediction.networks
        return AttackedState(seen, prediction.probabilities, classifier, networks, seed, complete, trial)

    def retrain_without(self, state: AttackedState, nodes: IntArray) -> AttackedState:
        trial = self.check_trial(state.trial)
        pruned = trial.with_graph(remove_edges_of(trial.graph, nodes))
        (prediction,) = self.train_classifiers([pruned])
        classifier = self._fitted_classifier(pruned, prediction)
        return self.build_state(classifier, pruned.graph, prediction, trial)

    def check_trial(self, trial: Trial | None) -> Trial:
        if trial is not None:
            return trial
        if hasattr(self, "trial_"):
            raise InputError("graph", "must have the nodes of the one given to fit, in its order.")
        message = "must be False for a defence that was not fitted here: a file holds no training nodes."
        raise InputError("retrain", f"{message} Call fit.")

    @property
    def _prunes(self) -> bool:
        """Whether the classifier is trained without the edges of the targets."""
        return self.retrain and not self.detects

    def _check_targets(self, graph: Graph, targets: ArrayLike | None) -> Ints | None:
        if targets is not None:
            return check_distinct(graph, targets, "targets")
        if self._prunes:
            message = f"must be given to {type(self).__name__}(retrain=True). Use WholeGraphDefence"
            raise InputError("targets", f"{message} if they are unknown.")
        return None

    def _check_graph(self, graph: Graph) -> Graph:
        graph = self.check_graph(graph)
        self.check_parameters(graph)
        return graph

    def _check_state(self) -> AttackedState:
        if not hasattr(self, "state_"):
            raise InputError("graph", "must be given to a defence that was loaded: its file holds none.")
        self.check_parameters(self.state_.graph)
        return self.state_

    def _undefended_on(self, graph: Graph) -> Prediction:
        seen = _preprocess(self, self.classifier_, graph)
        return evaluate(self.classifier_, self.undefended_.networks, seen)

    def _fitted_classifier(self, trial: Trial, prediction: Prediction) -> Classifier:
        """Return the classifier; without networks it is fitted to predict other graphs."""
        classifier = self.build_classifier()
        if prediction.networks is not None or not _predicts_graphs(classifier):
            return classifier
        graph = self.preprocess(trial.graph)
        return copy.copy(classifier).fit(graph, trial.train, validation=trial.validation, rng=trial.rng)

    def _trial_on(self, graph: Graph) -> Trial | None:
        trial: Trial | None = getattr(self, "trial_", None)
        if trial is None or not np.array_equal(graph.node_ids, trial.graph.node_ids):
            return None
        changes = {"adjacency": graph.adjacency, "features": graph.features, "directed": graph.directed}
        return trial.with_graph(trial.graph.replace(**changes))


def correct_prediction(prediction: Prediction, correction: Correction, targets: Ints | None) -> Prediction:
    """Return a prediction that is corrected at the targets, by default all nodes."""
    nodes = np.arange(len(prediction.probabilities)) if targets is None else targets
    probabilities = prediction.probabilities.copy()
    probabilities[nodes] = correction.predict_proba(nodes).astype(np.float32)
    is_changed = (probabilities != prediction.probabilities).any(axis=1)
    entropies = np.where(is_changed, entropy(probabilities), prediction.mean_entropy)
    return Prediction(probabilities, entropies, prediction.details)


def evaluate(classifier: Any, networks: TrainedModel | None, graph: Graph) -> Prediction:
    """Return the prediction of trained networks, if there are any, or of a classifier."""
    if networks is not None:
        return Prediction(*networks.predict(graph, classifier.network_device()))
    if isinstance(classifier, Classifier):
        if not _predicts_graphs(classifier):
            message = f"must predict on other graphs than that of fit to be corrected; got {classifier!r}"
            name = type(classifier).__name__
            raise InputError("classifier", f"{message}. Define predict_graph(graph) in {name}.")
        return _evaluate_fitted(classifier, graph)
    try:
        probabilities = classifier.predict_proba(graph)
    except (AttributeError, TypeError, ValueError) as error:
        if hasattr(classifier, "predict_proba") and not hasattr(classifier, "__sklearn_tags__"):
            raise
        allowed = "must be a classifier of nodecopy, a torch.nn.Module, or have predict_proba(graph)"
        way_out = "Wrap one of scikit-learn in a class whose predict_proba(graph) passes it graph.features."
        raise InputError("classifier", f"{allowed}; got {type_name(classifier)}. {way_out}") from error
    return Prediction.from_array(probabilities, graph, "predict_proba of the classifier")


def check_distinct(graph: Graph, nodes: ArrayLike, name: str = "nodes") -> Ints:
    """Return the positions of nodes, each of which may be given once."""
    check_unique(positions := graph.positions(nodes, name), name)
    return positions


def _evaluate_fitted(classifier: Classifier, graph: Graph) -> Prediction:
    """Return the prediction on a graph, that of a defence without correction."""
    if isinstance(classifier, Defence):
        return classifier._undefended_on(graph)
    return classifier.evaluate_graph(graph)


def _predicts_graphs(classifier: Classifier) -> bool:
    return type(classifier).predict_graph is not Classifier.predict_graph


def _preprocess(defence: Defence, classifier: Any, graph: Graph) -> Graph:
    """Return the graph as the networks see it; the classifier may be a defence too."""
    graph = defence.preprocess(graph)
    if not isinstance(classifier, Defence):
        return graph
    return _preprocess(classifier, getattr(classifier, "classifier_", classifier.classifier), graph)

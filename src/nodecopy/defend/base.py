"""The contract of defences: classifiers that can also correct predictions at attacked nodes."""

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
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_sequence, check_type, check_unique, show, type_name
from nodecopy._core.files import PathLike
from nodecopy._core.messages import log_decisions_once, mute_decisions
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.classify import GCN, Classifier, ModuleClassifier, Prediction, Trial
from nodecopy.classify.base import check_trials
from nodecopy.classify.ensemble import TrainedNetworks, entropy
from nodecopy.errors import InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.graph import Graph
from nodecopy.io import convert_graph

# The input and the result of corrections: an attacked graph with its predictions, and corrected ones.


@dataclass(frozen=True, eq=False)
class AttackedState:
    """The input of a correction: an attacked graph and the classifier's predictions on it.

    Parameters
    ----------
    graph
        The attacked graph, as the classifier sees it.
    probabilities
        The classifier's predictions for all nodes.
    classifier
        The classifier; :meth:`predict` returns its predictions on other graphs.
    networks
        Its networks; ``None`` for a classifier from outside the package.
    seed
        Seed of whatever the correction draws.
    complete_graph
        The graph with all edges; it differs from ``graph`` where the classifier was trained again without
        the edges of the nodes that are corrected.
    trial
        The problem on which the classifier was trained; ``None`` where that is not known.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import WithoutEdges
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> state = WithoutEdges().fit(digits, range(100), rng=0).state_
    >>> state.graph.n_nodes, state.probabilities.shape
    (300, (300, 10))
    """

    graph: Graph
    probabilities: NDArray[np.float32]
    classifier: Any
    networks: TrainedNetworks | None
    seed: SeedSequence
    complete_graph: Graph
    trial: Trial | None = None

    @cached_property
    def embeddings(self) -> NodeEmbeddings:
        """Return the embeddings of the nodes of ``graph``."""
        return NodeEmbeddings(self.graph)

    def predict(self, graph: Graph) -> NDArray[np.float32]:
        """Return the classifier's predictions on another graph."""
        return evaluate(self.classifier, self.networks, graph).probabilities


class Correction:
    """Corrected predictions of the nodes of one graph; a defence prepares one for each graph.

    A subclass that computes the predictions of some nodes on demand overrides :meth:`predict_proba`.

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

    def __init__(self, probabilities: NDArray[np.floating[Any]]) -> None:
        self.probabilities = probabilities

    def predict_proba(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        """Return the corrected probabilities of some nodes, given by position."""
        rows: NDArray[np.floating[Any]] = self.probabilities[nodes]
        return rows

    def details(self, nodes: IntArray) -> dict[str, Any]:
        """Return further results for some nodes by name; none by default."""
        return {}


def predicts_graphs(classifier: Classifier) -> bool:
    """Return whether a classifier without networks defines ``predict_graph``."""
    return type(classifier).predict_graph is not Classifier.predict_graph


def evaluate(classifier: Any, networks: TrainedNetworks | None, graph: Graph) -> Prediction:
    """Return the prediction of trained networks, or of a classifier without any, on a graph."""
    if networks is not None:
        return networks.predict(graph, classifier.network_device())
    if isinstance(classifier, Classifier):
        if not predicts_graphs(classifier):
            raise InputError(
                "classifier",
                f"must predict on other graphs than that of fit to be corrected; got "
                f"{classifier!r}. Define predict_graph(graph) in {type(classifier).__name__}.",
            )
        return classifier.prediction_on(graph)
    if not hasattr(classifier, "predict_proba"):
        raise InputError("classifier", f"must have predict_proba(graph); got {type_name(classifier)}.")
    return Prediction.from_array(classifier.predict_proba(graph), graph, "predict_proba of the classifier")


# Graphs with some of their edges removed.


def remove_edges_of(graph: Graph, nodes: IntArray) -> Graph:
    """Return the graph without the edges of some nodes."""
    stays = np.ones(graph.n_nodes, bool)
    stays[nodes] = False
    return keep_edges(graph, stays[graph.rows.row_numbers] & stays[graph.rows.indices])


def keep_edges(graph: Graph, mask: NDArray[np.bool_]) -> Graph:
    """Return the graph with those stored entries of its adjacency where ``mask`` is true."""
    return graph.with_rows(graph.rows.keep_entries(mask))


def find_entries(graph: Graph, first: IntArray, second: IntArray) -> IntArray:
    """Return the numbers of stored entries of the adjacency, -1 for pairs that are no edges."""
    rows, n = graph.rows, np.int64(graph.n_nodes)
    entries, pairs = rows.row_numbers * n + rows.indices, first * n + second
    position = np.searchsorted(entries, pairs)
    is_edge = np.append(entries, -1)[position] == pairs
    return np.where(is_edge, position, -1)


class Defence(Classifier):
    """A classifier that can also correct its predictions at nodes that may have been attacked.

    It trains a classifier on the attacked graph. ``predict`` and ``predict_proba`` return that classifier's
    own predictions; :meth:`correct` and :meth:`correct_proba` return corrected ones.

    A subclass writes :meth:`prepare_correction`, and where it needs them :meth:`check_parameters`,
    :meth:`build_classifier` and :meth:`preprocess`. Its constructor stores ``classifier``, ``retrain`` and
    ``device`` if it has these parameters.

    Attributes
    ----------
    classifier_
        The classifier behind the predictions: the one that ``fit`` has trained, or the one given to
        :meth:`from_classifier`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> defence = CopyingDefence().fit(digits, split.train, rng=0)
    >>> defence.correct([7, 3]).tolist(), defence.correct_proba([7, 3]).shape
    ([7, 3], (2, 10))

    A defence of your own, which corrects a node by the mean prediction of its neighbours:

    >>> from nodecopy.defend import Correction, Defence
    >>> class NeighbourMean(Defence):
    ...     def prepare_correction(self, state):
    ...         total = state.graph.adjacency @ state.probabilities + state.probabilities
    ...         return Correction(total / total.sum(axis=1, keepdims=True))
    >>> NeighbourMean().fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    classifier: Classifier | None = None
    retrain: bool = False
    device: str = "cpu"
    expects_targets: ClassVar[bool] = True
    """Whether the nodes given to :meth:`correct` are the ones that may have been attacked."""

    classifier_: Any
    state_: AttackedState
    correction_: Correction

    def prepare_correction(self, state: AttackedState) -> Correction:
        """Compute what the corrections of all nodes of a graph share; by default nothing is corrected."""
        return Correction(state.probabilities)

    def check_parameters(self, graph: Graph) -> None:
        """Raise an error for wrong parameters before anything is trained."""

    def build_classifier(self) -> Classifier:
        """Return the classifier to train: the parameter ``classifier``, by default a GCN."""
        if self.classifier is None:
            return GCN(device=self.device)
        if self.retrain and isinstance(self.classifier, ModuleClassifier):
            raise InputError("retrain", "must be False for a module, which was trained elsewhere; got True.")
        if isinstance(self.classifier, Classifier):
            return self.classifier
        raise InputError(
            "classifier",
            f"must be a classifier such as GCN(); got {show(self.classifier)}. Use "
            "from_classifier(classifier, graph) for one that was trained elsewhere.",
        )

    def training_parameters(self) -> dict[str, Any]:
        return self.build_classifier().training_parameters() | {"owner": "its classifier"}

    def preprocess(self, graph: Graph) -> Graph:
        """Return the graph on which the classifier is trained and predicts; by default the graph itself."""
        return graph

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        if trials := check_trials(trials):
            self.check_parameters(trials[0].graph)
        graphs = {id(trial.graph): trial.graph for trial in trials}  # trials often share a graph
        graphs = {key: self.preprocess(graph) for key, graph in graphs.items()}
        changed = [trial.with_graph(graphs[id(trial.graph)]) for trial in trials]
        return self.build_classifier().fit_trials(changed, keep_networks=keep_networks)

    fit_trials.__doc__ = Classifier.fit_trials.__doc__

    def fit(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        *,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Self:
        with log_decisions_once():
            super().fit(graph, train, validation=validation, rng=rng)
            graph = self.trial_.graph
            self.classifier_ = self._fitted_classifier(self.trial_, self.prediction_)
            self.state_ = self.build_attacked_state(self.classifier_, graph, self.prediction_, self.trial_)
            self.correction_ = self.prepare_correction(self.state_)
        return self

    fit.__doc__ = Classifier.fit.__doc__

    def from_classifier(self, classifier: Any, graph: Graph, *, rng: Rng = None) -> Self:
        """Correct the predictions of a classifier that is already trained, instead of calling ``fit``.

        Parameters
        ----------
        classifier
            A fitted classifier; a trained ``torch.nn.Module``, as :class:`.ModuleClassifier` takes it; or any
            object whose ``predict_proba(graph)`` returns one row per node.
        graph
            The graph whose nodes are corrected.
        rng
            Seed or generator of whatever the correction draws; fresh entropy by default.
        """
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        self.check_parameters(graph)
        if self.retrain:
            raise InputError(
                "retrain", "must be False for a classifier that was trained elsewhere; got True."
            )
        if isinstance(classifier, torch.nn.Module):
            classifier = ModuleClassifier(classifier).fit(graph)
        if isinstance(classifier, Classifier):
            trained = classifier.check_fitted()
            prediction = replace(
                classifier.prediction_on(graph), networks=trained.networks, details=trained.details
            )
            classes = classifier.classes_
        else:
            prediction = evaluate(classifier, None, graph)
            classes = getattr(classifier, "classes_", np.arange(prediction.probabilities.shape[1]))
        vars(self).pop("trial_", None)
        self.classifier_, self.prediction_, self.temperature_ = classifier, prediction, 1.0
        self.classes_, self.node_ids_ = np.asarray(classes), graph.node_ids
        self.state_ = self.build_attacked_state(classifier, graph, prediction, seed=seed_sequence(rng))
        self.correction_ = self.prepare_correction(self.state_)
        return self

    def correct(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[Any]:
        """Return the corrected classes of some nodes; parameters as in :meth:`correct_proba`."""
        codes = self.correct_proba(nodes, graph=graph).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[codes]
        return classes

    def correct_proba(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.float32]:
        """Return the corrected probabilities of each class for some nodes, ``[len(nodes), n_classes]``.

        Parameters
        ----------
        nodes
            Nodes that may have been attacked: positions, a boolean mask or string ids, each once. The
            correction of a node does not depend on the others, except with ``retrain`` or
            ``trust_edges``.
        graph
            The attacked graph; by default the one given to ``fit``.
        """
        self.check_fitted()
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        if self.retrain and self.expects_targets:
            trial = self.check_retrainable(self._trial_on(graph))
            with mute_decisions():  # they are those of fit
                return self.correct_trials([trial], [nodes])[0].probabilities
        state, correction = self.get_state_and_correction(graph)
        return correction.predict_proba(check_nodes(state.graph, nodes)).astype(np.float32)

    def correct_trials(self, trials: Sequence[Trial], nodes: Sequence[ArrayLike]) -> list[Prediction]:
        """Return the corrected predictions of some nodes in each of many trials, trained all at once.

        Parameters
        ----------
        trials
            The problems; their graphs are the attacked ones.
        nodes
            The nodes to correct in each trial, as in :meth:`correct_proba`.
        """
        trials, nodes = check_trials(trials), _check_parts(trials, nodes)
        positions = [check_nodes(t.graph, part) for t, part in zip(trials, nodes, strict=True)]
        corrected = []
        pairs = zip(self.train_corrections(trials, positions), positions, strict=True)
        for (trained_details, correction), part in pairs:
            probabilities = correction.predict_proba(part).astype(np.float32)
            details = trained_details | correction.details(part)
            corrected.append(Prediction(probabilities, entropy(probabilities), details))
        return corrected

    def train_corrections(
        self, trials: Sequence[Trial], positions: Sequence[NDArray[np.int64]]
    ) -> Iterator[tuple[dict[str, Any], Correction]]:
        """Train the classifiers of trials at once; yield the details of each and what corrects its nodes.

        Parameters
        ----------
        trials
            The problems.
        positions
            The nodes that are corrected in each trial; with ``retrain``, training does without their edges.
        """
        trained = trials
        if self.retrain and self.expects_targets:
            pairs = zip(trials, positions, strict=True)
            trained = [t.with_graph(remove_edges_of(t.graph, part)) for t, part in pairs]
        predictions = self.fit_trials(trained, keep_networks=True)
        for trial, used, prediction in zip(trials, trained, predictions, strict=True):
            classifier = self._fitted_classifier(used, prediction)
            state = self.build_attacked_state(classifier, used.graph, prediction, trial)
            yield prediction.details, self.prepare_correction(state)

    def predict_graph(self, graph: Graph) -> Prediction:
        networks = self.check_fitted().networks
        return evaluate(self.classifier_, networks, _preprocess(self, self.classifier_, graph))

    predict_graph.__doc__ = Classifier.predict_graph.__doc__

    def save(self, path: PathLike) -> None:
        """Write parameters, trained networks and predictions to an ``.npz`` file, without the graph.

        :func:`nodecopy.load` reads the file. A loaded defence needs ``correct(nodes, graph=...)``. The file
        does not hold the training nodes and their labels, so that a defence with ``retrain`` corrects
        only after another ``fit``, or with ``retrain`` set to False.
        """
        if self.check_fitted().networks is None:
            raise InputError("classifier", "must be one of nodecopy's own to be saved with its defence.")
        super().save(path)

    def get_state(self) -> dict[str, Any]:
        """Return what was fitted by name: the prediction with its networks, without any graph."""
        names = ("prediction_", "classes_", "node_ids_", "temperature_")
        state = {name: value for name, value in super().get_state().items() if name in names}
        if not hasattr(self, "classifier_"):
            return state
        # The networks are those of the prediction, so the parameters of the classifier are enough.
        unfitted = type(self.classifier_)(**self.classifier_.get_params(deep=False))
        return state | {"classifier_": unfitted}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned, and check that its parts fit each other."""
        super().set_state(state)
        if state:
            check_type(state.get("classifier_"), Classifier, "classifier_", "a classifier")

    def build_attacked_state(
        self,
        classifier: Any,
        graph: Graph,
        prediction: Prediction,
        trial: Trial | None = None,
        *,
        seed: SeedSequence | None = None,
    ) -> AttackedState:
        """Return the input of a correction; without a ``trial``, its seed is ``seed`` or zero."""
        seen = complete = _preprocess(self, classifier, graph)
        if trial is not None:
            seed = trial.rng
            if trial.graph is not graph:
                complete = _preprocess(self, classifier, trial.graph)
        seed = SeedSequence(0) if seed is None else seed
        probabilities, networks = prediction.probabilities, prediction.networks
        return AttackedState(seen, probabilities, classifier, networks, seed, complete, trial)

    def get_state_and_correction(self, graph: Graph | None = None) -> tuple[AttackedState, Correction]:
        """Return the state and the correction of the graph given to ``fit``, or of another graph."""
        networks = self.check_fitted().networks
        if graph is None:
            if not hasattr(self, "state_"):
                raise InputError("graph", "must be given to a defence that was loaded: its file holds none.")
            self.check_parameters(self.state_.graph)
            return self.state_, self.correction_
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        self.check_parameters(graph)
        prediction = replace(self.predict_graph(graph), networks=networks)
        seed = self.state_.seed if hasattr(self, "state_") else None
        state = self.build_attacked_state(
            self.classifier_, graph, prediction, self._trial_on(graph), seed=seed
        )
        return state, self.prepare_correction(state)

    def _fitted_classifier(self, trial: Trial, prediction: Prediction) -> Classifier:
        """Return the classifier of a prediction; one without networks is fitted to predict other graphs."""
        classifier = self.build_classifier()
        if prediction.networks is not None or not predicts_graphs(classifier):
            return classifier
        graph = self.preprocess(trial.graph)
        return copy.copy(classifier).fit(graph, trial.train, validation=trial.validation, rng=trial.rng)

    def _trial_on(self, graph: Graph | None) -> Trial | None:
        """Return the trial of ``fit`` with the edges and features of another graph of the same nodes.

        The labels are those of ``fit``. ``None`` without a trial, or for a graph of other nodes.
        """
        trial: Trial | None = getattr(self, "trial_", None)
        if trial is None or graph is None:
            return trial
        if not np.array_equal(graph.node_ids, trial.graph.node_ids):
            return None
        changes = {"adjacency": graph.adjacency, "features": graph.features, "directed": graph.directed}
        return trial.with_graph(trial.graph.replace(**changes))

    def check_retrainable(self, trial: Trial | None) -> Trial:
        """Return the trial to train again on, or raise an error that says why there is none."""
        if trial is not None:
            return trial
        if hasattr(self, "trial_"):
            raise InputError(
                "graph", "must have the nodes of the one given to fit, in its order, to retrain."
            )
        raise InputError(
            "retrain",
            "must be False for a defence that was not fitted here: a file holds neither the training "
            "nodes nor their labels. Call fit, or set retrain to False.",
        )


def correct_trials(
    classifier: Classifier, trials: Sequence[Trial], nodes: Sequence[ArrayLike]
) -> list[Prediction]:
    """Return predictions of some nodes in many trials: corrected for a defence, else the classifier's own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import Trial
    >>> from nodecopy.defend import CopyingDefence, correct_trials
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> (prediction,) = correct_trials(CopyingDefence(), [Trial(digits, split.train, rng=0)], [[7, 3]])
    >>> prediction.probabilities.shape
    (2, 10)
    """
    if isinstance(classifier, type) or not callable(getattr(classifier, "fit_trials", None)):
        check_type(classifier, Classifier, "classifier", "a classifier such as GCN()")
    if isinstance(classifier, Defence):
        return classifier.correct_trials(trials, nodes)
    chosen, nodes = [], _check_parts(trials, nodes)
    for trial, prediction, part in zip(trials, classifier.fit_trials(trials), nodes, strict=True):
        rows = check_nodes(trial.graph, part)
        arrays = prediction.probabilities[rows], prediction.mean_entropy[rows]
        chosen.append(Prediction(*arrays, prediction.details))
    return chosen


def _check_parts(trials: Sequence[Trial], nodes: Any) -> list[ArrayLike]:
    """Return the nodes of each trial."""
    parts = check_sequence(nodes, "nodes", "a list of nodes for each trial")
    if len(parts) != len(check_trials(trials)):
        raise InputError("nodes", f"must hold one list per trial, {len(trials)} in all; got {len(parts)}.")
    return parts


def check_nodes(graph: Graph, nodes: ArrayLike) -> NDArray[np.int64]:
    """Return the positions of nodes, each of which may be given once."""
    positions = graph.positions(nodes)
    check_unique(positions, "nodes")
    return positions


def _preprocess(defence: Defence, classifier: Any, graph: Graph) -> Graph:
    """Return the graph as the networks of a defence see it, whose classifier may be a defence too."""
    graph = defence.preprocess(graph)
    if not isinstance(classifier, Defence):
        return graph
    return _preprocess(classifier, getattr(classifier, "classifier_", classifier.classifier), graph)


# The children of a trial's seed: one number for each purpose of the defences.


class DefenceSeeds(IntEnum):
    """Which child of a trial's seed serves which purpose of a defence.

    A defence trains its classifier with its own seed, so these numbers differ from those of
    :class:`~nodecopy.classify.base.ClassifierSeeds`. The stored results of the experiments depend on them,
    so they never change.
    """

    DONOR_EMBEDDING = 10**7
    """The embedding by which a defence finds donors."""
    DONOR_DRAWS = 10**7 + 1
    """The donors that a defence draws."""

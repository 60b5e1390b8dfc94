"""What defences share: they answer like classifiers and can correct predictions at given nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.formats import PathLike
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_indices, check_unique
from nodecopy.classify import GCN, Classifier, Prediction, Trial
from nodecopy.classify.ensemble import Ensemble, entropy
from nodecopy.defend.pruning import without_edges_of
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import NodeEmbeddings
from nodecopy.graph import Graph


class Defence(Classifier):
    """A classifier that can also be asked about nodes that were perhaps attacked.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence, Defence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> defence: Defence = CopyingDefence().fit(digits, split.train, rng=0)
    >>> defence.predict_proba().shape, defence.correct([7]).shape
    ((300, 10), (1, 10))
    """

    def correct(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.float32]:
        """Probability of each class for the given nodes, ``[len(nodes), n_classes]``.

        Each node is corrected as if it were the only one, whoever is asked for beside it.

        Parameters
        ----------
        nodes
            Node numbers, each once.
        graph
            The graph they were attacked in; by default the one given to ``fit``.
        """
        probabilities = self.predict_proba(graph)
        return probabilities[checked_nodes(nodes, len(probabilities))]

    def correct_trials(self, trials: Sequence[Trial], nodes: Sequence[ArrayLike]) -> list[Prediction]:
        """What ``fit`` and then :meth:`correct` answer in each of many trials, trained all at once."""
        return _at(self.fit_trials(trials), nodes)

    def seen(self, graph: Graph) -> Graph:
        """The graph as the classifier takes it."""
        return graph


@dataclass(frozen=True, eq=False)
class Case:
    """What a correction may look at.

    Parameters
    ----------
    graph
        The attacked graph, as the classifier sees it.
    probabilities
        What the classifier predicts there.
    networks
        Its networks, where they are known.
    predict
        The same classifier on another graph.
    seed
        For whatever is drawn.
    places
        Where the nodes of ``graph`` stand.
    attacked
        The graph with all edges, where ``graph`` has lost those of the nodes that are corrected.
    trial
        What the classifier was trained on, where that is known.
    """

    graph: Graph
    probabilities: NDArray[np.float32]
    networks: Ensemble | None
    predict: Callable[[Graph], NDArray[np.float32]]
    seed: SeedSequence
    places: NodeEmbeddings
    attacked: Graph
    trial: Trial | None = None


class Correction(Defence):
    """A classifier that is trained as ever; its predictions are corrected afterwards, where asked.

    ``predict`` and ``predict_proba`` give what the classifier itself says; :meth:`correct` gives the
    corrected probabilities.

    Parameters
    ----------
    classifier
        What to train; a GCN by default. One that is trained already is taken by :meth:`around`.
    retrain
        Whether :meth:`correct` trains the classifier anew on the graph without any edge of the nodes it
        is asked about. An attack then reaches neither training nor donors through these edges, and the
        nodes are no longer corrected each as if it were alone. Needs :meth:`fit`.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier and for embeddings; another classifier has
        its own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import WithoutEdges
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> from nodecopy.classify import GCN
    >>> trained = GCN(n_epochs=50).fit(digits, split.train, rng=0)
    >>> WithoutEdges().around(trained, digits).correct([7]).shape
    (1, 10)
    """

    case_: Case
    corrector_: Any
    foreign_: Any
    told = True
    """Whether whoever asks for corrections knows that these nodes may have been attacked."""

    def __init__(
        self, classifier: Classifier | None = None, *, retrain: bool = False, device: str = "cpu"
    ) -> None:
        self.classifier, self.retrain, self.device = classifier, retrain, device

    @abstractmethod
    def _corrector(self, case: Case) -> Any:
        """Whatever is computed once for a case, before nodes are known."""

    @abstractmethod
    def _corrected(self, corrector: Any, nodes: IntArray) -> NDArray[np.floating[Any]]:
        """Probabilities of the nodes."""

    def _details(self, corrector: Any, nodes: IntArray) -> dict[str, Any]:
        """What else is worth telling of corrections."""
        return {}

    def _check(self, n_nodes: int) -> None:
        """Settings that need not wait for training to be found wrong."""

    def fit(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        *,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Self:
        """Train the classifier, and prepare corrections on the same graph."""
        self.__dict__.pop("foreign_", None)
        super().fit(graph, train, validation=validation, rng=rng)
        self._watch(self._case(graph, self.prediction_, self.trial_.rng, self.trial_))
        return self

    def around(self, classifier: Any, graph: Graph, *, rng: Rng = None) -> Self:
        """Take a classifier that is trained already, perhaps elsewhere.

        Parameters
        ----------
        classifier
            A fitted classifier, or anything whose ``predict_proba(graph)`` gives one row per node.
        graph
            The graph whose nodes are to be corrected.
        rng
            For whatever the correction draws.
        """
        self._check(graph.n_nodes)
        if self.retrain:
            raise InputError("retrain must be False for a classifier that was trained elsewhere; got True.")
        for former in ("trial_", "foreign_"):
            self.__dict__.pop(former, None)
        if isinstance(classifier, Classifier):
            observed, now = classifier.check_fitted(), classifier.predict_graph(graph)
            prediction = replace(now, networks=observed.networks, details=observed.details)
            classes = classifier.classes_
            self.classifier = classifier
        else:
            self.foreign_ = classifier
            prediction = _told(classifier, graph)
            classes = getattr(classifier, "classes_", np.arange(prediction.probabilities.shape[1]))
        self.prediction_, self.classes_, self.node_ids_ = prediction, np.asarray(classes), graph.node_ids
        self._watch(self._case(graph, prediction, seed_sequence(rng)))
        return self

    def correct(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.float32]:
        if self.retrain and self.told:
            self.check_fitted()
            (found,) = self.correct_trials([self._retrainable(self._trial_on(graph))], [nodes])
            return found.probabilities
        corrector, n_nodes = self._prepared(graph)
        return self._corrected(corrector, checked_nodes(nodes, n_nodes)).astype(np.float32)

    correct.__doc__ = Defence.correct.__doc__

    def correct_trials(self, trials: Sequence[Trial], nodes: Sequence[ArrayLike]) -> list[Prediction]:
        chosen = [checked_nodes(asked, t.graph.n_nodes) for asked, t in zip(nodes, trials, strict=True)]
        trained = trials
        if self.retrain and self.told:
            pairs = zip(trials, chosen, strict=True)
            trained = [replace(t, graph=without_edges_of(t.graph, asked)) for t, asked in pairs]
        found = []
        for trial, used, prediction, asked in zip(
            trials, trained, self.fit_trials(trained, keep_networks=True), chosen, strict=True
        ):
            corrector = self._corrector(self._case(used.graph, prediction, trial.rng, trial))
            probabilities = self._corrected(corrector, asked).astype(np.float32)
            details = prediction.details | self._details(corrector, asked)
            found.append(Prediction(probabilities, entropy(probabilities), details))
        return found

    correct_trials.__doc__ = Defence.correct_trials.__doc__

    def save(self, path: PathLike) -> None:
        """Write settings, trained networks and predictions, not the graph.

        What is loaded again needs ``correct(nodes, graph=...)``. Donors that were given as an array or a
        function are not saved, nor are training nodes and their labels: a defence that retrains predicts
        when it is loaded, but corrects only after another ``fit``, or with its ``retrain`` set to False.
        """
        if self.check_fitted().networks is None:
            raise InputError("classifier must be one of nodecopy's own to be saved with its defence.")
        super().save(path)

    def seen(self, graph: Graph) -> Graph:
        inner = self._inner()
        return inner.seen(graph) if isinstance(inner, Defence) else graph

    def _inner(self) -> Classifier:
        return GCN(device=self.device) if self.classifier is None else self.classifier

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        if self.classifier is not None and not isinstance(self.classifier, Classifier):
            raise InputError(
                f"classifier must be a classifier such as GCN(); got {self.classifier!r}. "
                "One that was trained elsewhere is taken by around(classifier, graph)."
            )
        if trials:
            self._check(trials[0].graph.n_nodes)
        return self._inner().fit_trials(trials, keep_networks=keep_networks)

    fit_trials.__doc__ = Classifier.fit_trials.__doc__

    def get_state(self) -> dict[str, Any]:
        """Return the prediction with its networks, without what was prepared for corrections."""
        prepared = ("case_", "corrector_", "foreign_")
        return {name: value for name, value in super().get_state().items() if name not in prepared}

    def _watch(self, case: Case) -> None:
        self.case_, self.corrector_ = case, self._corrector(case)

    def _case(
        self, graph: Graph, prediction: Prediction, seed: SeedSequence, trial: Trial | None = None
    ) -> Case:
        networks, told = prediction.networks, prediction.probabilities
        if networks is None:
            return Case(
                graph, told, None, partial(_told_on, self.foreign_), seed, NodeEmbeddings(graph), graph
            )
        predict = partial(_probabilities, networks, self._network_device())
        seen = self.seen(graph)
        attacked = seen if trial is None else self.seen(trial.graph)
        return Case(seen, told, networks, predict, seed, NodeEmbeddings(seen), attacked, trial)

    def _trial_on(self, graph: Graph | None) -> Trial | None:
        """What was fitted, perhaps with another graph's edges and features; labels are those of ``fit``.

        None where nothing was fitted here, or to other nodes.
        """
        trial: Trial | None = getattr(self, "trial_", None)
        if trial is None or graph is None:
            return trial
        if not np.array_equal(graph.node_ids, trial.graph.node_ids):
            return None
        now = {"adjacency": graph.adjacency, "features": graph.features, "directed": graph.directed}
        return replace(trial, graph=trial.graph.replace(**now))

    def _retrainable(self, trial: Trial | None) -> Trial:
        if trial is not None:
            return trial
        if hasattr(self, "trial_"):
            raise InputError("graph must have the nodes of the one given to fit, in its order, to retrain.")
        raise InputError(
            "retrain must be False for a defence that was not fitted here: a file holds neither the training "
            "nodes nor their labels. Call fit, or set retrain to False."
        )

    def _prepared(self, graph: Graph | None) -> tuple[Any, int]:
        """What is prepared for the graph of ``fit`` or for another, and how many nodes that has."""
        observed = self.check_fitted()
        if graph is None:
            if not hasattr(self, "case_"):
                raise InputError("graph must be given to a defence that was loaded: its file holds none.")
            return self.corrector_, self.case_.graph.n_nodes
        self._check(graph.n_nodes)
        prediction = replace(self.predict_graph(graph), networks=observed.networks)
        seed = self.case_.seed if hasattr(self, "case_") else SeedSequence(0)
        case = self._case(graph, prediction, seed, self._trial_on(graph))
        return self._corrector(case), graph.n_nodes

    def predict_graph(self, graph: Graph) -> Prediction:
        if hasattr(self, "foreign_"):
            return _told(self.foreign_, graph)
        return super().predict_graph(self.seen(graph))

    def _network_device(self) -> str:
        return self._inner()._network_device()


def corrected_trials(
    classifier: Classifier, trials: Sequence[Trial], nodes: Sequence[ArrayLike]
) -> list[Prediction]:
    """Predictions of given nodes in many trials: corrected by a defence, else the classifier's own.

    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence, corrected_trials
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> from nodecopy.classify import Trial
    >>> (found,) = corrected_trials(CopyingDefence(), [Trial(digits, split.train, None, 0)], [[7, 3]])
    >>> found.probabilities.shape
    (2, 10)
    """
    if isinstance(classifier, Defence):
        return classifier.correct_trials(trials, nodes)
    return _at(classifier.fit_trials(trials), nodes)


def _at(predictions: Sequence[Prediction], nodes: Sequence[ArrayLike]) -> list[Prediction]:
    """The rows of some nodes."""
    found = []
    for prediction, asked in zip(predictions, nodes, strict=True):
        chosen = checked_nodes(asked, len(prediction.probabilities))
        rows = prediction.probabilities[chosen], prediction.mean_entropy[chosen]
        found.append(Prediction(*rows, prediction.details))
    return found


def checked_nodes(nodes: ArrayLike, n_nodes: int) -> NDArray[np.int64]:
    """Node numbers, each once."""
    chosen = check_indices(nodes, "nodes", size=n_nodes)
    check_unique(chosen, "nodes")
    return chosen


def _probabilities(networks: Ensemble, device: str, graph: Graph) -> NDArray[np.float32]:
    return networks.predict(graph, device).probabilities


def _told_on(classifier: Any, graph: Graph) -> NDArray[np.float32]:
    return _told(classifier, graph).probabilities


def _told(classifier: Any, graph: Graph) -> Prediction:
    """What a classifier from elsewhere predicts."""
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"classifier must have predict_proba(graph); got {type(classifier).__name__}.")
    return Prediction.from_array(classifier.predict_proba(graph), graph, "predict_proba of the classifier")

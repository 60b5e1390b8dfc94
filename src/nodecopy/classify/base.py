"""What classifiers share: trials, predictions, and training networks on stacks of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.formats import PathLike
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.params import Configurable
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_indices, check_unique
from nodecopy.classify import saving
from nodecopy.classify.ensemble import Ensemble, Uncertainty, averaged, models_at_once
from nodecopy.classify.ensemble import Prediction as Prediction
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.nn.devices import checked_device
from nodecopy.nn.features import feature_matrix
from nodecopy.nn.networks import Matrix, Networks, Recipe, spreading
from nodecopy.nn.stack import SparseStack, normalised
from nodecopy.nn.training import Objective, Observer, Targets, Watch, train

UNCERTAINTIES = ("total", "aleatoric", "epistemic")


@dataclass(frozen=True, eq=False)
class Trial:
    """One classification problem: a graph, which labels may be seen, and a seed.

    The graph's labels may hold every true label; a classifier reads those of ``train`` and
    ``validation`` only, and takes the graph's distinct labels as the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, Trial
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> trials = [Trial(club, [0, 33], None, seed) for seed in range(3)]
    >>> len(GCN(epochs=50).fit_trials(trials))
    3
    """

    graph: Graph
    train: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    rng: SeedSequence | int

    def __post_init__(self) -> None:
        for name in ("train", "validation"):
            if (nodes := getattr(self, name)) is not None:
                chosen = check_indices(nodes, name, size=self.graph.n_nodes)
                check_unique(chosen, name)
                object.__setattr__(self, name, chosen)
        if self.validation is not None and len(both := np.intersect1d(self.train, self.validation)):
            raise InputError(f"validation must hold other nodes than train; got node {both[0]} in both.")


class Classifier(Configurable, ABC):
    """The contract: ``fit`` on a graph, then ``predict`` and ``predict_proba`` on its nodes.

    Attributes
    ----------
    prediction_
        What was predicted for the observed graph, with the trained networks.
    classes_, node_ids_
        Classes and nodes, as the observed graph names them.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> found = GCN(epochs=50).fit(club, [0, 33], rng=0)
    >>> found.predict_proba().shape, found.classes_.tolist()
    ((34, 2), ['Mr. Hi', 'Officer'])
    """

    device: str
    prediction_: Prediction
    classes_: NDArray[Any]
    node_ids_: NDArray[Any]

    @abstractmethod
    def _solved(self, trials: Sequence[Trial], *, keep: bool) -> list[Prediction]:
        """Solve problems; ``keep`` the networks, which may be large, in the predictions."""

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """What the constructor was given, but for the device, ready for JSON."""

    @classmethod
    def _restored(cls, arguments: dict[str, Any], device: str) -> Self:
        """An unfitted classifier from what :meth:`_arguments` gave."""
        settings: Any = {**arguments, "device": device}
        return cls(**settings)

    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        """Solve many problems on the same features at once, each as if it were alone."""
        return self._solved(trials, keep=False)

    def fit(
        self, graph: Graph, train: ArrayLike, *, validation: ArrayLike | None = None, rng: Rng = None
    ) -> Self:
        """Train on the labels of the nodes ``train``; ``validation`` nodes decide what must be decided."""
        nodes: Any = train
        watched: Any = validation
        (prediction,) = self._solved([Trial(graph, nodes, watched, seed_sequence(rng))], keep=True)
        codes = classes_of(graph)
        names = graph.label_names
        self._take(prediction, codes if names is None else np.array(names)[codes], graph.node_ids)
        return self

    def predict_proba(self, graph: Graph | None = None) -> NDArray[np.float32]:
        """Probability of each class (columns: ``classes_``) for each node.

        Parameters
        ----------
        graph
            A graph with as many features, say the observed one with other edges, on which the trained
            networks are evaluated; by default what they predicted on the observed graph.
        """
        return self._predicted(graph).probabilities

    def predict(self, graph: Graph | None = None) -> NDArray[Any]:
        """The likeliest class of each node, as the observed graph names it."""
        codes = self.predict_proba(graph).argmax(axis=1)
        names: NDArray[Any] = self.classes_[codes]
        return names

    def uncertainty(self, graph: Graph | None = None) -> Uncertainty:
        """How unsure each prediction is, and how much of that is disagreement between samples."""
        return self._predicted(graph).uncertainty()

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns with a row per node: ids, classes, probabilities and uncertainty (in nats)."""
        unsure = self.uncertainty()
        chances = zip(self.classes_, self.predict_proba().T, strict=True)
        numbers = {f"p_{name}": column for name, column in chances}
        numbers |= {f"{kind}_uncertainty": getattr(unsure, kind) for kind in UNCERTAINTIES}
        rounded = {name: np.round(column.astype(np.float64), 7) for name, column in numbers.items()}
        return {"id": self.node_ids_, "predicted": self.predict(), **rounded}

    def to_pandas(self) -> Any:
        """The same as a data frame, its index the ids."""
        return import_optional("pandas", "to_pandas").DataFrame(self.table()).set_index("id")

    def save(self, path: PathLike) -> None:
        """Write what was fitted to an ``.npz`` file that :func:`nodecopy.classify.load` reads.

        It holds settings, trained networks and the prediction, not the graph.
        """
        prediction = self._predicted(None)
        saving.save(path, type(self).__name__, self._arguments(), prediction, self.classes_, self.node_ids_)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({settings})"

    def _take(self, prediction: Prediction, classes: NDArray[Any], node_ids: NDArray[Any]) -> None:
        self.prediction_, self.classes_, self.node_ids_ = prediction, classes, node_ids

    def _predicted(self, graph: Graph | None) -> Prediction:
        if not hasattr(self, "prediction_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit(graph, train) first."
            )
        if graph is None:
            return self.prediction_
        assert self.prediction_.networks is not None
        return self.prediction_.networks.predict(graph, self.device)


def classes_of(graph: Graph) -> NDArray[np.int64]:
    """Distinct known labels of a graph."""
    if graph.labels is None:
        raise InputError("a graph must have labels to be classified; this one has none.")
    classes, _ = class_codes(graph.labels)
    if len(classes) < 2:
        raise InputError(f"a graph must have labels of at least two classes; got {len(classes)}.")
    return classes


class Problems:
    """Checked trials on shared features, ready for networks to be trained on them.

    Parameters
    ----------
    trials
        Their graphs have the same nodes and features; edges, splits and seeds may differ.
    recipe
        How networks are built and trained.
    device
        Where.
    keep
        Whether predictions keep their networks.
    kind
        What the networks are.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        recipe: Recipe,
        device: str,
        *,
        keep: bool = False,
        kind: type[Networks] = Networks,
    ) -> None:
        if not trials:
            raise InputError("trials must hold at least one trial; got none.")
        self.trials, self.recipe, self.keep, self.kind = trials, recipe, keep, kind
        self.device = checked_device(device)
        first = trials[0].graph
        self.classes = classes_of(first)
        self.features = feature_matrix(first, recipe)
        for trial in trials:
            _check(trial, first, self.classes)
        # Trials often share one graph; its matrix is then one object.
        made = {id(trial.graph): trial.graph.adjacency for trial in trials}
        self.observed = [made[id(trial.graph)] for trial in trials]

    @cached_property
    def observed_matrices(self) -> list[Matrix]:
        """What networks spread by on the observed graphs, made once for each."""
        made = {id(adjacency): adjacency for adjacency in self.observed}
        matrices = {key: spreading(adjacency, self.recipe) for key, adjacency in made.items()}
        return [matrices[id(adjacency)] for adjacency in self.observed]

    @property
    def _is_local(self) -> bool:
        """Whether two hops around a node decide its prediction."""
        return self.recipe.spread == "convolution" and self.recipe.rank is None

    def trained(
        self,
        adjacencies: Sequence[sparse.csr_array],
        seeds: Sequence[SeedSequence],
        observer: Observer | None = None,
        goal: Callable[[Networks, Targets], Objective] | None = None,
    ) -> Networks:
        """Networks trained on graphs of the trials: ``len(adjacencies) / len(trials)`` of them for each.

        Where training stops by the loss on validation nodes, that is the loss on the observed graph,
        on which the networks will predict. They descend the loss on training nodes, or their ``goal``.
        Large networks are trained some at a time.
        """
        n_models, at_once = len(adjacencies), models_at_once(self.features, self.recipe, self.device)
        if observer is not None or goal is not None or n_models <= at_once:
            return self._trained(adjacencies, seeds, range(n_models), observer, goal)
        parts = [range(start, min(start + at_once, n_models)) for start in range(0, n_models, at_once)]
        trained = [Ensemble.of(self._trained(adjacencies, seeds, part)) for part in parts]
        return Ensemble.joined(trained).networks(self.features, self.device)

    def _trained(
        self,
        adjacencies: Sequence[sparse.csr_array],
        seeds: Sequence[SeedSequence],
        models: range,
        observer: Observer | None = None,
        goal: Callable[[Networks, Targets], Objective] | None = None,
    ) -> Networks:
        per_trial = len(adjacencies) // len(self.trials)
        trials = [self.trials[model // per_trial] for model in models]
        nodes = [trial.train for trial in trials]
        targets, validation = self._targets(nodes), self._validation([t.validation for t in trials])
        features, own = [self.features] * len(models), adjacencies[models.start : models.stop]
        observed = [self.observed_matrices[model // per_trial] for model in models]
        if validation is None and observer is None and goal is None and self._is_local:
            matrices, features = self._reached(own, nodes, targets)
        elif adjacencies is self.observed:
            matrices = observed
        else:
            matrices = [spreading(adjacency, self.recipe) for adjacency in own]
        stack = SparseStack(features, self.device)
        networks = self.kind(self.recipe, stack, len(self.classes), seeds[models.start : models.stop])
        watch = None if validation is None else Watch(networks, observed, validation)
        objective = None if goal is None else goal(networks, targets)
        train(networks, matrices, targets, watch=watch, observer=observer, objective=objective)
        return networks

    def _reached(
        self, adjacencies: Sequence[sparse.csr_array], nodes: Sequence[NDArray[np.int64]], targets: Targets
    ) -> tuple[list[Matrix], list[sparse.csr_array]]:
        """Graphs and features cut down to what two convolutions reach from the labelled nodes.

        The gradient is exactly that of the whole graph: no other node has a part in the loss.
        """
        graphs: list[Matrix] = []
        features = []
        for number, (adjacency, chosen) in enumerate(zip(adjacencies, nodes, strict=True)):
            reached = np.zeros(adjacency.shape[0], bool)
            reached[chosen] = reached[adjacency[chosen].indices] = True
            inner = np.flatnonzero(reached)
            rows = normalised(adjacency, inner)  # the rows of the other nodes are never used and stay empty
            reached[rows.indices] = True
            outer = np.flatnonzero(reached)
            place = np.empty(len(reached), np.int32)
            place[outer] = np.arange(len(outer))
            lengths = np.zeros(len(outer), np.int32)
            lengths[place[inner]] = np.diff(rows.indptr)
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            graphs.append(
                sparse.csr_array((rows.data, place[rows.indices], indptr), shape=(len(outer), len(outer)))
            )
            features.append(sparse.csr_array(self.features[outer]))
            targets.rows[number, : len(chosen)] = place[chosen]
        return graphs, features

    def codes(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class numbers of labelled nodes, which are the same in every trial."""
        return self._codes[nodes]

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        labels = self.trials[0].graph.labels
        assert labels is not None
        return class_codes(labels)[1]

    def _targets(self, nodes: Sequence[NDArray[np.int64]]) -> Targets:
        return Targets(nodes, [self.codes(chosen) for chosen in nodes], self.device)

    def _validation(self, nodes: Sequence[NDArray[np.int64] | None]) -> Targets | None:
        if self.recipe.patience is None:
            return None
        given = [chosen for chosen in nodes if chosen is not None and len(chosen)]
        if len(given) < len(nodes):
            raise InputError("validation must be given, since training stops by the loss on its nodes.")
        return self._targets(given)

    def predictions(self, networks: Networks, n_weight_samples: int) -> list[Prediction]:
        """Predictions on the observed graphs, averaged over each trial's networks and weight samples.

        ``n_weight_samples`` 0 means the weights themselves, without dropout.
        """
        found = averaged(networks, self.features, self.observed_matrices, n_weight_samples)
        if not self.keep:
            return found
        per_trial = networks.first.shape[0] // len(self.trials)
        parts = [slice(number * per_trial, (number + 1) * per_trial) for number in range(len(found))]
        return [
            replace(prediction, networks=Ensemble.of(networks, part, n_weight_samples))
            for prediction, part in zip(found, parts, strict=True)
        ]


def seeds_of(trials: Sequence[Trial], purpose: int, per_trial: int = 1) -> list[SeedSequence]:
    """``per_trial`` seeds for each trial, its own whoever runs beside it."""
    roots = [child(seed_sequence(trial.rng), purpose) for trial in trials]
    return [child(root, number) for root in roots for number in range(per_trial)]


def _check(trial: Trial, first: Graph, classes: NDArray[np.int64]) -> None:
    graph = trial.graph
    assert first.labels is not None
    same_labels = graph.labels is not None and np.array_equal(graph.labels, first.labels)
    if graph.features is not first.features or graph.labels is None or not same_labels:
        raise InputError("trials that run together must share their features and labels.")
    for name, nodes in (("train", trial.train), ("validation", trial.validation)):
        if nodes is not None and (graph.labels[nodes] == UNLABELLED).any():
            unknown = nodes[graph.labels[nodes] == UNLABELLED][0]
            raise InputError(f"{name} must hold labelled nodes; got node {unknown}, which has no label.")
    missing = np.setdiff1d(classes, graph.labels[trial.train])
    if len(missing):
        name = missing[0] if graph.label_names is None else graph.label_names[missing[0]]
        raise InputError(f"train must hold at least one node of every class; got none of class {name}.")

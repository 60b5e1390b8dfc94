"""What classifiers share: trials, predictions, and training networks on stacks of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy import checks
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.nn.devices import checked_device
from nodecopy.nn.networks import Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalised
from nodecopy.nn.training import Observer, Targets, stacked, train
from nodecopy.rng import Rng, child, seed_sequence

ENTRIES_AT_ONCE = 2**27
"""About how many feature entries are multiplied at once in predictions."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One classification problem: a graph, which labels may be seen, and a seed.

    The graph's labels may hold every true label; a classifier reads those of ``train`` and
    ``validation`` only, and takes the distinct ones as the classes.
    """

    graph: Graph
    train: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    rng: SeedSequence | int


@dataclass(frozen=True, eq=False)
class Prediction:
    """Class probabilities of every node, averaged over whatever the classifier samples.

    Parameters
    ----------
    probabilities
        ``[n_nodes, n_classes]``; columns are the graph's distinct labels in ascending order.
    mean_entropy
        The mean entropy of the sampled predictions; where nothing is sampled, that of the only one.
    details
        What else is worth keeping, ready for JSON.
    """

    probabilities: NDArray[np.float32]
    mean_entropy: NDArray[np.float32]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Entropies in nats: total = aleatoric (within samples) + epistemic (between samples)."""

    total: NDArray[np.float32]
    aleatoric: NDArray[np.float32]
    epistemic: NDArray[np.float32]


class Classifier(ABC):
    """The contract: ``fit`` on a graph, then ``predict`` and ``predict_proba`` on its nodes."""

    device: str
    prediction_: Prediction
    graph_: Graph

    @abstractmethod
    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        """Solve many problems on the same features at once, each as if it were alone."""

    def fit(
        self, graph: Graph, train: ArrayLike, *, validation: ArrayLike | None = None, rng: Rng = None
    ) -> Self:
        """Train on the labels of the nodes ``train``; ``validation`` nodes decide what must be decided."""
        trial = Trial(
            graph,
            checks.indices(train, "train", size=graph.n_nodes),
            None if validation is None else checks.indices(validation, "validation", size=graph.n_nodes),
            seed_sequence(rng),
        )
        (self.prediction_,) = self.fit_trials([trial])
        self.graph_ = graph
        return self

    def predict_proba(self) -> NDArray[np.float32]:
        """Probability of each class (columns: ``classes_``) for each node of the observed graph."""
        return self._fitted().probabilities

    def predict(self) -> NDArray[Any]:
        """The likeliest class of each node, as the graph names it."""
        names: NDArray[Any] = self.classes_[self.predict_proba().argmax(axis=1)]
        return names

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, as the graph names them."""
        self._fitted()
        codes = classes_of(self.graph_)
        names = self.graph_.label_names
        return codes if names is None else np.array(names)[codes]

    def uncertainty(self) -> Uncertainty:
        """How unsure each prediction is, and how much of that is disagreement between samples."""
        prediction = self._fitted()
        total = entropy(prediction.probabilities)
        epistemic = np.maximum(total - prediction.mean_entropy, 0)
        return Uncertainty(total, prediction.mean_entropy, epistemic)

    def _fitted(self) -> Prediction:
        if not hasattr(self, "prediction_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit(graph, train) first."
            )
        return self.prediction_


def entropy(probabilities: Any) -> Any:
    """Entropy of each row, in nats; arrays or tensors."""
    if isinstance(probabilities, torch.Tensor):
        return -torch.special.xlogy(probabilities, probabilities).sum(dim=-1)
    safe = np.where(probabilities > 0, probabilities, 1)
    return -(probabilities * np.log(safe)).sum(axis=-1)


def classes_of(graph: Graph) -> NDArray[np.int64]:
    """Distinct known labels of a graph."""
    if graph.labels is None:
        raise InputError("a graph must have labels to be classified; this one has none.")
    classes = np.unique(graph.labels[graph.labels != UNLABELLED])
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
    """

    def __init__(self, trials: Sequence[Trial], recipe: Recipe, device: str) -> None:
        if not trials:
            raise InputError("trials must hold at least one trial; got none.")
        self.trials, self.recipe, self.device = trials, recipe, checked_device(device)
        first = trials[0].graph
        self.classes = classes_of(first)
        self.features = _features(first, recipe)
        for trial in trials:
            _check(trial, first, self.classes)
        # Trials often share one graph; its matrix is then made once.
        made = {id(trial.graph): trial.graph for trial in trials}
        matrices = {key: normalised(graph.adjacency) for key, graph in made.items()}
        self.observed = [matrices[id(trial.graph)] for trial in trials]

    def trained(
        self,
        matrices: Sequence[sparse.csr_array],
        seeds: Sequence[SeedSequence],
        observer: Observer | None = None,
    ) -> Networks:
        """Networks trained on graphs of the trials: ``len(matrices) / len(trials)`` of them for each."""
        per_trial = len(matrices) // len(self.trials)
        nodes = [trial.train for trial in self.trials for _ in range(per_trial)]
        watched = [trial.validation for trial in self.trials for _ in range(per_trial)]
        targets, validation = self._targets(nodes), self._validation(watched)
        features = [self.features] * len(matrices)
        if validation is None and observer is None and self.recipe.spread == "convolution":
            matrices, features = self._reached(matrices, nodes, targets)
        same = all(matrix is features[0] for matrix in features)
        stack = (
            SparseStack.repeated(features[0], len(features), self.device)
            if same
            else SparseStack(features, self.device)
        )
        networks = Networks(self.recipe, stack, len(self.classes), seeds)
        train(networks, matrices, targets, validation, observer=observer)
        return networks

    def _reached(
        self, matrices: Sequence[sparse.csr_array], nodes: Sequence[NDArray[np.int64]], targets: Targets
    ) -> tuple[list[sparse.csr_array], list[sparse.csr_array]]:
        """Graphs and features cut down to what two convolutions reach from the labelled nodes.

        The gradient is exactly that of the whole graph: no other node has a part in the loss.
        """
        graphs, features = [], []
        for number, (matrix, chosen) in enumerate(zip(matrices, nodes, strict=True)):
            inner = np.unique(matrix[chosen].indices)
            outer = np.unique(matrix[inner].indices)
            place = np.full(matrix.shape[0], -1)
            place[outer] = np.arange(len(outer))
            rows = matrix[inner]  # the rows of the other nodes are never used and stay empty
            lengths = np.zeros(len(outer), np.int64)
            lengths[place[inner]] = np.diff(rows.indptr)
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            graphs.append(
                sparse.csr_array((rows.data, place[rows.indices], indptr), shape=(len(outer), len(outer)))
            )
            features.append(sparse.csr_array(self.features[outer]))
            targets.rows[number, : len(chosen)] = place[chosen]
        return graphs, features

    def codes(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class numbers of labelled nodes."""
        labels = self.trials[0].graph.labels
        assert labels is not None
        return np.searchsorted(self.classes, labels[nodes])

    def _targets(self, nodes: Sequence[NDArray[np.int64]]) -> Targets:
        return Targets(nodes, [self.codes(chosen) for chosen in nodes], self.device)

    def _validation(self, nodes: Sequence[NDArray[np.int64] | None]) -> Targets | None:
        if self.recipe.patience is None:
            return None
        given = [chosen for chosen in nodes if chosen is not None and len(chosen)]
        if len(given) < len(nodes):
            raise InputError("validation must be given, since training stops by the loss on its nodes.")
        return self._targets(given)

    @torch.no_grad()
    def predictions(self, networks: Networks, n_weight_samples: int) -> list[Prediction]:
        """Predictions on the observed graphs, averaged over each trial's networks and weight samples.

        ``n_weight_samples`` 0 means the weights themselves, without dropout.
        """
        per_trial = networks.first.shape[0] // len(self.trials)
        at_once = max(1, ENTRIES_AT_ONCE // max(1, per_trial * self.features.nnz))
        found = []
        for start in range(0, len(self.trials), at_once):
            observed = self.observed[start : start + at_once]
            models = slice(start * per_trial, (start + len(observed)) * per_trial)
            found += self._predictions(networks.part(models, self.features), observed, n_weight_samples)
        return found

    def _predictions(
        self, networks: Networks, observed: Sequence[sparse.csr_array], n_weight_samples: int
    ) -> list[Prediction]:
        per_trial = networks.first.shape[0] // len(observed)
        graphs = stacked(networks, [matrix for matrix in observed for _ in range(per_trial)])
        mean: Any = 0.0
        mean_entropy: Any = 0.0
        steps = range(self.recipe.epochs, self.recipe.epochs + n_weight_samples)
        for step in steps or [None]:
            sampled = networks.logits(graphs, None, step).softmax(dim=2)
            by_trial = (len(observed), per_trial, *sampled.shape[1:])
            mean = mean + sampled.view(by_trial).mean(dim=1)
            mean_entropy = mean_entropy + entropy(sampled).view(by_trial[:-1]).mean(dim=1)
        n = max(1, n_weight_samples)
        return [
            Prediction((p / n).cpu().numpy(), (e / n).cpu().numpy())
            for p, e in zip(mean, mean_entropy, strict=True)
        ]


def seeds_of(trials: Sequence[Trial], purpose: int, per_trial: int = 1) -> list[SeedSequence]:
    """``per_trial`` seeds for each trial, its own whoever runs beside it."""
    roots = [child(seed_sequence(trial.rng), purpose) for trial in trials]
    return [child(root, number) for root in roots for number in range(per_trial)]


def _features(graph: Graph, recipe: Recipe) -> sparse.csr_array:
    if graph.features is None:
        raise InputError("a graph must have features to be classified; this one has none.")
    plain: Any = graph.features
    matrix: sparse.csr_array = sparse.csr_array(plain).astype(np.float32)
    checks.choice(recipe.features, "features of a recipe", ["rows", "binary", "plain"])
    if recipe.features == "binary":
        matrix.data = (matrix.data != 0).astype(np.float32)
    if recipe.features == "rows":
        # A node without features keeps its row of zeros.
        total = np.asarray(abs(matrix).sum(axis=1), np.float32)
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        matrix.data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
    return matrix


def _check(trial: Trial, first: Graph, classes: NDArray[np.int64]) -> None:
    graph = trial.graph
    if graph.n_nodes != first.n_nodes or graph.features is not first.features:
        raise InputError("trials that run together must share their nodes and features.")
    assert graph.labels is not None
    for name, nodes in (("train", trial.train), ("validation", trial.validation)):
        if nodes is not None and (graph.labels[nodes] == UNLABELLED).any():
            unknown = nodes[graph.labels[nodes] == UNLABELLED][0]
            raise InputError(f"{name} must hold labelled nodes; got node {unknown}, which has no label.")
    missing = np.setdiff1d(classes, graph.labels[trial.train])
    if len(missing):
        name = missing[0] if graph.label_names is None else graph.label_names[missing[0]]
        raise InputError(f"train must hold at least one node of every class; got none of class {name}.")

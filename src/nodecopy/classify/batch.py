"""Trials whose networks are trained together, on stacks of graphs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from threading import Event
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.random import child
from nodecopy.classify.base import Trial, check_trials
from nodecopy.classify.ensemble import Ensemble, Prediction, average_predictions, max_networks
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.networks import Matrix, Networks, TrainingConfig, fit_feature_scaling, propagation_matrix
from nodecopy.nn.stack import SparseStack, normalise_adjacency
from nodecopy.nn.training import (
    EarlyStopping,
    Objective,
    Targets,
    TrainingCallback,
    check_device,
    map_on_threads,
    train,
)

MAX_PART = 0.98
"""A larger part of the nodes is not cut out: networks then share the features of the whole graph."""
FitTrials = TypeVar("FitTrials", bound=Callable[..., list[Prediction]])


def fit_by_classes(fit_trials: FitTrials) -> FitTrials:
    """Decorate a ``fit_trials`` so that only trials with the same classes are trained together."""

    @wraps(fit_trials)
    def fit(classifier: Any, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        trials = check_trials(trials)
        groups: dict[bytes, list[int]] = {}
        for number, trial in enumerate(trials):
            groups.setdefault(trial.classes.tobytes(), []).append(number)
        if len(groups) < 2:
            return fit_trials(classifier, trials, keep_networks=keep_networks)
        predictions: dict[int, Prediction] = {}
        for numbers in groups.values():
            part = [trials[number] for number in numbers]
            fitted = fit_trials(classifier, part, keep_networks=keep_networks)
            predictions |= zip(numbers, fitted, strict=True)
        return [predictions[number] for number in range(len(trials))]

    return cast(FitTrials, fit)


class TrialBatch(ABC):
    """Trials on shared features, whose networks are trained by one call.

    Parameters
    ----------
    trials
        Their graphs have the same nodes, features and labels, and their training nodes the same classes;
        edges, splits and seeds may differ.
    recipe
        How networks are built and trained.
    device
        ``"cpu"`` or ``"cuda"``.
    keep_networks
        Whether predictions hold their networks.
    """

    def __init__(
        self, trials: Sequence[Trial], recipe: TrainingConfig, device: str, *, keep_networks: bool = False
    ) -> None:
        if not trials:
            raise InputError("trials", "must hold at least one trial; got none.")
        self.trials, self.recipe, self.keep_networks = trials, recipe, keep_networks
        self.device = check_device(device)
        first = trials[0]
        if first.graph.features is None:
            raise InputError(
                "a graph must have features to be classified by networks; this one has none. "
                "LabelPropagation needs none."
            )
        self.feature_scaling = self.fit_feature_scaling(first.graph)
        self.n_classes = first.n_classes
        self.features = self.feature_scaling.apply(first.graph.features)
        for trial in trials:
            same_labels = np.array_equal(cast(Any, trial.graph.labels), cast(Any, first.graph.labels))
            if trial.graph.features is not first.graph.features or not same_labels:
                raise InputError("trials that run together must share their features and labels.")
        # Trials often share a graph, whose matrices are then computed once.
        graphs = {id(trial.graph): trial.graph.adjacency for trial in trials}
        scalings = {key: WeightScaling.fit(adjacency, recipe.weights) for key, adjacency in graphs.items()}
        scaled = {key: scalings[key].apply(adjacency) for key, adjacency in graphs.items()}
        self.weight_scalings = [scalings[id(trial.graph)] for trial in trials]
        self.observed = [scaled[id(trial.graph)] for trial in trials]
        """The adjacencies of the trials, with scaled weights, as :meth:`train` takes them."""

    def fit_feature_scaling(self, graph: Graph) -> FeatureScaling:
        """Return the scaling of the features of a graph, as the recipe says."""
        return fit_feature_scaling(graph, self.recipe)

    def seeds(self, purpose: int, per_trial: int = 1) -> list[SeedSequence]:
        """Return ``per_trial`` seeds of a purpose for each trial."""
        roots = [child(trial.rng, purpose) for trial in self.trials]
        return [child(root, number) for root in roots for number in range(per_trial)]

    @abstractmethod
    def train(self, adjacencies: Sequence[sparse.csr_array], seeds: Sequence[SeedSequence]) -> Any:
        """Return networks trained on graphs: ``len(adjacencies) / len(trials)`` networks for each trial.

        Weights of the adjacencies are used as they are, already scaled. With patience, training stops by the
        loss on validation nodes of the observed graph, on which the networks will predict.
        """

    @abstractmethod
    def predict(self, networks: Any, n_weight_samples: int = 0) -> list[Prediction]:
        """Return predictions on the observed graphs, the mean over each trial's networks.

        ``n_weight_samples`` dropout samples of each network are averaged; 0 switches dropout off.
        """

    def targets(self, trials: Sequence[Trial]) -> Targets:
        """Return the training nodes of one network for each of the trials, with labels and weights."""
        labels = [t.codes[t.train] if t.soft_labels is None else t.soft_labels for t in trials]
        return Targets([t.train for t in trials], labels, self.device, [t.weights for t in trials])

    def validation(self, trials: Sequence[Trial]) -> Targets:
        """Return the validation nodes of one network for each of the trials, or raise an error."""
        nodes = [t.validation for t in trials if t.validation is not None and len(t.validation)]
        if len(nodes) < len(trials):
            raise InputError(
                "validation",
                "must be given, since training stops by the loss on its nodes."
                " patience=0 trains for all epochs, without validation nodes.",
            )
        codes = [trial.codes[chosen] for trial, chosen in zip(trials, nodes, strict=True)]
        return Targets(nodes, codes, self.device)


class TrainingBatch(TrialBatch):
    """Trials whose networks are trained in stacks; see :class:`TrialBatch` for the parameters."""

    def __init__(
        self, trials: Sequence[Trial], recipe: TrainingConfig, device: str, *, keep_networks: bool = False
    ) -> None:
        super().__init__(trials, recipe, device, keep_networks=keep_networks)
        matrices = {id(adjacency): propagation_matrix(adjacency, recipe) for adjacency in self.observed}
        self.matrices: list[Matrix] = [matrices[id(adjacency)] for adjacency in self.observed]

    def train(
        self,
        adjacencies: Sequence[sparse.csr_array],
        seeds: Sequence[SeedSequence],
        *,
        callback: TrainingCallback | None = None,
        build_objective: Callable[[Networks, Targets], Objective] | None = None,
    ) -> Networks:
        """Return networks trained on graphs, as :class:`TrialBatch` says.

        They minimise the loss on training nodes, or the objective that ``build_objective`` returns. Large
        networks are trained a few at a time, and on a CPU parts of the stack on threads of their own.
        """
        n_models = len(adjacencies)
        at_once = max_networks(self.features, self.recipe, self.device, adjacencies)
        if callback is not None or build_objective is not None:
            return self._train_part(adjacencies, seeds, range(n_models), callback, build_objective)
        is_on_cpu = self.device.type == "cpu"
        if is_on_cpu:
            per_thread = math.ceil(n_models / torch.get_num_threads())
            at_once = 1 if self.recipe.is_compiled(self.device) else min(at_once, per_thread)
        parts = [range(start, min(start + at_once, n_models)) for start in range(0, n_models, at_once)]
        if len(parts) == 1:
            return self._train_part(adjacencies, seeds, parts[0])
        scaling = self.feature_scaling, self.weight_scalings[0]

        def train_part(part: range, stop: Event | None = None) -> Ensemble:
            return Ensemble.from_networks(self._train_part(adjacencies, seeds, part, stop=stop), *scaling)

        trained = map_on_threads(train_part, parts) if is_on_cpu else list(map(train_part, parts))
        return Ensemble.join(trained).build_networks(self.features, self.device)

    def _train_part(
        self,
        adjacencies: Sequence[sparse.csr_array],
        seeds: Sequence[SeedSequence],
        models: range,
        callback: TrainingCallback | None = None,
        build_objective: Callable[[Networks, Targets], Objective] | None = None,
        stop: Event | None = None,
    ) -> Networks:
        """Train the networks with the given numbers, until ``stop`` is set."""
        per_trial = len(adjacencies) // len(self.trials)
        trials = [self.trials[model // per_trial] for model in models]
        targets = self.targets(trials)
        part = adjacencies[models.start : models.stop]
        observed = [self.matrices[model // per_trial] for model in models]
        features = [self.features] * len(models)
        plain = callback is None and build_objective is None and not self.recipe.patience
        if plain and self.recipe.propagation == "convolution" and self.recipe.rank is None:
            matrices, features = self._cut_out(part, [t.train for t in trials], targets)
        elif adjacencies is self.observed:
            matrices = observed
        else:
            matrices = [propagation_matrix(adjacency, self.recipe) for adjacency in part]
        stack = SparseStack(features, self.device)
        networks = self.recipe.network_type.initialise(
            self.recipe, stack, self.n_classes, seeds[models.start : models.stop]
        )
        early_stopping = None
        if self.recipe.patience:
            early_stopping = EarlyStopping(networks, observed, self.validation(trials))
        objective = None if build_objective is None else build_objective(networks, targets)
        train(
            networks,
            matrices,
            targets,
            early_stopping=early_stopping,
            callback=callback,
            objective=objective,
            stop=stop,
        )
        return networks

    def _cut_out(
        self, adjacencies: Sequence[sparse.csr_array], nodes: Sequence[NDArray[np.int64]], targets: Targets
    ) -> tuple[list[Matrix], list[sparse.csr_array]]:
        """Return graphs and features of the nodes within two hops of the training nodes, if they are a part.

        The gradient is exactly that of the whole graph: no other node has a part in the loss. The rows of
        the targets become positions among these nodes.
        """
        pairs = list(zip(adjacencies, nodes, strict=True))
        if self.device.type == "cpu":  # networks are on threads of their own already
            parts = [_cut_out_two_hops(*pair) for pair in pairs]
        else:
            parts = map_on_threads(lambda pair, stop: _cut_out_two_hops(*pair), pairs)
        graphs: list[Matrix] = []
        features = []
        for rows, (_, chosen), (graph, outer) in zip(targets.rows, pairs, parts, strict=True):
            graphs.append(graph)
            features.append(self.features if outer is None else sparse.csr_array(self.features[outer]))
            if outer is not None:
                rows[: len(chosen)] = np.searchsorted(outer, chosen)
        return graphs, features

    def predict(self, networks: Networks, n_weight_samples: int = 0) -> list[Prediction]:
        predictions = average_predictions(networks, self.features, self.matrices, n_weight_samples)
        if not self.keep_networks:
            return predictions
        per_trial = len(networks.weights[0]) // len(self.trials)
        parts = [slice(number * per_trial, (number + 1) * per_trial) for number in range(len(predictions))]
        ensembles = [
            Ensemble.from_networks(networks, self.feature_scaling, scaling, part, n_weight_samples)
            for scaling, part in zip(self.weight_scalings, parts, strict=True)
        ]
        return [replace(p, networks=kept) for p, kept in zip(predictions, ensembles, strict=True)]


def _cut_out_two_hops(
    adjacency: sparse.csr_array, nodes: NDArray[np.int64]
) -> tuple[sparse.csr_array, NDArray[np.int64] | None]:
    """Return the normalised graph of the nodes within two hops of some nodes, and which these are.

    Rows of nodes farther than one hop are not used, and empty. If most nodes are within two hops, returns the
    whole graph and None.
    """
    reached = np.zeros(adjacency.shape[0], bool)
    reached[nodes] = reached[adjacency[nodes].indices] = True
    inner = np.flatnonzero(reached)
    reached[adjacency[inner].indices] = True
    outer = np.flatnonzero(reached)
    if len(outer) > MAX_PART * len(reached):
        return normalise_adjacency(adjacency), None
    rows = normalise_adjacency(adjacency, inner)
    place = np.empty(len(reached), np.int32)
    place[outer] = np.arange(len(outer))
    lengths = np.zeros(len(outer), np.int32)
    lengths[place[inner]] = np.diff(rows.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array((rows.data, place[rows.indices], indptr), shape=(len(outer), len(outer))), outer

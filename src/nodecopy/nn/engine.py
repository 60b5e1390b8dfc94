"""The engine that trains many networks on graphs with the same features, and averages their predictions.

It decides how many networks are computed at once, on which threads, and on which part of a graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import IntArray, Ints, Singles
from nodecopy._core.checks import check_integer
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.networks import (
    Matrix,
    Networks,
    SparseStack,
    TrainingConfig,
    check_features,
    normalise_adjacency,
    propagation_matrix,
)
from nodecopy.nn.training import (
    EarlyStopping,
    LabelledNodes,
    Objective,
    Targets,
    build_predictor,
    check_device,
    map_on_threads,
    share_threads,
    train,
)

# Activations of a layer, or edges, of networks that are computed together; above 16 MiB, a CPU is slower.
MAX_ACTIVATIONS = {"cpu": 2**22, "cuda": 2**27}
MAX_PART = 0.98  # a larger part of the nodes is not cut out: networks then share the features of the graph
MAX_STEPS = 1_000_000  # dropout samples, or propagation steps, that a file may ask for
Averages = tuple[Singles, Singles]  # class probabilities, mean entropies
Scalings = tuple[FeatureScaling, WeightScaling]


class Engine:
    """Networks of one configuration on graphs that share their (scaled) features."""

    def __init__(
        self,
        config: TrainingConfig,
        features: sparse.csr_array,
        n_classes: int,
        observed: Sequence[sparse.csr_array],
        device: torch.device,
    ) -> None:
        self.config, self.features, self.n_classes, self.device = config, features, n_classes, device
        self.observed = observed
        matrices = {id(adjacency): propagation_matrix(adjacency, config) for adjacency in observed}
        self.matrices: list[Matrix] = [matrices[id(adjacency)] for adjacency in observed]

    def train(
        self,
        adjacencies: Sequence[sparse.csr_array],
        targets: Sequence[LabelledNodes],
        seeds: Sequence[SeedSequence],
        *,
        validation: Sequence[LabelledNodes] | None = None,
        build_objective: Callable[[Networks, Targets], Objective] | None = None,
    ) -> Networks:
        n_models, per_graph = len(adjacencies), len(adjacencies) // len(self.observed)
        is_plain, stop = build_objective is None, Event()

        def train_part(models: range) -> Networks:
            part = Targets([targets[model] for model in models], self.device)
            graphs = [adjacencies[model] for model in models]
            observed = [self.matrices[model // per_graph] for model in models]
            matrices, features = observed, [self.features] * len(models)
            cuts = is_plain and not self.config.patience and self.config.rank is None
            if cuts and self.config.propagation == "convolution":
                matrices, features = self._cut_out(graphs, [targets[model].nodes for model in models], part)
            elif adjacencies is not self.observed:
                matrices = [propagation_matrix(adjacency, self.config) for adjacency in graphs]
            stack, of_models = SparseStack(features, self.device), slice(models.start, models.stop)
            networks = self.config.network_type.initialise(
                self.config, stack, self.n_classes, seeds[of_models]
            )
            early_stopping = None
            if validation is not None:
                watched = Targets(validation[of_models], self.device)
                early_stopping = EarlyStopping(networks, observed, watched)
            objective = None if build_objective is None else build_objective(networks, part)
            train(networks, matrices, part, early_stopping, objective, stop)
            return networks

        if not is_plain:
            return train_part(range(n_models))
        at_once = max_networks(self.features, self.config, self.device, adjacencies)
        is_on_cpu = self.device.type == "cpu"
        if is_on_cpu:
            per_thread = math.ceil(n_models / torch.get_num_threads())
            at_once = 1 if self.config.is_compiled(self.device) else min(at_once, per_thread)
        parts = [range(start, min(start + at_once, n_models)) for start in range(0, n_models, at_once)]
        if len(parts) == 1:
            return train_part(parts[0])

        def train_weights(models: range) -> list[Tensor]:
            networks = train_part(models)
            return [*(weight.detach() for weight in networks.weights), networks.masks.keys]

        if is_on_cpu:
            trained = map_on_threads(train_weights, parts, on_error=stop.set)
        else:
            trained = list(map(train_weights, parts))
        *weights, keys = (torch.cat(of_parts) for of_parts in zip(*trained, strict=True))
        stack = SparseStack([self.features] * n_models, self.device)
        return self.config.network_type(self.config, stack, weights, keys)

    def _cut_out(
        self, adjacencies: Sequence[sparse.csr_array], nodes: Sequence[IntArray], targets: Targets
    ) -> tuple[list[Matrix], list[sparse.csr_array]]:
        """Return graphs and features within two hops of the training nodes, if these are few."""
        pairs = list(zip(adjacencies, nodes, strict=True))
        if self.device.type == "cpu":  # networks are on threads of their own already
            parts = [cut_out_two_hops(*pair) for pair in pairs]
        else:
            parts = map_on_threads(lambda pair: cut_out_two_hops(*pair), pairs)
        graphs: list[Matrix] = []
        features = []
        for rows, (_, chosen), (graph, outer) in zip(targets.rows, pairs, parts, strict=True):
            graphs.append(graph)
            features.append(self.features if outer is None else sparse.csr_array(self.features[outer]))
            if outer is not None:
                rows[: len(chosen)] = np.searchsorted(outer, chosen)
        return graphs, features

    def predict(self, networks: Networks, n_weight_samples: int = 0) -> list[Averages]:
        return _average_predictions(networks, self.features, self.matrices, n_weight_samples)

    def keep(self, networks: Networks, models: slice, n_weight_samples: int, scalings: Scalings) -> Ensemble:
        weights = tuple(weight[models].detach().cpu().numpy().copy() for weight in networks.weights)
        keys = networks.masks.keys[models].cpu().numpy().copy()
        return Ensemble(networks.config, weights, keys, n_weight_samples, *scalings)


def cut_out_two_hops(adjacency: sparse.csr_array, nodes: IntArray) -> tuple[sparse.csr_array, Ints | None]:
    """Return the normalised graph of the nodes within two hops of some nodes, and which these are."""
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


def max_networks(
    features: sparse.csr_array, config: TrainingConfig, device: torch.device, matrices: Sequence[Any]
) -> int:
    """Return how many networks may be computed together, given the matrices of their graphs."""
    n_entries = max(getattr(matrix, "nnz", 0) for matrix in matrices)
    n_activations = max(config.count_activations(features), n_entries)
    return max(1, MAX_ACTIVATIONS[device.type] // n_activations)


def _average_predictions(
    networks: Networks, features: sparse.csr_array, matrices: Sequence[Matrix], n_weight_samples: int
) -> list[Averages]:
    n_models, config, device = len(networks.weights[0]), networks.config, networks.features.device
    per_graph, at_once = n_models // len(matrices), max_networks(features, config, device, matrices)
    # The masks continue where those of training ended.
    steps = range(config.n_epochs, config.n_epochs + n_weight_samples) or [None]

    @torch.no_grad()
    def sum_part(models: range) -> list[tuple[Tensor, Tensor]]:
        part = networks.select(slice(models.start, models.stop), features)
        compute_logits = build_predictor(part, [matrices[model // per_graph] for model in models])
        total: Any = 0.0
        entropies: Any = 0.0
        with share_threads(part):
            for step in steps:
                probabilities = compute_logits(step).softmax(dim=2)
                total, entropies = total + probabilities, entropies + row_entropy(probabilities)
        return list(zip(total, entropies, strict=True))

    total: list[Any] = [0.0] * len(matrices)
    entropies: list[Any] = [0.0] * len(matrices)
    for start in range(0, n_models, at_once):
        models = range(start, min(start + at_once, n_models))
        if config.is_compiled(device) and len(models) > 1:
            parts = map_on_threads(sum_part, [range(model, model + 1) for model in models])
            sums = [sums_of_model for part in parts for sums_of_model in part]
        else:
            sums = sum_part(models)
        for model, (probabilities, of_model) in enumerate(sums, start):
            total[model // per_graph] = total[model // per_graph] + probabilities
            entropies[model // per_graph] = entropies[model // per_graph] + of_model
    n = per_graph * len(steps)
    return [((p / n).cpu().numpy(), (e / n).cpu().numpy()) for p, e in zip(total, entropies, strict=True)]


def row_entropy(probabilities: Tensor) -> Tensor:
    """Return the entropy of each row, in nats."""
    entropies: Tensor = -torch.special.xlogy(probabilities, probabilities).sum(dim=-1)
    return entropies


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained networks that predict on graphs."""

    config: TrainingConfig
    weights: tuple[Singles, ...]
    keys: NDArray[np.int32]
    n_weight_samples: int
    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    def __post_init__(self) -> None:
        """Raise an error unless the weights fit the configuration; compiled code checks nothing."""
        check_integer(self.n_weight_samples, "n_weight_samples", low=0, high=MAX_STEPS)
        check_integer(self.config.n_steps, "n_steps", low=0, high=MAX_STEPS)
        keys, weights = self.keys, self.weights
        sizes = weights[0].shape[1], weights[-1].shape[2]
        shapes = self.config.network_type.weight_shapes(self.config, *sizes)
        if keys.dtype != np.int32 or keys.ndim != 1 or not len(keys):
            raise InputError("keys", f"must be a vector of 32-bit integers; got shape {keys.shape}.")
        expected = [(len(keys), *shape) for shape in shapes]
        is_single = all(part.dtype == np.float32 for part in weights)
        if not is_single or [part.shape for part in weights] != expected:
            raise InputError("weights", f"must have the shapes {expected} in single precision; got others.")

    @property
    def n_classes(self) -> int:
        return int(self.weights[-1].shape[2])

    def predict(self, graph: Graph, device: str) -> Averages:
        check_features(graph, self.weights[0].shape[1])
        features = self.feature_scaling.apply(graph.features)
        where = check_device(device)
        weights = [torch.tensor(weight, device=where) for weight in self.weights]
        stack, keys = SparseStack([features] * len(self.keys), where), torch.tensor(self.keys, device=where)
        networks = self.config.network_type(self.config, stack, weights, keys)
        matrix = propagation_matrix(self.weight_scaling.apply(graph.adjacency), self.config)
        return _average_predictions(networks, features, [matrix], self.n_weight_samples)[0]

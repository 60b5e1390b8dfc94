"""Modules of users that are trained on graphs of trials, and kept to predict again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.csr import Rows
from nodecopy._core.notices import log_decision, warn_about_data
from nodecopy._core.progress import track
from nodecopy._core.validation import (
    check_finite,
    check_integer,
    check_numbers,
    check_sequence,
    check_vector,
)
from nodecopy.classify.batch import TrialBatch
from nodecopy.classify.ensemble import MAX_STEPS, Prediction, check_scalings, entropy
from nodecopy.classify.trial import Trial
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.devices import check_device
from nodecopy.nn.feature_matrices import check_features
from nodecopy.nn.module_networks import WEIGHTS_UNUSED, Edges, ModuleNetwork
from nodecopy.nn.module_training import (
    Factory,
    ModuleEarlyStopping,
    build_network,
    seed_global_generators,
    train_module,
)
from nodecopy.nn.networks import Recipe
from nodecopy.nn.threads import choose_threads

OWNER = "factory of CustomNetwork"
"""What is named in errors, unless another parameter took the factory."""


class TrainedModule(NamedTuple):
    """A trained module, and the seed of its dropout masks in predictions."""

    network: ModuleNetwork
    seed: int


class ModuleBatch(TrialBatch):
    """Trials for which modules of a factory are trained, one after another.

    Parameters
    ----------
    trials, recipe, device, keep_networks
        As in :class:`TrialBatch`; of the recipe, what concerns the data and the training.
    factory
        A function of the numbers of features and classes that returns a new module.
    owner
        The parameter that took the factory, for errors.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        recipe: Recipe,
        device: str,
        factory: Factory,
        *,
        owner: str = OWNER,
        keep_networks: bool = False,
    ) -> None:
        super().__init__(trials, recipe, device, keep_networks=keep_networks)
        self.factory, self.owner = factory, owner
        self._inputs: dict[torch.dtype, Tensor] = {}
        self._is_warned, self._n_entries = False, math.prod(self.features.shape)
        if any(trial.graph.directed for trial in trials):
            log_decision(
                "directed edges: edge_index is that of to_pyg, so that layers of PyG read the in-neighbours "
                "of a node, where GCN and APPNP of nodecopy read its out-neighbours. Give the graph with its "
                "edges reversed to read those."
            )
        self._observed_rows = {id(part): Rows.from_matrix(part, "adjacency") for part in self.observed}

    def train(
        self, adjacencies: Sequence[sparse.csr_array], seeds: Sequence[SeedSequence]
    ) -> list[TrainedModule]:
        per_trial = len(adjacencies) // len(self.trials)
        return [
            self._train_module(number // per_trial, adjacencies[number], seeds[number])
            for number in track(range(len(adjacencies)), "training network")
        ]

    def _train_module(self, number: int, adjacency: sparse.csr_array, seed: SeedSequence) -> TrainedModule:
        """Train a module for the trial of a number; it depends on the seed alone."""
        trials = [self.trials[number]]
        first, second = (int(word) >> 1 for word in seed.generate_state(2, np.uint64))
        with seed_global_generators(first, self.device), choose_threads(self._n_entries, self.device):
            network = build_network(
                self.factory, self.features.shape[1], self.n_classes, self.device, self.owner
            )
            self._warn_of_weights(network)
            x, early_stopping = self._input(network), None
            if self.recipe.patience:
                early_stopping = ModuleEarlyStopping(
                    x, self._observed_edges(network, number), self.validation(trials), self.recipe.patience
                )
            rows = self._observed_rows.get(id(adjacency)) or Rows.from_matrix(adjacency, "adjacency")
            train_module(
                network,
                x,
                network.edges_of_rows(rows),
                self.targets(trials),
                self.recipe,
                n_classes=self.n_classes,
                early_stopping=early_stopping,
            )
        return TrainedModule(network, second)

    def predict(self, networks: Sequence[TrainedModule], n_weight_samples: int = 0) -> list[Prediction]:
        per_trial, predictions = len(networks) // len(self.trials), []
        for number, scaling in enumerate(self.weight_scalings):
            part = networks[number * per_trial : (number + 1) * per_trial]
            network = part[0].network
            edges = self._observed_edges(network, number)
            prediction = average_modules(part, self._input(network), edges, n_weight_samples)
            if self.keep_networks:
                ensemble = ModuleEnsemble(
                    self.factory,
                    (self.features.shape[1], self.n_classes),
                    tuple(_copy_state(trained.network) for trained in part),
                    np.array([trained.seed for trained in part]),
                    n_weight_samples,
                    self.feature_scaling,
                    scaling,
                )
                prediction = replace(prediction, networks=ensemble)
            predictions.append(prediction)
        return predictions

    def _input(self, network: ModuleNetwork) -> Tensor:
        """Return the scaled features, which modules of one data type share."""
        if network.dtype not in self._inputs:
            self._inputs[network.dtype] = network.dense_tensor(self.features)
        return self._inputs[network.dtype]

    def _warn_of_weights(self, network: ModuleNetwork) -> None:
        """Warn once if edges have weights that the module does not take."""
        is_weighted = any(rows.weights is not None for rows in self._observed_rows.values())
        if is_weighted and not network.takes_weights and not self._is_warned:
            self._is_warned = True
            warn_about_data(WEIGHTS_UNUSED.format(network.name))

    def _observed_edges(self, network: ModuleNetwork, number: int) -> Edges:
        return network.edges_of_rows(self._observed_rows[id(self.observed[number])])


@dataclass(frozen=True, eq=False)
class ModuleEnsemble:
    """The trained modules behind a prediction: all that is needed to predict again.

    Parameters
    ----------
    factory
        The function that builds the modules.
    sizes
        The numbers of features and classes that it takes.
    weights
        The state of each module: parameters and buffers by name.
    seeds
        The seed of each module's dropout masks.
    n_weight_samples
        Dropout samples of each module; 0 switches dropout off.
    feature_scaling, weight_scaling
        How features and edge weights were scaled for training, and are for predictions.
    """

    factory: Factory
    sizes: tuple[int, int]
    weights: tuple[dict[str, NDArray[Any]], ...]
    seeds: NDArray[np.int64]
    n_weight_samples: int
    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    def check(self, n_classes: int) -> None:
        """Raise an error unless every module has a seed and finite numbers; torch compares the shapes."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_integer(self.n_weight_samples, "n_weight_samples", low=0, high=MAX_STEPS)
        states = check_sequence(self.weights, "weights", "the states of modules")
        seeds = check_vector(self.seeds, "seeds", length=len(states), per="module")
        sizes = check_sequence(self.sizes, "sizes", "the numbers of features and classes")
        if not states or seeds.dtype.kind not in "iu" or len(sizes) != 2 or sizes[1] != n_classes:
            raise InputError("networks must have states, seeds and the numbers of features and classes.")
        check_integer(sizes[0], "sizes", low=0, high=max(sum(w.size for w in s.values()) for s in states))
        for name, array in (item for state in states for item in state.items()):
            if not check_numbers(array, name).dtype.isnative:
                raise InputError(f"{name} must be in the byte order of this machine; got {array.dtype}.")
            check_finite(array, name)

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph, with the modules' own dropout masks."""
        check_features(graph)
        given: Any = graph.features
        if given.shape[1] != self.sizes[0]:
            raise InputError(
                f"features of the graph must have {self.sizes[0]} columns, as in fit; got {given.shape[1]}."
            )
        networks = self.build_modules(check_device(device))
        network = networks[0].network
        x = network.dense_tensor(self.feature_scaling.apply(given))
        rows = Rows.from_matrix(self.weight_scaling.apply(graph.adjacency), "adjacency")
        return average_modules(networks, x, network.edges_of_rows(rows), self.n_weight_samples)

    def build_modules(self, device: torch.device) -> list[TrainedModule]:
        """Return modules with these weights, to predict with."""
        modules = []
        for state, seed in zip(self.weights, self.seeds.tolist(), strict=True):
            with seed_global_generators(seed, device):
                network = build_network(self.factory, *self.sizes, device, OWNER)
            try:
                network.module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
            except RuntimeError as error:
                first = " ".join(str(error).split("\n\t")[:2])  # one difference is enough
                raise InputError(f"{OWNER} must build the networks that were trained. {first}") from error
            modules.append(TrainedModule(network, seed))
        return modules


@torch.no_grad()
def average_modules(
    networks: Iterable[TrainedModule], x: Tensor, edges: Edges, n_weight_samples: int
) -> Prediction:
    """Return the mean prediction of modules on a graph, over all of them and their dropout samples."""
    means, entropies = [], []
    for network, seed in networks:
        with seed_global_generators(seed, x.device), choose_threads(x.numel(), x.device):
            samples = torch.stack(network.sample_probabilities(x, edges, n_weight_samples))
        means.append(samples.mean(dim=0))
        entropies.append(entropy(samples).mean(dim=0))
    mean, mean_entropy = torch.stack(means).mean(dim=0), torch.stack(entropies).mean(dim=0)
    return Prediction(mean.float().cpu().numpy(), mean_entropy.float().cpu().numpy())


def _copy_state(network: ModuleNetwork) -> dict[str, NDArray[Any]]:
    """Return parameters and buffers as arrays; NumPy has no type for those in half precision."""
    state = network.module.state_dict()
    is_half = {torch.float16, torch.bfloat16}
    return {
        name: (value.float() if value.dtype in is_half else value).cpu().numpy().copy()
        for name, value in state.items()
    }

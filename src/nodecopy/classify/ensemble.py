"""Predictions, and the trained networks that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Event
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.checks import (
    as_array,
    check_finite,
    check_integer,
    check_type,
    check_vector,
    type_name,
)
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.networks import Matrix, Networks, TrainingConfig, check_features, propagation_matrix
from nodecopy.nn.stack import SparseStack
from nodecopy.nn.training import build_predictor, check_device, map_on_threads, share_threads

MAX_ACTIVATIONS = {"cpu": 2**22, "cuda": 2**27}
"""The largest number of activations in a layer, and of edges, of the networks that are computed together.

On a CPU they take 16 MiB: the allocator returns larger arrays to the system after every operation, and
touching fresh memory takes longer than computing with it.
"""


SUM_TOLERANCE = 1e-3
"""How far probabilities that a classifier returns may be below 0, and their sum from 1."""


MAX_STEPS = 1_000_000
"""The largest number of dropout samples and of propagation steps that a file may ask for."""


class TrainedNetworks(Protocol):
    """Trained networks that predict on graphs."""

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph with as many features."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The class probabilities of every node, averaged over whatever the classifier samples.

    Parameters
    ----------
    probabilities
        ``[n_nodes, n_classes]``; columns are the classes of the trial.
    mean_entropy
        The mean entropy of the sampled predictions; the entropy of the prediction if nothing is sampled.
    details
        Further results of the classifier, ready for JSON.
    networks
        The trained networks, if they are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, Trial
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> (prediction,) = GCN(n_epochs=50).fit_trials([Trial(club, [0, 33], rng=0)])
    >>> prediction.probabilities.shape, prediction.uncertainty().total.shape
    ((34, 2), (34,))
    """

    probabilities: NDArray[np.float32]
    mean_entropy: NDArray[np.float32]
    details: dict[str, Any] = field(default_factory=dict)
    networks: TrainedNetworks | None = field(default=None, repr=False)

    @classmethod
    def from_array(
        cls, probabilities: ArrayLike | Prediction, graph: Graph, name: str, n_classes: int | None = None
    ) -> Prediction:
        """Return checked probabilities as a prediction; ``name`` says in errors what returned them."""
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
            Class probabilities, ``[n_samples, n_nodes, n_classes]``, or an iterable of arrays
            ``[n_nodes, n_classes]``: of networks with other weights, with other dropout masks, or trained on
            other graphs.

        Examples
        --------
        >>> from nodecopy.classify import Prediction
        >>> prediction = Prediction.from_samples([[[1.0, 0.0]], [[0.0, 1.0]]])  # two networks disagree
        >>> prediction.probabilities.tolist(), prediction.uncertainty().aleatoric.tolist()
        ([[0.5, 0.5]], [0.0])
        """
        name = "samples"
        array = _check_numbers(list(samples) if isinstance(samples, Iterator) else samples, name)
        if array.ndim != 3 or not len(array):
            raise InputError(
                name,
                f"must have the shape [n_samples, n_nodes, n_classes], with at least one sample; got "
                f"shape {array.shape}.",
            )
        array = _check_probabilities(array, name)
        return cls(array.mean(axis=0), entropy(array).mean(axis=0))

    def check(self, n_nodes: int, n_classes: int) -> None:
        """Raise an error unless this is a prediction for so many nodes and classes, as in a whole file."""
        shape, name = (n_nodes, n_classes), "probabilities of the prediction"
        array = _check_numbers(self.probabilities, name)
        if array.shape != shape or array.dtype.kind != "f":
            raise InputError(name, f"must be floats of shape {shape}; got {array.dtype} of {array.shape}.")
        _check_probabilities(array, name)
        entropies = check_vector(self.mean_entropy, "mean_entropy", length=n_nodes)
        if entropies.dtype.kind != "f" or not isinstance(self.details, dict):
            raise InputError(
                "mean_entropy", f"must be floats, and details a dictionary; got {entropies.dtype}."
            )
        check_finite(entropies, "mean_entropy")
        if not (self.networks is None or callable(getattr(self.networks, "predict", None))):
            raise InputError("networks", f"must predict; got {type_name(self.networks)}.")
        check: Callable[[int], None] | None = getattr(self.networks, "check", None)
        if check is not None:
            check(n_classes)

    def uncertainty(self) -> Uncertainty:
        """Return the entropy of the mean, the mean entropy, and the difference of both."""
        total = np.maximum(entropy(self.probabilities), 0)
        aleatoric = np.clip(self.mean_entropy, 0, total)  # larger only by rounding
        return Uncertainty(total, aleatoric, total - aleatoric)


def _check_numbers(given: Any, name: str) -> NDArray[Any]:
    """Return a dense array of numbers."""
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
        raise InputError(
            name, f"must be probabilities, at least 0 and with a sum of 1 in each row; got a row {row}."
        )
    return array


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Entropies in nats: total = aleatoric (within samples) + epistemic (between samples)."""

    total: NDArray[np.float32]
    aleatoric: NDArray[np.float32]
    epistemic: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The trained networks behind a prediction: all that is needed to predict again.

    Parameters
    ----------
    recipe
        How the networks were built and trained.
    weights
        Trained arrays, networks first, in the order of :attr:`Networks.weights`.
    keys
        The key of each network's dropout masks.
    n_weight_samples
        Dropout samples of each network; 0 switches dropout off.
    feature_scaling, weight_scaling
        How features and edge weights were scaled for training, and are for predictions.
    """

    recipe: TrainingConfig
    weights: tuple[NDArray[np.float32], ...]
    keys: NDArray[np.int32]
    n_weight_samples: int
    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    @classmethod
    def from_networks(
        cls,
        networks: Networks,
        feature_scaling: FeatureScaling,
        weight_scaling: WeightScaling,
        models: slice = slice(None),
        n_weight_samples: int = 0,
    ) -> Ensemble:
        """Copy some of the networks, so that further training does not change them."""
        weights = tuple(weight[models].detach().cpu().numpy().copy() for weight in networks.weights)
        keys = networks.masks.keys[models].cpu().numpy().copy()
        return cls(networks.recipe, weights, keys, n_weight_samples, feature_scaling, weight_scaling)

    @classmethod
    def join(cls, parts: Sequence[Ensemble]) -> Ensemble:
        """Return one ensemble of the networks of several that share a recipe."""
        weights = tuple(np.concatenate(arrays) for arrays in zip(*(p.weights for p in parts), strict=True))
        keys = np.concatenate([part.keys for part in parts])
        return replace(parts[0], weights=weights, keys=keys)

    def check(self, n_classes: int) -> None:
        """Raise an error unless the weights fit the recipe and are finite; compiled code checks nothing."""
        check_type(self.recipe, TrainingConfig, "recipe of the networks", "a recipe")
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_integer(self.n_weight_samples, "n_weight_samples", low=0, high=MAX_STEPS)
        check_integer(self.recipe.n_steps, "n_steps", low=0, high=MAX_STEPS)
        keys, first = as_array(self.keys, "keys"), as_array(self.weights[0], "weights")
        if keys.dtype != np.int32 or keys.ndim != 1 or not len(keys) or first.ndim != 3:
            raise InputError(
                "networks", f"must have keys and weights; got shapes {keys.shape}, {first.shape}."
            )
        check_integer(
            self.recipe.n_hidden, "n_hidden", low=1, high=max(weight.size for weight in self.weights)
        )
        rngs, device = [np.random.default_rng(0)], torch.device("cpu")
        fresh_weights = self.recipe.network_type._draw_weights(
            self.recipe, first.shape[1], n_classes, rngs, device
        )
        shapes = [(len(keys), *weight.shape[1:]) for weight in fresh_weights]
        if shapes != [weight.shape for weight in self.weights]:
            raise InputError("weights", f"must have the shapes {shapes}; got others.")
        for weight in self.weights:
            if weight.dtype != np.float32:
                raise InputError("weights", f"must be in single precision; got {weight.dtype}.")
            check_finite(weight, "weights")

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph, with the networks' own dropout masks."""
        check_features(graph)
        given: Any = graph.features
        width = self.weights[0].shape[1]
        if given.shape[1] != width:
            raise InputError(
                f"features of the graph must have {width} columns, as in fit; got {given.shape[1]}."
            )
        features = self.feature_scaling.apply(given)
        networks = self.build_networks(features, check_device(device))
        matrix = propagation_matrix(self.weight_scaling.apply(graph.adjacency), self.recipe)
        return average_predictions(networks, features, [matrix], self.n_weight_samples)[0]

    def build_networks(self, features: sparse.csr_array, device: torch.device) -> Networks:
        """Return networks with these weights, to predict with."""
        stack = SparseStack([features] * len(self.keys), device)
        weights = [torch.tensor(weight, device=device) for weight in self.weights]
        return self.recipe.network_type(self.recipe, stack, weights, torch.tensor(self.keys, device=device))


def check_scalings(features: Any, weights: Any) -> None:
    """Raise an error unless these are scalings of features and edge weights."""
    check_type(features, FeatureScaling, "feature_scaling", "a FeatureScaling")
    check_type(weights, WeightScaling, "weight_scaling", "a WeightScaling")


def max_networks(
    features: sparse.csr_array, recipe: TrainingConfig, device: torch.device, matrices: Sequence[Any]
) -> int:
    """Return how many networks may be computed together, given the matrices of their graphs."""
    n_entries = max(getattr(matrix, "nnz", 0) for matrix in matrices)
    n_activations = max(recipe.count_activations(features), n_entries)
    return max(1, MAX_ACTIVATIONS[device.type] // n_activations)


def average_predictions(
    networks: Networks, features: sparse.csr_array, matrices: Sequence[Matrix], n_weight_samples: int
) -> list[Prediction]:
    """Return one prediction for each graph, the mean over its networks and their weight samples.

    ``matrices`` are the propagation matrices of the graphs; the networks of a graph follow each other.
    """
    n_models, recipe, device = len(networks.weights[0]), networks.recipe, networks.features.device
    per_graph, at_once = n_models // len(matrices), max_networks(features, recipe, device, matrices)
    # The masks continue where those of training ended.
    steps = range(recipe.n_epochs, recipe.n_epochs + n_weight_samples) or [None]

    def sum_samples(models: range, stop: Event | None = None) -> list[tuple[Tensor, Tensor]]:
        """Return the sums of probabilities and of entropies over the weight samples of each network."""
        part = networks.select(slice(models.start, models.stop), features)
        return _sum_samples(part, [matrices[model // per_graph] for model in models], steps)

    total: list[Any] = [0.0] * len(matrices)
    entropies: list[Any] = [0.0] * len(matrices)
    for start in range(0, n_models, at_once):
        parts = [range(start, min(start + at_once, n_models))]
        if recipe.is_compiled(device) and len(parts[0]) > 1:
            parts = [range(model, model + 1) for model in parts[0]]
            sums = chain(*map_on_threads(sum_samples, parts))
        else:
            sums = chain(*map(sum_samples, parts))
        for model, (probabilities, of_model) in enumerate(sums, start):
            total[model // per_graph] = total[model // per_graph] + probabilities
            entropies[model // per_graph] = entropies[model // per_graph] + of_model
    n = per_graph * len(steps)
    return [
        Prediction((p / n).cpu().numpy(), (e / n).cpu().numpy())
        for p, e in zip(total, entropies, strict=True)
    ]


@torch.no_grad()
def _sum_samples(
    networks: Networks, matrices: Sequence[Matrix], steps: Sequence[int | None]
) -> list[tuple[Tensor, Tensor]]:
    """Return the sums of probabilities and of entropies over steps for each network."""
    compute_logits = build_predictor(networks, matrices)
    total: Any = 0.0
    entropies: Any = 0.0
    with share_threads(networks):
        for step in steps:
            probabilities = compute_logits(step).softmax(dim=2)
            total, entropies = total + probabilities, entropies + entropy(probabilities)
    return list(zip(total, entropies, strict=True))


def entropy(probabilities: Any) -> Any:
    """Return the entropy of each row, in nats, of an array or a tensor."""
    if isinstance(probabilities, torch.Tensor):
        return -torch.special.xlogy(probabilities, probabilities).sum(dim=-1)
    safe = np.where(probabilities > 0, probabilities, 1)
    return -(probabilities * np.log(safe)).sum(axis=-1)

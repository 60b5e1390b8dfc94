"""Trained networks and what they predict, averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.devices import checked_device
from nodecopy.nn.features import feature_matrix
from nodecopy.nn.networks import Matrix, Networks, Recipe, spreading
from nodecopy.nn.training import stacked

NUMBERS_AT_ONCE = {"cpu": 2**22, "cuda": 2**27}
"""About how many numbers a layer of the networks that are computed together has.

On a CPU 16 MiB: the allocator gives larger arrays back after every operation, and touching fresh memory
costs more than computing with it.
"""


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
    networks
        What predicted it, where that is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, Trial
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> (prediction,) = GCN(epochs=50).fit_trials([Trial(club, [0, 33], None, 0)])
    >>> prediction.probabilities.shape, prediction.uncertainty().total.shape
    ((34, 2), (34,))
    """

    probabilities: NDArray[np.float32]
    mean_entropy: NDArray[np.float32]
    details: dict[str, Any] = field(default_factory=dict)
    networks: Ensemble | None = field(default=None, repr=False)

    def uncertainty(self) -> Uncertainty:
        """The entropy of the mean; the mean entropy, a part of it; and what is left."""
        total = np.maximum(entropy(self.probabilities), 0)
        aleatoric = np.clip(self.mean_entropy, 0, total)  # larger only by rounding
        return Uncertainty(total, aleatoric, total - aleatoric)


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
        How they were built and trained.
    weights
        Trained arrays, networks first: first layer, second layer, biases.
    keys
        The key of each network's masks.
    n_weight_samples
        Dropout samples of each network; 0 means the weights themselves.
    kind
        What the networks are.
    """

    recipe: Recipe
    weights: tuple[NDArray[np.float32], ...]
    keys: NDArray[np.int32]
    n_weight_samples: int
    kind: type[Networks] = Networks

    @classmethod
    def of(cls, networks: Networks, models: slice = slice(None), n_weight_samples: int = 0) -> Ensemble:
        """Some of the networks, as copies that training will not change."""
        weights = tuple(weight[models].detach().cpu().numpy().copy() for weight in networks.weights)
        keys = networks.masks.keys[models, 0].cpu().numpy().copy()
        return cls(networks.recipe, weights, keys, n_weight_samples, type(networks))

    @classmethod
    def joined(cls, parts: Sequence[Ensemble]) -> Ensemble:
        """The networks of several ensembles that were made alike."""
        weights = tuple(np.concatenate(arrays) for arrays in zip(*(p.weights for p in parts), strict=True))
        keys = np.concatenate([part.keys for part in parts])
        return replace(parts[0], weights=weights, keys=keys)

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Predictions on a graph, with the masks that the networks have."""
        features = feature_matrix(graph, self.recipe)
        width = self.weights[0].shape[1]
        if features.shape[1] != width:
            raise InputError(
                f"features of the graph must have {width} columns, as in fit; got {features.shape[1]}."
            )
        networks = self.networks(features, checked_device(device))
        observed = [spreading(graph.adjacency, self.recipe)]
        return averaged(networks, features, observed, self.n_weight_samples)[0]

    def networks(self, features: sparse.csr_array, device: torch.device) -> Networks:
        """The networks again, to predict with."""
        return self.kind.restored(self.recipe, features, self.weights, self.keys, device=device)


def models_at_once(features: sparse.csr_array, recipe: Recipe, device: torch.device) -> int:
    """How many networks to compute together."""
    return max(1, NUMBERS_AT_ONCE[device.type] // recipe.numbers(features))


@torch.no_grad()
def averaged(
    networks: Networks, features: sparse.csr_array, observed: Sequence[Matrix], n_weight_samples: int
) -> list[Prediction]:
    """One prediction for each observed graph: networks and weight samples have equal parts in it."""
    per_graph, recipe = networks.first.shape[0] // len(observed), networks.recipe
    at_once = models_at_once(features, recipe, networks.first.device)
    total: list[Any] = [0.0] * len(observed)
    entropies: list[Any] = [0.0] * len(observed)
    # Masks go on where those of training ended.
    steps = range(recipe.epochs, recipe.epochs + n_weight_samples) or [None]
    for start in range(0, len(observed) * per_graph, at_once):
        part = networks.part(slice(start, start + at_once), features)
        graph_of = np.arange(start, start + part.first.shape[0]) // per_graph
        graphs = stacked(part, [observed[graph] for graph in graph_of.tolist()])
        reached, n_models = np.unique(graph_of, return_counts=True)
        for step in steps:
            sampled = part.logits(graphs, None, step).softmax(dim=2)
            for graph, of_graph in zip(reached, torch.split(sampled, n_models.tolist()), strict=True):
                total[graph] = total[graph] + of_graph.sum(dim=0)
                entropies[graph] = entropies[graph] + entropy(of_graph).sum(dim=0)
    n = per_graph * len(steps)
    return [
        Prediction((p / n).cpu().numpy(), (e / n).cpu().numpy())
        for p, e in zip(total, entropies, strict=True)
    ]


def entropy(probabilities: Any) -> Any:
    """Entropy of each row, in nats; arrays or tensors."""
    if isinstance(probabilities, torch.Tensor):
        return -torch.special.xlogy(probabilities, probabilities).sum(dim=-1)
    safe = np.where(probabilities > 0, probabilities, 1)
    return -(probabilities * np.log(safe)).sum(axis=-1)

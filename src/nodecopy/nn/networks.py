"""B two-layer networks at once: MLP, GCN and APPNP differ only in how they propagate over the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu

from nodecopy._core.checks import check_choice, check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.features.scaling import FEATURE_SCALINGS, WEIGHT_SCALINGS, FeatureScaling
from nodecopy.graph import Graph
from nodecopy.nn.stack import (
    FIRST_EDGES,
    HIDDEN,
    INPUT,
    SECOND_EDGES,
    LowRank,
    LowRankStack,
    Masks,
    SparseStack,
    approximate_adjacency,
    draw_keys,
    normalise_adjacency,
)

NEGATIVE_SLOPE = 0.2
"""Slope of the leaky activation below zero."""
MAX_DROPOUT = 0.99
"""The entries that a mask keeps are scaled up, so it must keep some."""
Matrix: TypeAlias = sparse.csr_array | LowRank
"""The matrix that one network propagates by."""
Stack: TypeAlias = SparseStack | LowRankStack


@dataclass(frozen=True)
class TrainingConfig:
    """How networks are built and trained; the defaults are those of Kipf and Welling (2017).

    The hyperparameters are described in ``NetworkClassifier``,
    ``GCN`` and ``APPNP``. ``propagation`` is ``"none"``
    (MLP), ``"convolution"`` (GCN) or ``"pagerank"`` (APPNP).
    """

    PROPAGATIONS: ClassVar[list[str]] = ["none", "convolution", "pagerank"]
    network_type: ClassVar[type[Networks]]

    propagation: str = "convolution"
    n_hidden: int = 16
    activation: str = "relu"
    bias: bool = False
    features: str = "rows"
    weights: str = "raw"
    dropout: float = 0.5
    drop_edges: float = 0.0
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    n_epochs: int = 200
    patience: int = 0
    n_steps: int = 10
    teleport: float = 0.1
    rank: int | None = None
    drop_input: bool = True
    decay_all: bool = False

    def __post_init__(self) -> None:
        check_choice(self.propagation, "propagation", self.PROPAGATIONS)
        check_choice(self.activation, "activation", ["relu", "leaky", "none"])
        check_choice(self.features, "features", FEATURE_SCALINGS)
        check_choice(self.weights, "weights", WEIGHT_SCALINGS)
        for name in ("n_hidden", "n_epochs"):
            check_integer(getattr(self, name), name, low=1)
        for name in ("n_steps", "patience"):
            check_integer(getattr(self, name), name, low=0)
        if self.rank is not None:
            check_integer(self.rank, "rank", low=1)
            if check_real(self.drop_edges, "drop_edges", low=0, high=MAX_DROPOUT):
                raise InputError("drop_edges", "must be 0 with a rank, since the approximation has no edges.")
        for name, high in (("dropout", MAX_DROPOUT), ("drop_edges", MAX_DROPOUT), ("teleport", 1)):
            check_real(getattr(self, name), name, low=0, high=high)
        for name in ("learning_rate", "weight_decay"):
            check_real(getattr(self, name), name, low=0)

    def is_compiled(self, device: torch.device) -> bool:
        """Return whether networks are computed in compiled code: on a CPU, with all edges as they are."""
        is_plain = self.propagation in TrainingConfig.PROPAGATIONS
        return is_plain and self.rank is None and not self.drop_edges and device.type == "cpu"

    def count_activations(self, features: sparse.csr_array) -> int:
        """Return about how many activations a layer of one network has."""
        return max(features.nnz, features.shape[0] * self.n_hidden, 1)


KIPF = TrainingConfig()
"""The settings of Kipf and Welling (2017)."""


def propagation_matrix(adjacency: sparse.csr_array, config: TrainingConfig) -> Matrix:
    """Return the matrix that networks propagate by on a graph."""
    if config.rank is None:
        return normalise_adjacency(adjacency)
    return approximate_adjacency(adjacency, config.rank)


class Networks:
    """The weights of B networks on B graphs, and their logits.

    ``features`` is a stack of B feature matrices (nodes x features), ``weights`` are all trained tensors,
    models first (first layer, second layer, biases), and ``keys`` those of the dropout masks of each model.
    """

    config: TrainingConfig
    edge_dropout: ClassVar[str] = "drop_edges"
    """The hyperparameter that is the share of edges dropped in a training step."""

    def __init__(
        self, config: TrainingConfig, features: SparseStack, weights: Sequence[Tensor], keys: Tensor
    ) -> None:
        self.config, self.features, self.weights = config, features, list(weights)
        self.masks = Masks(keys, config.dropout)
        self.edge_masks = Masks(keys, getattr(config, self.edge_dropout))

    @classmethod
    def initialise(
        cls, config: TrainingConfig, features: SparseStack, n_classes: int, seeds: Sequence[SeedSequence]
    ) -> Self:
        """Return networks to train; weights and masks of a model depend on its own seed alone."""
        device, rngs = features.device, [np.random.default_rng(seed) for seed in seeds]
        weights = cls._draw_weights(config, features.shape[2], n_classes, rngs, device)
        networks = cls(config, features, weights, draw_keys(seeds, device))
        networks.constrain()
        return networks

    @staticmethod
    def weight_shapes(config: Any, n_features: int, n_classes: int) -> list[tuple[int, int]]:
        """Return the shape of every trained tensor of one model."""
        shapes = [(n_features, config.n_hidden), (config.n_hidden, n_classes)]
        return shapes + ([(1, config.n_hidden), (1, n_classes)] if config.bias else [])

    @classmethod
    def _draw_weights(
        cls, config: Any, n_features: int, n_classes: int, rngs: Sequence[Generator], device: torch.device
    ) -> list[Tensor]:
        first, second, *biases = cls.weight_shapes(config, n_features, n_classes)
        weights = [draw_glorot(rngs, *first, device), draw_glorot(rngs, *second, device)]
        for shape in biases:
            weights.append(torch.zeros(len(rngs), *shape, device=device, requires_grad=True))
        return weights

    def select(self, models: slice, features: sparse.csr_array) -> Self:
        """Return some of the models, with ``features`` as the feature matrix of each."""
        keys = self.masks.keys[models]
        stack = SparseStack([features] * len(keys), keys.device)
        return type(self)(self.config, stack, [weight[models] for weight in self.weights], keys)

    @property
    def parameter_groups(self) -> list[dict[str, Any]]:
        """The weights with their decay, as ``torch.optim`` takes them."""
        decay = self.config.weight_decay
        rest = {"params": self.weights[1:], "weight_decay": decay if self.config.decay_all else 0.0}
        return [{"params": [self.weights[0]], "weight_decay": decay}, rest]

    def constrain(self) -> None:
        """Enforce constraints on the weights after a step; these networks have none."""

    def logits(self, graphs: Stack | None, last: SparseStack | None, step: int | None) -> Tensor:
        """Return ``[B, rows, classes]``: for all nodes, or for the rows that ``last`` keeps of the graphs.

        ``step`` numbers the masks; ``None`` switches them off.
        """
        config, (first, second, *biases) = self.config, self.weights
        hidden = _multiply(self.features, first, self.masks, step if config.drop_input else None, INPUT)
        if config.propagation == "convolution":
            hidden = _multiply(graphs, hidden, self.edge_masks, step, FIRST_EDGES)
        if biases:
            hidden = hidden + biases[0]
        if config.activation == "relu":
            hidden = torch.relu(hidden)
        elif config.activation == "leaky":
            hidden = leaky_relu(hidden, NEGATIVE_SLOPE)
        if step is not None and self.masks.threshold:
            n = hidden.shape[1] * hidden.shape[2]
            hidden = hidden * self.masks.draw(n, step=step, place=HIDDEN).view_as(hidden)
        if last is not None:
            # Before the weights: their gradient then adds up labelled rows alone, in the same order
            # however many rows the other models have.
            hidden = _multiply(last, hidden, self.edge_masks, step, SECOND_EDGES)
        out = hidden @ second
        if config.propagation == "convolution" and last is None:
            out = _multiply(graphs, out, self.edge_masks, step, SECOND_EDGES)
        elif config.propagation == "pagerank":
            local, teleport = out, config.teleport
            for number in range(config.n_steps):
                propagated = _multiply(graphs, out, self.edge_masks, step, SECOND_EDGES + number)
                out = (1 - teleport) * propagated + teleport * local
        return out + biases[1] if biases else out


TrainingConfig.network_type = Networks


def _multiply(stack: Stack | None, dense: Tensor, masks: Masks, step: int | None, place: int) -> Tensor:
    """Return the product, with dropout on the entries of the stack if there is a step."""
    assert stack is not None
    if step is None or masks.threshold == 0 or isinstance(stack, LowRankStack):
        return stack @ dense
    return stack.product(dense, stack.draw_factors(masks, step=step, place=place))


def draw_glorot(rngs: Sequence[Generator], rows: int, columns: int, device: torch.device) -> Tensor:
    """Draw the uniform weights of Glorot and Bengio (2010), ``[B, rows, columns]``."""
    limit = np.sqrt(6.0 / (rows + columns))
    weights = np.stack([rng.uniform(-limit, limit, (rows, columns)).astype(np.float32) for rng in rngs])
    return torch.from_numpy(weights).to(device).requires_grad_()


def fit_feature_scaling(graph: Graph, config: TrainingConfig, *, counts: str = "unit") -> FeatureScaling:
    """Return the scaling of a graph's features; ``counts`` is how ``"auto"`` scales word counts."""
    check_features(graph)
    return FeatureScaling.fit(graph.features, config.features, encoder=graph.feature_encoder, counts=counts)


def check_features(graph: Graph, n_features: int | None = None) -> None:
    """Raise an error if a graph has no features, or another number of them than in ``fit``."""
    if graph.features is None:
        raise InputError("a graph must have features to be classified; this one has none.")
    width = graph.features.shape[1]
    if not width:
        raise InputError("a graph must have at least one feature to be classified; this one has none.")
    if n_features is not None and width != n_features:
        raise InputError(f"features of the graph must have {n_features} columns, as in fit; got {width}.")


def add_identity_features(graph: Graph) -> Graph:
    """Return the graph; without features it gets the identity matrix, one feature for each node."""
    if graph.features is not None and graph.features.shape[1]:
        return graph
    return graph.replace(features=sparse.eye_array(graph.n_nodes, dtype=np.float32, format="csr"))

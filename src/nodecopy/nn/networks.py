"""B two-layer networks at once: MLP, GCN and APPNP differ only in how they spread over the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu

from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.nn.lowrank import LowRank, LowRankStack, low_rank
from nodecopy.nn.masks import Masks
from nodecopy.nn.stack import SparseStack, normalised

INPUT, HIDDEN, FIRST_EDGES, SECOND_EDGES = range(4)
"""Places of masks in a network."""
LEAK = 0.2
"""Slope of the leaky activation below zero."""
MOST_DROPPED = 0.99
"""Masks that drop everything would leave nothing to scale up."""
Matrix: TypeAlias = sparse.csr_array | LowRank
"""What one network spreads by."""
Stack: TypeAlias = SparseStack | LowRankStack


@dataclass(frozen=True)
class Recipe:
    """How networks are built and trained.

    Parameters
    ----------
    propagation
        ``"none"`` (MLP), ``"convolution"`` (GCN: both layers average over neighbours) or ``"pagerank"``
        (APPNP: the logits of an MLP are propagated by ``n_steps`` steps of personalised PageRank, with
        probability ``teleport`` of returning).
    n_hidden
        Hidden units.
    activation
        ``"relu"`` between the layers, ``"leaky"`` (a slope of 0.2 below zero), or ``"none"``: a linear
        network.
    bias
        Whether both layers have a bias.
    features
        ``"rows"``: each node's features are scaled to a sum of one; ``"binary"``: present or not;
        ``"plain"``: as they are.
    dropout
        Share of hidden units, and of features with ``drop_input``, that a training step drops.
    drop_edges
        Share of edges dropped in every layer and step (graph DropConnect at a fixed rate).
    learning_rate
        Of Adam.
    weight_decay
        On the first layer's weights only, as in Kipf and Welling, or on all with ``decay_all``.
    n_epochs
        Epochs of training, at most.
    patience
        Epochs without a lower validation loss before a model stops and takes back its best weights; 0
        trains for ``n_epochs`` and takes the last weights.
    n_steps, teleport
        Of personalised PageRank.
    rank
        Propagate by the truncated SVD of the adjacency (GCN-SVD); ``None``: by the adjacency.
    drop_input
        Whether dropout applies to the features too, or to hidden units alone.
    decay_all
        Whether weight decay applies to all weights.
    """

    PROPAGATIONS: ClassVar[list[str]] = ["none", "convolution", "pagerank"]

    propagation: str = "convolution"
    n_hidden: int = 16
    activation: str = "relu"
    bias: bool = False
    features: str = "rows"
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
        check_choice(self.features, "features", ["rows", "binary", "plain"])
        for name in ("n_hidden", "n_epochs"):
            check_integer(getattr(self, name), f"{name}", low=1)
        for name in ("n_steps", "patience"):
            check_integer(getattr(self, name), f"{name}", low=0)
        if self.rank is not None:
            check_integer(self.rank, "rank", low=1)
            if self.drop_edges:
                raise InputError("drop_edges must be 0 where there is a rank: no edges are left.")
        for name, high in (("dropout", MOST_DROPPED), ("drop_edges", MOST_DROPPED), ("teleport", 1)):
            check_real(getattr(self, name), f"{name}", low=0, high=high)
        for name in ("learning_rate", "weight_decay"):
            check_real(getattr(self, name), f"{name}", low=0)

    @property
    def network_type(self) -> type[Networks]:
        """The class of the networks."""
        return Networks

    def numbers(self, features: sparse.csr_array) -> int:
        """About how many numbers a layer of one network has."""
        return max(features.nnz, features.shape[0] * self.n_hidden, 1)


KIPF = Recipe()
"""The settings of Kipf and Welling (2017)."""


def propagation_matrix(adjacency: sparse.csr_array, recipe: Recipe) -> Matrix:
    """Return the matrix that networks propagate by on a graph."""
    return normalised(adjacency) if recipe.rank is None else low_rank(adjacency, recipe.rank)


class Networks:
    """The weights of B networks on B graphs, and their logits.

    Parameters
    ----------
    recipe
        Shared by all models.
    features
        A stack of B feature matrices (nodes x features).
    n_classes
        Number of outputs.
    seeds
        One per model; weights and masks of a model depend on its own seed alone.
    """

    def __init__(
        self, recipe: Recipe, features: SparseStack, n_classes: int, seeds: Sequence[SeedSequence]
    ) -> None:
        self.recipe, self.features = recipe, features
        device = features.values.device
        n_features = features.shape[2]
        draws = [np.random.default_rng(seed) for seed in seeds]
        self.first = glorot(draws, n_features, recipe.n_hidden, device)
        self.second = glorot(draws, recipe.n_hidden, n_classes, device)
        self.biases = [
            torch.zeros(len(seeds), 1, width, device=device, requires_grad=True)
            for width in ((recipe.n_hidden, n_classes) if recipe.bias else ())
        ]
        self.masks = Masks(seeds, recipe.dropout, device)
        self.edge_masks = Masks(seeds, recipe.drop_edges, device)

    def part(self, models: slice, features: sparse.csr_array) -> Networks:
        """Some of the models, on the whole of the features."""
        other = object.__new__(type(self))
        other.recipe = self.recipe
        other.first, other.second = self.first[models], self.second[models]
        other.biases = [bias[models] for bias in self.biases]
        other.masks, other.edge_masks = self.masks.part(models), self.edge_masks.part(models)
        other.features = SparseStack([features] * len(other.first), self.first.device)
        return other

    @classmethod
    def restored(
        cls,
        recipe: Recipe,
        features: sparse.csr_array,
        weights: Sequence[NDArray[np.float32]],
        keys: NDArray[np.int32],
        *,
        device: torch.device,
    ) -> Networks:
        """Networks from their :attr:`weights` and the keys of their masks, to predict with."""
        networks = object.__new__(cls)
        networks.recipe = recipe
        tensors = [torch.from_numpy(weight).to(device) for weight in weights]
        networks.first, networks.second, *networks.biases = tensors
        networks.masks = Masks.of_keys(keys, recipe.dropout, device)
        networks.edge_masks = Masks.of_keys(keys, recipe.drop_edges, device)
        networks.features = SparseStack([features] * len(keys), device)
        return networks

    @property
    def weights(self) -> list[Tensor]:
        """Every trained tensor, models first; the first layer's weights come first."""
        return [self.first, self.second, *self.biases]

    @property
    def groups(self) -> list[dict[str, Any]]:
        """What is trained, as ``torch.optim`` takes it."""
        decay = self.recipe.weight_decay
        rest = {"params": self.weights[1:], "weight_decay": decay if self.recipe.decay_all else 0.0}
        return [{"params": [self.first], "weight_decay": decay}, rest]

    def constrain(self) -> None:
        """Make weights obey after a step what they must; these are free."""

    def logits(self, graphs: Stack | None, last: SparseStack | None, step: int | None) -> Tensor:
        """``[B, rows, classes]``: for all nodes, or for the rows that ``last`` keeps of the graphs.

        ``step`` numbers the masks; ``None`` switches them off.
        """
        seen = step if self.recipe.drop_input else None
        hidden = self._masked_product(self.features, self.first, self.masks, seen, INPUT)
        if self.recipe.propagation == "convolution":
            hidden = self._spread(graphs, hidden, step, FIRST_EDGES)
        if self.biases:
            hidden = hidden + self.biases[0]
        if self.recipe.activation == "relu":
            hidden = torch.relu(hidden)
        elif self.recipe.activation == "leaky":
            hidden = leaky_relu(hidden, LEAK)
        if step is not None and self.masks.threshold:
            n = hidden.shape[1] * hidden.shape[2]
            hidden = hidden * self.masks.draw(n, step=step, place=HIDDEN).view_as(hidden)
        if last is not None:
            # Before the weights: their gradient then adds up labelled rows alone, in the same order
            # however many rows the other models have.
            hidden = self._spread(last, hidden, step, SECOND_EDGES)
        out = hidden @ self.second
        if self.recipe.propagation == "convolution" and last is None:
            out = self._spread(graphs, out, step, SECOND_EDGES)
        elif self.recipe.propagation == "pagerank":
            out = self._pagerank(graphs, out, step)
        return out + self.biases[1] if self.biases else out

    def _pagerank(self, graphs: Stack | None, local: Tensor, step: int | None) -> Tensor:
        out = local
        for number in range(self.recipe.n_steps):
            spread = self._spread(graphs, out, step, SECOND_EDGES + number)
            out = (1 - self.recipe.teleport) * spread + self.recipe.teleport * local
        return out

    def _spread(self, graphs: Stack | None, dense: Tensor, step: int | None, place: int) -> Tensor:
        assert graphs is not None
        return self._masked_product(graphs, dense, self.edge_masks, step, place)

    @staticmethod
    def _masked_product(stack: Stack, dense: Tensor, masks: Masks, step: int | None, place: int) -> Tensor:
        if step is None or masks.threshold == 0 or isinstance(stack, LowRankStack):
            return stack @ dense
        return stack.product(dense, stack.factors(masks, step=step, place=place))


def glorot(draws: Sequence[np.random.Generator], rows: int, columns: int, device: torch.device) -> Tensor:
    """Uniform weights of Glorot and Bengio (2010), ``[B, rows, columns]``."""
    limit = np.sqrt(6.0 / (rows + columns))
    drawn = np.stack([draw.uniform(-limit, limit, (rows, columns)).astype(np.float32) for draw in draws])
    return torch.from_numpy(drawn).to(device).requires_grad_()

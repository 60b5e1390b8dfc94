"""B networks of feedback-looped filters at once (DFNet; Wijesinghe and Wang, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from torch import Tensor

from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.nn.attention import attended
from nodecopy.nn.masks import Masks
from nodecopy.nn.networks import MOST_DROPPED, Networks, Recipe, Stack
from nodecopy.nn.stack import SparseStack

FREQUENCIES = np.linspace(0.0, 2.0, 200)
"""Where the filter is fitted: the normalised Laplacian has its eigenvalues between 0 and 2."""
CUT = 0.5
"""The wanted response is 1 from this frequency on, 0 below."""
MOST_POWERS = 10
"""Higher orders cannot be told apart in double precision."""
TINY = 1e-3
"""Added to variances, as Keras does."""


@dataclass(frozen=True)
class FilterRecipe(Recipe):
    """How networks of filters are built and trained; biases, hidden units and
    activations of :class:`Recipe` do not apply.

    Parameters
    ----------
    widths
        Hidden units of each layer, and of each head.
    n_heads
        Heads of attention; 0: no attention.
    attention_dropout
        Share of attention weights that are dropped.
    feedback, feedforward
        Orders of the filter: of its denominator and its numerator.
    radius
        Bound on the feedback, below one.
    shifted
        Whether the filter is applied to L - I, with eigenvalues between -1 and 1, or to L, for which it
        is fitted.
    weight_decay
        On all kernels. A penalty of c times the squares, as Keras has it, is a decay of 2 c.
    """

    PROPAGATIONS: ClassVar[list[str]] = ["filter"]

    propagation: str = "filter"
    features: str = "plain"
    dropout: float = 0.9
    learning_rate: float = 0.002
    weight_decay: float = 1.8e-3
    n_epochs: int = 200
    patience: int = 0
    widths: tuple[int, ...] = (8, 16, 32, 64)
    n_heads: int = 4
    attention_dropout: float = 0.5
    feedback: int = 5
    feedforward: int = 3
    radius: float = 0.9
    shifted: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.widths, (list, tuple)) or not self.widths:
            raise InputError(f"widths must be a list of integers; got {self.widths!r}.")
        object.__setattr__(self, "widths", tuple(self.widths))
        for width in self.widths:
            check_integer(width, "widths", low=1)
        check_integer(self.n_heads, "n_heads", low=0)
        for name, low in (("feedback", 1), ("feedforward", 0)):
            check_integer(getattr(self, name), f"{name}", low=low, high=MOST_POWERS)
        check_real(self.attention_dropout, "attention_dropout", low=0, high=MOST_DROPPED)
        check_real(self.radius, "radius", low=0.01, high=1)

    @property
    def network_type(self) -> type[Networks]:
        return FilterNetworks

    def numbers(self, features: sparse.csr_array) -> int:
        """Beside a two-layer network, training keeps twice the hidden layers, and kernels count too."""
        n_nodes, n_features = features.shape
        return sum(self.widths) * max(1, self.n_heads) * (2 * n_nodes + n_features)


@lru_cache
def coefficients(feedback: int, feedforward: int, radius: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The filter b(x) / (1 + a(x)) nearest to a step at :data:`CUT`: (a_1, a_2, ...) and (b_0, b_1, ...).

    Least squares of r + r a(x) - b(x) over the frequencies, where r is the step, with ``radius`` as a bound
    on |a(x) / x|. The problem is turned into that of a shortest vector under linear inequalities, which
    non-negative least squares solve exactly (Lawson and Hanson, 1974, chapter 23).

    >>> a, b = coefficients(5, 3, 0.9)
    >>> a.round(2).tolist(), b.round(2).tolist()
    ([0.78, -9.11, 15.57, -8.83, 1.67], [0.01, -0.62, 2.52, -0.77])
    """
    x, step = FREQUENCIES, (FREQUENCIES >= CUT).astype(float)
    powers = np.vander(x, feedback, increasing=True)
    q, r = np.linalg.qr(
        np.hstack([-step[:, None] * x[:, None] * powers, np.vander(x, feedforward + 1, increasing=True)])
    )
    best = q.T @ step
    bounds = np.hstack([np.vstack([powers, -powers]), np.zeros((2 * len(x), feedforward + 1))])
    inner = -solve_triangular(r, bounds.T, trans="T").T
    short = -radius - inner @ best
    multipliers, _ = nnls(np.vstack([inner.T, short]), np.eye(len(best) + 1)[-1])
    residual = np.append(inner.T @ multipliers, short @ multipliers - 1.0)
    found = solve_triangular(r, best - residual[:-1] / residual[-1])
    return found[:feedback], found[feedback:]


class FilterNetworks(Networks):
    """B densely connected networks; see :class:`~nodecopy.nn.networks.Networks` for the parameters.

    Layer t takes H, the features X beside the outputs of all layers before it, and gives

        - a(S) norm(H) W + b(S) X V + bias

    where S is the (shifted) Laplacian and ``norm`` makes every column of zero mean and unit variance over
    the nodes of the graph at hand, times a trained scale, plus a trained shift. Attention heads have
    kernels of their own and average that over neighbours. ReLU and dropout follow. The columns of kernels,
    and biases, have unit length.
    """

    recipe: FilterRecipe

    def __init__(
        self, recipe: Recipe, features: SparseStack, n_classes: int, seeds: Sequence[SeedSequence]
    ) -> None:
        assert isinstance(recipe, FilterRecipe)
        device = features.values.device
        draws = [np.random.default_rng(seed) for seed in seeds]
        tensors: list[Tensor] = []
        for rows, columns in _shapes(recipe, features.shape[2], n_classes):
            drawn = np.stack([draw.standard_normal((rows, columns)).astype(np.float32) for draw in draws])
            tensors.append(torch.from_numpy(drawn).to(device))
        self._take(recipe, tensors, features)
        for scale, shift in self.norms:
            scale.fill_(1.0)
            shift.zero_()
        self.constrain()
        for weight in tensors:
            weight.requires_grad_()
        self.masks = Masks(seeds, recipe.dropout, device)
        self.edge_masks = Masks(seeds, recipe.attention_dropout, device)

    def _take(self, recipe: FilterRecipe, tensors: Sequence[Tensor], features: SparseStack) -> None:
        """Weights in the order of :func:`_shapes`."""
        self.recipe, self.features, self.tensors = recipe, features, list(tensors)
        n_layers, of_layer = len(recipe.widths), 6 if recipe.n_heads else 5
        layers = [self.tensors[of_layer * t : of_layer * (t + 1)] for t in range(n_layers)]
        self.layers = [(layer[0], layer[1], layer[2], *layer[5:]) for layer in layers]
        self.norms = [(layer[3], layer[4]) for layer in layers]
        self.head, self.head_bias = self.tensors[-2:]
        self.first = self.tensors[0]
        self.mean, self.variance = features.column_moments()

    def part(self, models: slice, features: sparse.csr_array) -> Networks:
        """Some of the models, on the whole of the features."""
        other = object.__new__(type(self))
        tensors = [tensor[models] for tensor in self.tensors]
        other._take(self.recipe, tensors, SparseStack([features] * len(tensors[0]), self.first.device))
        other.masks, other.edge_masks = self.masks.part(models), self.edge_masks.part(models)
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
        assert isinstance(recipe, FilterRecipe)
        networks = object.__new__(cls)
        tensors = [torch.from_numpy(weight).to(device) for weight in weights]
        networks._take(recipe, tensors, SparseStack([features] * len(keys), device))
        networks.masks = Masks.of_keys(keys, recipe.dropout, device)
        networks.edge_masks = Masks.of_keys(keys, recipe.attention_dropout, device)
        return networks

    @property
    def weights(self) -> list[Tensor]:
        """Every trained tensor, models first; those of the first layer come first."""
        return self.tensors

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Kernels of layers with decay, all else without."""
        kernels = [kernel for own, signal, _, *scores in self.layers for kernel in (own, signal, *scores)]
        decayed = {id(kernel) for kernel in kernels}
        rest = [tensor for tensor in self.tensors if id(tensor) not in decayed]
        return [{"params": kernels, "weight_decay": self.recipe.weight_decay}, {"params": rest}]

    @torch.no_grad()
    def constrain(self) -> None:
        """Columns of kernels and biases (one for each head) keep unit length."""
        for own, signal, bias, *scores in self.layers:
            for kernel in (own, signal):
                kernel /= kernel.norm(dim=1, keepdim=True)
            for vectors in (bias, *scores):
                by_head = vectors.view(*vectors.shape[:2], max(1, self.recipe.n_heads), -1)
                by_head /= by_head.norm(dim=(1, 3), keepdim=True)
        self.head /= self.head.norm(dim=1, keepdim=True)
        self.head_bias /= self.head_bias.norm(dim=2, keepdim=True)

    def logits(self, graphs: Stack | None, last: SparseStack | None, step: int | None) -> Tensor:
        """``[B, rows, classes]`` for all nodes; ``step`` numbers the masks, ``None`` switches them off."""
        assert isinstance(graphs, SparseStack)
        hidden: list[Tensor] = []
        for number, (from_features, from_signal) in enumerate(self._of_features()):
            own, _, bias, *scores = self.layers[number]
            fed = from_features
            if hidden:
                scale, shift = (part[:, :, self.mean.shape[2] :] for part in self.norms[number])
                before = torch.cat(hidden, dim=2)
                variance, mean = torch.var_mean(before, dim=1, keepdim=True, correction=0)
                before = (before - mean) * (scale * (variance + TINY).rsqrt()) + shift
                fed = fed + before @ own[:, self.mean.shape[2] :]
            out = self._filtered(graphs, fed, from_signal) + bias
            for score in scores:
                out = self._attended(graphs, out, score, number, step)
            out = torch.relu(out)
            if step is not None and self.masks.threshold:
                n = out.shape[1] * out.shape[2]
                out = out * self.masks.draw(n, step=step, place=number).view_as(out)
            hidden.append(out)
        n_features = self.mean.shape[2]
        read = torch.cat(hidden, dim=2) @ self.head[:, n_features:]
        return read + self.features @ self.head[:, :n_features].contiguous() + self.head_bias

    def _of_features(self) -> list[tuple[Tensor, Tensor]]:
        """For each layer what the features bring, normalised through one kernel and as they are through
        the other; one product for all, since a normalisation changes rows of a kernel and adds a constant.
        """
        n_features, parts, constants = self.mean.shape[2], [], []
        for (own, signal, *_), (scale, shift) in zip(self.layers, self.norms, strict=True):
            scale, shift, kernel = scale[:, :, :n_features], shift[:, :, :n_features], own[:, :n_features]
            scale = scale * (self.variance + TINY).rsqrt()
            constants.append((shift - self.mean * scale) @ kernel)
            parts += [scale.transpose(1, 2) * kernel, signal]
        sizes = [part.shape[2] for part in parts]
        products = torch.split_with_sizes(self.features @ torch.cat(parts, dim=2), sizes, dim=2)
        fed = [product + constant for product, constant in zip(products[::2], constants, strict=True)]
        return list(zip(fed, products[1::2], strict=True))

    def _filtered(self, graphs: SparseStack, fed: Tensor, signal: Tensor) -> Tensor:
        """- a(S) fed + b(S) signal, the highest power first."""
        a, b = coefficients(self.recipe.feedback, self.recipe.feedforward, self.recipe.radius)
        out: Tensor | None = None
        for power in range(max(len(a), len(b) - 1), -1, -1):
            term = -float(a[power - 1]) * fed if 0 < power <= len(a) else torch.zeros_like(fed)
            if power < len(b):
                term = term + float(b[power]) * signal
            if out is not None:
                spread = graphs @ out
                term = term - spread if self.recipe.shifted else term + out - spread
            out = term
        assert out is not None
        return out

    def _attended(
        self, graphs: SparseStack, out: Tensor, score: Tensor, layer: int, step: int | None
    ) -> Tensor:
        means = []
        heads = zip(
            out.chunk(self.recipe.n_heads, dim=2), score.chunk(self.recipe.n_heads, dim=2), strict=True
        )
        for head, (dense, weights) in enumerate(heads):
            own, other = (dense @ weights.transpose(1, 2)).unbind(dim=2)
            factors = None
            if step is not None and self.edge_masks.threshold:
                place = len(self.layers) + layer * self.recipe.n_heads + head
                factors = graphs.factors(self.edge_masks, step=step, place=place)
            means.append(attended(graphs, dense, own, other, factors))
        return torch.cat(means, dim=2)


def _shapes(recipe: FilterRecipe, n_features: int, n_classes: int) -> list[tuple[int, int]]:
    """Of every layer: both kernels, bias, scale and shift of the normalisation, scores of attention."""
    shapes, taken = [], n_features
    for width in recipe.widths:
        given = width * max(1, recipe.n_heads)
        shapes += [(taken, given), (n_features, given), (1, given), (1, taken), (1, taken)]
        shapes += [(2, given)] if recipe.n_heads else []
        taken += given
    return [*shapes, (taken, n_classes), (1, n_classes)]

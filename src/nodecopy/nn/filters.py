"""B networks of feedback-looped filters at once (DFNet; Wijesinghe and Wang, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.optimize import nnls
from torch import Tensor
from torch.nn.functional import elu

from nodecopy._core.checks import check_integer, check_real, show
from nodecopy.errors import InputError
from nodecopy.nn.networks import (
    MAX_DROPOUT,
    Masks,
    Networks,
    SparseStack,
    Stack,
    TrainingConfig,
    build_csr_tensor,
)

FREQUENCIES = np.linspace(0.0, 2.0, 200)  # of the normalised Laplacian, where the filter is fitted
CUTOFF = 0.5  # the target response is 1 from this frequency on, 0 below
MAX_ORDER = 10  # powers above this are too similar on the frequencies for a fit in double precision
VARIANCE_EPSILON = 1e-3  # added to variances, as in Keras


def attend(graphs: SparseStack, dense: Tensor, own: Tensor, other: Tensor, factors: Tensor | None) -> Tensor:
    """Return weighted means over neighbours: row i is the sum over j of a_ij times row j of ``dense``.

    The weights a_i are the softmax of ELU(own_i + other_j) over the neighbours j, each times its dropout
    factor if there are any. ``dense`` is ``[B, n, d]``, scores are ``[B, n]``.
    """
    flat = dense.reshape(-1, dense.shape[2])
    flat_factors = None if factors is None else factors.reshape(-1)
    scores = own.reshape(-1), other.reshape(-1)
    out: Tensor = _Attention.apply(flat, *scores, flat_factors, graphs)  # type: ignore[no-untyped-call]
    return out.view_as(dense)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, dense: Tensor, own: Tensor, other: Tensor, factors: Tensor | None, graphs: SparseStack
    ) -> Tensor:
        rows, columns = graphs.row_numbers, graphs.index[1]
        raw = own.index_select(0, rows) + other.index_select(0, columns)
        scores = elu(raw)
        # The largest score of a row, so that no exponential overflows.
        top = torch.full_like(own, -1.0).scatter_reduce(0, rows, scores, "amax")
        weights = (scores - top.index_select(0, rows)).exp()
        weights = weights / _sums(weights, graphs.index, len(own)).index_select(0, rows)
        masked = weights if factors is None else weights * factors
        ctx.graphs, ctx.has_factors = graphs, factors is not None
        ctx.save_for_backward(dense, raw, weights, masked if factors is None else factors)
        return build_csr_tensor(graphs.index, masked, (len(own), len(own))) @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        graphs: SparseStack = ctx.graphs
        dense, raw, weights, factors = ctx.saved_tensors
        rows, columns, n = graphs.row_numbers, graphs.index[1], len(dense)
        index, origin, _ = graphs.transpose
        gradient = gradient.contiguous()
        masked = weights * factors if ctx.has_factors else weights
        by_dense = build_csr_tensor(index, masked.index_select(0, origin), (n, n)) @ gradient
        by_weight = (gradient.index_select(0, rows) * dense.index_select(0, columns)).sum(dim=1)
        if ctx.has_factors:
            by_weight = by_weight * factors
        common = _sums(weights * by_weight, graphs.index, n).index_select(0, rows)
        by_raw = weights * (by_weight - common) * torch.where(raw > 0, 1.0, raw.clamp(max=0).exp())
        by_other = _sums(by_raw.index_select(0, origin), index, n)
        return by_dense, _sums(by_raw, graphs.index, n), by_other, None, None


def _sums(values: Tensor, index: tuple[Tensor, Tensor], n: int) -> Tensor:
    return (build_csr_tensor(index, values, (n, n)) @ values.new_ones(n, 1))[:, 0]


@dataclass(frozen=True)
class FilterConfig(TrainingConfig):
    """How networks of filters are built and trained; see ``DFNet``."""

    PROPAGATIONS: ClassVar[list[str]] = ["filter"]

    propagation: str = "filter"
    features: str = "none"
    dropout: float = 0.9
    learning_rate: float = 0.002
    weight_decay: float = 1.8e-3
    widths: tuple[int, ...] = (8, 16, 32, 64)
    n_heads: int = 4
    attention_dropout: float = 0.5
    feedback: int = 5
    feedforward: int = 3
    radius: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.widths, (list, tuple)) or not self.widths:
            raise InputError("widths", f"must be a list of integers; got {show(self.widths)}.")
        object.__setattr__(self, "widths", tuple(self.widths))
        for width in self.widths:
            check_integer(width, "widths", low=1)
        check_integer(self.n_heads, "n_heads", low=1)
        check_integer(self.feedback, "feedback", low=1, high=MAX_ORDER)
        check_integer(self.feedforward, "feedforward", low=0, high=MAX_ORDER)
        check_real(self.attention_dropout, "attention_dropout", low=0, high=MAX_DROPOUT)
        check_real(self.radius, "radius", low=0.01, high=1)

    def count_activations(self, features: sparse.csr_array) -> int:
        n_nodes, n_features = features.shape
        return sum(self.widths) * self.n_heads * (2 * n_nodes + n_features)


@lru_cache
def fit_coefficients(feedback: int, feedforward: int, radius: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (a_1, a_2, ...) and (b_0, b_1, ...) of the filter b(x) / (1 + a(x)) nearest to a step.

    Least squares of r + r a(x) - b(x), where r is the step, with ``radius`` as a bound on |a(x) / x|: a
    shortest vector under linear inequalities (Lawson and Hanson, 1974, chapter 23).
    """
    x, step = FREQUENCIES, (FREQUENCIES >= CUTOFF).astype(float)
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
    solution = solve_triangular(r, best - residual[:-1] / residual[-1])
    return solution[:feedback], solution[feedback:]


class FilterNetworks(Networks):
    """B densely connected networks; see :class:`~nodecopy.nn.networks.Networks` for the parameters.

    Layer t takes H, the features X beside the outputs of all layers before it, and gives

        - a(S) norm(H) W + b(S) X V + bias

    where S is the Laplacian minus the identity and ``norm`` standardises every column over the nodes of the
    graph, with a trained scale and shift. Attention heads have kernels of their own and average that over
    neighbours. ReLU and dropout follow. The columns of kernels, and biases, have unit length.
    """

    config: FilterConfig

    def __init__(self, config: Any, features: SparseStack, weights: Sequence[Tensor], keys: Tensor) -> None:
        super().__init__(config, features, weights, keys)
        self.edge_masks = Masks(keys, config.attention_dropout)

    @staticmethod
    def weight_shapes(config: Any, n_features: int, n_classes: int) -> list[tuple[int, int]]:
        """Return the shapes of both kernels, bias, scale, shift and attention scores of every layer."""
        shapes, n_inputs = [], n_features
        for width in config.widths:
            n_outputs = width * config.n_heads
            shapes += [(n_inputs, n_outputs), (n_features, n_outputs), (1, n_outputs)]
            shapes += [(1, n_inputs), (1, n_inputs), (2, n_outputs)]
            n_inputs += n_outputs
        return [*shapes, (n_inputs, n_classes), (1, n_classes)]

    @classmethod
    def _draw_weights(
        cls, config: Any, n_features: int, n_classes: int, rngs: Sequence[Generator], device: torch.device
    ) -> list[Tensor]:
        weights = []
        for shape in cls.weight_shapes(config, n_features, n_classes):
            normal = np.stack([rng.standard_normal(shape).astype(np.float32) for rng in rngs])
            weights.append(torch.from_numpy(normal).to(device))
        for _, _, _, scale, shift, _ in _split_layers(weights):
            scale.fill_(1.0)
            shift.zero_()
        return [weight.requires_grad_() for weight in weights]

    @property
    def layers(self) -> list[list[Tensor]]:
        return _split_layers(self.weights)

    @property
    def parameter_groups(self) -> list[dict[str, Any]]:
        kernels, rest = [], self.weights[-2:]
        for own, signal, bias, scale, shift, scores in self.layers:
            kernels += [own, signal, scores]
            rest += [bias, scale, shift]
        return [{"params": kernels, "weight_decay": self.config.weight_decay}, {"params": rest}]

    @torch.no_grad()
    def constrain(self) -> None:
        """Scale the columns of kernels, and biases (one for each head), to unit length."""
        for own, signal, bias, _, _, scores in self.layers:
            for kernel in (own, signal):
                kernel /= kernel.norm(dim=1, keepdim=True)
            for vectors in (bias, scores):
                by_head = vectors.view(*vectors.shape[:2], self.config.n_heads, -1)
                by_head /= by_head.norm(dim=(1, 3), keepdim=True)
        kernel, bias = self.weights[-2:]
        kernel /= kernel.norm(dim=1, keepdim=True)
        bias /= bias.norm(dim=2, keepdim=True)

    def logits(self, graphs: Stack | None, last: SparseStack | None, step: int | None) -> Tensor:
        assert isinstance(graphs, SparseStack)
        hidden: list[Tensor] = []
        n_features, layers = self.features.shape[2], self.layers
        for number, (from_features, from_signal) in enumerate(self._multiply_features()):
            own, _, bias, scale, shift, scores = layers[number]
            feedback = from_features
            if hidden:
                scale, shift = scale[:, :, n_features:], shift[:, :, n_features:]
                before = torch.cat(hidden, dim=2)
                variance, mean = torch.var_mean(before, dim=1, keepdim=True, correction=0)
                before = (before - mean) * (scale * (variance + VARIANCE_EPSILON).rsqrt()) + shift
                feedback = feedback + before @ own[:, n_features:]
            out = self._filter(graphs, feedback, from_signal) + bias
            out = torch.relu(self._attend(graphs, out, scores, number, step))
            if step is not None and self.masks.threshold:
                n = out.shape[1] * out.shape[2]
                out = out * self.masks.draw(n, step=step, place=number).view_as(out)
            hidden.append(out)
        kernel, bias = self.weights[-2:]
        from_hidden = torch.cat(hidden, dim=2) @ kernel[:, n_features:]
        return from_hidden + self.features @ kernel[:, :n_features].contiguous() + bias

    def _multiply_features(self) -> list[tuple[Tensor, Tensor]]:
        n_features, parts, constants = self.features.shape[2], [], []
        mean, variance = self.features.column_moments
        for own, signal, _, scale, shift, _ in self.layers:
            scale, shift, kernel = scale[:, :, :n_features], shift[:, :, :n_features], own[:, :n_features]
            scale = scale * (variance + VARIANCE_EPSILON).rsqrt()
            constants.append((shift - mean * scale) @ kernel)
            parts += [scale.transpose(1, 2) * kernel, signal]
        sizes = [part.shape[2] for part in parts]
        products = torch.split_with_sizes(self.features @ torch.cat(parts, dim=2), sizes, dim=2)
        feedback = [product + constant for product, constant in zip(products[::2], constants, strict=True)]
        return list(zip(feedback, products[1::2], strict=True))

    def _filter(self, graphs: SparseStack, feedback: Tensor, signal: Tensor) -> Tensor:
        """Return - a(S) feedback + b(S) signal, computed from the highest power on."""
        a, b = fit_coefficients(self.config.feedback, self.config.feedforward, self.config.radius)
        out: Tensor | None = None
        for power in range(max(len(a), len(b) - 1), -1, -1):
            term = -float(a[power - 1]) * feedback if 0 < power <= len(a) else torch.zeros_like(feedback)
            if power < len(b):
                term = term + float(b[power]) * signal
            out = term if out is None else term - graphs @ out
        assert out is not None
        return out

    def _attend(
        self, graphs: SparseStack, out: Tensor, score: Tensor, layer: int, step: int | None
    ) -> Tensor:
        means = []
        heads = zip(
            out.chunk(self.config.n_heads, dim=2), score.chunk(self.config.n_heads, dim=2), strict=True
        )
        for head, (dense, weights) in enumerate(heads):
            own, other = (dense @ weights.transpose(1, 2)).unbind(dim=2)
            factors = None
            if step is not None and self.edge_masks.threshold:
                place = len(self.config.widths) + layer * self.config.n_heads + head
                factors = graphs.draw_factors(self.edge_masks, step=step, place=place)
            means.append(attend(graphs, dense, own, other, factors))
        return torch.cat(means, dim=2)


FilterConfig.network_type = FilterNetworks


def _split_layers(weights: list[Tensor]) -> list[list[Tensor]]:
    return [weights[start : start + 6] for start in range(0, len(weights) - 2, 6)]

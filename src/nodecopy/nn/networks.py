"""B two-layer networks at once: MLP, GCN and APPNP differ only in how they propagate over the graph.

Their B sparse matrices of one shape are one block-diagonal CSR matrix, multiplied in one product. Matrices of
a truncated SVD (Entezari et al., 2020) are multiplied through their factors, never N x N.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu

from nodecopy._core.arrays import IntArray, Singles
from nodecopy._core.checks import check_choice, check_integer, check_real
from nodecopy._core.linalg import truncated_svd
from nodecopy.errors import InputError
from nodecopy.features.scaling import FEATURE_SCALINGS, WEIGHT_SCALINGS
from nodecopy.graph import Graph

INPUT, HIDDEN = range(2)  # the places of dropout masks in a network
GOLDEN, MIX_1, MIX_2 = 0x1E3779B9, 0x21F0AAAD, 0x735A2D97
NEGATIVE_SLOPE = 0.2  # slope of the leaky activation below zero
MAX_DROPOUT = 0.99  # the entries that a mask keeps are scaled up, so it must keep some


def build_csr_tensor(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a torch tensor of row pointers and columns, unchecked."""
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here cover them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)


class Masks:
    """The dropout masks of B models with keys; the rate is rounded to 1/256."""

    def __init__(self, keys: Tensor, rate: float) -> None:
        self.keys, self.threshold = keys, round(256 * rate)

    def draw(self, n: int, *, step: int, place: int) -> Tensor:
        """Return ``[B, n]`` factors, zero for dropped entries, with expectation one."""
        position = torch.arange(-(-n // 4), dtype=torch.int32, device=self.keys.device)
        words = _mix(position ^ self._key(step, place))
        return self._factors(words.view(torch.uint8)[:, :n])

    def draw_at(self, model: Tensor, position: Tensor, *, step: int, place: int) -> Tensor:
        """Return the factors of :meth:`draw` at models and positions."""
        words = _mix((position >> 2) ^ self._key(step, place)[model, 0])
        return self._factors((words >> ((position & 3) << 3)) & 0xFF)

    def _key(self, step: int, place: int) -> Tensor:
        products = GOLDEN * (2 * step + 1), MIX_2 * (place + 1)
        by_step, by_place = ((product + 2**31) % 2**32 - 2**31 for product in products)  # as signed 32 bits
        return _mix(self.keys[:, None] + by_step ^ by_place)

    def _factors(self, numbers: Tensor) -> Tensor:
        return (numbers >= self.threshold) * (256.0 / (256 - self.threshold))


def draw_keys(seeds: Sequence[SeedSequence], device: torch.device) -> Tensor:
    """Return the key of each model, given its seed."""
    words = np.array([seed.generate_state(1, np.uint32)[0] for seed in seeds], np.uint32)
    return torch.from_numpy(words.view(np.int32)).to(device)


def _mix(x: Tensor) -> Tensor:
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * MIX_1
    x ^= (x >> 15) & 0x1FFFF
    x *= MIX_2
    x ^= (x >> 15) & 0x1FFFF
    return x


class SparseStack:
    """B sparse matrices of one shape; their transposes are computed in the first backward pass."""

    def __init__(
        self, matrices: Sequence[sparse.csr_array], device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        first, n_models = matrices[0], len(matrices)
        n_rows, n_columns = np.array([matrix.shape for matrix in matrices]).max(axis=0).tolist()
        self.shape = (n_models, n_rows, n_columns)
        self.flat_shape = (n_models * n_rows, n_models * n_columns)
        self.entries = np.array([matrix.nnz for matrix in matrices])
        if max(int(self.entries.sum()), *self.flat_shape) >= 2**31:
            raise InputError(f"a stack must have fewer than 2**31 entries; got {self.entries.sum()}.")
        same = all(matrix is first for matrix in matrices)
        self._copies, self._pattern = (
            (n_models, first) if same else (1, _block_diagonal(matrices, self.shape))
        )
        self.device, self.dtype = device, dtype

    @cached_property
    def index(self) -> tuple[Tensor, Tensor]:
        return _repeat_pattern(self._pattern, self._copies, self.device)

    @cached_property
    def values(self) -> Tensor:
        return torch.tensor(self._pattern.data, dtype=self.dtype, device=self.device).repeat(self._copies)

    def matrix(self, model: int) -> sparse.csr_array:
        if self._copies > 1:
            return self._pattern
        _, n_rows, n_columns = self.shape
        indptr = self._pattern.indptr[model * n_rows : (model + 1) * n_rows + 1]
        entries = slice(indptr[0], indptr[-1])
        columns = self._pattern.indices[entries] - np.int32(model * n_columns)
        parts = self._pattern.data[entries], columns, indptr - indptr[0]
        return sparse.csr_array(parts, shape=(n_rows, n_columns))

    @cached_property
    def tensor(self) -> Tensor:
        return build_csr_tensor(self.index, self.values, self.flat_shape)

    @cached_property
    def transpose(self) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """The pattern of the transpose, the original number of each entry, and the transpose."""
        device, pattern = self.device, self._pattern
        if device.type != "cpu":  # sorted on the device
            return self._sort_transpose()
        numbers = np.arange(pattern.nnz, dtype=np.int32)
        order = sparse.csr_array(
            sparse.csr_array((numbers, pattern.indices, pattern.indptr), shape=pattern.shape).T
        )
        copy = torch.arange(self._copies, dtype=torch.int32, device=device)[:, None]
        entries = torch.tensor(order.data, dtype=torch.int32, device=device)
        origin = (entries[None, :] + copy * pattern.nnz).reshape(-1)
        index = _repeat_pattern(order, self._copies, device)
        values = self.values.index_select(0, origin)
        return index, origin, build_csr_tensor(index, values, self.flat_shape[::-1])

    def _sort_transpose(self) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        columns, origin = torch.sort(self.index[1], stable=True)
        ends = torch.arange(self.flat_shape[1] + 1, dtype=torch.int32, device=self.device)
        index = torch.searchsorted(columns, ends).int(), self.row_numbers.index_select(0, origin).int()
        values = self.values.index_select(0, origin)
        return index, origin.int(), build_csr_tensor(index, values, self.flat_shape[::-1])

    @cached_property
    def positions(self) -> tuple[Tensor, Tensor]:
        entries = torch.from_numpy(self.entries).to(self.device)
        model = torch.repeat_interleave(entries)
        number = torch.arange(len(model), device=self.device) - (entries.cumsum(0) - entries)[model]
        return model, number.int()

    @cached_property
    def row_numbers(self) -> Tensor:
        return torch.repeat_interleave(self.index[0].diff().long())

    @cached_property
    def column_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of every column, ``[B, 1, n_columns]``, with zeros for entries not stored."""
        n_models, n_rows, n_columns = self.shape
        columns, values = self.index[1].cpu().numpy(), self.values.cpu().numpy().astype(np.float64)
        mean, square = (
            np.bincount(columns, part, n_models * n_columns) / n_rows for part in (values, values**2)
        )
        moments = np.stack([mean, np.maximum(square - mean**2, 0.0)]).astype(np.float32)
        both = torch.from_numpy(moments).to(self.values).view(2, n_models, 1, n_columns)
        return both[0], both[1]

    def draw_factors(self, masks: Masks, *, step: int, place: int) -> Tensor:
        if (self.entries == self.entries[0]).all():
            return masks.draw(int(self.entries[0]), step=step, place=place)
        return masks.draw_at(*self.positions, step=step, place=place)

    def product(self, dense: Tensor, factors: Tensor | None = None) -> Tensor:
        """Return the product, ``[B, n_columns, d]`` to ``[B, n_rows, d]``."""
        n_models, n_rows, n_columns = self.shape
        flat = dense.reshape(n_models * n_columns, -1)
        values = self.values if factors is None else self.values * factors.reshape(-1)
        matrix = self.tensor if factors is None else build_csr_tensor(self.index, values, self.flat_shape)
        if not (torch.is_grad_enabled() and flat.requires_grad):
            return (matrix @ flat).view(n_models, n_rows, -1)
        index, origin, transpose = self.transpose
        if factors is not None:
            transpose = build_csr_tensor(index, values.index_select(0, origin), self.flat_shape[::-1])
        out: Tensor = _Product.apply(flat, matrix, transpose)  # type: ignore[no-untyped-call]
        return out.view(n_models, n_rows, -1)

    __matmul__ = product


class _Product(torch.autograd.Function):
    """Sparse times dense; torch's own backward would build the gradient of the sparse matrix too."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ gradient.contiguous(), None, None


def normalise_adjacency(adjacency: sparse.csr_array, rows: IntArray | None = None) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2, or some of its rows, where D has the degrees of A + I."""
    n_nodes = adjacency.shape[0]
    scale = (1.0 / np.sqrt(adjacency.sum(axis=1) + 1.0)).astype(np.float32)
    chosen, part = (np.arange(n_nodes), adjacency) if rows is None else (rows, adjacency[rows])
    identity = sparse.csr_array(
        (np.ones(len(chosen), np.float32), chosen, np.arange(len(chosen) + 1)), shape=(len(chosen), n_nodes)
    )
    looped = sparse.csr_array(part.astype(np.float32) + identity)
    looped.data *= np.repeat(scale[chosen], np.diff(looped.indptr))
    looped.data *= scale[looped.indices]
    return looped


def _block_diagonal(matrices: Sequence[sparse.csr_array], shape: tuple[int, int, int]) -> sparse.csr_array:
    n_models, n_rows, n_columns = shape
    lengths = np.zeros((n_models, n_rows), np.int32)
    indices = []
    for number, matrix in enumerate(matrices):
        lengths[number, : matrix.shape[0]] = np.diff(matrix.indptr)
        indices.append(matrix.indices.astype(np.int32) + np.int32(number * n_columns))
    indptr = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=indptr[1:])
    values = np.concatenate([matrix.data for matrix in matrices])
    parts = values, np.concatenate(indices), indptr
    return sparse.csr_array(parts, shape=(n_models * n_rows, n_models * n_columns))


def _repeat_pattern(matrix: sparse.csr_array, n_models: int, device: torch.device) -> tuple[Tensor, Tensor]:
    number = torch.arange(n_models, dtype=torch.int32, device=device)[:, None]
    ends, columns = (
        torch.tensor(part, dtype=torch.int32, device=device)[None, :] + number * size
        for part, size in ((matrix.indptr[1:], matrix.nnz), (matrix.indices, matrix.shape[1]))
    )
    start = torch.zeros(1, dtype=torch.int32, device=device)
    return torch.cat([start, ends.reshape(-1)]), columns.reshape(-1)


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix ``left @ right.T`` plus a diagonal, as its factors."""

    left: Singles
    right: Singles
    diagonal: Singles


def approximate_adjacency(adjacency: sparse.csr_array, rank: int) -> LowRank:
    """Return D^-1/2 (A_k + I) D^-1/2, where A_k is the best approximation of A of that rank.

    D holds the row sums of A_k, where a sum below zero counts as zero. The rank is at most the number of
    nodes less one.
    """
    n = adjacency.shape[0]
    rank = min(rank, n - 1)
    if not adjacency.nnz or not rank:
        zeros = np.zeros((n, 1), np.float32)
        return LowRank(zeros, zeros, np.ones(n, np.float32))
    u, s, vt = truncated_svd(adjacency.astype(np.float64), rank)
    left = u * s
    scale = 1.0 / np.sqrt(1.0 + np.maximum(left @ vt.sum(axis=1), 0.0))
    parts: list[Any] = [left * scale[:, None], vt.T * scale[:, None], scale**2]
    return LowRank(*(part.astype(np.float32) for part in parts))


class LowRankStack:
    """B low-rank matrices of one shape; the counterpart of a :class:`SparseStack`."""

    def __init__(self, matrices: Sequence[LowRank], device: torch.device) -> None:
        rank = max(matrix.left.shape[1] for matrix in matrices)
        self.left, self.right = (
            torch.from_numpy(
                np.stack([np.pad(side, ((0, 0), (0, rank - side.shape[1]))) for side in sides])
            ).to(device)
            for sides in ([m.left for m in matrices], [m.right for m in matrices])
        )
        self.diagonal = torch.from_numpy(np.stack([m.diagonal for m in matrices])).to(device)[:, :, None]

    def __matmul__(self, dense: Tensor) -> Tensor:
        """``[B, n, d]`` to ``[B, n, d]``."""
        return self.left @ (self.right.transpose(1, 2) @ dense) + self.diagonal * dense


Matrix = sparse.csr_array | LowRank  # the matrix that one network propagates by
Stack = SparseStack | LowRankStack


@dataclass(frozen=True)
class TrainingConfig:
    """How networks are built and trained; the defaults are those of Kipf and Welling (2017)."""

    PROPAGATIONS: ClassVar[list[str]] = ["none", "convolution", "pagerank"]
    network_type: ClassVar[type[Networks]]

    propagation: str = "convolution"
    n_hidden: int = 16
    activation: str = "relu"
    bias: bool = False
    features: str = "rows"
    weights: str = "raw"
    dropout: float = 0.5
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
        for name, low in (("n_hidden", 1), ("n_epochs", 1), ("n_steps", 0), ("patience", 0)):
            check_integer(getattr(self, name), name, low=low)
        limits = {"dropout": MAX_DROPOUT, "teleport": 1}
        for name, high in (limits | {"learning_rate": np.inf, "weight_decay": np.inf}).items():
            check_real(getattr(self, name), name, low=0, high=high)
        if self.rank is not None:
            check_integer(self.rank, "rank", low=1)

    def is_compiled(self, device: torch.device) -> bool:
        is_plain = self.propagation in TrainingConfig.PROPAGATIONS
        return is_plain and self.rank is None and device.type == "cpu"

    def count_activations(self, features: sparse.csr_array) -> int:
        return max(features.nnz, features.shape[0] * self.n_hidden, 1)


KIPF = TrainingConfig()  # the settings of Kipf and Welling (2017)


def propagation_matrix(adjacency: sparse.csr_array, config: TrainingConfig) -> Matrix:
    """Return the matrix that networks propagate by on a graph."""
    if config.rank is None:
        return normalise_adjacency(adjacency)
    return approximate_adjacency(adjacency, config.rank)


class Networks:
    """The weights of B networks on B graphs, and their logits."""

    config: TrainingConfig

    def __init__(
        self, config: TrainingConfig, features: SparseStack, weights: Sequence[Tensor], keys: Tensor
    ) -> None:
        self.config, self.features, self.weights = config, features, list(weights)
        self.masks = Masks(keys, config.dropout)

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
        keys = self.masks.keys[models]
        stack = SparseStack([features] * len(keys), keys.device)
        return type(self)(self.config, stack, [weight[models] for weight in self.weights], keys)

    @property
    def parameter_groups(self) -> list[dict[str, Any]]:
        decay = self.config.weight_decay
        rest = {"params": self.weights[1:], "weight_decay": decay if self.config.decay_all else 0.0}
        return [{"params": [self.weights[0]], "weight_decay": decay}, rest]

    def constrain(self) -> None:
        """Enforce constraints on the weights; these networks have none."""

    def logits(self, graphs: Stack | None, last: SparseStack | None, step: int | None) -> Tensor:
        """Return ``[B, rows, classes]``: for all nodes, or for the rows that ``last`` keeps of the graphs."""
        config, (first, second, *biases) = self.config, self.weights
        if step is None or not config.drop_input or self.masks.threshold == 0:
            hidden = self.features @ first
        else:
            factors = self.features.draw_factors(self.masks, step=step, place=INPUT)
            hidden = self.features.product(first, factors)
        if config.propagation == "convolution":
            assert graphs is not None
            hidden = graphs @ hidden
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
            # Before the weights, whose gradient then adds up labelled rows in the same order, however many
            # rows the other models have.
            hidden = last @ hidden
        out = hidden @ second
        if config.propagation == "convolution" and last is None:
            assert graphs is not None
            out = graphs @ out
        elif config.propagation == "pagerank":
            assert graphs is not None
            local, teleport = out, config.teleport
            for _ in range(config.n_steps):
                out = (1 - teleport) * (graphs @ out) + teleport * local
        return out + biases[1] if biases else out


TrainingConfig.network_type = Networks


def draw_glorot(rngs: Sequence[Generator], rows: int, columns: int, device: torch.device) -> Tensor:
    """Draw the uniform weights of Glorot and Bengio (2010), ``[B, rows, columns]``."""
    limit = np.sqrt(6.0 / (rows + columns))
    weights = np.stack([rng.uniform(-limit, limit, (rows, columns)).astype(np.float32) for rng in rngs])
    return torch.from_numpy(weights).to(device).requires_grad_()


def check_features(graph: Graph, n_features: int | None = None) -> None:
    """Raise an error if a graph has no features, or another number of them than in ``fit``."""
    width = 0 if graph.features is None else graph.features.shape[1]
    if not width:
        raise InputError("a graph must have features to be classified; this one has none.")
    if n_features is not None and width != n_features:
        raise InputError(f"features of the graph must have {n_features} columns, as in fit; got {width}.")


def add_identity_features(graph: Graph) -> Graph:
    """Return the graph; without features it gets the identity matrix, one feature for each node."""
    if graph.features is not None and graph.features.shape[1]:
        return graph
    return graph.replace(features=sparse.eye_array(graph.n_nodes, dtype=np.float32, format="csr"))

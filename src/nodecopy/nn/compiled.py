"""Two-layer networks in compiled code: one network on a CPU, its logits and its training steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import IntArray, Singles
from nodecopy.nn import kernels
from nodecopy.nn.kernels import LANES
from nodecopy.nn.networks import HIDDEN, INPUT, NEGATIVE_SLOPE, Networks, TrainingConfig

SLOPES = {"relu": 0.0, "leaky": NEGATIVE_SLOPE, "none": 1.0}  # slopes of activations below zero


def compile_networks(
    networks: Networks, graphs: Sequence[Any], chosen: Iterable[IntArray] | None = None
) -> list[CompiledNetwork]:
    """Return networks in compiled code; they share their weights with the given ones."""
    config, keys = networks.config, networks.masks.keys.tolist()
    nodes = [None] * len(keys) if chosen is None else chosen
    return [
        CompiledNetwork(
            config,
            [weight[model].detach().numpy() for weight in networks.weights],
            key % 2**32,
            FourArrayCSR.from_csr(networks.features.matrix(model)),
            None if config.propagation == "none" else graphs[model],
            of_model,
        )
        for model, (key, of_model) in enumerate(zip(keys, nodes, strict=True))
    ]


class FourArrayCSR(NamedTuple):
    """A sparse matrix whose rows have starts and stops, so that a selection copies nothing."""

    starts: Any
    stops: Any
    columns: Any
    values: Any

    @classmethod
    def from_csr(cls, matrix: Any) -> FourArrayCSR:
        index_type = np.int32 if matrix.nnz < 2**31 else np.int64
        indptr, columns = (part.astype(index_type, copy=False) for part in (matrix.indptr, matrix.indices))
        return cls(indptr[:-1], indptr[1:], columns, matrix.data.astype(np.float32, copy=False))

    def select(self, chosen: IntArray) -> FourArrayCSR:
        return self._replace(starts=self.starts[chosen], stops=self.stops[chosen])


class PageRank:
    """Steps of personalised PageRank over a graph."""

    def __init__(self, graph: sparse.csr_array, n_steps: int, teleport: float) -> None:
        self.n_steps, self.n_nodes = n_steps, graph.shape[0]
        keep, identity = np.float32(1 - teleport), sparse.eye_array(self.n_nodes, dtype=np.float32)
        step = sparse.hstack([keep * graph, np.float32(teleport) * identity], format="csr")
        self._step = FourArrayCSR.from_csr(step)
        self._values = np.empty((2, 0, 0), np.float32)

    def propagate(self, values: Singles) -> Singles:
        n, width = values.shape
        if self._values.shape[2] != width:
            self._values = np.empty((2, 2 * n, width), np.float32)
        self._values[:, n:] = values
        self._values[0, :n] = values
        latest, following = self._values
        for _ in range(self.n_steps):
            kernels.multiply(*self._step, latest, following)
            latest, following = following, latest
        values[:] = latest[:n]
        return values


class CompiledNetwork:
    """One two-layer network, for all nodes or for some ``chosen`` ones.

    ``weights`` are both layers and any biases, which training changes in place. With ``chosen``, only the
    nodes that they depend on are computed, unless PageRank reaches all. ``graph`` and ``last`` are rows of
    the first and the second convolution, ``outer``, ``hidden``, ``gates`` and ``pooled`` the latest
    activations: features times weights, hidden units and their derivatives, and means of hidden units over
    neighbours, one array where nothing is averaged. The backward pass writes gradients into the same memory.
    """

    def __init__(
        self,
        config: TrainingConfig,
        weights: Sequence[Singles],
        key: int,
        features: FourArrayCSR,
        graph: sparse.csr_array | None,
        chosen: IntArray | None = None,
    ) -> None:
        self.config, self.key, self.slope = config, key, np.float32(SLOPES[config.activation])
        self.threshold = round(256 * config.dropout)  # random bytes below it drop an entry
        self.first, self.second, *self.biases = weights
        n_hidden, self.n_classes = self.second.shape
        self.nodes: IntArray = np.arange(len(features.starts))
        self.matrix, self.chosen = graph, chosen
        self.graph: FourArrayCSR | None = None
        self.last: FourArrayCSR | None = None
        self.pagerank: PageRank | None = None
        if config.propagation == "pagerank":
            self.pagerank = self.build_pagerank()
        elif config.propagation == "convolution":
            features, self.graph, self.last = self._cut_out(features, FourArrayCSR.from_csr(graph))
        elif chosen is not None:
            self.nodes, features = chosen, features.select(chosen)
        self.features = self.masked = features
        self._masked = np.empty_like(features.values)
        self._n_units = int(self.nodes.max(initial=-1) + 1) * n_hidden
        self._words = np.empty(max(len(self._masked), self._n_units) // 4 + 1, np.uint32)
        self.hidden, self.gates = (np.empty((len(self.nodes), n_hidden), np.float32) for _ in range(2))
        self.outer = self.pooled = self.hidden
        if self.last is not None:
            self.outer, self.pooled = (
                np.empty((len(rows.starts), n_hidden), np.float32) for rows in (features, self.last)
            )
        self._no_bias = np.zeros(n_hidden, np.float32)

    def _cut_out(self, features: FourArrayCSR, graph: FourArrayCSR) -> tuple[FourArrayCSR, ...]:
        n_nodes = len(graph.starts)
        if self.chosen is None:
            self.nodes = np.arange(n_nodes)
            return features, graph, graph
        last = graph.select(self.chosen)
        self.nodes = _find_columns(last, n_nodes)
        graph = graph.select(self.nodes)
        outer = _find_columns(graph, n_nodes)
        parts = _renumber(graph, outer, n_nodes), _renumber(last, self.nodes, n_nodes)
        return features.select(outer), *parts

    def build_pagerank(self, *, transposed: bool = False) -> PageRank:
        assert self.matrix is not None
        matrix = self.matrix.T.tocsr() if transposed else self.matrix
        return PageRank(matrix, self.config.n_steps, self.config.teleport)

    def pool(self, step: int | None) -> Singles:
        masked = self.features
        if step is not None and self.threshold and self.config.drop_input:
            numbers = self._draw_bytes(len(self._masked), step, INPUT)
            kernels.mask_values(masked.values, numbers, self.threshold, self._masked)
            masked = masked._replace(values=self._masked)
        self.masked = masked
        kernels.multiply(*masked, self.first, self.outer)
        if self.graph is not None:
            kernels.multiply(*self.graph, self.outer, self.hidden)
        threshold, numbers = 0, self._words.view(np.uint8)
        if step is not None and self.threshold:
            threshold = self.threshold
            numbers = self._draw_bytes(self._n_units, step, HIDDEN)
        bias = self.biases[0][0] if self.biases else self._no_bias
        kernels.activate(self.hidden, self.nodes, numbers, threshold, self.slope, bias, self.gates)
        if self.last is not None:
            kernels.multiply(*self.last, self.hidden, self.pooled)
        return self.pooled

    def logits(self, step: int | None) -> Tensor:
        out = torch.from_numpy(self.pool(step)) @ torch.from_numpy(self.second)
        if self.pagerank is not None:
            padded = self.pagerank.propagate(_pad_columns(out.numpy()))
            rows = slice(None) if self.chosen is None else self.chosen
            out = torch.from_numpy(padded[rows, : self.n_classes])
        return out + torch.from_numpy(self.biases[1]) if self.biases else out

    def _draw_bytes(self, n: int, step: int, place: int) -> NDArray[np.uint8]:
        words = self._words[: -(-n // 4)]
        kernels.draw_words(self.key, step, place, words)
        return words.view(np.uint8)


class CompiledTrainer:
    """Adam on the cross-entropy of one network with class probabilities and weights of labelled nodes."""

    def __init__(self, network: CompiledNetwork, targets: Singles, weights: Singles) -> None:
        self.targets, self.weights = targets, weights
        self.network, n_hidden = network, len(network.second)
        self._trained = [network.first, network.second, *network.biases]
        self._moments = [(np.zeros(w.size, np.float32), np.zeros(w.size, np.float32)) for w in self._trained]
        self._padded = _pad_columns(network.second)
        n_rows, width = len(network.pooled), self._padded.shape[1]
        self._local = self._logits = np.empty((n_rows, width), np.float32)
        if network.pagerank is not None:
            self._reverse = network.build_pagerank(transposed=True)
            self._logits = np.empty((len(self.weights), width), np.float32)
            numbers = np.arange(len(self.weights), dtype=np.int32)
            ones = np.ones(len(numbers), np.float32)
            self._chosen = FourArrayCSR(numbers, numbers + 1, network.chosen, ones)
        self._pooled = _as_rows(network.pooled, n_hidden)
        self._slopes = _as_rows(self._local, network.n_classes)
        self._by_first = np.empty_like(network.first)
        self._by_class = np.empty_like(network.second.T, order="C")

    def step(self, epoch: int) -> None:
        network, n_classes = self.network, self.network.n_classes
        pooled = network.pool(epoch)
        self._padded[:, :n_classes] = network.second
        kernels.multiply(*self._pooled, self._padded, self._local)
        if network.pagerank is not None:
            kernels.multiply(*self._chosen, network.pagerank.propagate(self._local), self._logits)
        logits = self._logits
        if network.biases:
            logits[:, :n_classes] += network.biases[1]
        kernels.shift_logits(logits, n_classes)
        np.exp(logits, out=logits)
        kernels.differentiate(logits, self.targets, self.weights)
        by_bias = logits[:, :n_classes].sum(axis=0)
        if network.pagerank is not None:
            kernels.multiply_transpose(*self._chosen, self._logits, self._local)
            self._reverse.propagate(self._local)
        kernels.multiply_transpose(*self._slopes, pooled, self._by_class)
        kernels.multiply(*self._slopes, np.ascontiguousarray(network.second.T), pooled)
        if network.last is not None:
            kernels.multiply_transpose(*network.last, pooled, network.hidden)
        np.multiply(network.hidden, network.gates, out=network.hidden)
        gradients = [self._by_first, np.ascontiguousarray(self._by_class.T)]
        if network.biases:
            gradients += [network.hidden.sum(axis=0), by_bias]
        if network.graph is not None:
            kernels.multiply_transpose(*network.graph, network.hidden, network.outer)
        kernels.multiply_transpose(*network.masked, network.outer, self._by_first)
        config = network.config
        decay, rate = config.weight_decay, config.learning_rate
        for weight, gradient, moments in zip(self._trained, gradients, self._moments, strict=True):
            flat = weight.reshape(-1), gradient.reshape(-1)
            kernels.step_adam(*flat, *moments, rate, np.float32(decay), epoch + 1)
            decay = config.weight_decay if config.decay_all else 0.0


def _pad_columns(matrix: Singles) -> Singles:
    return np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % LANES)))


def _find_columns(rows: FourArrayCSR, n: int) -> IntArray:
    lengths = rows.stops - rows.starts
    first = np.repeat(rows.starts - np.cumsum(lengths) + lengths, lengths)
    is_used = np.zeros(n, bool)
    is_used[rows.columns[first + np.arange(len(first))]] = True
    return np.flatnonzero(is_used)


def _renumber(rows: FourArrayCSR, chosen: Any, n: int) -> FourArrayCSR:
    place = np.zeros(n, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    return rows._replace(columns=place[rows.columns])


def _as_rows(dense: Singles, n_columns: int) -> FourArrayCSR:
    """Return the first columns of a dense matrix as sparse rows that share its memory."""
    n_rows, width = dense.shape
    starts = np.arange(n_rows, dtype=np.int32) * width
    columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
    return FourArrayCSR(starts, starts + n_columns, columns, dense.reshape(-1))

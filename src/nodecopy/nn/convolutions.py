"""Two graph convolutions in compiled code: one network on a CPU, its logits and its training steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodecopy.nn import convolution_kernels as kernels
from nodecopy.nn.convolution_kernels import Rows
from nodecopy.nn.masks import HIDDEN, INPUT
from nodecopy.nn.row_intrinsics import LANES

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class ConvolutionSettings:
    """How a network is computed and trained.

    Parameters
    ----------
    slope
        Of the activation, below zero.
    input_threshold, hidden_threshold
        Random bytes below which features and hidden units are dropped in a training step; 0: none.
    learning_rate, first_decay, decay
        Of Adam; ``first_decay`` is on the weights of the first layer.
    """

    slope: float
    input_threshold: int
    hidden_threshold: int
    learning_rate: float
    first_decay: float
    decay: float


class Convolutions:
    """One network of two graph convolutions.

    Parameters
    ----------
    settings
        How it is computed and trained.
    weights
        Both layers and, if there are any, biases; training changes them in place.
    key
        Of its dropout masks.
    features, graph
        Rows of all nodes.
    last
        The rows of the graph whose logits are computed; all by default. Nothing but the nodes that they
        depend on is computed.

    Attributes
    ----------
    masked
        The features after dropout of the latest call.
    outer, hidden, gates, pooled
        Activations of the latest call: features times weights, hidden units and their derivatives, and means
        of hidden units over neighbours. The backward pass writes gradients into the same memory.
    """

    def __init__(
        self,
        settings: ConvolutionSettings,
        weights: Sequence[FloatArray],
        key: int,
        features: Rows,
        graph: Rows,
        last: Rows | None = None,
    ) -> None:
        self.settings, self.key = settings, key
        self.first, self.second, *self.biases = weights
        n_hidden, self.n_classes = self.second.shape
        n_nodes = len(graph.starts)
        self.nodes = np.arange(n_nodes)
        if last is None:
            last = graph
        else:
            self.nodes = np.unique(last.columns)
            last, graph = _renumber(last, self.nodes, n_nodes), _select(graph, self.nodes)
            reached = np.zeros(n_nodes, bool)
            reached[_columns(graph)] = True
            outer = np.flatnonzero(reached)
            graph, features = _renumber(graph, outer, n_nodes), _select(features, outer)
        self.features, self.graph, self.last = features, graph, last
        self.masked, self._masked = features, np.empty_like(features.values)
        self._n_units = int(self.nodes.max(initial=-1) + 1) * n_hidden
        self._words = np.empty(max(len(self._masked), self._n_units) // 4 + 1, np.uint32)
        self.outer, self.hidden, self.gates, self.pooled = (
            np.empty((n, n_hidden), np.float32)
            for n in (len(features.starts), len(self.nodes), len(self.nodes), len(last.starts))
        )
        self._no_bias = np.zeros(n_hidden, np.float32)

    def pool(self, step: int | None) -> FloatArray:
        """Return the means of hidden units over neighbours; the second layer turns them into logits.

        ``step`` numbers the masks; ``None`` switches them off. The array is overwritten by the next call.
        """
        settings, masked = self.settings, self.features
        if step is not None and settings.input_threshold:
            numbers = self._draw_bytes(len(self._masked), step, INPUT)
            kernels.mask_values(masked.values, numbers, settings.input_threshold, self._masked)
            masked = masked._replace(values=self._masked)
        self.masked = masked
        kernels.multiply(masked, self.first, self.outer)
        kernels.multiply(self.graph, self.outer, self.hidden)
        threshold, numbers = 0, self._words.view(np.uint8)
        if step is not None and settings.hidden_threshold:
            threshold = settings.hidden_threshold
            numbers = self._draw_bytes(self._n_units, step, HIDDEN)
        bias = self.biases[0][0] if self.biases else self._no_bias
        kernels.activate(
            self.hidden, self.nodes, numbers, threshold, np.float32(settings.slope), bias, self.gates
        )
        kernels.multiply(self.last, self.hidden, self.pooled)
        return self.pooled

    def logits(self, step: int | None) -> Tensor:
        """Return the logits of all nodes, or of the last rows, with the masks of a step if there is one."""
        out = torch.from_numpy(self.pool(step)) @ torch.from_numpy(self.second)
        return out + torch.from_numpy(self.biases[1]) if self.biases else out

    def _draw_bytes(self, n: int, step: int, place: int) -> NDArray[np.uint8]:
        words = self._words[: -(-n // 4)]
        kernels.draw_words(self.key, step, place, words)
        return words.view(np.uint8)


class ConvolutionTrainer:
    """Adam on the cross-entropy of one network.

    Parameters
    ----------
    network
        The network; its logits are those of labelled nodes.
    targets
        The probabilities of the classes of each labelled node.
    weights
        Of the labelled nodes in the loss.
    """

    def __init__(self, network: Convolutions, targets: FloatArray, weights: FloatArray) -> None:
        self.targets, self.weights = targets, weights
        self.change_network(network)
        self._moments = [(np.zeros(w.size, np.float32), np.zeros(w.size, np.float32)) for w in self._trained]

    def change_network(self, network: Convolutions) -> None:
        """Continue with the same weights on another graph."""
        self.network, weights = network, self.weights
        self._trained = [network.first, network.second, *network.biases]
        n_rows, n_hidden, width = len(weights), len(network.second), network.n_classes
        width += -width % LANES
        self._padded = np.zeros((n_hidden, width), np.float32)
        self._logits = np.empty((n_rows, width), np.float32)
        self._pooled = _as_rows(network.pooled, n_hidden)
        self._slopes = _as_rows(self._logits, network.n_classes)
        self._by_first = np.empty_like(network.first)
        self._by_class = np.empty_like(network.second.T, order="C")

    def step(self, epoch: int) -> None:
        """Take the step of an epoch, with its masks."""
        network, n_classes = self.network, self.network.n_classes
        pooled = network.pool(epoch)
        self._padded[:, :n_classes] = network.second
        kernels.multiply(self._pooled, self._padded, self._logits)
        if network.biases:
            self._logits[:, :n_classes] += network.biases[1]
        kernels.shift_logits(self._logits, n_classes)
        np.exp(self._logits, out=self._logits)
        kernels.differentiate(self._logits, self.targets, self.weights)
        kernels.multiply_transpose(self._slopes, pooled, self._by_class)
        kernels.multiply(self._slopes, np.ascontiguousarray(network.second.T), pooled)
        kernels.multiply_transpose(network.last, pooled, network.hidden)
        np.multiply(network.hidden, network.gates, out=network.hidden)
        gradients = [self._by_first, np.ascontiguousarray(self._by_class.T)]
        if network.biases:
            gradients += [network.hidden.sum(axis=0), self._logits[:, :n_classes].sum(axis=0)]
        kernels.multiply_transpose(network.graph, network.hidden, network.outer)
        kernels.multiply_transpose(network.masked, network.outer, self._by_first)
        decay, rate = network.settings.first_decay, network.settings.learning_rate
        for weight, gradient, moments in zip(self._trained, gradients, self._moments, strict=True):
            flat = weight.reshape(-1), gradient.reshape(-1)
            kernels.step_adam(*flat, *moments, rate, np.float32(decay), epoch + 1)
            decay = network.settings.decay


def _select(rows: Rows, chosen: Any) -> Rows:
    return rows._replace(starts=rows.starts[chosen], stops=rows.stops[chosen])


def _columns(rows: Rows) -> NDArray[np.int32]:
    """Return the columns of all entries of some rows."""
    lengths = rows.stops - rows.starts
    first = np.repeat(rows.starts - np.cumsum(lengths) + lengths, lengths)
    columns: NDArray[np.int32] = rows.columns[first + np.arange(len(first))]
    return columns


def _renumber(rows: Rows, chosen: Any, n: int) -> Rows:
    """Return rows whose columns are positions among the chosen columns."""
    place = np.zeros(n, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    return rows._replace(columns=place[rows.columns])


def _as_rows(dense: FloatArray, n_columns: int) -> Rows:
    """Return the first columns of a dense matrix as sparse rows that share its memory."""
    n_rows, width = dense.shape
    starts = np.arange(n_rows, dtype=np.int32) * width
    columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
    return Rows(starts, starts + n_columns, columns, dense.reshape(-1))

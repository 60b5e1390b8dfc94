"""Random walks: those of the observed graph, NetGAN's generator of walks, and its critic.

Walks are node positions, whose embeddings are gathered, so few tensors are N wide. Only the training of the
generator holds an N-wide softmax for each step of a walk, because the gradient passes through it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

NOISE_WIDTH = 16
"""Width of the normal noise that a generated walk starts from."""
PENALTY_WEIGHT = 10.0
"""Weight of the gradient penalty."""
State: TypeAlias = tuple[Tensor, Tensor]
"""Output and cell of an LSTM, ``[size, units]`` each."""


class TorchRandom:
    """A source of weights and random numbers with its own torch generator on a device."""

    def __init__(self, seed: SeedSequence, device: torch.device) -> None:
        self.device, self.source = device, torch.Generator(device)
        self.source.manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.source, device=self.device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.source, device=self.device)

    def draw_glorot(self, n_in: int, n_out: int) -> Tensor:
        limit = float(np.sqrt(6 / (n_in + n_out)))
        return ((2 * self.uniform(n_in, n_out) - 1) * limit).requires_grad_()

    def zeros(self, size: int) -> Tensor:
        return torch.zeros(size, device=self.device, requires_grad=True)


class ObservedWalks:
    """Random walks on a graph without isolated nodes; each starts at a uniformly random node."""

    def __init__(self, adjacency: sparse.csr_array, device: torch.device) -> None:
        self.starts, self.neighbours = (
            torch.from_numpy(part.astype(np.int64)).to(device)
            for part in (adjacency.indptr, adjacency.indices)
        )
        self.degrees = self.starts.diff()

    def draw(self, size: int, length: int, random: TorchRandom) -> Tensor:
        """Draw walks, ``[size, length]`` node positions."""
        uniforms = random.uniform(length, size)
        node = _scale_to_integers(uniforms[0], torch.full_like(self.starts[:1], len(self.degrees)))
        walk = [node]
        for uniform in uniforms[1:]:
            node = self.neighbours[self.starts[node] + _scale_to_integers(uniform, self.degrees[node])]
            walk.append(node)
        return torch.stack(walk, dim=1)


class LSTM:
    """One LSTM layer, applied step by step; the bias of its forget gate has a constant one added.

    The contribution of the inputs to the gates is a separate method, because the critic has all its inputs at
    once.
    """

    def __init__(self, n_in: int, units: int, random: TorchRandom) -> None:
        joint = random.draw_glorot(n_in + units, 4 * units).detach()  # one matrix for both, as in TensorFlow
        self.weights = [joint[:n_in].clone(), joint[n_in:].clone(), joint.new_zeros(4 * units)]
        for weight in self.weights:
            weight.requires_grad_()
        self.units, self.forget = units, joint.new_zeros(4 * units)
        self.forget[units : 2 * units] = 1

    def gates(self, inputs: Tensor) -> Tensor:
        """Map ``[..., n_in]`` to ``[..., 4 units]``: input, forget and output gate, and new content."""
        return inputs @ self.weights[0] + (self.weights[2] + self.forget)

    def step(self, gates: Tensor, state: State) -> State:
        """Return the next state, given what the inputs contribute to the gates."""
        h, c = state
        opening, content = torch.addmm(gates, h, self.weights[1]).split_with_sizes(
            [3 * self.units, self.units], dim=1
        )
        input_gate, forget_gate, output_gate = opening.sigmoid().chunk(3, dim=1)
        c = torch.addcmul(forget_gate * c, input_gate, content.tanh())
        return output_gate * c.tanh(), c


class WalkGenerator:
    """Maps noise to walks: an LSTM gives N logits, a node is drawn, and its embedding is the next input."""

    def __init__(self, n_nodes: int, n_hidden: int, n_embedding: int, random: TorchRandom) -> None:
        self.input = [random.draw_glorot(NOISE_WIDTH, n_hidden), random.zeros(n_hidden)]
        self.states = [[random.draw_glorot(n_hidden, n_hidden), random.zeros(n_hidden)] for _ in range(2)]
        self.lstm = LSTM(n_embedding, n_hidden, random)
        self.output = [random.draw_glorot(n_hidden, n_nodes), random.zeros(n_nodes)]
        self.embedding = random.draw_glorot(n_nodes, n_embedding)
        layers = [self.input, *self.states, self.lstm.weights, self.output]
        self.weights = [*chain.from_iterable(layers), self.embedding]

    @torch.no_grad()
    def draw(self, size: int, length: int, random: TorchRandom) -> Tensor:
        """Draw walks, ``[size, length]`` node positions, by inverting the distribution of each step."""
        state, inputs, walk = self._start(size, random)
        for uniform in random.uniform(length, size, 1):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            cumulative = self._logits(state[0]).softmax(dim=1).cumsum(dim=1)
            node = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
            walk.append(node[:, 0].clamp_(max=len(self.embedding) - 1))
            inputs = self.embedding[walk[-1]]
        return torch.stack(walk, dim=1)

    def draw_embedded(
        self, size: int, length: int, temperature: Tensor, table: Tensor, random: TorchRandom
    ) -> Tensor:
        """Draw walks as rows of ``table``, ``[size, length, width]``, with a gradient for the generator.

        Nodes are drawn with Gumbel noise; the gradient is that of the softmax at the temperature.
        """
        state, inputs, walk = self._start(size, random)
        for _ in range(length):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            logits = self._logits(state[0])
            noisy = logits - random.uniform(*logits.shape).clamp_(1e-20).log_().neg_().clamp_(1e-20).log_()
            node, soft = noisy.argmax(dim=1), (noisy / temperature).softmax(dim=1)
            inputs = gather_rows(self.embedding, node, soft)
            walk.append(gather_rows(table, node, soft))
        return torch.stack(walk, dim=1)

    def _start(self, size: int, random: TorchRandom) -> tuple[State, Tensor, list[Tensor]]:
        """Return the initial states, the first inputs (zeros) and empty walks."""
        hidden = _apply_dense(random.normal(size, NOISE_WIDTH), self.input).tanh()
        h, c = (_apply_dense(hidden, layer).tanh() for layer in self.states)
        return (h, c), self.embedding.new_zeros(size, self.embedding.shape[1]), []

    def _logits(self, output: Tensor) -> Tensor:
        return _apply_dense(output, self.output)


class Critic:
    """Maps walks to scores, high for observed ones: an LSTM over embedded nodes and a linear layer."""

    def __init__(self, n_nodes: int, n_hidden: int, n_embedding: int, random: TorchRandom) -> None:
        self.embedding = random.draw_glorot(n_nodes, n_embedding)
        self.lstm = LSTM(n_embedding, n_hidden, random)
        self.output = [random.draw_glorot(n_hidden, 1), random.zeros(1)]
        self.weights = [self.embedding, *self.lstm.weights, *self.output]

    def scores(self, embedded: Tensor) -> Tensor:
        """Return the scores of embedded walks: ``[size, length, width]`` to ``[size]``."""
        h = embedded.new_zeros(len(embedded), self.lstm.units)
        state = h, h
        for gates in self.lstm.gates(embedded).unbind(dim=1):
            state = self.lstm.step(gates, state)
        return _apply_dense(state[0], self.output)[:, 0]

    def loss(self, real: Tensor, fake: Tensor, random: TorchRandom) -> Tensor:
        """Return fake scores less real ones plus the gradient penalty (Gulrajani et al., 2017).

        The penalty is on the norm of the gradient with respect to one-hot walks between a real and a fake
        one. The critic first multiplies such a walk by its embedding E. If g is the gradient with respect to
        that product, the gradient is g E^T, and its norm follows from g and E^T E without N-wide tensors.
        """
        size, rows = len(real), gather_rows(self.embedding, torch.cat([real, fake]))
        mixed = torch.lerp(rows[:size], rows[size:], random.uniform(size, 1, 1))
        scores = self.scores(torch.cat([rows, mixed]))
        (g,) = torch.autograd.grad(scores[2 * size :].sum(), mixed, create_graph=True)
        lengths = ((g @ (self.embedding.T @ self.embedding)) * g).sum(dim=(1, 2)).clamp(min=1e-12).sqrt()
        penalty = (lengths - 1).square().mean()
        return scores[size : 2 * size].mean() - scores[:size].mean() + PENALTY_WEIGHT * penalty


def gather_rows(table: Tensor, node: Tensor, soft: Tensor | None = None) -> Tensor:
    """Return rows of ``table`` by node; the gradient of ``soft`` is that of the one-hot vectors."""
    rows: Tensor = _GatherRows.apply(table, node, soft)  # type: ignore[no-untyped-call]
    return rows


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, node: Tensor, soft: Tensor | None) -> Tensor:
        ctx.save_for_backward(table, node)
        return table[node]

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        table, node = ctx.saved_tensors
        slope = torch.zeros_like(table) if ctx.needs_input_grad[0] else None
        if slope is not None:  # the operation that always adds in the same order on the device
            flat, rows = node.reshape(-1), outer.reshape(-1, table.shape[1])
            if slope.is_cuda:
                slope.index_put_((flat,), rows, accumulate=True)
            else:
                slope.index_add_(0, flat, rows)
        return slope, None, outer @ table.T if ctx.needs_input_grad[2] else None


def _apply_dense(inputs: Tensor, layer: list[Tensor]) -> Tensor:
    return torch.addmm(layer[1], inputs, layer[0])


def _scale_to_integers(uniform: Tensor, sizes: Tensor) -> Tensor:
    """Return integers from 0 to ``sizes`` - 1; single precision may round up to the size itself."""
    return torch.minimum((uniform * sizes).long(), sizes - 1)

"""Random walks, real and made up: the graph's own, NetGAN's generator of them and the critic of both.

Nothing here is N wide that need not be. Real walks and those a critic learns from are node numbers, whose
embeddings are gathered; only a generator that learns from its critic holds, for each of its steps, the
N-wide softmax that the gradient flows through.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

NOISE = 16
"""Width of the normal noise that a made-up walk begins with."""
PENALTY = 10.0
"""Weight of the gradient penalty."""


State: TypeAlias = tuple[Tensor, Tensor]
"""Output and cell of an LSTM, ``[size, units]`` each."""


class Drawn:
    """Where weights and random numbers of one training come from: its own generator, on its device."""

    def __init__(self, seed: SeedSequence, device: torch.device) -> None:
        self.device, self.source = device, torch.Generator(device)
        self.source.manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.source, device=self.device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.source, device=self.device)

    def glorot(self, n_in: int, n_out: int) -> Tensor:
        limit = float(np.sqrt(6 / (n_in + n_out)))
        return ((2 * self.uniform(n_in, n_out) - 1) * limit).requires_grad_()

    def zeros(self, size: int) -> Tensor:
        return torch.zeros(size, device=self.device, requires_grad=True)


class RealWalks:
    """Uniform random walks on a graph without isolated nodes; each starts anywhere."""

    def __init__(self, adjacency: sparse.csr_array, device: torch.device) -> None:
        self.starts, self.neighbours = (
            torch.from_numpy(part.astype(np.int64)).to(device)
            for part in (adjacency.indptr, adjacency.indices)
        )
        self.degrees = self.starts.diff()

    def draw(self, size: int, length: int, drawn: Drawn) -> Tensor:
        """``[size, length]`` node numbers."""
        uniforms = drawn.uniform(length, size)
        node = _scaled(uniforms[0], torch.full_like(self.starts[:1], len(self.degrees)))
        walk = [node]
        for uniform in uniforms[1:]:
            node = self.neighbours[self.starts[node] + _scaled(uniform, self.degrees[node])]
            walk.append(node)
        return torch.stack(walk, dim=1)


class LSTM:
    """One layer, to be stepped; its forget gate has one added to its bias, for good.

    What inputs add to the gates is asked for on its own, since a critic knows all its inputs beforehand.
    """

    def __init__(self, n_in: int, units: int, drawn: Drawn) -> None:
        joint = drawn.glorot(n_in + units, 4 * units).detach()  # as in TensorFlow: one matrix for both
        self.weights = [joint[:n_in].clone(), joint[n_in:].clone(), joint.new_zeros(4 * units)]
        for weight in self.weights:
            weight.requires_grad_()
        self.units, self.forget = units, joint.new_zeros(4 * units)
        self.forget[units : 2 * units] = 1

    def gates(self, inputs: Tensor) -> Tensor:
        """``[..., n_in]`` to ``[..., 4 units]``: input, forget and output gate, new content."""
        return inputs @ self.weights[0] + (self.weights[2] + self.forget)

    def step(self, gates: Tensor, state: State) -> State:
        h, c = state
        opened, content = torch.addmm(gates, h, self.weights[1]).split_with_sizes(
            [3 * self.units, self.units], dim=1
        )
        take, keep, give = opened.sigmoid().chunk(3, dim=1)
        c = torch.addcmul(keep * c, take, content.tanh())
        return give * c.tanh(), c


class WalkGenerator:
    """Noise to walks: an LSTM whose output is raised to N logits, drawn from, and the node embedded again."""

    def __init__(self, n_nodes: int, hidden: int, embedding: int, drawn: Drawn) -> None:
        self.first = [drawn.glorot(NOISE, hidden), drawn.zeros(hidden)]
        self.states = [[drawn.glorot(hidden, hidden), drawn.zeros(hidden)] for _ in range(2)]
        self.lstm = LSTM(embedding, hidden, drawn)
        self.up = [drawn.glorot(hidden, n_nodes), drawn.zeros(n_nodes)]
        self.down = drawn.glorot(n_nodes, embedding)

    @property
    def weights(self) -> list[Tensor]:
        return [*self.first, *self.states[0], *self.states[1], *self.lstm.weights, *self.up, self.down]

    @torch.no_grad()
    def draw(self, size: int, length: int, drawn: Drawn) -> Tensor:
        """``[size, length]`` node numbers, drawn by inverting the distribution function of each step."""
        state, inputs, walk = self._start(size, drawn), self.down.new_zeros(size, self.down.shape[1]), []
        for uniform in drawn.uniform(length, size, 1):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            cumulative = self._logits(state[0]).softmax(dim=1).cumsum(dim=1)
            node = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
            walk.append(node[:, 0].clamp_(max=len(self.down) - 1))
            inputs = self.down[walk[-1]]
        return torch.stack(walk, dim=1)

    def embedded(self, size: int, length: int, temperature: Tensor, table: Tensor, drawn: Drawn) -> Tensor:
        """Walks as rows of ``table``, ``[size, length, width]``, with a gradient for the generator.

        The nodes are drawn (Gumbel), the gradient is that of the softmax at the temperature.
        """
        state, inputs, walk = self._start(size, drawn), self.down.new_zeros(size, self.down.shape[1]), []
        for _ in range(length):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            logits = self._logits(state[0])
            noisy = logits - drawn.uniform(*logits.shape).clamp_(1e-20).log_().neg_().clamp_(1e-20).log_()
            node, soft = noisy.argmax(dim=1), (noisy / temperature).softmax(dim=1)
            inputs = taken_rows(self.down, node, soft)
            walk.append(taken_rows(table, node, soft))
        return torch.stack(walk, dim=1)

    def _start(self, size: int, drawn: Drawn) -> State:
        between = _dense(drawn.normal(size, NOISE), self.first).tanh()
        h, c = (_dense(between, layer).tanh() for layer in self.states)
        return h, c

    def _logits(self, output: Tensor) -> Tensor:
        return _dense(output, self.up)


class Critic:
    """Walks to scores, high where they look real: an LSTM over embedded nodes, its last output projected."""

    def __init__(self, n_nodes: int, hidden: int, embedding: int, drawn: Drawn) -> None:
        self.down = drawn.glorot(n_nodes, embedding)
        self.lstm = LSTM(embedding, hidden, drawn)
        self.out = [drawn.glorot(hidden, 1), drawn.zeros(1)]

    @property
    def weights(self) -> list[Tensor]:
        return [self.down, *self.lstm.weights, *self.out]

    def scores(self, embedded: Tensor) -> Tensor:
        """``[size, length, width]`` to ``[size]``."""
        h = embedded.new_zeros(len(embedded), self.lstm.units)
        state = h, h
        for gates in self.lstm.gates(embedded).unbind(dim=1):
            state = self.lstm.step(gates, state)
        return _dense(state[0], self.out)[:, 0]

    def loss(self, real: Tensor, fake: Tensor, drawn: Drawn) -> Tensor:
        """Fake scores less real ones, and the gradient penalty (Gulrajani et al., 2017).

        The penalty pulls to one the slopes with respect to N-wide walks between a real and a fake one.
        The first thing the critic does with such a walk is to multiply it by its embedding E, so with g
        the slope after that the slope is g E^T, and its length comes from g and E^T E, N-wide nowhere.
        """
        size, rows = len(real), taken_rows(self.down, torch.cat([real, fake]))
        mixed = torch.lerp(rows[:size], rows[size:], drawn.uniform(size, 1, 1))
        scores = self.scores(torch.cat([rows, mixed]))
        (g,) = torch.autograd.grad(scores[2 * size :].sum(), mixed, create_graph=True)
        lengths = ((g @ (self.down.T @ self.down)) * g).sum(dim=(1, 2)).clamp(min=1e-12).sqrt()
        penalty = (lengths - 1).square().mean()
        return scores[size : 2 * size].mean() - scores[:size].mean() + PENALTY * penalty


def taken_rows(table: Tensor, node: Tensor, soft: Tensor | None = None) -> Tensor:
    """Rows of ``table`` by node; ``soft`` gets a gradient as if it were their one-hot vectors."""
    rows: Tensor = _Rows.apply(table, node, soft)  # type: ignore[no-untyped-call]
    return rows


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, node: Tensor, soft: Tensor | None) -> Tensor:
        ctx.save_for_backward(table, node)
        return table[node]

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        table, node = ctx.saved_tensors
        slope = torch.zeros_like(table) if ctx.needs_input_grad[0] else None
        if slope is not None:  # on either device the way that always adds in the same order
            flat, rows = node.reshape(-1), outer.reshape(-1, table.shape[1])
            if slope.is_cuda:
                slope.index_put_((flat,), rows, accumulate=True)
            else:
                slope.index_add_(0, flat, rows)
        return slope, None, outer @ table.T if ctx.needs_input_grad[2] else None


def _dense(inputs: Tensor, layer: list[Tensor]) -> Tensor:
    return torch.addmm(layer[1], inputs, layer[0])


def _scaled(uniform: Tensor, sizes: Tensor) -> Tensor:
    """Integers from 0 to below ``sizes``; single precision may round up to the size itself."""
    return torch.minimum((uniform * sizes).long(), sizes - 1)

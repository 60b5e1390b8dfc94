"""NetGAN (Bojchevski et al., 2018), a GAN of walks, and CELL (Rendsburg et al., 2020), which has no GAN."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import Array, Singles
from nodecopy._core.random import child
from nodecopy.generators.edges import LOGITS_AT_ONCE, BlockwiseLoss, EdgeScoreModel, check_trained, split_rows
from nodecopy.nn.networks import SparseStack
from nodecopy.nn.training import AdamStepper

NOISE_WIDTH = 16  # width of the normal noise that a generated walk starts from
N_EMBEDDING, N_CRITIC_HIDDEN = 128, 30  # widths of the node embeddings, and of the critic's LSTM
N_CRITIC_STEPS = 3  # optimisation steps of the critic per step
PENALTY_WEIGHT = 10.0  # weight of the gradient penalty
MAX_TEMPERATURE, TEMPERATURE_DECAY, MIN_TEMPERATURE = 5.0, 5e-5, 0.5  # of the softmax
BETAS = (0.5, 0.9)
GENERATOR_DECAY, CRITIC_DECAY = 1e-7, 5e-5
WALK_LOGITS_AT_ONCE = {"cpu": 2**20, "cuda": 2**26}  # of one step of all walks that are counted at once
TRANSITIONS_AT_ONCE = 2**22
MAX_POWER_ITERATIONS = 1000
STATIONARY_TOLERANCE = 1e-6  # probability mass that the last power iteration may move
TRAINING_SEED, COUNTING_SEED, NETGAN_EVALUATION_SEED = range(3)  # children of the seed of a fit of NetGAN
WEIGHTS_SEED, CELL_EVALUATION_SEED = range(2)  # and of CELL
State = tuple[Tensor, Tensor]  # output and cell of an LSTM, ``[size, units]`` each


class TorchRandom:
    """Weights and random numbers on a device."""

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
    """Random walks on a graph without isolated nodes, from uniformly random nodes."""

    def __init__(self, adjacency: sparse.csr_array, device: torch.device) -> None:
        self.starts, self.neighbours = (
            torch.from_numpy(part.astype(np.int64)).to(device)
            for part in (adjacency.indptr, adjacency.indices)
        )
        self.degrees = self.starts.diff()

    def draw(self, size: int, length: int, random: TorchRandom) -> Tensor:
        uniforms = random.uniform(length, size)
        node = _scale_to_integers(uniforms[0], torch.full_like(self.starts[:1], len(self.degrees)))
        walk = [node]
        for uniform in uniforms[1:]:
            node = self.neighbours[self.starts[node] + _scale_to_integers(uniform, self.degrees[node])]
            walk.append(node)
        return torch.stack(walk, dim=1)


class LSTM:
    """One LSTM layer, applied step by step, with one added to the bias of its forget gate."""

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
        h, c = state
        sizes = [3 * self.units, self.units]
        opening, content = torch.addmm(gates, h, self.weights[1]).split_with_sizes(sizes, dim=1)
        input_gate, forget_gate, output_gate = opening.sigmoid().chunk(3, dim=1)
        c = torch.addcmul(forget_gate * c, input_gate, content.tanh())
        return output_gate * c.tanh(), c


class WalkGenerator:
    """Maps noise to walks by an LSTM, whose next input is the embedding of the drawn node."""

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
        state, inputs, walk = self._start(size, random)
        for uniform in random.uniform(length, size, 1):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            cumulative = _apply_dense(state[0], self.output).softmax(dim=1).cumsum(dim=1)
            node = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
            walk.append(node[:, 0].clamp_(max=len(self.embedding) - 1))
            inputs = self.embedding[walk[-1]]
        return torch.stack(walk, dim=1)

    def draw_embedded(
        self, size: int, length: int, temperature: Tensor, table: Tensor, random: TorchRandom
    ) -> Tensor:
        """Draw walks as rows of ``table``, with a gradient for the generator."""
        state, inputs, walk = self._start(size, random)
        for _ in range(length):
            state = self.lstm.step(self.lstm.gates(inputs), state)
            logits = _apply_dense(state[0], self.output)
            noisy = logits - random.uniform(*logits.shape).clamp_(1e-20).log_().neg_().clamp_(1e-20).log_()
            node, soft = noisy.argmax(dim=1), (noisy / temperature).softmax(dim=1)
            inputs = gather_rows(self.embedding, node, soft)
            walk.append(gather_rows(table, node, soft))
        return torch.stack(walk, dim=1)

    def _start(self, size: int, random: TorchRandom) -> tuple[State, Tensor, list[Tensor]]:
        hidden = _apply_dense(random.normal(size, NOISE_WIDTH), self.input).tanh()
        h, c = (_apply_dense(hidden, layer).tanh() for layer in self.states)
        return (h, c), self.embedding.new_zeros(size, self.embedding.shape[1]), []


class Critic:
    """Maps walks to scores, high for observed ones, by an LSTM and a linear layer."""

    def __init__(self, n_nodes: int, n_hidden: int, n_embedding: int, random: TorchRandom) -> None:
        self.embedding = random.draw_glorot(n_nodes, n_embedding)
        self.lstm = LSTM(n_embedding, n_hidden, random)
        self.output = [random.draw_glorot(n_hidden, 1), random.zeros(1)]
        self.weights = [self.embedding, *self.lstm.weights, *self.output]

    def scores(self, embedded: Tensor) -> Tensor:
        h = embedded.new_zeros(len(embedded), self.lstm.units)
        state = h, h
        for gates in self.lstm.gates(embedded).unbind(dim=1):
            state = self.lstm.step(gates, state)
        return _apply_dense(state[0], self.output)[:, 0]

    def loss(self, real: Tensor, fake: Tensor, random: TorchRandom) -> Tensor:
        """Return fake scores less real ones plus the gradient penalty (Gulrajani et al., 2017).

        With g the gradient in mixed walks times the embedding E, the norm of g E^T follows from g and E^T E.
        """
        size, rows = len(real), gather_rows(self.embedding, torch.cat([real, fake]))
        mixed = torch.lerp(rows[:size], rows[size:], random.uniform(size, 1, 1))
        scores = self.scores(torch.cat([rows, mixed]))
        (g,) = torch.autograd.grad(scores[2 * size :].sum(), mixed, create_graph=True)
        lengths = ((g @ (self.embedding.T @ self.embedding)) * g).sum(dim=(1, 2)).clamp(min=1e-12).sqrt()
        penalty = (lengths - 1).square().mean()
        return scores[size : 2 * size].mean() - scores[:size].mean() + PENALTY_WEIGHT * penalty


def gather_rows(table: Tensor, node: Tensor, soft: Tensor | None = None) -> Tensor:
    """Return rows by node; the gradient of ``soft`` is that of the one-hot vectors."""
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
    return torch.minimum((uniform * sizes).long(), sizes - 1)  # the product may round up to the size


class _AdversarialTraining:
    def __init__(
        self, model: NetGAN, adjacency: sparse.csr_array, seed: SeedSequence, device: torch.device
    ) -> None:
        self.model, n_nodes = model, adjacency.shape[0]
        self.random = TorchRandom(child(seed, TRAINING_SEED), device)
        self.counting_random = TorchRandom(child(seed, COUNTING_SEED), device)
        self.temperature = torch.full((), MAX_TEMPERATURE, device=device)
        self.observed = ObservedWalks(adjacency, device)
        self.generator = WalkGenerator(n_nodes, model.n_hidden, N_EMBEDDING, self.random)
        self.critic = Critic(n_nodes, N_CRITIC_HIDDEN, N_EMBEDDING, self.random)
        self.generator_stepper, self.critic_stepper = (
            AdamStepper([{"params": part.weights, "weight_decay": decay}], model.learning_rate, BETAS)
            for part, decay in ((self.generator, GENERATOR_DECAY), (self.critic, CRITIC_DECAY))
        )

    def evaluate(self, step: int) -> dict[str, Any]:
        check_trained(self.model, self.generator.weights)
        size = self.model.n_transitions, self.model.walk_length
        counts = count_transitions(self.generator, *size, self.counting_random)
        cooled = MAX_TEMPERATURE * math.exp(-TEMPERATURE_DECAY * step)
        self.temperature.fill_(max(MIN_TEMPERATURE, cooled))
        return {"counts_": counts}

    def step(self) -> None:
        size, length, n_steps = self.model.batch_size, self.model.walk_length, N_CRITIC_STEPS
        self.generator_stepper.step(self._generator_loss)
        generated = self.generator.draw(n_steps * size, length, self.random)
        observed = self.observed.draw(n_steps * size, length, self.random)
        for real, fake in zip(torch.split(observed, size), torch.split(generated, size), strict=True):
            self.critic_stepper.step(lambda: self.critic.loss(real, fake, self.random))  # noqa: B023

    def _generator_loss(self) -> Tensor:
        size, table = (self.model.batch_size, self.model.walk_length), self.critic.embedding.detach()
        walks = self.generator.draw_embedded(*size, self.temperature, table, self.random)
        return -self.critic.scores(walks).mean()


@dataclass(kw_only=True, eq=False, repr=False)
class NetGAN(EdgeScoreModel):
    """NetGAN trains a generator of walks against a critic and samples edges by their use in walks.

    It is a Wasserstein GAN with gradient penalty. The score of a pair is its number among ``n_transitions``
    transitions of generated walks, and samples have as many edges as the observed graph.

    Parameters
    ----------
    overlap, n_steps
        Training stops when a sample has this share of the observed edges, or after so many steps.
    evaluate_every
        Steps between two evaluations, at which the temperature is lowered.
    n_transitions
        Transitions counted in an evaluation. With too few, samples have fewer edges than observed.
    walk_length, batch_size
        Nodes of a walk, and walks per optimisation step.
    n_hidden
        Units of the generator's LSTM.
    learning_rate
        Of Adam.
    device
        ``"cpu"`` or ``"cuda"``. Graphs of thousands of nodes need a GPU.

    Attributes
    ----------
    overlap_, n_steps_
        The overlap of the last evaluation, and its step.
    counts_
        Number of transitions between nodes that have edges, symmetric.

    Notes
    -----
    Weights, features and labels are not used; samples keep the features and labels. Nodes without edges have
    none in samples. To select a model by held-out edges, as the authors do, fit the ``train`` graph of
    :func:`.split_edges`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import NetGAN
    >>> model = NetGAN(n_steps=3, n_transitions=3000).fit(datasets.load("karate"), rng=0)
    >>> model.sample(rng=1).n_edges
    78
    """

    n_steps: int = 50_000
    evaluate_every: int = 500
    learning_rate: float = 3e-4
    n_transitions: int = 15_000_000
    walk_length: int = 16
    batch_size: int = 128
    n_hidden: int = 40

    counts_: sparse.csr_array = field(init=False)
    _training_class = _AdversarialTraining
    _evaluation_seed = NETGAN_EVALUATION_SEED
    _limits: ClassVar = {"walk_length": 2, "n_transitions": 1, "batch_size": 1, "n_hidden": 1}

    def _score_blocks(self) -> Iterator[Array]:
        return (self.counts_[rows].toarray() for rows in split_rows(self.counts_.shape[0]))


def count_transitions(
    generator: WalkGenerator, n_transitions: int, walk_length: int, random: TorchRandom
) -> sparse.csr_array:
    """Count the transitions between each pair of nodes, in both directions."""
    n_nodes, n_walks = len(generator.embedding), -(-n_transitions // (walk_length - 1))
    at_once = max(1, WALK_LOGITS_AT_ONCE[random.device.type] // n_nodes)
    total, pending, n_pending = sparse.csr_array((n_nodes, n_nodes), dtype=np.int64), [], 0
    for start in range(0, n_walks, at_once):
        walks = generator.draw(min(at_once, n_walks - start), walk_length, random)
        sources, targets = walks[:, :-1], walks[:, 1:]
        codes = torch.minimum(sources, targets) * n_nodes + torch.maximum(sources, targets)
        pending.append(codes.ravel())
        n_pending += len(pending[-1])
        if n_pending > TRANSITIONS_AT_ONCE or start + at_once >= n_walks:
            distinct, counts = torch.unique(torch.cat(pending), return_counts=True)
            pairs = np.divmod(distinct.cpu().numpy(), n_nodes)
            total = total + sparse.csr_array((counts.cpu().numpy(), pairs), shape=total.shape)
            pending, n_pending = [], 0
    return sparse.csr_array(total + total.T)


class _TransitionTraining:
    def __init__(
        self, model: CELL, adjacency: sparse.csr_array, seed: SeedSequence, device: torch.device
    ) -> None:
        n_nodes, rng = adjacency.shape[0], np.random.default_rng(child(seed, WEIGHTS_SEED))
        scale = np.sqrt(2 / (n_nodes + model.rank))
        self.down, self.up = (
            torch.from_numpy((scale * rng.standard_normal(shape)).astype(np.float32)).to(device)
            for shape in ((n_nodes, model.rank), (model.rank, n_nodes))
        )
        weights = [self.down.requires_grad_(), self.up.requires_grad_()]
        groups: Any = [{"params": weights, "weight_decay": model.weight_decay}]
        self.stepper = AdamStepper(groups, model.learning_rate)
        self.model, self.loss = model, TransitionLoss(adjacency, device)
        degrees = adjacency.sum(axis=1)  # the stationary distribution of the observed walk is the start
        self.pi = torch.from_numpy((degrees / degrees.sum()).astype(np.float32)).to(device)

    def step(self) -> None:
        self.stepper.step(lambda: self.loss(self.down, self.up))

    def evaluate(self, step: int) -> dict[str, Any]:
        down, up = self.down.detach(), self.up.detach()
        self.pi, normalisers = stationary_distribution(down, up, self.pi)
        check_trained(self.model, [self.pi, normalisers])
        fitted = {"down_": down, "up_": up, "log_weights_": self.pi.log() - normalisers}
        return {name: numbers.cpu().numpy().copy() for name, numbers in fitted.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class CELL(EdgeScoreModel):
    """CELL learns transition probabilities P = softmax(W_down W_up) and samples edges by their use in walks.

    Training minimises the mean of -log P_ij over all edges, in both directions. The score of a pair is
    pi_i P_ij + pi_j P_ji, with the stationary distribution pi of P. Samples have as many edges as the
    observed graph.

    Parameters
    ----------
    rank
        Columns of W_down and rows of W_up.
    overlap, n_steps, evaluate_every
        As in :class:`NetGAN`.
    learning_rate, weight_decay
        Settings of Adam.
    device
        As in :class:`.GAE`.

    Attributes
    ----------
    overlap_, n_steps_
        As in :class:`NetGAN`.
    down_, up_
        W_down and W_up, for the nodes with edges.
    log_weights_
        log pi less the logarithms of the normalisers of the rows of P.

    Notes
    -----
    Samples have the nodes, features and labels described at :class:`NetGAN`. Memory grows with nodes and
    edges, time with pairs of nodes.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import CELL
    >>> model = CELL(overlap=0.6, evaluate_every=1).fit(datasets.load("karate"), rng=0)
    >>> model.sample(rng=1).n_edges, model.overlap_ >= 0.6
    (78, True)
    """

    rank: int = 9
    n_steps: int = 200
    evaluate_every: int = 10
    learning_rate: float = 0.1
    weight_decay: float = 1e-7

    down_: Singles = field(init=False)
    up_: Singles = field(init=False)
    log_weights_: Singles = field(init=False)
    _training_class = _TransitionTraining
    _evaluation_seed = CELL_EVALUATION_SEED
    _limits: ClassVar = {"rank": 1, "weight_decay": 0.0}

    def _score_blocks(self) -> Iterator[Singles]:
        """Yield pi_i P_ij + pi_j P_ji, with log P_ij = w_ij - n_i."""
        down, up, log_weights = self.down_, self.up_, self.log_weights_
        for rows in split_rows(len(down)):
            scores = np.exp(down[rows] @ up + log_weights[rows, None])
            scores += np.exp(up[:, rows].T @ down.T + log_weights)
            yield scores


class TransitionLoss(BlockwiseLoss):
    """Mean of -log P_ij over the entries of A, where P is the softmax of the rows of W_down W_up.

    With n_i = log sum_j exp(w_ij) this is (sum_i d_i n_i - sum_ij A_ij w_ij) / sum A.
    """

    def __init__(
        self, adjacency: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        self.adjacency, self.n_entries = SparseStack([adjacency], device), adjacency.nnz
        self.degrees = torch.from_numpy(np.diff(adjacency.indptr).astype(np.float32)).to(device)
        self.logits_at_once = logits_at_once or LOGITS_AT_ONCE[device.type]

    def gradients(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients; the one in w_ij is (d_i P_ij - A_ij) / sum A."""
        down, up = tensors
        by_target, by_source = self.adjacency.product(up.T[None])[0], self.adjacency.product(down[None])[0]
        by_down, by_up = -by_target, -by_source.T
        for rows in split_rows(len(down), self.logits_at_once):
            probabilities, _ = _softmax(down[rows] @ up)
            by_down[rows] += self.degrees[rows, None] * (probabilities @ up.T)
            by_up += (self.degrees[rows, None] * down[rows]).T @ probabilities
        scale = 1 / self.n_entries
        return scale * by_down, scale * by_up


def stationary_distribution(down: Tensor, up: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return pi = pi P, by power iteration, and the normalisers of the rows of P."""
    logits_at_once, pi = LOGITS_AT_ONCE[down.device.type], start
    normalisers = torch.zeros_like(start)
    for _ in range(MAX_POWER_ITERATIONS):
        following = torch.zeros_like(pi)
        for rows in split_rows(len(down), logits_at_once):
            probabilities, normalisers[rows] = _softmax(down[rows] @ up)
            following += pi[rows] @ probabilities
        following /= following.sum()
        change, pi = float((following - pi).abs().sum()), following
        if change < STATIONARY_TOLERANCE:
            break
    return pi, normalisers


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    normalisers = logits.logsumexp(dim=1)
    return logits.sub_(normalisers[:, None]).exp_(), normalisers

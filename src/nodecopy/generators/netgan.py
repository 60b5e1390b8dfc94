"""NetGAN (Bojchevski et al., 2018): a generator learns walks a critic takes for real, edges are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.random import child
from nodecopy._core.validation import check_integer, check_real
from nodecopy.generators.edge_sampling import AssembledModel, Watch, row_blocks
from nodecopy.generators.walks import Critic, Drawn, RealWalks, WalkGenerator
from nodecopy.graph import Graph
from nodecopy.nn.adam import Descent
from nodecopy.nn.cuda_graph import Replay
from nodecopy.nn.devices import checked_device

TRAINING, COUNTING, ASSEMBLING = range(3)
"""What the children of a seed are for."""

HOTTEST, COOLING, COLDEST = 5.0, 5e-5, 0.5
"""Temperature of the softmax: at the start, its decay per iteration, its end."""
BETAS = (0.5, 0.9)
GENERATOR_DECAY, CRITIC_DECAY = 1e-7, 5e-5
CHOICES_AT_ONCE = {"cpu": 2**20, "cuda": 2**26}
TRANSITIONS_AT_ONCE = 2**22


class NetGAN(AssembledModel):
    """Train a generator of random walks against a critic, then sample edges by how often its walks use them.

    A Wasserstein GAN with gradient penalty: in each iteration the generator takes one step, the critic
    ``critic_steps``. At evaluations the generator makes walks with ``n_transitions`` transitions in all;
    how often each pair occurs is its score, from which graphs with as many edges as the observed one are
    assembled (see :mod:`.assembling`). Training stops where such a graph has a given share of the
    observed edges.

    Parameters
    ----------
    overlap
        Training stops where a sample has this share of the observed edges.
    max_iterations
        The limit where the overlap is not reached.
    evaluate_every
        Iterations from one evaluation to the next. The temperature, too, falls at evaluations only.
    n_transitions
        Transitions counted in an evaluation; with too few of them samples have fewer edges.
    walk_length, batch_size
        Nodes of a walk, and walks of a step.
    hidden, critic_hidden
        Units of the two LSTM layers.
    embedding
        Width of both embeddings of nodes.
    critic_steps, learning_rate
        Steps of the critic in an iteration; of Adam.
    device
        ``"cpu"`` or ``"cuda"``; a graph of thousands of nodes wants the latter, which records an iteration
        once and plays it back (see :mod:`nodecopy.nn.cuda_graph`).

    Attributes
    ----------
    overlap_, steps_
        What the last evaluation found, and the iteration it was made at.
    counts_
        How often walks used each pair of nodes that have edges, symmetric.

    Notes
    -----
    - *Weights* are not used, features and labels neither; samples keep the latter two.
    - *Nodes without edges* stay without; a graph in several components is no problem.
    - *Hidden edges*: the authors also hide some edges to choose by; fit the ``train`` graph of
      :func:`.link_split` for that. Here the overlap is that with the graph which is fitted.
    - *Every weight decays*, as in the authors' code, where a filter meant to spare the embeddings.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import NetGAN
    >>> model = NetGAN(max_iterations=3, n_transitions=3000).fit(datasets.load("karate"), rng=0)
    >>> model.sample(rng=1).n_edges
    78
    """

    counts_: sparse.csr_array

    def __init__(
        self,
        *,
        overlap: float = 0.5,
        max_iterations: int = 50_000,
        evaluate_every: int = 500,
        n_transitions: int = 15_000_000,
        walk_length: int = 16,
        batch_size: int = 128,
        hidden: int = 40,
        critic_hidden: int = 30,
        embedding: int = 128,
        critic_steps: int = 3,
        learning_rate: float = 3e-4,
        device: str = "cpu",
    ) -> None:
        self.overlap, self.max_iterations, self.evaluate_every = overlap, max_iterations, evaluate_every
        self.n_transitions, self.walk_length, self.batch_size = n_transitions, walk_length, batch_size
        self.hidden, self.critic_hidden, self.embedding = hidden, critic_hidden, embedding
        self.critic_steps, self.learning_rate = critic_steps, learning_rate
        self.device = device

    def _train(self, graph: Graph, seed: SeedSequence, watch: Watch | None) -> None:
        adjacency, device = self._pattern(graph), self._check()
        training = _Training(self, adjacency, Drawn(child(seed, TRAINING), device))
        counting = Drawn(child(seed, COUNTING), device)
        step = Replay(training.step, training.drawn.source) if device.type == "cuda" else training.step
        for iteration in range(1, self.max_iterations + 1):
            step()
            if iteration % self.evaluate_every == 0 or iteration == self.max_iterations:
                self._must_be_finite(training.generator.weights)
                self.counts_ = transition_counts(
                    training.generator, self.n_transitions, self.walk_length, counting
                )
                draws = np.random.default_rng(child(child(seed, ASSEMBLING), iteration))
                if self._is_good(graph, iteration, draws, watch):
                    break
                training.temperature.fill_(max(COLDEST, HOTTEST * math.exp(-COOLING * iteration)))

    def _score_blocks(self) -> Iterator[NDArray[Any]]:
        n_nodes = self.counts_.shape[0]
        return (self.counts_[rows].toarray() for rows in row_blocks(n_nodes))

    def _check(self) -> torch.device:
        lowest = {"max_iterations": 1, "evaluate_every": 1, "n_transitions": 1, "walk_length": 2}
        lowest |= dict.fromkeys(["batch_size", "hidden", "critic_hidden", "embedding", "critic_steps"], 1)
        for name, low in lowest.items():
            check_integer(getattr(self, name), f"{name} of NetGAN", low=low)
        check_real(self.learning_rate, "learning_rate of NetGAN", low=0.0)
        return checked_device(self.device)


class _Training:
    """A generator and a critic on their way."""

    def __init__(self, settings: NetGAN, adjacency: sparse.csr_array, drawn: Drawn) -> None:
        self.settings, self.drawn, n_nodes = settings, drawn, adjacency.shape[0]
        self.temperature = torch.full((), HOTTEST, device=drawn.device)
        self.real = RealWalks(adjacency, drawn.device)
        self.generator = WalkGenerator(n_nodes, settings.hidden, settings.embedding, drawn)
        self.critic = Critic(n_nodes, settings.critic_hidden, settings.embedding, drawn)
        replayed = drawn.device.type == "cuda"
        self.generator_descent, self.critic_descent = (
            Descent([{"params": weights, "weight_decay": decay}], settings.learning_rate, BETAS, replayed)
            for weights, decay in (
                (self.generator.weights, GENERATOR_DECAY),
                (self.critic.weights, CRITIC_DECAY),
            )
        )

    def step(self) -> None:
        """One step of the generator, then some of the critic, whose walks are all made at once."""
        size, length, steps = self.settings.batch_size, self.settings.walk_length, self.settings.critic_steps
        self.generator_descent.step(self._generator_loss)
        fake = self.generator.draw(steps * size, length, self.drawn)
        real = self.real.draw(steps * size, length, self.drawn)
        for some_real, some_fake in zip(torch.split(real, size), torch.split(fake, size), strict=True):
            self.critic_descent.step(lambda: self.critic.loss(some_real, some_fake, self.drawn))  # noqa: B023

    def _generator_loss(self) -> Tensor:
        walks = self.generator.embedded(
            self.settings.batch_size,
            self.settings.walk_length,
            self.temperature,
            self.critic.down.detach(),
            self.drawn,
        )
        return -self.critic.scores(walks).mean()


def transition_counts(
    generator: WalkGenerator, n_transitions: int, walk_length: int, drawn: Drawn
) -> sparse.csr_array:
    """How often a generator's walks go from one node to the other or back, symmetric and sparse."""
    n_nodes = len(generator.down)
    n_walks = -(-n_transitions // (walk_length - 1))
    at_once = max(1, CHOICES_AT_ONCE[drawn.device.type] // n_nodes)
    total, waiting, n_waiting = sparse.csr_array((n_nodes, n_nodes), dtype=np.int64), [], 0
    for start in range(0, n_walks, at_once):
        walks = generator.draw(min(at_once, n_walks - start), walk_length, drawn)
        here, there = walks[:, :-1], walks[:, 1:]
        waiting.append((torch.minimum(here, there) * n_nodes + torch.maximum(here, there)).ravel())
        n_waiting += len(waiting[-1])
        if n_waiting > TRANSITIONS_AT_ONCE or start + at_once >= n_walks:
            codes, numbers = (
                part.cpu().numpy() for part in torch.unique(torch.cat(waiting), return_counts=True)
            )
            total = total + sparse.csr_array((numbers, divmod(codes, n_nodes)), shape=total.shape)
            waiting, n_waiting = [], 0
    return sparse.csr_array(total + total.T)

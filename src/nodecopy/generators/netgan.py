"""NetGAN (Bojchevski et al., 2018): a GAN of random walks, whose transition counts are edge scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.random import child
from nodecopy._core.validation import check_integer
from nodecopy.generators.blockwise import split_rows
from nodecopy.generators.edge_sampling import EdgeScoreModel
from nodecopy.generators.walks import Critic, ObservedWalks, TorchRandom, WalkGenerator
from nodecopy.nn.steps import AdamStepper, CudaGraphStep

MAX_TEMPERATURE, TEMPERATURE_DECAY, MIN_TEMPERATURE = 5.0, 5e-5, 0.5
"""Temperature of the softmax: at the start, its decay per step, and its lower bound."""
BETAS = (0.5, 0.9)
GENERATOR_DECAY, CRITIC_DECAY = 1e-7, 5e-5
LOGITS_AT_ONCE = {"cpu": 2**20, "cuda": 2**26}
"""Logits of one step of all walks that are drawn at once for counting, by device."""
TRANSITIONS_AT_ONCE = 2**22


class NetGANSeeds(IntEnum):
    """Children of the seed of a fit, by purpose."""

    TRAINING = 0
    COUNTING = 1
    EVALUATION = 2


class _AdversarialTraining:
    """The training of a generator against a critic."""

    def __init__(
        self, model: NetGAN, adjacency: sparse.csr_array, seed: SeedSequence, device: torch.device
    ) -> None:
        self.model, n_nodes = model, adjacency.shape[0]
        self.random = TorchRandom(child(seed, NetGANSeeds.TRAINING), device)
        self.counting_random = TorchRandom(child(seed, NetGANSeeds.COUNTING), device)
        self.temperature = torch.full((), MAX_TEMPERATURE, device=device)
        self.observed = ObservedWalks(adjacency, device)
        self.generator = WalkGenerator(n_nodes, model.n_hidden, model.n_embedding, self.random)
        self.critic = Critic(n_nodes, model.n_critic_hidden, model.n_embedding, self.random)
        on_gpu = device.type == "cuda"
        self.generator_stepper, self.critic_stepper = (
            AdamStepper([{"params": weights, "weight_decay": decay}], model.learning_rate, BETAS, on_gpu)
            for weights, decay in (
                (self.generator.weights, GENERATOR_DECAY),
                (self.critic.weights, CRITIC_DECAY),
            )
        )
        self.step = CudaGraphStep(self._step, self.random.source) if on_gpu else self._step

    def evaluate(self, step: int) -> dict[str, Any]:
        self.model.check_finite(self.generator.weights)
        counts = count_transitions(
            self.generator, self.model.n_transitions, self.model.walk_length, self.counting_random
        )
        cooled = MAX_TEMPERATURE * math.exp(-TEMPERATURE_DECAY * step)
        self.temperature.fill_(max(MIN_TEMPERATURE, cooled))
        return {"counts_": counts}

    def _step(self) -> None:
        """Take one step of the generator, then several of the critic, whose walks are drawn at once."""
        size, length, n_steps = self.model.batch_size, self.model.walk_length, self.model.n_critic_steps
        self.generator_stepper.step(self._generator_loss)
        generated = self.generator.draw(n_steps * size, length, self.random)
        observed = self.observed.draw(n_steps * size, length, self.random)
        for real, fake in zip(torch.split(observed, size), torch.split(generated, size), strict=True):
            self.critic_stepper.step(lambda: self.critic.loss(real, fake, self.random))  # noqa: B023

    def _generator_loss(self) -> Tensor:
        walks = self.generator.draw_embedded(
            self.model.batch_size,
            self.model.walk_length,
            self.temperature,
            self.critic.embedding.detach(),
            self.random,
        )
        return -self.critic.scores(walks).mean()


@dataclass(kw_only=True, eq=False, repr=False)
class NetGAN(EdgeScoreModel):
    """NetGAN trains a generator of random walks against a critic and samples edges by their use in walks.

    It is a Wasserstein GAN with gradient penalty. In each step the generator takes one optimisation step and
    the critic ``n_critic_steps``. For an evaluation the generator draws walks with ``n_transitions``
    transitions in total. The score of a pair is its number of transitions, and samples have as many edges as
    the observed graph, drawn by :func:`.assemble_edges`. Training stops when such a sample has a given share
    of the observed edges.

    Parameters
    ----------
    overlap
        Training stops when a sample has this share of the observed edges.
    n_steps
        The limit if the overlap is not reached.
    evaluate_every
        Steps between two evaluations. The temperature is lowered only at evaluations.
    n_transitions
        Transitions counted in an evaluation. If there are too few, samples have fewer edges than observed.
    walk_length, batch_size
        Nodes of a walk, and walks per optimisation step.
    n_hidden, n_critic_hidden
        Units of the LSTM layers of generator and critic.
    n_embedding
        Width of the node embeddings of both.
    n_critic_steps, learning_rate
        Optimisation steps of the critic per step, and the learning rate of Adam.
    device
        ``"cpu"`` or ``"cuda"``. Graphs of thousands of nodes need a GPU, where a step is recorded once and
        replayed (see :class:`nodecopy.nn.steps.CudaGraphStep`).

    Attributes
    ----------
    overlap_, n_steps_
        The overlap of the last evaluation, and its step.
    counts_
        Number of transitions between nodes that have edges, symmetric.

    Notes
    -----
    - *Weights, features and labels* are not used; samples keep the features and labels.
    - *Nodes without edges* have none in samples. The graph may have several components.
    - *Held-out edges*: the authors also select the model by held-out edges; fit the ``train`` graph of
      :func:`.split_edges` for that. Here the overlap is that with the fitted graph.
    - *Weight decay* applies to all weights, as in the authors' code, although a filter there was meant to
      exclude the embeddings.

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
    n_critic_hidden: int = 30
    n_embedding: int = 128
    n_critic_steps: int = 3

    counts_: sparse.csr_array = field(init=False)
    _training_class = _AdversarialTraining
    _evaluation_seed = NetGANSeeds.EVALUATION

    def _score_blocks(self) -> Iterator[NDArray[Any]]:
        return (self.counts_[rows].toarray() for rows in split_rows(self.counts_.shape[0]))

    def _check(self) -> None:
        super()._check()
        check_integer(self.walk_length, "walk_length of NetGAN", low=2)
        widths = "n_hidden", "n_critic_hidden", "n_embedding"
        for setting in ("n_transitions", "batch_size", *widths, "n_critic_steps"):
            check_integer(getattr(self, setting), f"{setting} of NetGAN", low=1)


def count_transitions(
    generator: WalkGenerator, n_transitions: int, walk_length: int, random: TorchRandom
) -> sparse.csr_array:
    """Count the transitions of a generator's walks between each pair of nodes, in both directions."""
    n_nodes = len(generator.embedding)
    n_walks = -(-n_transitions // (walk_length - 1))
    at_once = max(1, LOGITS_AT_ONCE[random.device.type] // n_nodes)
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

"""CELL (Rendsburg, Heidrich and von Luxburg, 2020): NetGAN without GAN, a low-rank model of random walks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.random import child
from nodecopy.generators.edges import LOGITS_AT_ONCE, BlockwiseLoss, EdgeScoreModel, split_rows
from nodecopy.nn.networks import SparseStack
from nodecopy.nn.training import AdamStepper

MAX_POWER_ITERATIONS = 1000
STATIONARY_TOLERANCE = 1e-6  # probability mass that the last power iteration may move
WEIGHTS_SEED, EVALUATION_SEED = 0, 1  # children of the seed of a fit


class _TransitionTraining:
    """The training of the factors W_down and W_up."""

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
        self.model.check_finite([self.pi, normalisers])
        fitted = {"down_": down, "up_": up, "log_weights_": self.pi.log() - normalisers}
        return {name: numbers.cpu().numpy().copy() for name, numbers in fitted.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class CELL(EdgeScoreModel):
    """CELL learns transition probabilities P = softmax(W_down W_up) and samples edges by their use in walks.

    Training minimises the mean of -log P_ij over all edges, in both directions, and stops when samples have a
    given share of the observed edges. The score of a pair is pi_i P_ij + pi_j P_ji, with the stationary
    distribution pi of P. Samples have as many edges as the observed graph.

    Parameters
    ----------
    rank
        Columns of W_down and rows of W_up.
    overlap
        Training stops when a sample has this share of the observed edges.
    n_steps, learning_rate, weight_decay
        Settings of Adam; ``n_steps`` is the limit if the overlap is not reached.
    evaluate_every
        Steps between two evaluations, each a stationary distribution and a sample.
    device
        ``"cpu"`` or ``"cuda"``, the device of the training; samples are drawn on the CPU.

    Attributes
    ----------
    overlap_, n_steps_
        The overlap of the last evaluation, and its step.
    down_, up_
        W_down and W_up, for the nodes with edges.
    log_weights_
        log pi less the logarithms of the normalisers of the rows of P.

    Notes
    -----
    Weights, features and labels are not used; samples keep the features and labels. Nodes without edges have
    none in samples. Memory grows with nodes and edges, time with pairs of nodes.

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

    down_: NDArray[np.float32] = field(init=False)
    up_: NDArray[np.float32] = field(init=False)
    log_weights_: NDArray[np.float32] = field(init=False)
    _training_class = _TransitionTraining
    _evaluation_seed = EVALUATION_SEED
    _limits: ClassVar = {"rank": 1, "weight_decay": 0.0}

    def _score_blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield exp(w_ij + log pi_i - n_i) + exp(w_ji + log pi_j - n_j), with the normalisers n."""
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
    """Return the distribution pi with pi = pi P, by power iteration, and the normalisers of P's rows."""
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
    """Return the softmax of each row, computed in place, and the logarithms of the normalisers."""
    normalisers = logits.logsumexp(dim=1)
    return logits.sub_(normalisers[:, None]).exp_(), normalisers

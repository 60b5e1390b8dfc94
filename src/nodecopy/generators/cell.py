"""CELL (Rendsburg, Heidrich and von Luxburg, 2020): NetGAN without GAN, walks by a low-rank logit matrix."""

from __future__ import annotations

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
from nodecopy.generators.pair_loss import LOGITS_AT_ONCE
from nodecopy.graph import Graph
from nodecopy.nn.adam import Descent
from nodecopy.nn.devices import checked_device
from nodecopy.nn.stack import SparseStack

WEIGHTS, EVALUATION = range(2)
"""What the children of a seed are for."""


class CELL(AssembledModel):
    """Learn transitions P = softmax of the rows of W_down W_up, and sample edges by how often walks use them.

    Training lowers the mean of -log P_ij over all edges, both directions. With enough steps P would be
    the random walk on the observed graph, so training stops where samples have a given share of its
    edges. The score of a pair is pi_i P_ij + pi_j P_ji, pi the stationary distribution of P; graphs with
    as many edges as the observed one are assembled from the scores (see :mod:`.assembling`).

    Parameters
    ----------
    rank
        Columns of W_down and rows of W_up.
    overlap
        Training stops where a sample has this share of the observed edges.
    steps, learning_rate, weight_decay
        Of Adam; ``steps`` is the limit where the overlap is not reached.
    evaluate_every
        Steps from one evaluation, a stationary distribution and a sample, to the next.
    device
        ``"cpu"`` or ``"cuda"``, for training; samples are made on the CPU.

    Attributes
    ----------
    overlap_, steps_
        What the last evaluation found, and the step it was made at.

    Notes
    -----
    - *Weights* are not used, features and labels neither; samples keep the latter two.
    - *Nodes without edges* stay without.
    - *Memory* grows with nodes and edges, never with pairs of nodes; time does grow with pairs.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import CELL
    >>> model = CELL(overlap=0.6, evaluate_every=1).fit(datasets.load("karate"), rng=0)
    >>> model.sample(rng=1).n_edges, model.overlap_ >= 0.6
    (78, True)
    """

    down_: NDArray[np.float32]
    up_: NDArray[np.float32]
    log_weights_: NDArray[np.float32]

    def __init__(
        self,
        *,
        rank: int = 9,
        overlap: float = 0.5,
        steps: int = 200,
        learning_rate: float = 0.1,
        weight_decay: float = 1e-7,
        evaluate_every: int = 10,
        device: str = "cpu",
    ) -> None:
        self.rank, self.overlap, self.steps = rank, overlap, steps
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.evaluate_every, self.device = evaluate_every, device

    def _train(self, graph: Graph, seed: SeedSequence, watch: Watch | None) -> None:
        adjacency, device = self._pattern(graph), self._check()
        n_nodes, draws = adjacency.shape[0], np.random.default_rng(child(seed, WEIGHTS))
        scale = np.sqrt(2 / (n_nodes + self.rank))
        down, up = (
            torch.from_numpy((scale * draws.standard_normal(shape)).astype(np.float32)).to(device)
            for shape in ((n_nodes, self.rank), (self.rank, n_nodes))
        )
        loss = TransitionLoss(adjacency, device)
        weights = [down.requires_grad_(), up.requires_grad_()]
        descent = Descent([{"params": weights, "weight_decay": self.weight_decay}], self.learning_rate)
        degrees = adjacency.sum(axis=1)
        pi = torch.from_numpy((degrees / degrees.sum()).astype(np.float32)).to(device)  # of the observed walk
        for step in range(1, self.steps + 1):
            descent.step(lambda: loss(down, up))
            if step % self.evaluate_every == 0 or step == self.steps:
                pi, normalisers = stationary(down.detach(), up.detach(), pi)
                self._must_be_finite([pi, normalisers])
                self.down_, self.up_ = down.detach().cpu().numpy().copy(), up.detach().cpu().numpy().copy()
                self.log_weights_ = (pi.log() - normalisers).cpu().numpy()
                if self._is_good(
                    graph, step, np.random.default_rng(child(child(seed, EVALUATION), step)), watch
                ):
                    break

    def _score_blocks(self) -> Iterator[NDArray[np.float32]]:
        """pi_i P_ij + pi_j P_ji = exp(w_ij + log pi_i - n_i) + exp(w_ji + log pi_j - n_j)."""
        down, up, log_weights = self.down_, self.up_, self.log_weights_
        for rows in row_blocks(len(down)):
            there = np.exp(down[rows] @ up + log_weights[rows, None])
            there += np.exp(up[:, rows].T @ down.T + log_weights)
            yield there

    def _check(self) -> torch.device:
        for name in ("rank", "steps", "evaluate_every"):
            check_integer(getattr(self, name), f"{name} of CELL", low=1)
        for name in ("learning_rate", "weight_decay"):
            check_real(getattr(self, name), f"{name} of CELL", low=0.0)
        return checked_device(self.device)


class TransitionLoss:
    """Mean of -log P_ij over the entries of A, P the softmax of the rows of W_down W_up.

    With the normalisers n_i = log sum_j exp(w_ij) this is (sum_i d_i n_i - sum_ij A_ij w_ij) / sum A: the
    first part runs over all pairs, a block of rows at a time with its gradient in the same pass, the
    second needs the products of A with the two factors only.

    Parameters
    ----------
    adjacency
        Binary and symmetric, with some edges.
    device
        Where the factors live.
    logits_at_once
        Logits held at once; a matter of speed and memory only.
    """

    def __init__(
        self, adjacency: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        self.adjacency, self.n_entries = SparseStack([adjacency], device), adjacency.nnz
        self.degrees = torch.from_numpy(np.diff(adjacency.indptr).astype(np.float32)).to(device)
        self.logits_at_once = logits_at_once or LOGITS_AT_ONCE[device.type]

    def __call__(self, down: Tensor, up: Tensor) -> Tensor:
        loss: Tensor = _TransitionLoss.apply(down, up, self)  # type: ignore[no-untyped-call]
        return loss

    def value_and_gradients(self, down: Tensor, up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The loss and its gradients: the entry of W has (d_i P_ij - A_ij) / sum A."""
        reached, reaching = self.adjacency.product(up.T[None])[0], self.adjacency.product(down[None])[0]
        value = -(down * reached).sum(dtype=torch.float64)
        slope_down, slope_up = -reached, -reaching.T
        for rows in row_blocks(len(down), self.logits_at_once):
            probabilities, normalisers = _softmax(down[rows] @ up)
            value += (self.degrees[rows] * normalisers).sum(dtype=torch.float64)
            slope_down[rows] += self.degrees[rows, None] * (probabilities @ up.T)
            slope_up += (self.degrees[rows, None] * down[rows]).T @ probabilities
        scale = 1 / self.n_entries
        return (scale * value).to(down.dtype), scale * slope_down, scale * slope_up


class _TransitionLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, down: Tensor, up: Tensor, loss: TransitionLoss) -> Tensor:
        value, *slopes = loss.value_and_gradients(down, up)
        ctx.save_for_backward(*slopes)
        return value

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, Tensor, None]:
        slope_down, slope_up = ctx.saved_tensors
        return outer * slope_down, outer * slope_up, None


def stationary(
    down: Tensor, up: Tensor, start: Tensor, *, tolerance: float = 1e-6, most: int = 1000
) -> tuple[Tensor, Tensor]:
    """The distribution pi with pi = pi P by power iteration, and the normalisers of P's rows.

    It ends where a step moves less than ``tolerance`` of the probability.
    """
    at_once, pi = LOGITS_AT_ONCE[down.device.type], start
    normalisers = torch.zeros_like(start)
    for _ in range(most):
        moved = torch.zeros_like(pi)
        for rows in row_blocks(len(down), at_once):
            probabilities, normalisers[rows] = _softmax(down[rows] @ up)
            moved += pi[rows] @ probabilities
        moved /= moved.sum()
        change, pi = float((moved - pi).abs().sum()), moved
        if change < tolerance:
            break
    return pi, normalisers


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The softmax of each row, made in place, and the logarithm of what it divides by."""
    normalisers = logits.logsumexp(dim=1)
    return logits.sub_(normalisers[:, None]).exp_(), normalisers

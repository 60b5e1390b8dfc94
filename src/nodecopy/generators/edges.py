"""Edges of trained models: independent edges by calibrated scores, and a given number of edges by scores.

Sums over all pairs are computed in blocks of rows, so that no N x N matrix is held in memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import Array, Floats, Ints, Singles
from nodecopy._core.checks import (
    check_callable,
    check_integer,
    check_numbers,
    check_real,
    check_settings,
    check_type,
)
from nodecopy._core.linalg import fit_logistic
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.generators.base import PairArray, binary_adjacency, decode_pairs, replace_edges
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph
from nodecopy.metrics import edge_overlap
from nodecopy.models import GraphModel
from nodecopy.nn.training import check_device

Calibration = tuple[float, float]  # slope and intercept of a logistic regression on the score
Callback = Callable[[int, Graph], Any]
LOGITS_AT_ONCE = {"cpu": 2**18, "cuda": 2**26}  # the cache of a core, 256 MiB on a GPU
MAX_THINNING_PROBABILITY = 0.1  # of an edge, up to which thinning is faster
CANDIDATES_AT_ONCE = 2**16
MAX_NEWTON_STEPS = 200
LOGIT_TOLERANCE = 1e-5  # largest change of a logit in the last step; the error is about its square
MAX_SCORE = 2.0**63  # so that sums of scores, which are probabilities or counts, are finite


def split_rows(n_nodes: int, logits_at_once: int = LOGITS_AT_ONCE["cpu"]) -> Iterator[slice]:
    """Return blocks of rows of an N x N matrix, each of about ``logits_at_once`` entries."""
    step = max(1, logits_at_once // n_nodes)
    return (slice(start, min(start + step, n_nodes)) for start in range(0, n_nodes, step))


def split_triangle(n_nodes: int, logits_at_once: int) -> Iterator[slice]:
    """Yield blocks of rows that, with the columns from their first row on, cover all unordered pairs."""
    start = 0
    while start < n_nodes:
        rows = slice(start, min(n_nodes, start + max(1, logits_at_once // (n_nodes - start))))
        yield rows
        start = rows.stop


def check_trained(model: Any, tensors: Iterable[Tensor], way_out: str = "Lower it.") -> None:
    """Raise an error if the training of a model overflowed."""
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        name, got = f"learning_rate of {type(model).__name__}", f"{model.learning_rate:g}"
        raise InputError(name, f"must not be so large that training overflows; got {got}. {way_out}")


class BlockwiseLoss(ABC):
    """A loss whose gradients are computed block by block, and not its value."""

    def __call__(self, *tensors: Tensor) -> Tensor:
        zero: Tensor = _Gradients.apply(self.gradients, *tensors)  # type: ignore[no-untyped-call]
        return zero

    @abstractmethod
    def gradients(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the gradient of the loss in each of the tensors."""


class _Gradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*function(*tensors))
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        return (None, *(outer * gradient for gradient in ctx.saved_tensors))


@dataclass(frozen=True, eq=False)
class EdgeDistribution:
    """Independent edges: each pair i < j is an edge with its own probability.

    ``decoded`` has one row f per node; the score of a pair is sigma(f_i . f_j). Its probability is the score,
    or the ``calibration`` of it, times ``scale`` and at most one.
    """

    decoded: Singles
    calibration: Calibration | None = None
    scale: float = 1.0

    @property
    def upper_bound(self) -> float:
        """The largest probability of any pair, at a score of 0 or 1."""
        return float(self._transform(torch.tensor([0.0, 1.0], dtype=torch.float64)).max())

    def probabilities(self, first: PairArray, second: PairArray) -> Floats:
        logits = np.einsum("kd,kd->k", self.decoded[first], self.decoded[second], dtype=np.float64)
        return np.asarray(self._transform(torch.from_numpy(logits).sigmoid_()))

    def draw(self, rng: Generator) -> PairArray:
        bound = self.upper_bound
        parts = list(self._thin(rng, bound) if bound < MAX_THINNING_PROBABILITY else self._draw_all(rng))
        return np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), np.int64)

    def _transform(self, scores: Tensor) -> Tensor:
        if self.calibration is not None:
            slope, intercept = self.calibration
            scores.mul_(slope).add_(intercept).sigmoid_()
        return scores.mul_(self.scale).clamp_(max=1.0) if self.scale != 1 else scores

    def _draw_all(self, rng: Generator) -> Iterator[PairArray]:
        f = torch.tensor(self.decoded)
        for rows in split_triangle(len(f), LOGITS_AT_ONCE["cpu"]):
            probabilities = self._transform((f[rows] @ f[rows.start :].T).double().sigmoid_())
            edges = (torch.from_numpy(rng.random(probabilities.shape)) < probabilities).triu_(1)
            yield np.stack(np.nonzero(edges.numpy())) + rows.start

    def _thin(self, rng: Generator, bound: float) -> Iterator[PairArray]:
        """Draw candidates with the largest probability, then accept each by the ratio to its own."""
        n_nodes = len(self.decoded)
        n_pairs, last = n_nodes * (n_nodes - 1) // 2, -1
        at_once = min(CANDIDATES_AT_ONCE, int(1.2 * n_pairs * bound) + 16)
        while bound > 0 and last < n_pairs:
            gaps = np.minimum(rng.geometric(bound, at_once), n_pairs + 1)
            codes = last + np.cumsum(gaps)
            last = int(codes[-1])
            pairs = decode_pairs(codes[codes < n_pairs], n_nodes)
            yield pairs[:, rng.random(pairs.shape[1]) * bound < self.probabilities(*pairs)]


def calibrate_scores(decoded: Tensor, edges: PairArray, *, balanced: bool) -> Calibration:
    """Return the slope a and intercept b of P(edge) = sigma(a p + b), where p = sigma(f_i . f_j).

    This is a logistic regression over all pairs with the penalty a^2 / 2. If ``balanced``, edges together
    weigh as much as all other pairs. Sums are computed as if no pair were an edge, then corrected.
    """
    n_nodes, n_edges = len(decoded), edges.shape[1]
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if not n_edges:
        raise InputError("graph", "must have edges, by which scores are calibrated; got none.")
    if n_edges == n_pairs:
        return 0.0, math.inf
    weights = n_pairs / (2 * n_edges), n_pairs / (2 * (n_pairs - n_edges))
    edge_weight, other_weight = weights if balanced else (1.0, 1.0)
    ends = torch.from_numpy(edges).to(decoded.device)
    edge_scores = (decoded[ends[0]] * decoded[ends[1]]).sum(dim=1).double().sigmoid()
    targets = edge_weight * np.array([edge_scores.sum().item(), n_edges])

    def derivatives(sum_all: Callable[[Floats], Floats], line: Floats) -> tuple[Floats, Floats]:
        at_edges = _sum_scores(edge_scores, line)
        q, qp, w, wp, wpp = other_weight * sum_all(line) + (edge_weight - other_weight) * at_edges
        return targets - [qp, q] - [line[0], 0], np.array([[wpp + 1, wp], [wp, w]])

    def maximise(sum_all: Callable[[Floats], Floats], start: Floats) -> Floats:
        return fit_logistic(
            partial(derivatives, sum_all),
            start,
            max_steps=MAX_NEWTON_STEPS,
            logit_change=lambda step: float(max(abs(step[1]), abs(step.sum()))),  # p is between 0 and 1
            tolerance=LOGIT_TOLERANCE,
        )

    # Every step over all pairs is expensive, so a subset of them gives the start.
    subset = (decoded[:: -(-n_nodes * n_nodes // LOGITS_AT_ONCE["cpu"])] @ decoded.T).double().sigmoid_()
    share = (n_pairs - n_edges) / subset.numel()
    intercept = math.log(edge_weight * n_edges) - math.log(other_weight * (n_pairs - n_edges))
    start = maximise(
        lambda line: share * _sum_scores(subset, line) + _sum_scores(edge_scores, line),
        np.array([0.0, intercept]),
    )
    slope, intercept = maximise(partial(_sum_pairs, decoded), start)
    return float(slope), float(intercept)


def expected_edges(decoded: Tensor, calibration: Calibration) -> float:
    """Return the sum of sigma(a p + b) over all pairs."""
    return float(_sum_pairs(decoded, np.array(calibration))[0])


def _sum_pairs(decoded: Tensor, line: Floats) -> Floats:
    total = np.zeros(5)
    for rows in split_triangle(len(decoded), LOGITS_AT_ONCE[decoded.device.type]):
        scores = (decoded[rows] @ decoded[rows.start :].T).double().sigmoid_()
        square = scores[:, : len(scores)]  # holds each pair twice, and each node with itself
        total += _sum_scores(scores, line)
        total -= (_sum_scores(square, line) + _sum_scores(square.diagonal(), line)) / 2
    return total


def _sum_scores(scores: Tensor, line: Floats) -> Floats:
    """Return the sums of q, q p, w, w p and w p^2 over scores p, with q = sigma(a p + b), w = q (1 - q)."""
    p = scores.reshape(-1)
    q = (p * line[0] + line[1]).sigmoid_()
    w = q - q * q
    wp = w * p
    return np.asarray(torch.stack([q.sum(), q @ p, w.sum(), wp.sum(), wp @ p]).cpu())


@dataclass(kw_only=True, eq=False, repr=False)
class EdgeScoreModel(GraphModel[Graph]):
    """The base class of models trained up to a given edge overlap, which sample edges by scores.

    ``_training_class`` has ``step()``, and ``evaluate(step)``, which returns the fitted attributes.
    """

    overlap: float = 0.5
    n_steps: int
    evaluate_every: int
    learning_rate: float
    device: str = "cpu"

    overlap_: float = field(init=False)
    n_steps_: int = field(init=False)
    _training_class: ClassVar[Any]
    _evaluation_seed: ClassVar[int]
    _limits: ClassVar[dict[str, Any]]

    def fit(self, graph: GraphLike, *, rng: Rng = None, callback: Callback | None = None) -> Self:
        """Train until a sample has the required share of the edges of an undirected graph.

        ``callback`` gets the step and sample of each evaluation; training ends if it returns true.
        """
        check_settings(self, overlap=(0.0, 1.0), learning_rate=0.0, n_steps=1, evaluate_every=1)
        check_settings(self, **self._limits)
        check_callable(callback, f"callback of {type(self).__name__}")
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        adjacency, device = self._select_adjacency(graph), check_device(self.device)
        seed, fitted = seed_sequence(rng), copy(self)  # an interrupted training keeps the previous fit
        training = self._training_class(self, adjacency, seed, device)
        for step in range(1, self.n_steps + 1):
            training.step()
            if step % self.evaluate_every and step != self.n_steps:
                continue
            vars(fitted).update(training.evaluate(step))
            sample_rng = np.random.default_rng(child(seed, self._evaluation_seed, step))
            sample = fitted._draw_graph(graph, sample_rng)
            fitted.overlap_, fitted.n_steps_ = edge_overlap(sample, graph), step
            if (callback is not None and callback(step, sample)) or fitted.overlap_ >= self.overlap:
                break
        vars(self).update(vars(fitted), graph_=graph)
        return self

    def _check_state(self) -> None:
        graph = check_type(self.graph_, Graph, "graph_", "a Graph")
        check_real(self.overlap_, "overlap_", low=0.0, high=1.0)
        check_integer(self.n_steps_, "n_steps_", low=1)
        n_nodes, n_rows = self._select_adjacency(graph).shape[0], 0
        for scores in self._score_blocks():
            check_numbers(scores, "scores of pairs")
            if scores.shape[1:] != (n_nodes,) or not ((scores >= 0) & (scores <= MAX_SCORE)).all():
                break
            n_rows += len(scores)
        if n_rows != n_nodes:
            raise InputError(f"scores of pairs must be finite, not negative, and {n_nodes} for every node.")

    def draw(self, seed: SeedSequence) -> Graph:
        return self._draw_graph(self.graph_, np.random.default_rng(seed))

    def _draw_graph(self, graph: Graph, rng: Generator) -> Graph:
        nodes = np.flatnonzero(graph.degrees)
        return replace_edges(graph, *nodes[assemble_edges(self._score_blocks(), graph.n_edges, rng)])

    @abstractmethod
    def _score_blocks(self) -> Iterator[Array]:
        """Yield the rows of the symmetric scores of nodes with edges, in new arrays."""

    def _select_adjacency(self, graph: Graph) -> sparse.csr_array:
        name = f"graph of {type(self).__name__}"
        for is_wrong, allowed in ((graph.directed, "be undirected"), (not graph.n_edges, "have an edge")):
            if is_wrong:
                raise InputError(name, f"must {allowed}; got {graph!r}.")
        nodes = np.flatnonzero(graph.degrees)
        return sparse.csr_array(binary_adjacency(graph)[nodes][:, nodes])


def assemble_edges(blocks: Iterable[Array], n_edges: int, rng: Generator) -> PairArray:
    """Draw distinct pairs of different nodes by their scores, ``[2, n_edges]``, the smaller node first.

    Every node draws a neighbour first, in proportion to its scores. If too few are positive, all such pairs
    are edges.
    """
    neighbours, race, start, n_nodes = [], _Race(n_edges), 0, 0
    for scores in blocks:
        size, n_nodes = scores.shape
        scores[np.arange(size), np.arange(start, start + size)] = 0
        cumulative = np.cumsum(scores, axis=1, dtype=np.float64)
        drawn = (cumulative > rng.random((size, 1)) * cumulative[:, -1:]).argmax(axis=1)
        neighbours.append(np.where(cumulative[:, -1] > 0, drawn, -1))
        race.add(scores[:, start:], start, n_nodes, rng)
        start += size
    neighbour, node = np.concatenate(neighbours), np.arange(n_nodes)
    has_neighbour = neighbour >= 0
    codes = np.minimum(node, neighbour) * n_nodes + np.maximum(node, neighbour)
    codes = np.where(has_neighbour, codes, -1)
    first = np.unique(codes[has_neighbour])
    if len(first) > n_edges:
        edges = np.array(_order_by_need(codes, n_nodes, rng)[:n_edges], np.int64)
    else:
        others = race.codes[np.argsort(race.times, kind="stable")]
        edges = np.append(first, others[~np.isin(others, first)][: n_edges - len(first)])
    return np.stack(np.divmod(edges, n_nodes))


class _Race:
    """The ``size`` pairs with the smallest times so far; pair (i, j) has the code i N + j."""

    def __init__(self, size: int) -> None:
        self.size, self.worst = size, np.inf
        self.times, self.codes = np.zeros(0), np.zeros(0, np.int64)

    def add(self, scores: Array, start: int, n_nodes: int, rng: Generator) -> None:
        """Add the pairs above the diagonal, given rows and columns from ``start`` on."""
        size = len(scores)
        times = rng.standard_exponential(scores.shape)
        with np.errstate(divide="ignore"):
            times /= scores
        times[:, :size][np.tri(size, dtype=bool)] = np.inf
        row, column = np.nonzero(times < self.worst)
        self.times = np.append(self.times, times[row, column])
        self.codes = np.append(self.codes, (row + start) * n_nodes + column + start)
        if len(self.times) > self.size:
            best = np.argpartition(self.times, self.size - 1)[: self.size]
            self.times, self.codes = self.times[best], self.codes[best]
            self.worst = self.times.max()


def _order_by_need(codes: Ints, n_nodes: int, rng: Generator) -> list[int]:
    has_edge = np.zeros(n_nodes, bool)
    needed: list[int] = []
    others: list[int] = []
    for node in rng.permutation(n_nodes).tolist():
        if (code := int(codes[node])) >= 0:
            (others if has_edge[node] else needed).append(code)
            has_edge[list(divmod(code, n_nodes))] = True
    return list(dict.fromkeys(needed + others))

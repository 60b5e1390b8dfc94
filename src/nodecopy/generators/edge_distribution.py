"""Distributions of graphs with independent edges, given one vector per node, and their calibration.

Calibration is a logistic regression of "is an edge" on the score of a pair, over all pairs of nodes. The two
parameters need five sums over all pairs in each Newton step. As in :mod:`.losses`, these are computed in
blocks of rows as if no pair were an edge, and corrected at the edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nodecopy._core.logistic import fit_logistic
from nodecopy.errors import InputError
from nodecopy.generators.blockwise import LOGITS_AT_ONCE, split_triangle
from nodecopy.generators.link_prediction import PairArray, decode_pairs

MAX_THINNING_PROBABILITY = 0.1
"""Largest probability of an edge at which thinning is faster than a uniform number for every pair."""
CANDIDATES_AT_ONCE = 2**16
MAX_NEWTON_STEPS = 200
LOGIT_TOLERANCE = 1e-5
"""Largest change of a logit in the last step; the remaining error is about its square."""
Floats = NDArray[np.float64]
Calibration = tuple[float, float]
"""Slope and intercept of a logistic regression on the score."""


@dataclass(frozen=True, eq=False)
class EdgeDistribution:
    """Independent edges: each pair i < j is an edge with its own probability.

    Parameters
    ----------
    decoded
        One row f per node; the score of a pair is sigma(f_i . f_j).
    calibration
        Slope and intercept of a logistic regression on the score; by default the score is the probability.
    scale
        Factor of the probabilities, which are cut off at one.
    """

    decoded: NDArray[np.float32]
    calibration: Calibration | None = None
    scale: float = 1.0

    @property
    def upper_bound(self) -> float:
        """The largest probability that any pair can have, at a score of 0 or 1."""
        return float(self._transform(torch.tensor([0.0, 1.0], dtype=torch.float64)).max())

    def probabilities(self, first: PairArray, second: PairArray) -> Floats:
        """Return the probabilities of the pairs ``(first[k], second[k])``."""
        logits = np.einsum("kd,kd->k", self.decoded[first], self.decoded[second], dtype=np.float64)
        result: Floats = self._transform(torch.from_numpy(logits).sigmoid_()).numpy()
        return result

    def draw(self, rng: Generator) -> PairArray:
        """Draw the edges of one graph, ``[2, n]``, row by row."""
        bound = self.upper_bound
        parts = list(self._thin(rng, bound) if bound < MAX_THINNING_PROBABILITY else self._draw_all(rng))
        return np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), np.int64)

    def _transform(self, scores: Tensor) -> Tensor:
        """Turn scores into probabilities, in place."""
        if self.calibration is not None:
            slope, intercept = self.calibration
            scores.mul_(slope).add_(intercept).sigmoid_()
        return scores.mul_(self.scale).clamp_(max=1.0) if self.scale != 1 else scores

    def _draw_all(self, rng: Generator) -> Iterator[PairArray]:
        """Draw a uniform number for every pair, a block of rows at a time."""
        f = torch.tensor(self.decoded)
        for rows in split_triangle(len(f), LOGITS_AT_ONCE["cpu"]):
            probabilities = self._transform((f[rows] @ f[rows.start :].T).double().sigmoid_())
            edges = (torch.from_numpy(rng.random(probabilities.shape)) < probabilities).triu_(1)
            yield np.stack(np.nonzero(edges.numpy())) + rows.start

    def _thin(self, rng: Generator, bound: float) -> Iterator[PairArray]:
        """Draw candidates with the largest probability, then accept each with the ratio to its own."""
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

    The penalty is a^2 / 2, scikit-learn's default. It has an effect only if scores separate edges from all
    other pairs, and then keeps a finite.

    Parameters
    ----------
    decoded
        The vectors f, one row per node.
    edges
        ``[2, n]``, the smaller node first; at least one edge.
    balanced
        Whether edges together have the same weight as all other pairs together; otherwise all pairs have the
        same weight.
    """
    n_nodes, n_edges = len(decoded), edges.shape[1]
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if not n_edges:
        raise InputError("graph must have edges, by which scores are calibrated; got none.")
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
    """Return the sums of :func:`_sum_scores` over all pairs i < j."""
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
    sums: Floats = torch.stack([q.sum(), q @ p, w.sum(), wp.sum(), wp @ p]).cpu().numpy()
    return sums

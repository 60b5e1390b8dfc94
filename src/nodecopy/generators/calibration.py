"""Calibration of pair scores: logistic regression of "is an edge" on the score, over all pairs of nodes.

The two parameters need five sums over all pairs in each Newton step. As in :mod:`.losses`, these are
computed in blocks of rows as if no pair were an edge, and corrected at the edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodecopy._core.logistic import fit_logistic
from nodecopy.generators.blockwise import LOGITS_AT_ONCE, split_triangle
from nodecopy.generators.link_prediction import PairArray

Floats = NDArray[np.float64]
Calibration = tuple[float, float]
"""Slope and intercept."""
MAX_NEWTON_STEPS = 200
LOGIT_TOLERANCE = 1e-5
"""Largest change of a logit in the last step; the remaining error is about its square."""


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

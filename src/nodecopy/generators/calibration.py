"""Logistic regression of "is an edge" on the score of a pair, over all pairs, exact, by Newton's method.

Two parameters need five sums over all pairs in each step. As in :mod:`.pairs` they are made a block of
rows at a time as if no pair were an edge, and corrected at the edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodecopy.generators.link_prediction import Pairs
from nodecopy.generators.pair_loss import LOGITS_AT_ONCE, triangle_blocks

Floats = NDArray[np.float64]
Line = tuple[float, float]
"""Slope and intercept."""
MOST_STEPS = 200
CLOSE_ENOUGH = 1e-5
"""By how much the last step may still change any pair's logit; what is left then is about its square."""


def logistic_regression(decoded: Tensor, edges: Pairs, *, balanced: bool) -> Line:
    """Slope a and intercept b of P(edge) = sigma(a p + b), where p = sigma(f_i . f_j).

    With scikit-learn's default penalty a^2 / 2, which matters only where scores tell edges from all other
    pairs without a mistake, and then keeps a finite.

    Parameters
    ----------
    decoded
        The vectors f, one row per node.
    edges
        ``[2, size]``, the smaller node first; at least one.
    balanced
        Edges together weigh as much as all other pairs together; otherwise every pair weighs the same.
    """
    n_nodes, n_edges = len(decoded), edges.shape[1]
    n_pairs = n_nodes * (n_nodes - 1) // 2
    if n_edges == n_pairs:
        return 0.0, math.inf
    weights = n_pairs / (2 * n_edges), n_pairs / (2 * (n_pairs - n_edges))
    edge_weight, other_weight = weights if balanced else (1.0, 1.0)
    ends = torch.from_numpy(edges).to(decoded.device)
    at_edges = (decoded[ends[0]] * decoded[ends[1]]).sum(dim=1).double().sigmoid()
    targets = edge_weight * np.array([at_edges.sum().item(), n_edges])

    def climbed(line: Floats, everywhere: Callable[[Floats], Floats]) -> Floats:
        for _ in range(MOST_STEPS):
            here = _sums_of(at_edges, line)
            q, qp, w, wp, wpp = other_weight * everywhere(line) + (edge_weight - other_weight) * here
            gradient = targets - [qp, q] - [line[0], 0]
            step = np.linalg.solve([[wpp + 1, wp], [wp, w]], gradient)
            reach = max(abs(step[1]), abs(step.sum()))  # the largest change of a logit, as p is in [0, 1]
            # Far from the solution a full step may overshoot; this one goes uphill for certain (Sun and
            # Tran-Dinh, 2019, on generalised self-concordant functions), and near it is a full one.
            line = line + step * (math.log1p(reach) / reach if reach else 1)
            if reach < CLOSE_ENOUGH:
                break
        return line

    # The way is long and every step meets all pairs, so all but the end of it goes with some of them.
    some = (decoded[:: -(-n_nodes * n_nodes // LOGITS_AT_ONCE["cpu"])] @ decoded.T).double().sigmoid_()
    share = (n_pairs - n_edges) / some.numel()
    intercept = math.log(edge_weight * n_edges) - math.log(other_weight * (n_pairs - n_edges))
    start = climbed(
        np.array([0.0, intercept]),
        lambda line: share * _sums_of(some, line) + _sums_of(at_edges, line),
    )
    slope, intercept = climbed(start, partial(_sums, decoded))
    return float(slope), float(intercept)


def expected_edges(decoded: Tensor, line: Line) -> float:
    """The sum of sigma(a p + b) over all pairs."""
    return float(_sums(decoded, np.array(line))[0])


def _sums(decoded: Tensor, line: Floats) -> Floats:
    """Over all pairs i < j."""
    total = np.zeros(5)
    for rows in triangle_blocks(len(decoded), LOGITS_AT_ONCE[decoded.device.type]):
        scores = (decoded[rows] @ decoded[rows.start :].T).double().sigmoid_()
        square = scores[:, : len(scores)]  # here each pair is met twice, and each node with itself
        total += _sums_of(scores, line)
        total -= (_sums_of(square, line) + _sums_of(square.diagonal(), line)) / 2
    return total


def _sums_of(scores: Tensor, line: Floats) -> Floats:
    """Sums of q, q p, w, w p, w p^2 with q = sigma(a p + b) and w = q (1 - q)."""
    p = scores.reshape(-1)
    q = (p * line[0] + line[1]).sigmoid_()
    w = q - q * q
    wp = w * p
    sums: Floats = torch.stack([q.sum(), q @ p, w.sum(), wp.sum(), wp @ p]).cpu().numpy()
    return sums

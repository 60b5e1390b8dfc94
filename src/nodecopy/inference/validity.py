"""Checks of samples by samples: whether they are like the graph, and how their spread is to be scaled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy._core.arrays import Floats
from nodecopy._core.parallel import sample_stream
from nodecopy._core.random import child
from nodecopy.generators.base import binary_adjacency
from nodecopy.generators.classical import NOISE_FACTOR
from nodecopy.graph import Graph

MIN_EXCESS = 0.2  # of the score, of at most 0.5, over the reference of a doubtful graph
N_CHECKED, N_FLIPS = 19, 200  # samples that are compared, and sign flips of each pair
N_VECTORS, N_ITERATIONS = 16, 6  # of the joint embedding
MAX_NODES = 500  # random nodes that are compared, since every difference is significant for enough nodes
MAX_ENTRIES = 2**19  # of the graph, up to which samples are checked by default


@dataclass(frozen=True)
class Validity:
    """How well the observed graph could be one of its samples, by a test of exchangeability.

    Positions of the nodes in a joint embedding of the graph and its samples are compared for every pair of
    them: their differences are exchangeable if the sum of the differences is no longer than with random signs
    (Dilworth, Davis and Lawson, 2024).

    Examples
    --------
    >>> from nodecopy import SameLabel, datasets
    >>> from nodecopy.inference import bootstrap
    >>> bootstrap(datasets.load("karate"), "density", model=SameLabel(), n=50, rng=0).validity.is_doubtful
    False
    """

    score: float
    """Area between the curve of the p-values of the graph with each sample and the diagonal; 0 is ideal."""
    reference: float
    """The mean of this area for each sample with the other samples, as for a second draw."""
    p_value: float
    """Share of the graphs whose mean p-value is no larger than that of the observed one."""
    p_values: Floats = field(repr=False, compare=False)

    @property
    def is_doubtful(self) -> bool:
        """Return whether the graph is clearly less like the samples than they are like each other."""
        return self.p_value <= 1 / (N_CHECKED + 1) and self.score > self.reference + MIN_EXCESS

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers, ready for JSON."""
        return {"score": self.score, "reference": self.reference, "p_value": self.p_value}

    def __str__(self) -> str:
        verdict = "less like the samples than" if self.is_doubtful else "as like the samples as"
        areas = f"areas {self.score:.2f} and {self.reference:.2f}, p = {self.p_value:.2f}"
        return f"validity: the graph is {verdict} they are like each other ({areas})"


def check_validity(graph: Graph, samples: Sequence[Graph]) -> Validity:
    """Return whether a graph and its samples are exchangeable, by all pairs of them."""
    matrices = [binary_adjacency(other).astype(np.float64) for other in (graph, *samples)]
    joint = sparse.csr_array(sparse.hstack(matrices))
    rng, n_nodes = np.random.default_rng(0), graph.n_nodes
    basis = rng.normal(size=(n_nodes, min(N_VECTORS, n_nodes)))
    for _ in range(N_ITERATIONS):
        basis = np.linalg.qr(joint @ (joint.T @ basis))[0]
    left, lengths, _ = np.linalg.svd((joint.T @ basis).T, full_matrices=False)
    projections = np.stack([matrix.T @ (basis @ left) for matrix in matrices])
    noise = NOISE_FACTOR * (joint.nnz / max(joint.shape[1], 1)) ** 0.5
    is_signal = (np.linalg.norm(projections, axis=1) > noise).any(axis=0)  # of any of the graphs
    is_signal[:1] = True
    nodes = rng.permutation(n_nodes)[:MAX_NODES]
    signs = rng.choice([-1.0, 1.0], (N_FLIPS + 1, len(nodes)))
    signs[0] = 1.0
    positions = projections[:, nodes][:, :, is_signal] / np.sqrt(np.maximum(lengths[is_signal], 1e-12))
    sums = np.stack([signs @ position for position in positions])
    lengths = ((sums[:, None] - sums) ** 2).sum(axis=3)
    p = (lengths >= lengths[:, :, :1] * (1 - 1e-9)).mean(axis=2)
    others = p[~np.eye(len(p), dtype=bool)].reshape(len(p), -1)
    grid = np.linspace(0, 1, N_FLIPS + 1)
    areas = [np.abs((row <= grid[:, None]).mean(axis=1) - grid).mean() for row in others]
    means = others.mean(axis=1)
    share = float((means <= means[0]).mean())
    return Validity(float(areas[0]), float(np.mean(areas[1:])), share, others[0])


def calibrate(
    sampler: Any, measure: Callable[[Graph], Any], samples: Sequence[Graph], seed: SeedSequence, **pool: Any
) -> dict[str, Any]:
    """Return the standard error of each statistic by the second level of a double bootstrap.

    The method is applied to samples as if each was the observed graph, and draws as many samples of it. The
    standard error is the square root of the mean variance.
    """

    def draw_second(number: int) -> dict[str, Any]:
        fitted = copy(sampler).fit(samples[number])
        rows = [measure(fitted.draw(child(seed, number, k))) for k in range(len(samples))]
        return {name: np.var([row[name] for row in rows], axis=0, ddof=1) for name in rows[0]}

    levels = list(sample_stream(draw_second, len(samples), **pool))
    return {name: np.sqrt(np.mean([level[name] for level in levels], axis=0)) for name in levels[0]}

"""Distributions of graphs with independent edges, given one vector per node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from nodecopy.generators.blockwise import LOGITS_AT_ONCE, split_triangle
from nodecopy.generators.link_prediction import PairArray, decode_pairs

MAX_THINNING_PROBABILITY = 0.1
"""Largest probability of an edge at which thinning is faster than a uniform number for every pair."""
CANDIDATES_AT_ONCE = 2**16


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
    calibration: tuple[float, float] | None = None
    scale: float = 1.0

    @property
    def upper_bound(self) -> float:
        """The largest probability that any pair can have, at a score of 0 or 1."""
        return float(self._transform(torch.tensor([0.0, 1.0], dtype=torch.float64)).max())

    def probabilities(self, first: PairArray, second: PairArray) -> NDArray[np.float64]:
        """Return the probabilities of the pairs ``(first[k], second[k])``."""
        logits = np.einsum("kd,kd->k", self.decoded[first], self.decoded[second], dtype=np.float64)
        result: NDArray[np.float64] = self._transform(torch.from_numpy(logits).sigmoid_()).numpy()
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

"""Independent edges with given probabilities, drawn in time proportional to their number."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nodecopy.generators.base import Edges, sort_unique

MAX_PROBABILITY = 1 - 1e-12


class IndependentEdges:
    """Edges that occur independently, each with its own probability.

    The number of points that fall on a pair is Poisson with mean -log(1 - p), so that the pair has one with
    probability p, exactly. All points together are a Poisson number, and each falls on a pair in proportion
    to its mean: a sample costs a binary search per edge, instead of a random number per pair.

    Parameters
    ----------
    probabilities
        One row and one column per node; without ``directed``, entries above the diagonal count.
    directed
        Whether edges are directed.
    """

    def __init__(self, probabilities: NDArray[np.float64], directed: bool) -> None:
        means = np.array(probabilities) if directed else np.triu(probabilities, 1)
        np.fill_diagonal(means, 0.0)
        np.clip(means, 0.0, MAX_PROBABILITY, out=means)
        np.negative(means, out=means)
        np.log1p(means, out=means)
        np.negative(means, out=means)
        self.n_nodes, self.cumulative = len(means), np.cumsum(means, out=means.reshape(-1))

    def draw(self, rng: Generator) -> Edges:
        """Return the edges of one sample."""
        total = float(self.cumulative[-1]) if self.n_nodes else 0.0
        points = np.sort(rng.random(rng.poisson(total))) * total
        # A point is below the total, except by rounding.
        pairs = np.searchsorted(self.cumulative, points, side="right").clip(max=max(self.n_nodes**2 - 1, 0))
        first, second = np.divmod(sort_unique(pairs), max(self.n_nodes, 1))
        return first, second

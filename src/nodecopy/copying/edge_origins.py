"""Node copying that also tells which observed edge every sampled edge is a copy of.

Other libraries hang attributes on edges. A copied edge carries those of the edge it was copied from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import FloatArray, IntArray
from nodecopy._core.ids import deduplicate
from nodecopy._core.params import Configurable
from nodecopy._core.random import Rng
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.model import NodeCopying
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions


@dataclass(frozen=True, eq=False)
class _Found(Configurable):
    """A law whose distribution is known already."""

    distribution: DonorDistribution

    def fit(self, data: Graph | Interactions) -> DonorDistribution:
        return self.distribution


class EdgeTrackingSampler:
    """Samples of a fitted model as edges: ends, and the number of the observed edge behind each.

    Parameters
    ----------
    model
        Fitted to the graph of the edges.
    first, second, weights
        The edges as they were listed. Of two that become one the heavier is taken, of equals the later.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> model = NodeCopying(SameLabel([0, 0, 1])).fit(Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], directed=True))
    >>> edges = np.array([0, 1]), np.array([1, 2]), np.ones(2)
    >>> [part.tolist() for part in EdgeTrackingSampler(model, *edges).sample(rng=0)]
    [[0, 1], [2, 2], [1, 1]]
    """

    def __init__(
        self, model: NodeCopying[Graph], first: IntArray, second: IntArray, weights: FloatArray
    ) -> None:
        # Edge numbers, lightest first, take the place of weights: what survives says where it came from.
        self.order = np.argsort(weights, kind="stable")
        numbers = np.empty(len(weights))
        numbers[self.order] = np.arange(1, len(weights) + 1)
        numbered = Graph(
            deduplicate(first, second, numbers, model.graph_.adjacency.shape),
            directed=model.graph_.directed,
        )
        self.model = NodeCopying(_Found(model.distribution_), model.keep, model.symmetrise).fit(numbered)

    def sample(self, *, rng: Rng) -> tuple[IntArray, IntArray, NDArray[np.int64]]:
        """The first of :meth:`sample_many` with the same ``rng``."""
        return next(self.sample_many(1, rng=rng))

    def sample_many(
        self, n: int, *, rng: Rng, workers: int = 1
    ) -> Iterator[tuple[IntArray, IntArray, NDArray[np.int64]]]:
        """Ends and origins of the edges of ``n`` samples; undirected edges in both directions."""
        for sample in self.model.sample_many(n, rng=rng, workers=workers):
            rows = sample.rows
            numbers = np.ones(rows.n_entries) if rows.weights is None else rows.weights
            yield rows.row_numbers, rows.indices, self.order[numbers.astype(np.int64) - 1]

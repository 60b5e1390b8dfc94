"""Samples of node copying together with the observed edge that each sampled edge is a copy of.

Graphs of other libraries have edge attributes. A sampled edge has those of the edge it was copied from.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import FloatArray, IntArray
from nodecopy._core.ids import deduplicate
from nodecopy._core.random import Rng
from nodecopy.copying.model import NodeCopying
from nodecopy.graph import Graph


class EdgeTrackingSampler:
    """Sample the edges of a fitted model: their ends, and the observed edge behind each of them.

    Parameters
    ----------
    model
        Node copying, fitted to the graph of the edges.
    first, second, weights
        Ends (node positions) and weights of the edges in the order of the caller. Of parallel edges the
        heaviest is kept; ties go to the last one.

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
        # Ranks of the edges by weight replace their weights. Copying and the maximum then act on ranks as
        # they act on weights, and the rank of a sampled edge identifies the observed one.
        self.edge_of_rank = np.argsort(weights, kind="stable")
        ranks = np.empty(len(weights))
        ranks[self.edge_of_rank] = np.arange(1, len(weights) + 1)
        matrix = deduplicate(first, second, ranks, model.graph_.adjacency.shape)
        self.model = copy(model)
        self.model.graph_ = Graph(matrix, directed=model.graph_.directed)

    def sample(self, *, rng: Rng = None) -> tuple[IntArray, IntArray, NDArray[np.int64]]:
        """Return the first sample of :meth:`sample_many` with the same ``rng``."""
        return next(self.sample_many(1, rng=rng))

    def sample_many(
        self, n: int, *, rng: Rng = None, workers: int = 1
    ) -> Iterator[tuple[IntArray, IntArray, NDArray[np.int64]]]:
        """Yield sources, targets and numbers of the observed edges of ``n`` samples.

        Undirected edges come in both directions.
        """
        for sample in self.model.sample_many(n, rng=rng, workers=workers):
            rows = sample.rows
            ranks = np.ones(rows.n_entries) if rows.weights is None else rows.weights
            yield rows.row_numbers, rows.indices, self.edge_of_rank[ranks.astype(np.int64) - 1]

"""The random dot product graph: edges are independent given a latent position of each node."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nodecopy._core.checks import check_integer
from nodecopy._core.linalg import truncated_svd
from nodecopy.errors import InputError
from nodecopy.generators.base import (
    EdgeListModel,
    Edges,
    Nodes,
    binary_adjacency,
    check_node_rows,
    sort_unique,
)
from nodecopy.graph import Graph

MAX_DIMENSIONS = 30  # largest number of dimensions that is estimated
NOISE_FACTOR = 2.1  # singular values of noise are up to about twice sqrt(mean degree)
PAIRS_AT_ONCE = 2**22  # probabilities held in memory at once
MAX_STORED_NODES = 6_000  # nodes up to which the probabilities of all pairs are stored
MAX_PROBABILITY = 1 - 1e-12


class RandomDotProduct(EdgeListModel):
    """The random dot product graph: the probability of an edge is the product of two latent positions.

    Positions are the adjacency spectral embedding: the probabilities are the best low-rank approximation of
    the adjacency matrix, cut off at 0 and 1. Samples take time in proportion to pairs of nodes; up to 6,000
    nodes only the first one does.

    Parameters
    ----------
    n_dimensions
        Dimensions of the positions. By default the number of singular values above 2.1 times the root of the
        mean degree, at least 1 and at most 30.

    Attributes
    ----------
    left_, right_
        Positions of the nodes as sources and as targets, whose products are the probabilities.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import RandomDotProduct
    >>> model = RandomDotProduct(2).fit(datasets.load("karate"))
    >>> model.left_.shape, model.sample(rng=0).n_nodes
    ((34, 2), 34)
    """

    def __init__(self, n_dimensions: int | None = None) -> None:
        self.n_dimensions = n_dimensions

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        n_nodes, k = graph.n_nodes, self.n_dimensions
        if k is not None:
            check_integer(k, "n_dimensions of RandomDotProduct", low=1, high=n_nodes, high_name="n_nodes")
        adjacency = binary_adjacency(graph).astype(np.float64)
        rank = min(MAX_DIMENSIONS, n_nodes) if k is None else k
        if rank >= n_nodes - 1:
            u, s, vt = np.linalg.svd(adjacency.toarray())
        else:
            u, s, vt = truncated_svd(adjacency, rank)
        order = np.argsort(-s, kind="stable")[:rank]
        if k is None:
            noise = NOISE_FACTOR * np.sqrt(graph.rows.n_entries / max(n_nodes, 1))
            order = order[: max(1, int((s > noise).sum()))]
        self.left_, self.right_ = u[:, order] * s[order], vt[order].T
        self.__dict__.pop("_pairs", None)

    def _restore(self, graph: Graph) -> None:
        positions = [check_node_rows(part, "positions", graph.n_nodes) for part in (self.left_, self.right_)]
        if positions[0].shape != positions[1].shape:
            raise InputError("left_ and right_", "must have the same shape.")
        largest = np.abs(positions).max(initial=0)
        if largest > graph.n_nodes + 1:  # singular values of a binary matrix are at most its size
            raise InputError(f"left_ and right_ must have entries up to {graph.n_nodes}; got {largest:.3g}.")
        self.left_, self.right_ = positions

    @cached_property
    def _pairs(self) -> IndependentEdges:
        return IndependentEdges(self.left_ @ self.right_.T, self.check_fitted().directed)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        if graph.n_nodes <= MAX_STORED_NODES:
            return self._pairs.draw(rng)
        return self.draw_edges(rng, np.arange(graph.n_nodes), directed=graph.directed)

    def draw_edges(self, rng: Generator, nodes: Nodes, *, directed: bool) -> Edges:
        """Return the edges of one sample whose node i has the positions of ``nodes[i]``."""
        left, right, n_nodes = self.left_[nodes], self.right_[nodes], len(nodes)
        parts: list[NDArray[np.int64]] = [np.zeros((2, 0), np.int64)]
        step = max(1, PAIRS_AT_ONCE // max(n_nodes, 1))
        for start in range(0, n_nodes, step):
            probabilities = left[start : start + step] @ right.T
            first, second = np.nonzero(rng.random(probabilities.shape) < probabilities)
            first += start
            selected = first != second if directed else first < second
            parts.append(np.stack([first[selected], second[selected]]))
        firsts, seconds = np.concatenate(parts, axis=1)
        return firsts, seconds


class IndependentEdges:
    """Edges that occur independently, each with its own probability.

    The number of points on a pair is Poisson with mean -log(1 - p), so that it has one with probability p. A
    sample costs a binary search per edge instead of a random number per pair. Without ``directed``,
    probabilities above the diagonal count.
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

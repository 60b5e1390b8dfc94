"""Samples of a population of nodes: the nodes of a sample are not those of the observed graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator, SeedSequence

from nodecopy._core.arrays import IntArray, Rows
from nodecopy._core.checks import check_real
from nodecopy._core.estimator import Configurable
from nodecopy._core.random import Rng
from nodecopy.generators.base import replace_edges
from nodecopy.generators.dot_product import RandomDotProduct
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph


@dataclass(eq=False)
class NodeResampler(Configurable, ABC):
    """A way to sample nodes, and edges among them; a subclass writes ``_resample``.

    Examples
    --------
    Every node occurs once:

    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import NodeResampler
    >>> class Permuted(NodeResampler):
    ...     def _resample(self, rng):
    ...         return self._take(rng.permutation(self.graph_.n_nodes))
    >>> Permuted().fit(datasets.load("karate")).draw(SeedSequence(0)).n_edges
    78

    Attributes
    ----------
    graph_
        The graph that it was fitted to.
    deviation_factor
        What the standard deviation of a statistic over samples is multiplied by to give a standard error.
    """

    graph_: Graph = field(init=False, repr=False)
    deviation_factor: ClassVar[float] = 1.0

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Store the graph and check the settings."""
        self.graph_ = convert_graph(graph, f"graph of {type(self).__name__}")
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the sample of a seed. Its nodes have the ids 0, 1, 2, ... and keep their labels."""
        return self._resample(np.random.default_rng(seed))

    @abstractmethod
    def _resample(self, rng: Generator) -> Graph:
        """Return one sample."""

    def _take(self, nodes: IntArray) -> Graph:
        """Return the edges among some nodes, which may occur several times."""
        graph = self.graph_
        matrix: Any = graph.rows.csr[nodes][:, nodes]
        matrix.sort_indices()
        weights = matrix.data if graph.is_weighted else None
        rows = Rows.canonical(matrix.indptr, matrix.indices, weights, len(nodes))
        bare = graph.replace(features=None, labels=None, node_ids=None).with_rows(rows)
        return bare if graph.labels is None else bare.replace(labels=graph.labels[nodes])


@dataclass(eq=False)
class NodeBootstrap(NodeResampler):
    """Draw as many nodes as observed, with replacement, and take the edges among them (Green and Shalizi).

    Two copies of the same node are not linked. The samples answer for a population of nodes:
    their variance contains that of the nodes. Where nodes are alike, as in an Erdős-Rényi graph, standard
    errors are too large, that of the number of edges by a factor of up to sqrt 3.

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import NodeBootstrap
    >>> NodeBootstrap().fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    34
    """

    def _resample(self, rng: Generator) -> Graph:
        n_nodes = self.graph_.n_nodes
        return self._take(rng.integers(0, n_nodes, n_nodes))


@dataclass(eq=False)
class NodeSubsampling(NodeResampler):
    """Draw some of the nodes without replacement, and take the edges among them.

    See Bhattacharyya and Bickel (2015) and Lunde and Sarkar (2023).

    The standard deviation over samples of a share s of the nodes is multiplied by sqrt(s / (1 - s)), which is
    correct for statistics whose error is of order n^-1/2 and whose expectation does not depend on the number
    of nodes, such as density and transitivity, but neither for counts nor for degrees. Where nodes are alike,
    the error is of smaller order, and standard errors are too large.

    Parameters
    ----------
    share
        Share of the nodes, 0.3 by default.

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import NodeSubsampling
    >>> NodeSubsampling(0.5).fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    17
    """

    share: float = 0.3

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        check_real(self.share, "share of NodeSubsampling", low=0.01, high=0.99)
        return super().fit(graph, rng=rng)

    @property
    def deviation_factor(self) -> float:  # type: ignore[override]
        """Return sqrt(s / (1 - s)) for the share s that is really drawn."""
        share = self._size() / self.graph_.n_nodes
        return float((share / (1 - share)) ** 0.5)

    def _size(self) -> int:
        n_nodes = self.graph_.n_nodes
        return min(max(round(self.share * n_nodes), 1), n_nodes - 1)

    def _resample(self, rng: Generator) -> Graph:
        return self._take(np.sort(rng.choice(self.graph_.n_nodes, self._size(), replace=False)))


@dataclass(eq=False)
class LatentPositionBootstrap(NodeResampler):
    """Draw latent positions with replacement, then independent edges (Levin and Levina).

    Positions are those of :class:`.RandomDotProduct`.

    Parameters
    ----------
    n_dimensions
        Dimensions of the positions, estimated by default.

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import LatentPositionBootstrap
    >>> LatentPositionBootstrap(2).fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    34
    """

    n_dimensions: int | None = None

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        super().fit(graph, rng=rng)
        self.model_ = RandomDotProduct(self.n_dimensions).fit(self.graph_)
        return self

    def _resample(self, rng: Generator) -> Graph:
        graph = self.graph_
        nodes = rng.integers(0, graph.n_nodes, graph.n_nodes)
        labels: Any = None if graph.labels is None else graph.labels[nodes]
        bare = graph.replace(features=None, node_ids=None, labels=labels)
        return replace_edges(bare, *self.model_.draw_edges(rng, nodes, directed=graph.directed))

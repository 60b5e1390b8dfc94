"""Stochastic block models: how likely two nodes are linked depends on the blocks they belong to."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nodecopy.generators.base import Nodes, PairModel, Pairs, blocks_of, distinct, pairs_of
from nodecopy.generators.block_pairs import Cells, draw_cells, n_pairs
from nodecopy.graph import Graph


class SBM(PairModel):
    """The stochastic block model: an edge's probability is the observed density between two blocks.

    Edges are independent, so a sample's expected number of edges between two blocks is the observed
    one. Time and memory of fit and sample grow with nodes and edges, never with pairs of either nodes
    or blocks.

    Attributes
    ----------
    blocks_
        The block of each node: its label; nodes without one take the commonest label around them, and a
        graph without labels is cut into communities in the same way (label propagation, which ``rng``
        of :meth:`fit` draws for).
    cells_
        The pairs of blocks with an edge between them, and the densities. In a directed graph (r, s) and
        (s, r) are two.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import SBM
    >>> model = SBM().fit(datasets.load("karate"))
    >>> model.cells_.probability.round(2).tolist()
    [0.26, 0.04, 0.24]
    >>> model.sample(rng=0)
    Graph(34 nodes, 93 undirected edges, binary, 2 classes)
    """

    blocks_: Nodes
    cells_: Cells

    def _learn(self, graph: Graph, draws: Generator) -> None:
        self.blocks_ = blocks_of(graph, draws)
        first, second, n_edges = _linked_blocks(graph, self.blocks_)
        space = n_pairs(first, second, np.bincount(self.blocks_), directed=graph.directed)
        self.cells_ = Cells(first, second, n_edges / space)

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        return draw_cells(self.blocks_, self.cells_, draws, directed=graph.directed)


class DegreeCorrectedSBM(PairModel):
    """The block model that also keeps degrees, in expectation (Karrer and Newman, 2011).

    The number of edges between two blocks is Poisson with the observed mean; each end is a node of its
    block in proportion to its observed degree (out- and in-degree where directed). The model is one of
    multigraphs: repeated edges and self-loops are dropped, so nodes whose degree is large among those
    of their block get somewhat fewer edges than observed.

    Attributes
    ----------
    blocks_
        As in :class:`SBM`.
    cells_
        The pairs of blocks with an edge between them, and the observed numbers of edges.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DegreeCorrectedSBM
    >>> sample = DegreeCorrectedSBM().fit(datasets.load("karate")).sample(rng=0)
    >>> int(sample.degrees[[0, 33]].min()) > int(sample.degrees.mean())  # leaders stay leaders
    True
    """

    blocks_: Nodes
    cells_: tuple[Nodes, Nodes, Nodes]

    def _learn(self, graph: Graph, draws: Generator) -> None:
        self.blocks_ = blocks_of(graph, draws)
        self.cells_ = _linked_blocks(graph, self.blocks_)
        first, second = pairs_of(graph)
        if not graph.directed:
            first = second = np.concatenate([first, second])
        self._stubs = self._by_block(first), self._by_block(second)

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        first, second, n_edges = self.cells_
        drawn = draws.poisson(n_edges)
        ends = []
        for stubs, block in zip(self._stubs, (first, second), strict=True):
            sizes = np.bincount(self.blocks_[stubs], minlength=len(self.blocks_))
            of = np.repeat(block, drawn)
            ends.append(stubs[(np.cumsum(sizes) - sizes)[of] + draws.integers(0, sizes[of])])
        return distinct(ends[0], ends[1], graph.n_nodes, graph.directed)

    def _by_block(self, ends: Nodes) -> Nodes:
        """Ends of edges, those of block 0 first: a node occurs there as often as its degree says."""
        return ends[np.argsort(self.blocks_[ends], kind="stable")]


def _linked_blocks(graph: Graph, blocks: Nodes) -> tuple[Nodes, Nodes, Nodes]:
    """Pairs of blocks with an edge between them, the smaller one first where undirected, and how many."""
    one, other = (blocks[nodes] for nodes in pairs_of(graph))
    if not graph.directed:
        one, other = np.minimum(one, other), np.maximum(one, other)
    n_blocks = int(blocks.max(initial=0)) + 1
    numbers, n_edges = np.unique(one * n_blocks + other, return_counts=True)
    first, second = np.divmod(numbers, n_blocks)
    return first, second, n_edges

"""Stochastic block models: the probability of an edge depends on the blocks of its two nodes."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nodecopy.generators.base import (
    EdgeListModel,
    Edges,
    Nodes,
    assign_blocks,
    check_blocks,
    list_edges,
    remove_duplicates,
)
from nodecopy.generators.block_pairs import count_pairs, draw_block_edges
from nodecopy.graph import Graph


class SBM(EdgeListModel):
    """The stochastic block model: the probability of an edge is the observed density between two blocks.

    Edges are independent, so the expected number of edges between two blocks is the observed one. Time and
    memory of ``fit`` and ``sample`` grow with nodes and edges, never with pairs of nodes or of blocks.

    Attributes
    ----------
    blocks_
        The block of each node: its label. A node without a label takes the most common label around it by
        label propagation, which also divides a graph without labels into communities; the ``rng`` of
        :meth:`fit` breaks ties there.
    block_pairs_, probabilities_
        The pairs of blocks with an edge between them, ``[2, n]``, and the densities. In a directed graph
        (r, s) and (s, r) are different pairs.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import SBM
    >>> model = SBM().fit(datasets.load("karate"))
    >>> model.probabilities_.round(2).tolist()
    [0.26, 0.04, 0.24]
    >>> model.sample(rng=0)
    Graph(34 nodes, 93 undirected edges, binary, 2 classes)
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.blocks_ = assign_blocks(graph, rng)
        self._estimate_densities(graph)

    def _restore(self, graph: Graph) -> None:
        self.blocks_ = check_blocks(self.blocks_, graph)
        self._estimate_densities(graph)

    def _estimate_densities(self, graph: Graph) -> None:
        self.block_pairs_, n_edges = _count_block_edges(graph, self.blocks_)
        sizes = np.bincount(self.blocks_)
        self.probabilities_ = n_edges / count_pairs(self.block_pairs_, sizes, directed=graph.directed)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        return draw_block_edges(
            self.blocks_, self.block_pairs_, self.probabilities_, rng, directed=graph.directed
        )


class DegreeCorrectedSBM(EdgeListModel):
    """The degree-corrected block model, which keeps degrees in expectation (Karrer and Newman, 2011).

    The number of edges between two blocks is Poisson with the observed number as its mean. Each end is a node
    of its block, drawn in proportion to its observed degree (out- and in-degree if the graph is directed).
    The model is one of multigraphs: repeated edges and self-loops are dropped, so nodes with a large share of
    their block's degrees get somewhat fewer edges than observed.

    Attributes
    ----------
    blocks_
        As in :class:`SBM`.
    block_pairs_, n_block_edges_
        The pairs of blocks with an edge between them, ``[2, n]``, and the observed numbers of edges.
    stubs_
        The first and the second nodes of all edges, sorted by block, so that a node occurs as often as its
        degree. Both are the same for undirected graphs.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DegreeCorrectedSBM
    >>> sample = DegreeCorrectedSBM().fit(datasets.load("karate")).sample(rng=0)
    >>> int(sample.degrees[[0, 33]].min()) > int(sample.degrees.mean())  # the two hubs remain hubs
    True
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.blocks_ = assign_blocks(graph, rng)
        self._count_edges(graph)

    def _restore(self, graph: Graph) -> None:
        self.blocks_ = check_blocks(self.blocks_, graph)
        self._count_edges(graph)

    def _count_edges(self, graph: Graph) -> None:
        self.block_pairs_, self.n_block_edges_ = _count_block_edges(graph, self.blocks_)
        first, second = list_edges(graph)
        if not graph.directed:
            first = second = np.concatenate([first, second])
        self.stubs_ = self._sort_by_block(first), self._sort_by_block(second)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        n_edges = rng.poisson(self.n_block_edges_)
        ends = []
        for stubs, blocks in zip(self.stubs_, self.block_pairs_, strict=True):
            sizes = np.bincount(self.blocks_[stubs], minlength=len(self.blocks_))
            owners = np.repeat(blocks, n_edges)
            ends.append(stubs[(np.cumsum(sizes) - sizes)[owners] + rng.integers(0, sizes[owners])])
        return remove_duplicates(ends[0], ends[1], graph.n_nodes, graph.directed)

    def _sort_by_block(self, nodes: Nodes) -> Nodes:
        return nodes[np.argsort(self.blocks_[nodes], kind="stable")]


def _count_block_edges(graph: Graph, blocks: Nodes) -> tuple[Nodes, Nodes]:
    """Return the pairs of blocks with an edge between them, ``[2, n]``, and their numbers of edges.

    The smaller block comes first if the graph is undirected.
    """
    first, second = (blocks[nodes] for nodes in list_edges(graph))
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    n_blocks = int(blocks.max(initial=0)) + 1
    codes, n_edges = np.unique(first * n_blocks + second, return_counts=True)
    return np.stack(np.divmod(codes, n_blocks)), n_edges

"""Classical random graphs: what remains of a graph if only its size or its degrees are kept.

All of them cost time and memory in proportion to nodes and edges.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nodecopy._core.validation import check_integer
from nodecopy.generators.base import Nodes, PairModel, Pairs, distinct, pairs_of
from nodecopy.generators.block_pairs import Cells, draw_cells
from nodecopy.graph import Graph

MOST_REDRAWS = 20


class ErdosRenyi(PairModel):
    """Every pair of nodes is linked with the same probability, the observed density ``density_``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ErdosRenyi
    >>> round(ErdosRenyi().fit(datasets.load("karate")).density_, 3)
    0.139
    """

    density_: float

    def _learn(self, graph: Graph, draws: Generator) -> None:
        n_pairs = graph.n_nodes * (graph.n_nodes - 1) / (1 if graph.directed else 2)
        self.density_ = len(pairs_of(graph)[0]) / max(n_pairs, 1)

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        one_block, cell = np.zeros(graph.n_nodes, np.int64), np.zeros(1, np.int64)
        cells = Cells(cell, cell, np.array([self.density_]))
        return draw_cells(one_block, cells, draws, directed=graph.directed)


class ChungLu(PairModel):
    """Edges are independent; that of i and j has the probability min(1, d_i d_j / sum d).

    Here d are observed degrees (out-degree of i, in-degree of j where directed), which are nearly what
    samples have on average: a node lacks d_i^2 / sum d, since there are no self-loops, and what is cut
    off at one. Nodes of equal degrees are a block of :func:`.draw_cells`, so this is exact; distinct
    degrees are so few that their pairs are never more than twice the edges.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ChungLu
    >>> model = ChungLu().fit(datasets.load("karate"))
    >>> 60 < sum(sample.n_edges for sample in model.sample_many(20, rng=0)) / 20 < 80  # of 78 observed ones
    True
    """

    def _learn(self, graph: Graph, draws: Generator) -> None:
        leaving, entering = _degrees(graph)
        kinds, self._blocks = np.unique(leaving, return_inverse=True)
        first, second = np.triu_indices(len(kinds))
        if graph.directed:  # every node stands twice: where edges start, and N numbers on, where they end
            ends, blocks = np.unique(entering, return_inverse=True)
            first, second = np.divmod(np.arange(len(kinds) * len(ends)), max(len(ends), 1))
            self._blocks, second = np.append(self._blocks, blocks + len(kinds)), second + len(kinds)
            kinds = np.append(kinds, ends)
        product = kinds[first] * kinds[second]
        first, second, product = (values[product > 0] for values in (first, second, product))
        self._cells = Cells(first, second, np.minimum(product / max(leaving.sum(), 1), 1.0))

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        first, second = draw_cells(self._blocks, self._cells, draws, directed=False)
        if not graph.directed:
            return first, second
        second = second - graph.n_nodes
        return first[first != second], second[first != second]


class ConfigurationModel(PairModel):
    """A random graph with exactly the observed degrees (in- and out-degrees where directed).

    Starts from the observed graph and swaps ends of two random edges, (a, b) and (c, d) becoming (a, d)
    and (c, b), wherever that makes neither a self-loop nor an edge twice. In the long run all such graphs
    are equally likely.

    Parameters
    ----------
    swaps
        Swaps tried for each edge.

    Notes
    -----
    Self-loops of a directed graph stay where they are. Directed swaps never turn a cycle of three nodes
    around, so that graphs which differ in nothing else do not reach each other.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ConfigurationModel
    >>> club = datasets.load("karate")
    >>> bool((ConfigurationModel().fit(club).sample(rng=0).degrees == club.degrees).all())
    True
    """

    def __init__(self, swaps: int = 10) -> None:
        self.swaps = swaps

    def _learn(self, graph: Graph, draws: Generator) -> None:
        check_integer(self.swaps, "swaps of ConfigurationModel", low=0)
        rows, columns = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
        loops = rows[rows == columns]
        self._edges, self._loops, self._rounds = pairs_of(graph), (loops, loops), self.swaps

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        from nodecopy.generators import swap_kernels  # compiling takes a while; nobody else should wait

        first, second = (ends.copy() for ends in self._edges)
        n_edges, directed = len(first), graph.directed
        table = np.empty(1 << (4 * n_edges).bit_length(), np.int64)
        for _ in range(self._rounds if n_edges > 1 else 0):
            one, other = draws.integers(0, n_edges, (2, n_edges))
            coins = draws.random(n_edges) < 0.5
            swap_kernels.swap(first, second, graph.n_nodes, directed, one, other, coins, table)
        return np.append(first, self._loops[0]), np.append(second, self._loops[1])


class BarabasiAlbert(PairModel):
    """Nodes arrive one by one and link to earlier ones in proportion to their degrees.

    Nodes arrive in random order, each with ``edges_per_node_``, the observed number of edges over nodes,
    rounded up or down at random, and to as many different nodes. Edges of a directed graph lead from new
    nodes to old ones.

    Notes
    -----
    An edge's end is a random end of an earlier edge (Batagelj and Brandes, 2005), found for all edges at
    once. Ends that make an edge twice are drawn anew; the few that still do after 20 times are dropped.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import BarabasiAlbert
    >>> BarabasiAlbert().fit(datasets.load("karate")).sample(rng=0).n_nodes
    34
    """

    edges_per_node_: float

    def _learn(self, graph: Graph, draws: Generator) -> None:
        self.edges_per_node_ = len(pairs_of(graph)[0]) / max(graph.n_nodes, 1)

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        n_nodes, directed = graph.n_nodes, graph.directed
        arrivals = np.arange(n_nodes)
        n_new = np.floor(self.edges_per_node_ + draws.random(n_nodes)).astype(np.int64)
        if self.edges_per_node_:  # the second node links to the first, or nobody would have a degree
            n_new[1:2] = 1
        n_new = np.minimum(n_new, arrivals)
        new, before = np.repeat(arrivals, n_new), np.repeat(np.cumsum(n_new) - n_new, n_new)
        chosen = _chosen_ends(before, draws)
        for _ in range(MOST_REDRAWS):
            old = _old_ends(new, chosen)
            again = _repeated(new * n_nodes + old)
            if not again.any():
                break
            chosen = np.where(again, _chosen_ends(before, draws), chosen)
        names = draws.permutation(n_nodes)
        one, other = names[new], names[_old_ends(new, chosen)]
        return distinct(one, other, n_nodes, directed)


def _chosen_ends(before: Nodes, draws: Generator) -> Nodes:
    """A random end of the edges before: 2e is the new end of edge e, 2e + 1 its old one; -1 for none."""
    return np.where(before == 0, -1, draws.integers(0, np.maximum(2 * before, 1)))


def _old_ends(new: Nodes, chosen: Nodes) -> Nodes:
    """The nodes that the chosen ends are: old ends are followed until a new one, or the first node."""
    end = chosen.copy()
    old = np.flatnonzero((end >= 0) & (end % 2 == 1))
    while len(old):
        end[old] = chosen[end[old] // 2]
        old = old[(end[old] >= 0) & (end[old] % 2 == 1)]
    return np.where(end < 0, 0, new[end // 2])


def _repeated(numbers: Nodes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether the same number stands somewhere before."""
    repeated = np.ones(len(numbers), bool)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    return repeated


def _degrees(graph: Graph) -> Pairs:
    """Edges that leave and that enter each node; all of its edges, twice, where undirected."""
    leaving, entering = (np.bincount(ends, minlength=graph.n_nodes) for ends in pairs_of(graph))
    return (leaving, entering) if graph.directed else (leaving + entering, leaving + entering)

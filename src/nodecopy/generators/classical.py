"""Random graph models that keep the number of edges, the degrees or the spectrum of the observed graph.

:class:`Structure` is what samples of null models keep: the sides, self-loops and weights of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Floats, Ints
from nodecopy._core.checks import check_choice, check_integer, check_vector
from nodecopy._core.linalg import truncated_svd
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.generators.base import (
    EdgeListModel,
    Edges,
    Nodes,
    binary_adjacency,
    check_node_rows,
    list_edges,
    remove_duplicates,
    replace_edges,
    sort_unique,
)
from nodecopy.generators.blocks import SBM, BlockModel, DegreeCorrectedSBM, assign_blocks, draw_block_edges
from nodecopy.graph import Graph

MAX_REDRAWS = 20
MAX_DIMENSIONS = 30  # largest number of dimensions that is estimated
NOISE_FACTOR = 2.1  # singular values of noise are up to about twice sqrt(mean degree)
PAIRS_AT_ONCE = 2**22  # probabilities held in memory at once
MAX_STORED_NODES = 6_000  # nodes up to which the probabilities of all pairs are stored
MAX_PROBABILITY = 1 - 1e-12
MIN_CYCLES = 7  # independent cycles that have even lengths by chance in fewer than 1 % of the graphs
N_BATCHES = 20  # in which weights are assigned to edges by the strengths of nodes


class ErdosRenyi(EdgeListModel):
    """The Erdős-Rényi model G(n, p): all pairs of nodes are edges independently with the same probability.

    Parameters
    ----------
    fixed_edges
        Whether samples have exactly the observed number of edges, the model G(n, m); no by default.

    Attributes
    ----------
    density_
        The probability p, the observed share of pairs of different nodes that are edges.
    n_edges_
        The number of edges of all samples, ``None`` if it varies.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ErdosRenyi
    >>> round(ErdosRenyi().fit(datasets.load("karate")).density_, 3)
    0.139
    """

    n_edges_: int | None = None

    def __init__(self, fixed_edges: bool = False) -> None:
        self.fixed_edges = fixed_edges

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self._count_edges(graph, self.fixed_edges)

    def _restore(self, graph: Graph) -> None:
        self._count_edges(graph, self.n_edges_ is not None)

    def _count_edges(self, graph: Graph, fixed_edges: bool) -> None:
        n_pairs = graph.n_nodes * (graph.n_nodes - 1) / (1 if graph.directed else 2)
        n_edges = len(list_edges(graph)[0])
        self.density_ = n_edges / max(n_pairs, 1)
        self.n_edges_ = n_edges if fixed_edges else None

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        if self.n_edges_ is not None:
            return _draw_pairs(graph.n_nodes, self.n_edges_, graph.directed, rng)
        blocks, block_pairs = np.zeros(graph.n_nodes, np.int64), np.zeros((2, 1), np.int64)
        density = np.array([self.density_])
        return draw_block_edges(blocks, block_pairs, density, rng, directed=graph.directed)


def _draw_pairs(n_nodes: int, n_pairs: int, directed: bool, rng: Generator) -> Edges:
    n_ordered = n_nodes * (n_nodes - 1)
    codes = rng.choice(n_ordered if directed else n_ordered // 2, n_pairs, replace=False, shuffle=False)
    if directed:
        first, second = np.divmod(codes, max(n_nodes - 1, 1))
        return first, second + (second >= first)
    # Pair (i, j) with i < j has the code j (j - 1) / 2 + i; the root may be off by rounding.
    second = ((1 + np.sqrt(1 + 8 * codes.astype(np.float64))) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > codes
    second += second * (second + 1) // 2 <= codes
    return codes - second * (second - 1) // 2, second


class ChungLu(EdgeListModel):
    """The Chung-Lu model: independent edges with probability min(1, d_i d_j / sum d).

    Here d are the observed degrees (out-degree of i and in-degree of j if directed). The expected degree in a
    sample is d_i, less d_i^2 / sum d for the missing self-loop and what is cut off at probability one.

    Attributes
    ----------
    blocks_
        The rank of each node's degree among the distinct degrees; if directed, out- before in-degrees.
    block_pairs_, probabilities_
        Pairs of distinct degrees, ``[2, n]``, and the probability of an edge between nodes of such degrees.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ChungLu
    >>> model = ChungLu().fit(datasets.load("karate"))
    >>> 60 < sum(sample.n_edges for sample in model.sample_many(20, rng=0)) / 20 < 80  # 78 observed edges
    True
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        ends = list_edges(graph)
        out_degrees, in_degrees = (np.bincount(nodes, minlength=graph.n_nodes) for nodes in ends)
        if not graph.directed:
            out_degrees = out_degrees + in_degrees
        degrees, blocks = np.unique(out_degrees, return_inverse=True)
        first, second = np.triu_indices(len(degrees))
        if graph.directed:  # node i occurs twice: as the source i and as the target n_nodes + i
            target_degrees, target_blocks = np.unique(in_degrees, return_inverse=True)
            n_sources, n_targets = len(degrees), len(target_degrees)
            first, second = np.divmod(np.arange(n_sources * n_targets), max(n_targets, 1))
            blocks, second = np.append(blocks, target_blocks + n_sources), second + n_sources
            degrees = np.append(degrees, target_degrees)
        product = degrees[first] * degrees[second]
        self.blocks_ = blocks
        self.block_pairs_ = np.stack([first, second])[:, product > 0]
        self.probabilities_ = np.minimum(product[product > 0] / max(out_degrees.sum(), 1), 1.0)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        blocks = self.blocks_, self.block_pairs_, self.probabilities_
        first, second = draw_block_edges(*blocks, rng, directed=False)
        if not graph.directed:
            return first, second
        second = second - graph.n_nodes
        return first[first != second], second[first != second]


class SwapModel(EdgeListModel):
    """The base class of models that swap ends of edges of the observed graph."""

    def __init__(self, n_swaps: int = 10) -> None:
        self.n_swaps = n_swaps

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.n_swaps_ = check_integer(self.n_swaps, f"n_swaps of {type(self).__name__}", low=0)
        self._list_edges(graph)

    def _restore(self, graph: Graph) -> None:
        self.n_swaps_ = check_integer(self.n_swaps_, "n_swaps_", low=0)
        self._list_edges(graph)

    def _list_edges(self, graph: Graph) -> None:
        """Set attributes that depend on the edges alone."""

    def restart(self, seed: SeedSequence) -> Self:
        """Return the model with a sample, exchangeable with the graph, as the start of samples."""
        other = copy(self)
        other.graph_ = self.draw(seed)
        other._restore(other.graph_)
        return other


class ConfigurationModel(SwapModel):
    """The configuration model of simple graphs: a random graph with exactly the observed degrees.

    A sample starts from the observed graph and swaps the ends of random pairs of edges: (a, b) and (c, d)
    become (a, d) and (c, b), unless that makes a self-loop or a repeated edge. The stationary distribution
    of this Markov chain is uniform. Both degrees of directed graphs are kept.

    Parameters
    ----------
    n_swaps
        Attempted swaps per edge (default 10). With fewer, samples are closer to the observed graph.

    Attributes
    ----------
    edges_, self_loops_, n_swaps_
        The observed edges, the nodes with a self-loop, and the ``n_swaps`` of the fit.

    Notes
    -----
    Self-loops of a directed graph are kept. Swaps never reverse a directed cycle of three nodes.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ConfigurationModel
    >>> karate = datasets.load("karate")
    >>> bool((ConfigurationModel().fit(karate).sample(rng=0).degrees == karate.degrees).all())
    True
    """

    def _list_edges(self, graph: Graph) -> None:
        rows, columns = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
        self.edges_, self.self_loops_ = list_edges(graph), rows[rows == columns]

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        first, second = swap_ends(self.edges_, graph.n_nodes, graph.directed, self.n_swaps_, rng)
        return np.append(first, self.self_loops_), np.append(second, self.self_loops_)


class BlockConfigurationModel(SwapModel, BlockModel):
    """The configuration model within blocks: every node keeps its number of edges to each block.

    Ends of edges between the same two blocks are swapped: a degree-corrected block model with exactly the
    observed degrees. Self-loops are dropped.

    Parameters
    ----------
    n_swaps
        As in :class:`ConfigurationModel`.

    Attributes
    ----------
    blocks_, n_swaps_
        The blocks of :class:`.SBM`, and the ``n_swaps`` of the fit.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import BlockConfigurationModel
    >>> karate = datasets.load("karate")
    >>> sample = BlockConfigurationModel().fit(karate).sample(rng=0)
    >>> bool((sample.degrees == karate.degrees).all())
    True
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        SwapModel._estimate(self, graph, rng)
        BlockModel._estimate(self, graph, rng)

    def _restore(self, graph: Graph) -> None:
        SwapModel._restore(self, graph)
        BlockModel._restore(self, graph)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        first, second = list_edges(graph)
        if not graph.directed:  # the smaller block first, so that swaps keep the blocks of both ends
            is_ordered = self.blocks_[first] <= self.blocks_[second]
            first, second = np.where(is_ordered, first, second), np.where(is_ordered, second, first)
        pairs = self.blocks_[first] * (self.blocks_.max(initial=0) + 1) + self.blocks_[second]
        for pair in np.unique(pairs):
            group = np.flatnonzero(pairs == pair)
            edges = first[group], second[group]
            is_between = self.blocks_[edges[0][0]] != self.blocks_[edges[1][0]]
            directed = graph.directed or is_between
            first[group], second[group] = swap_ends(edges, graph.n_nodes, directed, self.n_swaps_, rng)
        return first, second


def swap_ends(edges: Edges, n_nodes: int, directed: bool, n_swaps: int, rng: Generator) -> Edges:
    """Return edges after ``n_swaps`` attempted swaps per edge."""
    from nodecopy.generators.kernels import swap_edges

    first, second = (nodes.copy() for nodes in edges)
    n_edges = len(first)
    table = np.empty(1 << (4 * n_edges).bit_length(), np.int64)
    for _ in range(n_swaps if n_edges > 1 else 0):
        left, right = rng.integers(0, n_edges, (2, n_edges))
        flips = rng.random(n_edges) < 0.5
        swap_edges(first, second, n_nodes, directed, left, right, flips, table)
    return first, second


class BarabasiAlbert(EdgeListModel):
    """The Barabási-Albert model: nodes arrive one by one and attach to earlier ones in proportion to degree.

    Nodes arrive in random order. Each brings ``edges_per_node_`` edges, rounded at random, to distinct
    earlier nodes. Edges of a directed graph lead from new to old nodes.

    Attributes
    ----------
    edges_per_node_
        The observed number of edges divided by the number of nodes.

    Notes
    -----
    The target of an edge is a random end of an earlier edge (Batagelj and Brandes, 2005). Repeated edges are
    drawn again up to 20 times, then dropped.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import BarabasiAlbert
    >>> BarabasiAlbert().fit(datasets.load("karate")).sample(rng=0).n_nodes
    34
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.edges_per_node_ = len(list_edges(graph)[0]) / max(graph.n_nodes, 1)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        n_nodes = graph.n_nodes
        arrivals = np.arange(n_nodes)
        n_new = np.floor(self.edges_per_node_ + rng.random(n_nodes)).astype(np.int64)
        if self.edges_per_node_:  # the second node links to the first, so that degrees are not all 0
            n_new[1:2] = 1
        n_new = np.minimum(n_new, arrivals)
        sources, n_before = np.repeat(arrivals, n_new), np.repeat(np.cumsum(n_new) - n_new, n_new)
        ends = _draw_ends(n_before, rng)
        for _ in range(MAX_REDRAWS):
            repeated = np.ones(len(sources), bool)
            pairs = sources * n_nodes + _resolve_ends(sources, ends)
            repeated[np.unique(pairs, return_index=True)[1]] = False
            if not repeated.any():
                break
            ends = np.where(repeated, _draw_ends(n_before, rng), ends)
        nodes = rng.permutation(n_nodes)
        targets = _resolve_ends(sources, ends)
        return remove_duplicates(nodes[sources], nodes[targets], n_nodes, graph.directed)


def _draw_ends(n_before: Nodes, rng: Generator) -> Nodes:
    """Draw ends of earlier edges: 2e is the source of edge e, 2e + 1 its target; -1 for none."""
    return np.where(n_before == 0, -1, rng.integers(0, np.maximum(2 * n_before, 1)))


def _resolve_ends(sources: Nodes, ends: Nodes) -> Nodes:
    resolved = ends.copy()
    pending = np.flatnonzero((resolved >= 0) & (resolved % 2 == 1))
    while len(pending):
        resolved[pending] = ends[resolved[pending] // 2]
        pending = pending[(resolved[pending] >= 0) & (resolved[pending] % 2 == 1)]
    return np.where(resolved < 0, 0, sources[resolved // 2])


class RandomDotProduct(EdgeListModel):
    """The random dot product graph: the probability of an edge is the product of two latent positions.

    Positions are the adjacency spectral embedding: the probabilities are the best low-rank approximation of
    the adjacency matrix, cut off at 0 and 1. Samples take time in proportion to pairs of nodes; up to 6,000
    nodes only the first one does.

    Parameters
    ----------
    n_dimensions
        Dimensions of the positions. By default the number of singular values above 2.1 times the root of the
        mean degree, from 1 to 30.

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
        parts = [np.zeros((2, 0), np.int64)]
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
    """Independent edges, each with its own probability.

    The number of points on a pair is Poisson with mean -log(1 - p): a binary search per edge instead of a
    random number per pair. If undirected, the upper triangle counts.
    """

    def __init__(self, probabilities: Floats, directed: bool) -> None:
        means = np.array(probabilities) if directed else np.triu(probabilities, 1)
        np.fill_diagonal(means, 0.0)
        np.clip(means, 0.0, MAX_PROBABILITY, out=means)
        np.negative(means, out=means)
        np.log1p(means, out=means)
        np.negative(means, out=means)
        self.n_nodes, self.cumulative = len(means), np.cumsum(means, out=means.reshape(-1))

    def draw(self, rng: Generator) -> Edges:
        total = float(self.cumulative[-1]) if self.n_nodes else 0.0
        points = np.sort(rng.random(rng.poisson(total))) * total
        # A point is below the total, except by rounding.
        pairs = np.searchsorted(self.cumulative, points, side="right").clip(max=max(self.n_nodes**2 - 1, 0))
        first, second = np.divmod(sort_unique(pairs), max(self.n_nodes, 1))
        return first, second


@dataclass(frozen=True)
class Structure:
    """The structure of a graph that samples of a null model keep: sides, self-loops and weights."""

    graph: Graph
    sides: Ints | None
    """The side of each node, 0 or 1, if the graph is bipartite."""
    weights: str

    @classmethod
    def of(cls, graph: Graph, sides: Any, weights: str) -> Structure:
        """Return the structure after checking the sides, or detecting them."""
        if isinstance(sides, str):
            check_choice(sides, "sides of null_test", ("detect",))
            codes = detect_sides(graph)
            if codes is not None:
                n_first = int((codes == 0).sum())
                found = f"the graph is bipartite, with {n_first} and {graph.n_nodes - n_first} nodes"
                log_decision(f"sides: {found}, and so are the samples.", "sides")
            return cls(graph, codes, weights)
        if sides is None:
            return cls(graph, None, weights)
        values, name = check_vector(sides, "sides of null_test", length=graph.n_nodes), "sides of null_test"
        names, codes = np.unique(values, return_inverse=True)
        if len(names) > 2 or (n_inside := count_inside(graph, codes)):
            got = f"{len(names)} values" if len(names) > 2 else f"{n_inside} edges within a side"
            raise InputError(name, f"must have two values, and edges between them; got {got}. Give None.")
        return cls(graph, codes, weights)

    def adapt(self, model: Any, graph: Graph) -> tuple[Any, Graph]:
        """Return a model that keeps the sides, and the graph that it is fitted to, with blocks as labels."""
        if self.sides is None:
            return model, graph
        labels: Any = self.sides
        if isinstance(model, BlockModel):
            labels = labels + 2 * assign_blocks(graph, np.random.default_rng(0))
        elif isinstance(model, ConfigurationModel):
            model = BlockConfigurationModel(model.n_swaps)
        elif isinstance(model, ErdosRenyi):
            model = SBM(model.fixed_edges)
        elif isinstance(model, ChungLu):
            model = DegreeCorrectedSBM()
        else:
            return model, graph
        return model, graph.replace(labels=labels)

    def restore(self, sample: Graph, seed: SeedSequence) -> Graph:
        """Return the sample with the labels, self-loops and weights of the graph, where it has none."""
        graph = self.graph
        loops, is_weighted = _loops(graph), graph.is_weighted and not sample.is_weighted
        if not is_weighted and np.array_equal(_loops(sample), loops):
            return graph.with_rows(sample.rows)
        first, second = list_edges(sample)
        weights = None
        if is_weighted:
            rows, columns = graph.rows.row_numbers, graph.rows.indices
            values = graph.adjacency.data[rows != columns if graph.directed else rows < columns]
            weights = self._assign(values, first, second, np.random.default_rng(seed))
            weights = np.append(weights, graph.adjacency.diagonal()[loops])
        return replace_edges(graph, np.append(first, loops), np.append(second, loops), weights)

    def _assign(self, values: Floats, first: Ints, second: Ints, rng: Generator) -> Floats:
        """Return a weight for each edge; with another number of edges weights are resampled."""
        values = rng.choice(values, len(first), replace=len(first) != len(values))
        if self.weights == "permute":
            return values
        adjacency, n_nodes = self.graph.adjacency, self.graph.n_nodes
        loops = adjacency.diagonal()
        rest = [np.asarray(adjacency.sum(axis=1) - loops), np.asarray(adjacency.sum(axis=0) - loops)]
        weights, values, edges = np.empty(len(first)), np.sort(values), rng.permutation(len(first))
        for batch in np.array_split(edges, N_BATCHES):  # the largest weights are for the largest products
            expected = rest[0][first[edges]] * rest[1][second[edges]]
            ranks = np.argsort(np.argsort(expected, kind="stable"))[: len(batch)]
            weights[batch], values = values[ranks], np.delete(values, ranks)
            edges = edges[len(batch) :]
            used = [np.bincount(ends[batch], weights[batch], n_nodes) for ends in (first, second)]
            used = used if self.graph.directed else [used[0] + used[1]] * 2
            rest = [np.maximum(part - sums, 0.0) for part, sums in zip(rest, used, strict=True)]
        return weights

    def list_kept(self, samples: Sequence[Graph], model: str) -> tuple[str, ...]:
        """Return what the samples share with the graph, and warn if they break its structure."""
        graph, sides = self.graph, self.sides
        alike: dict[str, Callable[[Graph], Any]] = {
            "directions": lambda g: g.directed,
            "degrees": lambda g: np.stack([g.degrees, np.bincount(g.rows.indices, minlength=g.n_nodes)]),
            "number of edges": lambda g: g.n_edges,
            "self-loops": _loops,
            "sides": lambda g: sides is not None and count_inside(g, sides),
            "weights": lambda g: np.sort(g.adjacency.data),
        }
        features = {
            "directions": graph.directed,
            "self-loops": len(_loops(graph)),
            "sides": sides is not None,
        }
        features |= {"weights": graph.is_weighted}
        has_all = {
            name: all(np.array_equal(of(sample), of(graph)) for sample in samples)
            for name, of in alike.items()
            if features.get(name, True)
        }
        if has_all["degrees"]:
            del has_all["number of edges"]
        if lost := [name for name in features if not has_all.get(name, True)]:
            advice = "Use the null model 'configuration'."
            warn_about_data(f"samples of {model} do not have the {lost[0]} of the graph. {advice}", "null")
        return tuple(name for name, is_kept in has_all.items() if is_kept)


def detect_sides(graph: Graph) -> Ints | None:
    """Return the side of each node, 0 or 1, of a graph that is bipartite by more than chance.

    The first node of a component is on side 0. In a random graph about half of the independent cycles have an
    odd length, so that chance explains a graph with few cycles.
    """
    from scipy.sparse.csgraph import connected_components

    cover = join_sides(binary_adjacency(graph.undirected()))
    n_parts, parts = connected_components(cover.adjacency, directed=False)
    first, second = np.split(parts, 2)
    n_cycles = cover.n_edges // 2 - graph.n_nodes + n_parts // 2
    if len(_loops(graph)) or (first == second).any() or n_cycles < MIN_CYCLES:
        return None
    return (first > second).astype(np.int64)


def count_inside(graph: Graph, sides: Ints) -> int:
    """Return the number of ends of edges within a side."""
    return int((sides[graph.rows.row_numbers] == sides[graph.rows.indices]).sum())


def _loops(graph: Graph) -> Ints:
    """Return the nodes with a self-loop."""
    loops: Ints = graph.rows.indices[graph.rows.indices == graph.rows.row_numbers].astype(np.int64)
    return loops


def join_sides(matrix: Any, node_ids: ArrayLike | None = None) -> Graph:
    """Return the bipartite graph of a matrix, its rows first and then its columns."""
    return Graph(sparse.block_array([[None, matrix], [matrix.T, None]], format="csr"), node_ids=node_ids)

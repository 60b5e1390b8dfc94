"""Stochastic block models: the probability of an edge depends on the blocks of its two nodes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.checks import check_indices, check_numbers, check_real, check_settings, check_vector
from nodecopy.errors import InputError
from nodecopy.generators.base import (
    EdgeListModel,
    Edges,
    Nodes,
    check_node_rows,
    check_pairs,
    list_edges,
    remove_duplicates,
    sort_unique,
)
from nodecopy.graph import UNLABELLED, Graph

Floats = NDArray[np.float64]
N_PROPAGATION_STEPS = 30
MAX_POISSON_PROBABILITY = 0.5  # larger probabilities are drawn pair by pair
MIN_PROBABILITY, MAX_PROBABILITY = 1e-12, 1 - 2.0**-40  # of an edge, for mixed memberships
MIN_COMPILED_SIZE = 2**14  # links above which compilation pays off
CERTAINTY = 0.9  # initial membership of a node in the block of its label
PRIOR_RATE, STEP_DELAY = 0.001, 1024.0  # of the inference, as in the authors' code


class BlockModel(EdgeListModel):
    """The base class of models whose blocks are the labels, completed by label propagation."""

    blocks_: Nodes

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.blocks_ = assign_blocks(graph, rng)
        self._count_edges(graph)

    def _restore(self, graph: Graph) -> None:
        blocks = check_vector(self.blocks_, "blocks_", length=graph.n_nodes)
        self.blocks_ = check_indices(blocks, "blocks_", size=graph.n_nodes)
        self._count_edges(graph)

    def _count_edges(self, graph: Graph) -> None:
        """Set the attributes that depend on the edges between blocks."""


class SBM(BlockModel):
    """The stochastic block model: the probability of an edge is the observed density between two blocks.

    Edges are independent, and the expected number of edges between two blocks is the observed one.

    Parameters
    ----------
    fixed_edges
        Whether samples have exactly the observed numbers of edges, the microcanonical model; no by default.

    Attributes
    ----------
    blocks_
        The block of each node: its label, or the result of label propagation with random ties. A graph
        without labels is divided into communities.
    block_pairs_, probabilities_
        The pairs of blocks with an edge between them, ``[2, n]``, and the densities.
    fixed_edges_
        The ``fixed_edges`` of the fit.

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

    fixed_edges_: bool = False

    def __init__(self, fixed_edges: bool = False) -> None:
        self.fixed_edges = fixed_edges

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.fixed_edges_ = bool(self.fixed_edges)
        super()._estimate(graph, rng)

    def _count_edges(self, graph: Graph) -> None:
        self.block_pairs_, n_edges = _count_block_edges(graph, self.blocks_)
        sizes = np.bincount(self.blocks_)
        self.probabilities_ = n_edges / count_pairs(self.block_pairs_, sizes, directed=graph.directed)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        parameters = self.blocks_, self.block_pairs_, self.probabilities_
        draw = _draw_fixed_edges if self.fixed_edges_ else draw_block_edges
        return draw(*parameters, rng, directed=graph.directed)


class DegreeCorrectedSBM(BlockModel):
    """The degree-corrected block model, which keeps degrees in expectation (Karrer and Newman, 2011).

    The number of edges between two blocks is Poisson with the observed number as its mean. Each end is a node
    of its block, drawn in proportion to its observed degree (out- or in-degree if directed). Repeated edges
    and self-loops are dropped, so hubs get somewhat fewer edges than observed.

    Attributes
    ----------
    blocks_
        As in :class:`SBM`.
    block_pairs_, n_block_edges_
        The pairs of blocks with an edge between them, ``[2, n]``, and the observed numbers of edges.
    stubs_
        The first and the second nodes of all edges, sorted by block; the same for undirected graphs.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DegreeCorrectedSBM
    >>> sample = DegreeCorrectedSBM().fit(datasets.load("karate")).sample(rng=0)
    >>> int(sample.degrees[[0, 33]].min()) > int(sample.degrees.mean())  # the two hubs remain hubs
    True
    """

    def _count_edges(self, graph: Graph) -> None:
        self.block_pairs_, self.n_block_edges_ = _count_block_edges(graph, self.blocks_)
        ends = list_edges(graph)
        if not graph.directed:
            ends = np.concatenate(ends), np.concatenate(ends)
        self.stubs_ = tuple(nodes[np.argsort(self.blocks_[nodes], kind="stable")] for nodes in ends)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        n_edges = rng.poisson(self.n_block_edges_)
        ends = []
        for stubs, blocks in zip(self.stubs_, self.block_pairs_, strict=True):
            sizes = np.bincount(self.blocks_[stubs], minlength=len(self.blocks_))
            owners = np.repeat(blocks, n_edges)
            ends.append(stubs[(np.cumsum(sizes) - sizes)[owners] + rng.integers(0, sizes[owners])])
        return remove_duplicates(ends[0], ends[1], graph.n_nodes, graph.directed)


def count_pairs(block_pairs: Nodes, sizes: Nodes, *, directed: bool) -> Nodes:
    """Return the number of pairs of different nodes in each pair of blocks, ``[2, n]``."""
    first, second = block_pairs
    within = sizes[first] * (sizes[first] - 1) // (1 if directed else 2)
    return np.asarray(np.where(first == second, within, sizes[first] * sizes[second]))


def draw_block_edges(
    blocks: Nodes, block_pairs: Nodes, probabilities: Floats, rng: Generator, *, directed: bool
) -> Edges:
    """Draw edges with the probability of their pair of blocks; each is listed once, the smaller first."""
    sizes = np.bincount(blocks, minlength=1)
    n_pairs = count_pairs(block_pairs, sizes, directed=directed)
    dense = probabilities > MAX_POISSON_PROBABILITY
    n_listed = n_pairs * dense
    listed = np.repeat(np.arange(len(n_pairs)), n_listed)
    numbers = np.arange(len(listed)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    is_edge = rng.random(len(listed)) < probabilities[listed]
    listed, numbers = listed[is_edge], numbers[is_edge]
    n_draws = rng.poisson(-np.log1p(-np.where(dense, 0, probabilities)) * n_pairs)
    owners = np.repeat(np.arange(len(n_pairs)), n_draws)
    starts = np.cumsum(n_pairs) - n_pairs
    hits = sort_unique(starts[owners] + rng.integers(0, n_pairs[owners]))
    owners = np.searchsorted(starts, hits, side="right") - 1
    selected = np.concatenate([listed, owners])
    numbers = np.concatenate([numbers, hits - starts[owners]])
    first, second = block_pairs[:, selected]
    return _decode_pairs(blocks, sizes, first, second, numbers, directed)


def _draw_fixed_edges(
    blocks: Nodes, block_pairs: Nodes, probabilities: Floats, rng: Generator, *, directed: bool
) -> Edges:
    """Draw the expected number of edges between each pair of blocks."""
    sizes = np.bincount(blocks, minlength=1)
    n_pairs = count_pairs(block_pairs, sizes, directed=directed)
    n_edges = np.rint(probabilities * n_pairs).astype(np.int64)
    parts = [
        rng.choice(total, size, replace=False, shuffle=False)
        for total, size in zip(n_pairs, n_edges, strict=True)
    ]
    first, second = np.repeat(block_pairs, n_edges, axis=1)
    return _decode_pairs(blocks, sizes, first, second, np.concatenate([*parts, n_edges[:0]]), directed)


def _decode_pairs(
    blocks: Nodes, sizes: Nodes, first: Nodes, second: Nodes, numbers: Nodes, directed: bool
) -> Edges:
    width = sizes[second]
    within = first == second
    if directed:  # a row for each node, without the node itself
        row, column = np.divmod(numbers, np.maximum(width - within, 1))
        column += within & (column >= row)
    else:  # within a block, whose nodes form a circle: pairs at distance 1, then 2, ... up to half of it
        row, column = np.divmod(numbers, width)
        row, column = np.where(within, column, row), np.where(within, (column + row + 1) % width, column)
    members, starts = np.argsort(blocks, kind="stable"), np.cumsum(sizes) - sizes
    return members[starts[first] + row], members[starts[second] + column]


def _count_block_edges(graph: Graph, blocks: Nodes) -> tuple[Nodes, Nodes]:
    first, second = (blocks[nodes] for nodes in list_edges(graph))
    if not graph.directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    n_blocks = int(blocks.max(initial=0)) + 1
    codes, n_edges = np.unique(first * n_blocks + second, return_counts=True)
    return np.stack(np.divmod(codes, n_blocks)), n_edges


def assign_blocks(graph: Graph, rng: Generator) -> Nodes:
    """Return the block of each node: its label, or the result of label propagation."""
    n_nodes = graph.n_nodes
    observed = np.full(n_nodes, UNLABELLED) if graph.label_codes is None else graph.label_codes
    names, labels = np.unique(observed, return_inverse=True)
    fixed = observed != UNLABELLED
    # Labels become 0, 1, 2, ..., with "unlabelled" last.
    labels = (labels - (names[:1] == UNLABELLED).sum()) % max(len(names), 1)
    if not fixed.any():
        names, labels = np.arange(n_nodes + 1), np.arange(n_nodes)
    unlabelled = len(names) - 1 if not fixed.all() else len(names)
    first, second = list_edges(graph)
    first, second = np.concatenate([first, second]), np.concatenate([second, first])
    for _ in range(N_PROPAGATION_STEPS * (not fixed.all())):
        proposed = _most_common_labels(labels, first, second, unlabelled, rng)
        # Only half of the nodes change, so that neighbours do not swap labels forever.
        changed = ~fixed & (proposed != unlabelled) & (rng.random(n_nodes) < 0.5)
        labels = np.where(changed, proposed, labels)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _most_common_labels(labels: Nodes, first: Nodes, second: Nodes, unlabelled: int, rng: Generator) -> Nodes:
    votes = labels[second] != unlabelled
    codes, counts = np.unique(first[votes] * (unlabelled + 1) + labels[second[votes]], return_counts=True)
    nodes, candidates = np.divmod(codes, unlabelled + 1)
    order = np.lexsort((rng.random(len(counts)), counts, nodes))
    result = np.full(len(labels), unlabelled)
    result[nodes[order]] = candidates[order]  # the last assignment to a node is its most frequent label
    return result


@dataclass(eq=False, repr=False)
class MMSBM(EdgeListModel):
    """The mixed-membership stochastic block model, in which every node belongs to all blocks to some degree.

    For each pair both nodes draw a block from their memberships pi. If they draw the same block k, the pair
    is an edge with probability beta_k, otherwise with probability delta, so that P(edge) = delta + sum_k
    (beta_k - delta) pi_ik pi_jk. A sample takes time in proportion to its edges.

    Parameters
    ----------
    memberships
        Initial pi, nodes x blocks. By default 0.9 for the block of a node in :class:`SBM`; the other blocks
        share the rest.
    delta
        Probability of an edge between nodes that draw different blocks.
    n_steps, batch_size
        Steps of the inference, and the number of nodes that each step updates.

    Attributes
    ----------
    memberships_, strengths_, delta_
        pi, beta and delta.

    Notes
    -----
    Inference ascends the posterior as in the authors' code, with pi_i = phi_i / sum phi_i,
    beta_k = theta_k1 / (theta_k0 + theta_k1) and, in step t, the preconditioned

        phi <- abs(phi + (phi gradient - 0.001 phi) / (2 sqrt(t + 1024))),

    and the same for theta, without noise. The priors are exponential distributions. The gradient uses all
    edges of the updated nodes and, scaled up, their non-edges to ``batch_size`` random partners. If directed,
    (i, j) and (j, i) are two observations.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import MMSBM
    >>> model = MMSBM().fit(datasets.load("karate"), rng=0)
    >>> same_club, other_club = model.edge_probabilities([32, 0], [33, 33])
    >>> bool(same_club > other_club)
    True
    """

    memberships: ArrayLike | None = None
    _: KW_ONLY
    delta: float = 1e-4
    n_steps: int = 1000
    batch_size: int = 500

    def edge_probabilities(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """Return the probability of an edge between the nodes at ``first[k]`` and ``second[k]``."""
        self.check_fitted()
        pi = self.memberships_
        rows, columns = check_pairs(first, second, len(pi))
        return _edge_probabilities(pi[rows], pi[columns], self.strengths_ - self.delta_, self.delta_)

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        check_settings(self, delta=(0.0, MAX_PROBABILITY), n_steps=0, batch_size=1)
        pi = self._initial_memberships(graph, rng)
        phi = pi.copy()
        gradient = _StochasticGradient(graph, self.delta, self.batch_size, rng)
        theta = gradient.expected_counts(pi)
        for t in range(self.n_steps if graph.n_nodes > 1 else 0):
            half = np.float64(t + STEP_DELAY) ** -0.5 / 2
            nodes, for_phi, for_theta = gradient.draw(pi, theta[1] / theta.sum(axis=0))
            before = phi[nodes]
            after = np.abs(before + half * (for_phi - PRIOR_RATE * before))
            phi[nodes], pi[nodes] = after, after / after.sum(axis=1, keepdims=True)
            theta = np.abs(theta + half * (for_theta - PRIOR_RATE * theta))
        self.memberships_ = pi
        self.strengths_ = np.minimum(theta[1] / theta.sum(axis=0), MAX_PROBABILITY)
        self.delta_ = self.delta

    def _restore(self, graph: Graph) -> None:
        self.memberships_ = pi = check_node_rows(self.memberships_, "memberships_", graph.n_nodes)
        if (pi < 0).any() or not np.allclose(pi.sum(axis=1), 1):
            raise InputError("memberships_", "must hold probabilities that add up to one for every node.")
        beta = check_vector(check_numbers(self.strengths_, "strengths_"), "strengths_", length=pi.shape[1])
        if not ((beta >= 0) & (beta <= MAX_PROBABILITY)).all():
            limits = f"{beta.min():.3g} to {beta.max():.3g}"
            raise InputError("strengths_", f"must lie between 0 and {MAX_PROBABILITY}; got {limits}.")
        self.strengths_ = beta.astype(np.float64, copy=False)
        self.delta_ = check_real(self.delta_, "delta_", low=0.0, high=MAX_PROBABILITY)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        """Draw candidate pairs, then accept each with the ratio of the two probabilities.

        A pair is drawn a Poisson number of times, whose mean is that of -log(1 - p) over the drawn blocks,
        by convexity at least its probability of an edge.
        """
        pi, beta, delta = self.memberships_, self.strengths_, self.delta_
        n_nodes, n_blocks = pi.shape
        base_rate = -np.log1p(-delta)
        block_rates = np.maximum(-np.log1p(-beta) - base_rate, 0)
        share = 1 if graph.directed else 0.5
        masses = pi.sum(axis=0)
        blocks = np.repeat(np.arange(n_blocks), rng.poisson(share * block_rates * masses**2))
        n_anywhere = rng.poisson(share * base_rate * n_nodes**2)
        bounds = np.cumsum(pi.T)
        ends = []
        for _ in range(2):
            points = (np.cumsum(masses) - masses)[blocks] + rng.random(len(blocks)) * masses[blocks]
            positions = np.searchsorted(bounds, points, side="right") - blocks * n_nodes
            anywhere = rng.integers(0, n_nodes or 1, n_anywhere)
            ends.append(np.append(np.clip(positions, 0, n_nodes - 1), anywhere))
        first, second = remove_duplicates(ends[0], ends[1], n_nodes, graph.directed)
        rates = base_rate + np.einsum("ek,ek,k->e", pi[first], pi[second], block_rates)
        probabilities = _edge_probabilities(pi[first], pi[second], beta - delta, delta)
        accepted = rng.random(len(first)) * -np.expm1(-rates) < probabilities
        return first[accepted], second[accepted]

    def _initial_memberships(self, graph: Graph, rng: Generator) -> Floats:
        if self.memberships is None:
            blocks = assign_blocks(graph, rng)
            n_blocks = int(blocks.max(initial=0)) + 1
            pi = np.full((graph.n_nodes, n_blocks), (1 - CERTAINTY) / max(n_blocks - 1, 1))
            pi[np.arange(graph.n_nodes), blocks] = CERTAINTY if n_blocks > 1 else 1.0
            return pi
        memberships = check_node_rows(self.memberships, "memberships of MMSBM", graph.n_nodes)
        if (memberships < 0).any() or not (memberships > 0).any(axis=1).all():
            raise InputError("memberships of MMSBM", "must not be negative, nor all zero in any row.")
        pi = memberships / memberships.max(axis=1, keepdims=True)  # otherwise the sum might overflow
        return np.asarray(pi / pi.sum(axis=1, keepdims=True))


class _StochasticGradient:
    """Estimates of the gradient of the log-likelihood from batches of nodes and partners."""

    def __init__(self, graph: Graph, delta: float, batch_size: int, rng: Generator) -> None:
        self.delta, self.rng, self.n_nodes = delta, rng, graph.n_nodes
        self.batch_size = min(batch_size, graph.n_nodes)
        self.edges = list_edges(graph)
        ends = np.concatenate(self.edges), np.concatenate(self.edges[::-1])
        shape = (graph.n_nodes, graph.n_nodes)
        # Two nodes of a directed graph may have two edges between them.
        self.links = sparse.csr_array((np.ones(len(ends[0])), ends), shape=shape)
        self.max_links = 2 if graph.directed else 1
        self.degrees = np.bincount(ends[0], minlength=graph.n_nodes)
        self.n_pairs = self.max_links * graph.n_nodes * (graph.n_nodes - 1) / 2

    def expected_counts(self, pi: Floats) -> Floats:
        pairs = self.max_links * (pi.sum(axis=0) ** 2 - (pi**2).sum(axis=0)) / 2
        edges = np.einsum("ek,ek->k", pi[self.edges[0]], pi[self.edges[1]])
        return np.stack([np.maximum(pairs - edges, 1), np.maximum(edges, 1)])

    def draw(self, pi: Floats, beta: Floats) -> tuple[Nodes, Floats, Floats]:
        nodes = self.rng.choice(self.n_nodes, self.batch_size, replace=False)
        partners = self.rng.choice(self.n_nodes, self.batch_size, replace=False)
        excess = beta - self.delta
        linked = self._sum_neighbours(pi, excess)
        non_edge = 1 - self.delta - (pi[nodes] * excess) @ pi[partners].T
        weights = self.max_links / np.maximum(non_edge, MIN_PROBABILITY)
        links = self.links[nodes][:, partners].tocoo()
        weights[links.row, links.col] *= 1 - links.data / self.max_links
        _, rows, columns = np.intersect1d(nodes, partners, assume_unique=True, return_indices=True)
        weights[rows, columns] = 0
        unlinked = weights @ pi[partners]
        n_sampled = self.max_links * len(partners) - np.bincount(links.row, links.data, len(nodes))
        n_sampled[rows] -= self.max_links
        n_unlinked = self.max_links * (self.n_nodes - 1) - self.degrees[nodes]
        slopes = excess * (linked[nodes] - (n_unlinked / np.maximum(n_sampled, 1))[:, None] * unlinked)
        for_phi = pi[nodes] * (slopes - (pi[nodes] * slopes).sum(axis=1, keepdims=True))
        from_edges = np.einsum("nk,nk->k", pi, linked) / 2  # every edge is counted at both of its ends
        scale = (self.n_pairs - len(self.edges[0])) / max(n_sampled.sum(), 1)
        from_non_edges = scale * (pi[nodes] * unlinked).sum(axis=0)
        for_theta = beta * (1 - beta) * (from_edges - from_non_edges)
        return nodes, for_phi, np.stack([-for_theta, for_theta])

    def _sum_neighbours(self, pi: Floats, excess: Floats) -> Floats:
        links = self.links
        if links.nnz < MIN_COMPILED_SIZE:
            nodes = np.repeat(np.arange(self.n_nodes), np.diff(links.indptr))
            weights = links.data / _edge_probabilities(pi[nodes], pi[links.indices], excess, self.delta)
            return np.asarray(sparse.csr_array((weights, links.indices, links.indptr), links.shape) @ pi)
        from nodecopy.generators.kernels import sum_neighbour_memberships

        result = np.empty_like(pi)
        matrix, limits = (links.indptr, links.indices, links.data), (self.delta, MIN_PROBABILITY)
        sum_neighbour_memberships(*matrix, pi, excess, *limits, result)
        return result


def _edge_probabilities(first: Floats, second: Floats, excess: Floats, delta: float) -> Floats:
    mixed = delta + np.einsum("ek,ek,k->e", first, second, excess)
    return np.asarray(np.maximum(mixed, MIN_PROBABILITY))

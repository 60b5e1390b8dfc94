"""The assortative mixed-membership block model, as the Bayesian GCN of Zhang et al. (2019) uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.validation import (
    as_array,
    check_choice,
    check_finite,
    check_indices,
    check_integer,
    check_real,
    check_vector,
)
from nodecopy.errors import InputError
from nodecopy.generators.base import Nodes, PairModel, Pairs, blocks_of, distinct, pairs_of
from nodecopy.graph import Graph

Floats = NDArray[np.float64]
CERTAIN = 1 - 2.0**-40
"""The largest probability of an edge."""
LEAST = 1e-12
"""The least, so that what is observed is possible."""
MIN_COMPILED_SIZE = 2**14
"""So many links are worth waiting for a compiler."""


class MMSBM(PairModel):
    """Every node belongs to all blocks, more or less; two nodes that meet in a block are likelier linked.

    For each pair both nodes draw a block from their memberships pi. If they draw the same block k, the
    edge is there with probability beta_k, otherwise with probability delta, so that
    P(edge) = delta + sum_k (beta_k - delta) pi_ik pi_jk. This is sampled exactly, at the cost of edges.

    Parameters
    ----------
    memberships
        What pi starts from: one row for each node, one column for each block. By default the labels of
        the graph (:func:`.blocks_of` where there are none), believed as far as ``certainty`` says.
    certainty
        Membership of a node in the block of its label to start with; other blocks share the rest.
    assignment
        ``"mixed"``, the model; ``"hard"``: the authors' code, in which every node belongs to its likeliest
        block alone.
    delta
        Probability of an edge between nodes that draw different blocks.
    steps, batch
        Steps of the inference, and how many nodes each of them moves. The paper does not say how many steps;
        on Cora memberships settle after about 1000.
    alpha, eta, rho
        Shapes of the gamma priors of phi and theta, and their common rate.
    step_size, tau, kappa
        Step t has the size ``step_size * (t + tau) ** -kappa``.

    Attributes
    ----------
    memberships_, strengths_
        pi and beta.

    Notes
    -----
    *Inference* climbs the posterior as the authors' code does, with pi_i = phi_i / sum phi_i,
    beta_k = theta_k1 / (theta_k0 + theta_k1) and the preconditioned step
    phi <- abs(phi + step / 2 (alpha - 1 - rho phi + phi gradient)), theta likewise; no noise is added, so
    the result is one likely point. phi_i starts with the sum one, theta_k with the numbers of
    non-edges and edges that the first memberships expect in block k. The gradient takes all edges of the
    moved nodes and the non-edges to ``batch`` random partners, scaled up; partners that turn out to be
    neighbours are rejected, so no list of non-edges is needed and any degree will do.

    *Directed graphs*: (i, j) and (j, i) are two observations, and two draws, of the same probability.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import MMSBM
    >>> model = MMSBM().fit(datasets.load("karate"), rng=0)
    >>> model.memberships_.shape
    (34, 2)
    >>> friends, strangers = model.edge_probabilities([32, 0], [33, 33])
    >>> bool(friends > strangers)
    True
    """

    memberships_: Floats
    strengths_: Floats
    _drawn: Floats

    def __init__(
        self,
        memberships: ArrayLike | None = None,
        *,
        certainty: float = 0.9,
        assignment: str = "mixed",
        delta: float = 1e-4,
        steps: int = 1000,
        batch: int = 500,
        alpha: float = 1.0,
        eta: float = 1.0,
        rho: float = 0.001,
        step_size: float = 1.0,
        tau: float = 1024.0,
        kappa: float = 0.5,
    ) -> None:
        self.memberships, self.certainty, self.assignment, self.delta = (
            memberships,
            certainty,
            assignment,
            delta,
        )
        self.steps, self.batch = steps, batch
        self.alpha, self.eta, self.rho = alpha, eta, rho
        self.step_size, self.tau, self.kappa = step_size, tau, kappa

    def edge_probabilities(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """Probability that nodes ``first[k]`` and ``second[k]`` are linked."""
        self.check_fitted()
        pi = self._drawn
        one = check_indices(first, "first", size=len(pi))
        other = check_indices(second, "second", size=len(pi))
        check_vector(other, "second", length=len(one), per="pair")
        return _linked(pi[one], pi[other], self.strengths_ - self._delta, self._delta)

    def _learn(self, graph: Graph, draws: Generator) -> None:
        self._check()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # said in words below
            self._climb(graph, draws)

    def _climb(self, graph: Graph, draws: Generator) -> None:
        pi = self._first_memberships(graph, draws)
        phi = pi.copy()
        ascent = _Ascent(graph, self.delta, self.batch, draws)
        theta = ascent.expected_counts(pi)
        for t in range(self.steps if graph.n_nodes > 1 else 0):
            half = self.step_size * np.float64(t + self.tau) ** -self.kappa / 2
            nodes, for_phi, for_theta = ascent.directions(pi, theta[1] / theta.sum(axis=0))
            here = phi[nodes]
            moved = np.abs(here + half * (self.alpha - 1 - self.rho * here + for_phi))
            phi[nodes], pi[nodes] = moved, moved / moved.sum(axis=1, keepdims=True)
            theta = np.abs(theta + half * (self.eta - 1 - self.rho * theta + for_theta))
            if not (np.isfinite(pi[nodes]).all() and np.isfinite(theta).all() and theta.sum(axis=0).all()):
                raise InputError(
                    "step_size, rho, alpha and eta of MMSBM must not be so large that inference overflows; "
                    f"got {self.step_size:g}, {self.rho:g}, {self.alpha:g} and {self.eta:g}."
                )
        self.memberships_ = self._drawn = pi
        self.strengths_, self._delta = np.minimum(theta[1] / theta.sum(axis=0), CERTAIN), self.delta
        if self.assignment == "hard":
            self._drawn = np.eye(pi.shape[1])[pi.argmax(axis=1)]

    def _draw(self, graph: Graph, draws: Generator) -> Pairs:
        """Throw more pairs than needed, each block by its memberships, and keep as many as it takes.

        A pair's mean number of hits is a mean of -log(1 - p) over the blocks both nodes draw; by
        convexity, the chance of a hit is then at least the pair's probability of an edge.
        """
        pi, beta, delta, directed = self._drawn, self.strengths_, self._delta, graph.directed
        n_nodes, n_blocks = pi.shape
        everywhere = -np.log1p(-delta)
        extra = np.maximum(-np.log1p(-beta) - everywhere, 0)
        share = 1 if directed else 0.5
        masses = pi.sum(axis=0)
        block = np.repeat(np.arange(n_blocks), draws.poisson(share * extra * masses**2))
        n_anywhere = draws.poisson(share * everywhere * n_nodes**2)
        bounds = np.cumsum(pi.T)
        ends = []
        for _ in range(2):
            points = (np.cumsum(masses) - masses)[block] + draws.random(len(block)) * masses[block]
            place = np.searchsorted(bounds, points, side="right") - block * n_nodes
            ends.append(
                np.append(np.clip(place, 0, n_nodes - 1), draws.integers(0, n_nodes or 1, n_anywhere))
            )
        first, second = distinct(ends[0], ends[1], n_nodes, directed)
        hits = everywhere + np.einsum("ek,ek,k->e", pi[first], pi[second], extra)
        wanted = _linked(pi[first], pi[second], beta - delta, delta)
        kept = draws.random(len(first)) * -np.expm1(-hits) < wanted
        return first[kept], second[kept]

    def _first_memberships(self, graph: Graph, draws: Generator) -> Floats:
        if self.memberships is None:
            blocks = blocks_of(graph, draws)
            n_blocks = int(blocks.max(initial=0)) + 1
            other = (1 - self.certainty) / max(n_blocks - 1, 1)
            pi = np.full((graph.n_nodes, n_blocks), other)
            pi[np.arange(graph.n_nodes), blocks] = self.certainty if n_blocks > 1 else 1.0
            return pi
        given: Any = as_array(self.memberships, "memberships of MMSBM")
        if given.ndim != 2 or given.dtype.kind not in "biuf" or len(given) != graph.n_nodes:
            raise InputError(
                f"memberships of MMSBM must be numbers, one row for each of {graph.n_nodes} nodes; "
                f"got {given.dtype} of shape {given.shape}."
            )
        given = given.astype(np.float64)
        check_finite(given, "memberships of MMSBM")
        if (given < 0).any() or not (given > 0).any(axis=1).all():
            raise InputError("memberships of MMSBM must not be negative, nor all zero in any row.")
        pi = given / given.max(axis=1, keepdims=True)  # or the sum might overflow
        return np.asarray(pi / pi.sum(axis=1, keepdims=True))

    def _check(self) -> None:
        check_real(self.certainty, "certainty of MMSBM", low=0.0, high=1.0)
        check_choice(self.assignment, "assignment of MMSBM", ["mixed", "hard"])
        check_real(self.delta, "delta of MMSBM", low=0.0, high=CERTAIN)
        check_integer(self.steps, "steps of MMSBM", low=0)
        check_integer(self.batch, "batch of MMSBM", low=1)
        check_real(self.tau, "tau of MMSBM", low=1e-300)
        for name in ("alpha", "eta", "rho", "step_size", "kappa"):
            check_real(getattr(self, name), f"{name} of MMSBM", low=0.0)


class _Ascent:
    """Directions that raise the likelihood of a graph, from a few nodes and partners at a time."""

    def __init__(self, graph: Graph, delta: float, batch: int, draws: Generator) -> None:
        self.delta, self.draws, self.n_nodes = delta, draws, graph.n_nodes
        self.batch = min(batch, graph.n_nodes)
        self.edges = pairs_of(graph)
        ends = np.concatenate(self.edges), np.concatenate(self.edges[::-1])
        shape = (graph.n_nodes, graph.n_nodes)
        # Between two nodes of a directed graph there may be two edges.
        self.links = sparse.csr_array((np.ones(len(ends[0])), ends), shape=shape)
        self.most = 2 if graph.directed else 1
        self.degrees = np.bincount(ends[0], minlength=graph.n_nodes)
        self.n_pairs = self.most * graph.n_nodes * (graph.n_nodes - 1) / 2

    def expected_counts(self, pi: Floats) -> Floats:
        """How many non-edges and edges each block has, if nodes drew blocks from pi; both at least one."""
        pairs = self.most * (pi.sum(axis=0) ** 2 - (pi**2).sum(axis=0)) / 2
        edges = np.einsum("ek,ek->k", pi[self.edges[0]], pi[self.edges[1]])
        return np.stack([np.maximum(pairs - edges, 1), np.maximum(edges, 1)])

    def directions(self, pi: Floats, beta: Floats) -> tuple[Nodes, Floats, Floats]:
        """Some nodes, phi times the gradient in their phi, and theta times the gradient in theta."""
        nodes = self.draws.choice(self.n_nodes, self.batch, replace=False)
        partners = self.draws.choice(self.n_nodes, self.batch, replace=False)
        above = beta - self.delta
        pulls = self._pulls(pi, above)
        weight = self.most / np.maximum(1 - self.delta - (pi[nodes] * above) @ pi[partners].T, LEAST)
        taken = self.links[nodes][:, partners].tocoo()
        weight[taken.row, taken.col] *= 1 - taken.data / self.most
        _, here, there = np.intersect1d(nodes, partners, assume_unique=True, return_indices=True)
        weight[here, there] = 0
        unlinked = weight @ pi[partners]
        n_met = self.most * len(partners) - np.bincount(taken.row, taken.data, len(nodes))
        n_met[here] -= self.most
        n_unlinked = self.most * (self.n_nodes - 1) - self.degrees[nodes]
        towards = above * (pulls[nodes] - (n_unlinked / np.maximum(n_met, 1))[:, None] * unlinked)
        for_phi = pi[nodes] * (towards - (pi[nodes] * towards).sum(axis=1, keepdims=True))
        within = np.einsum("nk,nk->k", pi, pulls) / 2  # an edge pulls at both of its ends
        scale = (self.n_pairs - len(self.edges[0])) / max(n_met.sum(), 1)
        outside = scale * (pi[nodes] * unlinked).sum(axis=0)
        slope = beta * (1 - beta) * (within - outside)
        return nodes, for_phi, np.stack([-slope, slope])

    def _pulls(self, pi: Floats, above: Floats) -> Floats:
        """For each node the sum of its neighbours' memberships, each over the chance of the edge."""
        links = self.links
        if links.nnz < MIN_COMPILED_SIZE:
            nodes = np.repeat(np.arange(self.n_nodes), np.diff(links.indptr))
            shares = links.data / _linked(pi[nodes], pi[links.indices], above, self.delta)
            return np.asarray(sparse.csr_array((shares, links.indices, links.indptr), links.shape) @ pi)
        from nodecopy.generators.mmsbm_kernels import pulls

        result = np.empty_like(pi)
        pulls(links.indptr, links.indices, links.data, pi, above, self.delta, LEAST, result)
        return result


def _linked(one: Floats, other: Floats, above: Floats, delta: float) -> Floats:
    """P(edge) of pairs given both memberships."""
    chance: Floats = np.maximum(delta + np.einsum("ek,ek,k->e", one, other, above), LEAST)
    return chance

"""The posterior of a node's class and of what happened to its edges.

A node of class y has been attacked in one of several ways, or not at all. Under each of these hypotheses an
edge is genuine with some probability, and then connects the node to a neighbour as the classes of the graph
are connected; or it is false, and then

- under *other classes* it connects the node to any class but its own;
- under *class z*, which is not y, it connects the node to neighbours as a node of class z has them.

The second hypothesis matters most: twenty false edges to one class are what a node of that class would have,
so only the credibility of the edges can tell. An attacker also removes edges to the node's own class, so
genuine edges say less of the class under an attack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from nodecopy._core.csr import IntArray
from nodecopy.graph import Graph

Array = NDArray[np.float64]
GRID = (np.arange(8) + 0.5) / 8
"""Shares of genuine edges of an attacked node; the prior is proportional to the share."""
GENUINE_SHARE = 0.95
"""Share of genuine edges of a node that was not attacked."""
CLASS_WEIGHT, CLEAN_CLASS_WEIGHT = 0.4, 0.6
"""Exponents of what a genuine edge says of the class, under an attack and without: edges of a node repeat
each other."""
CLEAN_ODDS_WEIGHT = 0.5
"""Exponent of the odds that an edge is genuine, without an attack."""
REMAINING_SHARE = 1 / 3
"""Share of the edges to the node's own class that an attacker leaves."""
MIN_OTHER = 0.1
"""Smallest ratio by which a false edge to a class speaks against that class."""
MAX_TERMS = 2**23
"""About the largest number of values that are computed at once."""


@dataclass(frozen=True, eq=False)
class Compatibility:
    """How often classes are connected, relative to chance.

    Parameters
    ----------
    counts
        ``[n_classes, n_classes]``: the edges between classes.
    """

    counts: Array

    @classmethod
    def from_graph(cls, graph: Graph, probabilities: Array) -> Compatibility:
        """Count the edges of a graph whose nodes have class probabilities, and one edge of each kind more."""
        return cls(probabilities.T @ (graph.adjacency @ probabilities) + 1.0)

    @property
    def class_shares(self) -> Array:
        """Return the share of each class among the ends of edges."""
        shares: Array = self.counts.sum(axis=0) / self.counts.sum()
        return shares

    def ratios(self, remaining_share: float = 1.0) -> Array:
        """Return the probability of a neighbour's class given the node's, over its share.

        ``remaining_share`` is the share of the edges within a class that is left.
        """
        counts = self.counts * (1 - (1 - remaining_share) * np.eye(len(self.counts)))
        ratios: Array = counts / counts.sum(axis=1, keepdims=True) / self.class_shares
        return ratios


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of some nodes and their edges.

    Parameters
    ----------
    log_evidence
        ``[n, n_classes]``: the log-likelihood of the edges for each class, up to a constant.
    credibility
        Probability that each edge is genuine.
    """

    log_evidence: Array
    credibility: Array


def combine_evidence(
    log_prior: Array,
    owner: IntArray,
    log_odds: Array,
    neighbours: Array,
    compatibility: Compatibility,
    attacked_share: float,
) -> Posterior:
    """Return the posterior of some nodes.

    Parameters
    ----------
    log_prior
        ``[n, n_classes]``: log-probabilities of the classes without the edges.
    owner
        The row in ``log_prior`` of the node of each edge, ascending.
    log_odds
        The log-odds that each edge is genuine, by its credibility.
    neighbours
        ``[n_edges, n_classes]``: class probabilities of the neighbour of each edge.
    compatibility
        How often classes are connected.
    attacked_share
        Prior probability that a node was attacked.
    """
    n, n_classes = log_prior.shape
    per_node = np.bincount(owner, minlength=n)
    terms = np.cumsum((per_node + 1) * n_classes * len(GRID) * (n_classes + 2))
    blocks = np.split(np.arange(n), np.flatnonzero(np.diff(terms // MAX_TERMS)) + 1)
    starts = np.concatenate([[0], np.cumsum(per_node)])
    parts = []
    for block in blocks:
        edges = slice(starts[block[0]], starts[block[-1] + 1]) if len(block) else slice(0, 0)
        rows = owner[edges] - (block[0] if len(block) else 0)
        parts.append(
            _combine_block(
                log_prior[block], rows, log_odds[edges], neighbours[edges], compatibility, attacked_share
            )
        )
    return Posterior(
        np.concatenate([part.log_evidence for part in parts]),
        np.concatenate([part.credibility for part in parts]),
    )


def _combine_block(
    log_prior: Array,
    owner: IntArray,
    log_odds: Array,
    neighbours: Array,
    compatibility: Compatibility,
    attacked_share: float,
) -> Posterior:
    (n, n_classes), n_edges = log_prior.shape, len(owner)
    to_nodes = sparse.csr_array((np.ones(n_edges), (owner, np.arange(n_edges))), shape=(n, n_edges))
    genuine, total = weigh_edges(log_odds, neighbours, compatibility)
    weights = weigh_hypotheses(n_classes, attacked_share)
    summed = to_nodes @ np.log(total).reshape(n_edges, weights.size)
    joint = log_prior[:, :, None] + weights + summed.reshape(n, *weights.shape)
    log_classes = logsumexp(joint, axis=2)
    posterior = np.exp(joint - logsumexp(log_classes, axis=1)[:, None, None])
    credibility: Array = (posterior[owner] * genuine / total).sum(axis=(1, 2))
    return Posterior(log_classes - log_prior, credibility)


def weigh_hypotheses(n_classes: int, attacked_share: float) -> Array:
    """Return the prior log-probabilities of the hypotheses about a node of each class.

    They are ``[n_classes, n_hypotheses]``: no attack; an attack that connects the node to other classes, for
    each share of genuine edges; and attacks that connect it to each class, which is not its own.
    """
    grid = np.log(GRID / GRID.sum() * attacked_share / 2)
    weights = np.tile([np.log1p(-attacked_share), *grid, *np.tile(grid, n_classes)], (n_classes, 1))
    with np.errstate(divide="ignore"):  # the logarithm of zero is meant
        is_other = np.log((1 - np.eye(n_classes)) / max(n_classes - 1, 1))
    weights[:, 1 + len(GRID) :] += np.repeat(is_other, len(GRID), axis=1)
    return weights


def weigh_edges(log_odds: Array, neighbours: Array, compatibility: Compatibility) -> tuple[Array, Array]:
    """Return the likelihood of edges if they are genuine, and in all, for classes and hypotheses.

    Both are ``[n_edges, n_classes, n_hypotheses]``, as in :func:`weigh_hypotheses`. The edges of a node are
    independent, so that its likelihood is the product over them. Parameters are those of
    :func:`combine_evidence`.
    """
    n_edges, n_classes = neighbours.shape
    shares = np.concatenate([[GENUINE_SHARE], np.tile(GRID, n_classes + 1)])
    usual = neighbours @ compatibility.ratios().T
    remaining = neighbours @ compatibility.ratios(REMAINING_SHARE).T
    other = MIN_OTHER + (1 - MIN_OTHER) * (1 - neighbours) / (1 - compatibility.class_shares)
    genuine = np.empty((n_edges, n_classes, len(shares)))
    genuine[:, :, 0] = np.exp(CLEAN_ODDS_WEIGHT * log_odds)[:, None] * usual**CLEAN_CLASS_WEIGHT
    genuine[:, :, 1:] = (np.exp(log_odds)[:, None] * remaining**CLASS_WEIGHT)[:, :, None]
    false = np.ones_like(genuine)
    false[:, :, 1 : 1 + len(GRID)] = other[:, :, None]
    false[:, :, 1 + len(GRID) :] = np.repeat(usual, len(GRID), axis=1)[:, None, :]
    genuine *= shares
    return genuine, genuine + false * (1 - shares)


def add_evidence(log_prior: Array, log_evidence: Array, counts: NDArray[np.bool_]) -> Array:
    """Return the log-probabilities of classes with the evidence of the nodes for which it counts.

    Parameters
    ----------
    log_prior
        ``[n, n_classes]``: log-probabilities of the classes without the edges.
    log_evidence
        ``[n, n_classes]``: the log-likelihood of the edges for each class.
    counts
        Whether the evidence of each node counts.
    """
    posterior: Array = log_softmax(log_prior + np.where(counts[:, None], log_evidence, 0.0), axis=1)
    return posterior

"""The rule for how far a node's own edges can be trusted."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, rel_entr

from nodecopy._core.arrays import IntArray, unit_rows
from nodecopy._core.linalg import fit_penalised_logistic
from nodecopy.defend.base import keep_edges, remove_edges_of
from nodecopy.features.embeddings import (
    Matrix,
    NodeEmbeddings,
    cosines,
    embed_neighbourhoods,
    expected_neighbourhoods,
)
from nodecopy.graph import Graph

N_TRUST_STEPS = 20
TRUST_PENALTY = 1e-3
RANDOM_PAIRS_SEED = 0
"""Seed of the random pairs of nodes with which neighbours are compared."""
MIN_TRUST = 0.5
"""Edges with a probability above this one are trusted."""


def estimate_trust(graph: Graph, features: Matrix, nodes: IntArray) -> tuple[NDArray[np.float64], Graph]:
    """Return the mean trust in the edges of each node, ``[len(nodes), 1]``, and the trusted graph.

    Trust is the probability that two nodes are neighbours rather than a random pair, by logistic regression
    on the cosines of their features and of their expected neighbourhoods. The regression is learned from the
    graph without the edges of ``nodes``. The trusted graph has lost the edges of ``nodes`` whose probability
    is at most one half.

    Parameters
    ----------
    graph
        The attacked graph with all edges.
    features
        The embedding of the nodes' features.
    nodes
        Positions of the nodes that may have been attacked.
    """
    others = remove_edges_of(graph, nodes)
    expected = expected_neighbourhoods(others, features, embed_neighbourhoods(others, features))
    edges = others.rows.row_numbers, others.rows.indices
    # The seed is not the trial's: thousands of pairs determine three weights, and with fixed pairs the
    # trust in an edge depends on the graph and the nodes only. Stored results of table 5 depend on it.
    draws = np.random.default_rng(RANDOM_PAIRS_SEED)
    pairs = draws.integers(graph.n_nodes, size=(2, len(edges[0])))
    inputs = np.vstack([_inputs(features, expected, *ends) for ends in (edges, pairs)])
    outcomes = np.repeat([1.0, 0.0], len(edges[0]))
    weights = fit_penalised_logistic(inputs, outcomes, penalty=TRUST_PENALTY, max_steps=N_TRUST_STEPS)

    first, second = graph.rows.row_numbers, graph.rows.indices
    may_be_attacked = np.zeros(graph.n_nodes, bool)
    may_be_attacked[nodes] = True
    is_incident = may_be_attacked[first] | may_be_attacked[second]
    trust = np.ones(len(first))
    trust[is_incident] = expit(_inputs(features, expected, first[is_incident], second[is_incident]) @ weights)
    mean = np.bincount(first, trust, minlength=graph.n_nodes) / np.maximum(graph.degrees, 1)
    return mean[nodes, None], keep_edges(graph, trust > MIN_TRUST)


def _inputs(features: Matrix, expected: Matrix, first: Any, second: Any) -> Matrix:
    """Return a constant and the two cosines of each pair, ``[n_pairs, 3]``."""
    return np.stack([np.ones(len(first)), *cosines(features, expected, first, second)], axis=1)


# How credible edges are: the odds of an edge of the graph against a random pair, by logistic regression.


MAX_PAIRS = 50_000
"""Largest number of edges, and of random pairs, that the regression is fitted to."""
BLOCK = 50_000
"""Number of pairs whose inputs are computed at once."""
MAX_LOG_ODDS = 10.0
PENALTY = 1.0
N_NEWTON_STEPS = 15
"""Seed of the random pairs, as in :mod:`.trust`: with fixed pairs the odds depend on the graph only."""


class EdgeCredibility:
    """The log-odds that a pair of nodes is an edge of the graph rather than a random pair.

    A logistic regression is fitted to edges of the graph, most of which are genuine, and to as many random
    pairs, which stand for false edges. Its inputs are the similarity of both nodes' features, the product of
    their embeddings dimension by dimension, the similarity of the neighbourhoods expected from their
    features, and the similarity of the first node's features and expected neighbourhood to the other
    neighbours of the second node. The first node's own edges are not used.

    Parameters
    ----------
    embeddings
        Embeddings of the graph whose edges the regression is fitted to.
    """

    def __init__(self, embeddings: NodeEmbeddings) -> None:
        self.embeddings = embeddings

    @cached_property
    def neighbour_sums(self) -> Matrix:
        """Return the embedded features summed over the neighbours of each node."""
        return np.asarray(self._pattern @ self.embeddings.features)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Return the weights of the regression; zero where the graph has no edges."""
        graph, draws = self.embeddings.graph, np.random.default_rng(RANDOM_PAIRS_SEED)
        first, second = graph.rows.row_numbers, graph.rows.indices
        if not len(first):
            return np.zeros(self.embeddings.features.shape[1] + 6)
        if len(first) > MAX_PAIRS:
            chosen = draws.choice(len(first), MAX_PAIRS, replace=False)
            first, second = first[chosen], second[chosen]
        pairs = draws.integers(graph.n_nodes, size=(2, len(first)))
        is_edge = np.repeat([True, False], len(first))
        both = np.concatenate([first, pairs[0]]), np.concatenate([second, pairs[1]])
        inputs = self._inputs(*both, is_edge)
        outcomes = is_edge.astype(np.float64)
        return fit_penalised_logistic(inputs, outcomes, penalty=PENALTY, max_steps=N_NEWTON_STEPS)

    def log_odds(
        self, first: IntArray, second: IntArray, *, is_edge: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the log-odds of pairs of nodes, limited to 10 on both sides.

        Parameters
        ----------
        first, second
            The nodes that are corrected, and their neighbours.
        is_edge
            Whether each pair is an edge of that graph. The first node is then left out of the neighbours of
            the second.
        """
        blocks = [slice(i, i + BLOCK) for i in range(0, len(first), BLOCK)]
        parts = [self._inputs(first[part], second[part], is_edge[part]) @ self.weights for part in blocks]
        log_odds = np.concatenate([np.zeros(0), *parts])
        limited: NDArray[np.float64] = np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        return limited

    def _inputs(self, first: IntArray, second: IntArray, is_edge: NDArray[np.bool_]) -> Matrix:
        """Return the inputs of the regression, ``[n_pairs, rank + 6]``."""
        embedding, expected = self.embeddings.features, self.embeddings.expected
        rows: Any = self.embeddings.weighted_features
        cosine = np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel()
        others = self.neighbour_sums[second] - is_edge[:, None] * embedding[first]
        n_others = self._n_neighbours[second] - is_edge
        others = np.asarray(unit_rows(others * (n_others > 0)[:, None]))
        return np.column_stack(
            [
                np.ones(len(first)),
                np.sqrt(np.maximum(cosine, 0.0)),
                embedding[first] * embedding[second],
                np.einsum("ed,ed->e", expected[first], expected[second]),
                np.einsum("ed,ed->e", embedding[first], others),
                np.einsum("ed,ed->e", expected[first], others),
                n_others == 0,
            ]
        )

    @cached_property
    def _pattern(self) -> sparse.csr_array:
        """Return which nodes are neighbours of each other in either direction, as zeros and ones."""
        graph = self.embeddings.graph
        rows = graph.rows
        ones = np.ones(len(rows.indices))
        pattern = sparse.csr_array((ones, rows.indices, rows.indptr), shape=graph.adjacency.shape)
        return sparse.csr_array(pattern.maximum(pattern.T)) if graph.directed else pattern

    @cached_property
    def _n_neighbours(self) -> NDArray[np.int64]:
        return np.diff(self._pattern.indptr)


# The suspicion score: how far predictions differ from those expected from a node's features.


N_BLAME_ROUNDS = 2
"""How often blame is distributed: by the first scores, then by the scores that result."""
DEGREE_EXPONENT = 0.4
"""Exponent of the degree: many implausible edges are stronger evidence than one, but not independent."""
OUTLIER_WEIGHT = 4.0
"""Weight of the divergence between a node's prediction and those of its neighbours."""


def score_suspicion(
    graph: Graph,
    features: Matrix,
    expected: Matrix,
    own: NDArray[Any],
    copied: NDArray[Any],
    copied_from_similar: NDArray[Any],
    doubt: NDArray[np.float64] | float = 1.0,
) -> NDArray[np.float64]:
    """Return a score for every node; attacked nodes tend to have the highest ones.

    The dissimilarity of two neighbours is one minus the cosine of their features times one minus that of
    their expected neighbourhoods, times the doubt about their edge. The implausibility of their edge is the
    dissimilarity times the divergence between their two copied predictions. The first score is
    (own_divergence * mean dissimilarity + mean implausibility) * degree^0.4: own_divergence is the sum of the
    divergences of ``copied`` and ``copied_from_similar`` from ``own``, and the means are over the edges of
    the node. A node without edges cannot have been attacked and has the score zero.

    The blame for an implausible edge is then divided between its ends in proportion to their scores, and the
    score of a node is multiplied by its share of the blame at its edges, so that neighbours of attacked nodes
    get lower scores.

    Last, the score is multiplied by exp(4 d), where d is the mean divergence of a node's own prediction
    from those of its neighbours minus the same for its copied prediction.

    Parameters
    ----------
    graph
        The graph whose edges may have been attacked.
    features, expected
        Embeddings of the nodes' features and of their expected neighbourhoods; see
        :class:`~nodecopy.features.embeddings.NodeEmbeddings`.
    own, copied, copied_from_similar
        Probabilities of all nodes: of the classifier, with the neighbourhoods of their donors, and with those
        of the nodes whose neighbourhoods are most similar to their own.
    doubt
        How doubtful each edge is, from 0 to 1, in the order of ``graph.rows``; by default all are alike.
    """
    first, second = graph.rows.row_numbers, graph.rows.indices
    by_features, by_neighbourhoods = cosines(features, expected, first, second)
    dissimilarity = doubt * (1.0 - by_features) * (1.0 - by_neighbourhoods)
    implausibility = divergence(copied[first], copied[second]) * dissimilarity

    def sum_over_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(first, values, minlength=graph.n_nodes).astype(np.float64)

    degrees, total = graph.degrees, sum_over_edges(implausibility)
    own_divergence = divergence(own, copied) + divergence(own, copied_from_similar)
    scores = (
        (own_divergence * sum_over_edges(dissimilarity) + total)
        / np.maximum(degrees, 1)
        * degrees**DEGREE_EXPONENT
    )
    blame_scores = scores
    for _ in range(N_BLAME_ROUNDS):
        both = blame_scores[first] + blame_scores[second]
        blame = np.divide(blame_scores[first], both, out=np.full(len(both), 0.5), where=both > 0)
        shared = sum_over_edges(implausibility * blame)
        blame_share = np.divide(shared, total, out=np.full(len(total), 0.5), where=total > 0)
        blame_scores = scores * blame_share
    outlier_divergence = divergence(own[first], own[second]) - divergence(copied[first], own[second])
    return np.asarray(
        blame_scores * np.exp(OUTLIER_WEIGHT * sum_over_edges(outlier_divergence) / np.maximum(degrees, 1))
    )


def divergence(p: NDArray[Any], q: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence of the rows of ``p`` and ``q``, in nats."""
    middle = (p + q) / 2
    both: NDArray[np.float64] = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=1) / 2
    return both

"""How plausible the edges of an attacked graph are, and graphs without some of their edges."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, rel_entr

from nodecopy._core.arrays import Array, Bools, Floats, IntArray, unit_rows
from nodecopy._core.linalg import fit_penalised_logistic
from nodecopy.features.embeddings import (
    Matrix,
    NodeEmbeddings,
    cosines,
    embed_neighbourhoods,
    expected_neighbourhoods,
)
from nodecopy.graph import Graph

# Settings of both regressions, on which the stored results depend.
TRUST: dict[str, Any] = {"penalty": 1e-3, "max_steps": 20}
CREDIBILITY: dict[str, Any] = {"penalty": 1.0, "max_steps": 15, "max_pairs": 50_000}
MIN_TRUST = 0.5  # edges with a probability above this one are trusted
N_BLAME_ROUNDS = 2
DEGREE_EXPONENT = 0.4  # many implausible edges are stronger evidence than one, but not independent
OUTLIER_WEIGHT = 4.0  # weight of the divergence between a node's prediction and those of its neighbours


def keep_edges(graph: Graph, mask: Bools) -> Graph:
    """Return the graph with the stored entries where ``mask`` is true."""
    return graph.with_rows(graph.rows.keep_entries(mask))


def remove_edges_of(graph: Graph, nodes: IntArray) -> Graph:
    """Return the graph without the edges of some nodes."""
    stays = np.ones(graph.n_nodes, bool)
    stays[nodes] = False
    return keep_edges(graph, stays[graph.rows.row_numbers] & stays[graph.rows.indices])


class EdgeModel:
    """The log-odds that a pair of nodes is an edge of a graph rather than a random pair.

    A logistic regression is fitted to edges of the graph, most of which are genuine, and to as many random
    pairs. ``describe(first, second, is_edge)`` returns its inputs for pairs, ``[n_pairs, n_inputs]``, given
    a mask of those that are edges. At most ``max_pairs`` edges are sampled, or pairs described at once.
    """

    def __init__(
        self, graph: Graph, describe: Callable[..., Matrix], *, max_pairs: int = sys.maxsize, **options: Any
    ) -> None:
        self.graph, self.describe, self.max_pairs, self.options = graph, describe, max_pairs, options

    @cached_property
    def weights(self) -> Floats:
        # The seed is fixed, so that the weights depend on the graph only. Stored results depend on it.
        draws = np.random.default_rng(0)
        first, second = self.graph.rows.row_numbers, self.graph.rows.indices
        if len(first) > self.max_pairs:
            chosen = draws.choice(len(first), self.max_pairs, replace=False)
            first, second = first[chosen], second[chosen]
        pairs = draws.integers(self.graph.n_nodes, size=(2, len(first)))
        is_edge = np.repeat([True, False], len(first))
        both = np.concatenate([first, pairs[0]]), np.concatenate([second, pairs[1]])
        outcomes = is_edge.astype(np.float64)
        return fit_penalised_logistic(self.describe(*both, is_edge), outcomes, **self.options)

    def log_odds(self, first: IntArray, second: IntArray, is_edge: Bools | None = None) -> Floats:
        """Return the log-odds of pairs of nodes; ``is_edge`` marks edges of the graph, by default all."""
        is_edge = np.ones(len(first), bool) if is_edge is None else is_edge
        parts = [np.zeros(0)]
        for start in range(0, len(first), self.max_pairs):
            part = slice(start, start + self.max_pairs)
            parts.append(self.describe(first[part], second[part], is_edge[part]) @ self.weights)
        return np.concatenate(parts)


def estimate_trust(graph: Graph, features: Matrix, nodes: IntArray) -> tuple[Floats, Graph]:
    """Return the mean trust in the edges of each node, ``[len(nodes), 1]``, and the trusted graph.

    Trust is the probability of an edge by the cosines of the ``features`` (an embedding) of its ends and of
    the neighbourhoods expected from them, learned from the graph without the edges of ``nodes``. The trusted
    graph has lost the edges of ``nodes`` whose probability is at most one half.
    """
    others = remove_edges_of(graph, nodes)
    expected = expected_neighbourhoods(others, features, embed_neighbourhoods(others, features))
    model = EdgeModel(others, partial(_compare, features, expected), **TRUST)
    first, second = graph.rows.row_numbers, graph.rows.indices
    may_be_attacked = np.zeros(graph.n_nodes, bool)
    may_be_attacked[nodes] = True
    is_incident = may_be_attacked[first] | may_be_attacked[second]
    trust = np.ones(len(first))
    trust[is_incident] = expit(model.log_odds(first[is_incident], second[is_incident]))
    mean = np.bincount(first, trust, minlength=graph.n_nodes) / np.maximum(graph.degrees, 1)
    return mean[nodes, None], keep_edges(graph, trust > MIN_TRUST)


def _compare(features: Matrix, expected: Matrix, first: Any, second: Any, is_edge: Any) -> Matrix:
    return np.stack([np.ones(len(first)), *cosines(features, expected, first, second)], axis=1)


def build_credibility(embeddings: NodeEmbeddings) -> EdgeModel:
    """Return the model of an edge's credibility, seen from its first node, which may have been attacked.

    It compares both nodes' features and expected neighbourhoods, and those of the first with the other
    neighbours of the second; the first node's own edges are not used.
    """
    graph, rows = embeddings.graph, embeddings.graph.rows
    ones = np.ones(len(rows.indices))
    pattern = sparse.csr_array((ones, rows.indices, rows.indptr), shape=graph.adjacency.shape)
    if graph.directed:  # neighbours in either direction
        pattern = sparse.csr_array(pattern.maximum(pattern.T))
    sums, counts = np.asarray(pattern @ embeddings.features), np.diff(pattern.indptr)
    return EdgeModel(graph, partial(_compare_neighbourhoods, embeddings, sums, counts), **CREDIBILITY)


def _compare_neighbourhoods(
    embeddings: NodeEmbeddings,
    neighbour_sums: Matrix,
    n_neighbours: IntArray,
    first: IntArray,
    second: IntArray,
    is_edge: Bools,
) -> Matrix:
    embedding, expected = embeddings.features, embeddings.expected
    rows: Any = embeddings.weighted_features
    cosine = np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel()
    others = neighbour_sums[second] - is_edge[:, None] * embedding[first]
    n_others = n_neighbours[second] - is_edge
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


def score_suspicion(embeddings: NodeEmbeddings, own: Array, copied: Array, similar: Array) -> Floats:
    """Return a score of every node; attacked nodes tend to have the highest ones.

    The first score is (own_divergence * mean dissimilarity + mean implausibility) * degree^0.4, with means
    over the edges of a node. The dissimilarity of two neighbours is one minus the cosine of their features
    times one minus that of their expected neighbourhoods; its product with
    the divergence between their two copied predictions is the implausibility of the edge.

    The blame for an implausible edge is then divided between its ends in proportion to their scores, and a
    score is multiplied by the share of the blame, so that neighbours of attacked nodes get lower ones. Last,
    it is multiplied by exp(4 d), where d is the mean divergence of a node's own prediction from those of its
    neighbours minus the same for its copied prediction.

    ``own``, ``copied`` and ``similar`` are the probabilities of all nodes by the classifier, with the
    neighbourhoods of their donors, and with neighbourhoods similar to their own.
    """
    graph = embeddings.graph
    first, second = graph.rows.row_numbers, graph.rows.indices
    by_features, by_neighbourhoods = cosines(embeddings.features, embeddings.expected, first, second)
    dissimilarity = (1.0 - by_features) * (1.0 - by_neighbourhoods)
    implausibility = divergence(copied[first], copied[second]) * dissimilarity

    def sum_over_edges(values: Floats) -> Floats:
        return np.bincount(first, values, graph.n_nodes).astype(np.float64)

    degrees, total = graph.degrees, sum_over_edges(implausibility)
    own_divergence = divergence(own, copied) + divergence(own, similar)
    scores = (own_divergence * sum_over_edges(dissimilarity) + total) / np.maximum(degrees, 1)
    scores = scores * degrees**DEGREE_EXPONENT
    blame_scores = scores
    for _ in range(N_BLAME_ROUNDS):
        both = blame_scores[first] + blame_scores[second]
        blame = np.divide(blame_scores[first], both, out=np.full(len(both), 0.5), where=both > 0)
        shared = sum_over_edges(implausibility * blame)
        blame_share = np.divide(shared, total, out=np.full(len(total), 0.5), where=total > 0)
        blame_scores = scores * blame_share
    outlier = sum_over_edges(divergence(own[first], own[second]) - divergence(copied[first], own[second]))
    return np.asarray(blame_scores * np.exp(OUTLIER_WEIGHT * outlier / np.maximum(degrees, 1)))


def divergence(p: Array, q: Array) -> Floats:
    """Return the Jensen-Shannon divergence of the rows of ``p`` and ``q``, in nats."""
    middle = (p + q) / 2
    return np.asarray((rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=1) / 2)

"""The suspicion score: how far predictions differ from those expected from a node's features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from nodecopy.features.node_embeddings import Matrix, cosines
from nodecopy.graph import Graph

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
        :class:`~nodecopy.features.node_embeddings.NodeEmbeddings`.
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

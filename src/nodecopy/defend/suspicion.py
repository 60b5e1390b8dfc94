"""How attacked a node looks: what is predicted of it against what its features promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from nodecopy.defend.donors import feature_embedding
from nodecopy.graph import Graph


def suspicion(graph: Graph, plain: NDArray[Any], copied: NDArray[Any]) -> NDArray[np.float64]:
    """A score for every node; attacked nodes tend to have the highest ones.

    The score is (J + K) F log(1 + degree): J, the divergence of the prediction with copied neighbours
    from the plain one; K, the mean divergence between the copied predictions of the node and of each of
    its neighbours; F, the mean dissimilarity (one minus cosine) of its features to theirs. A node without
    edges has nothing that could have been attacked: its score is zero.

    Parameters
    ----------
    graph
        With features.
    plain, copied
        Probabilities of all nodes, as the classifier gives them and with copied neighbourhoods.
    """
    first, second = graph.rows.row_numbers, graph.rows.indices
    own = feature_embedding(graph)
    apart = divergence(copied[first], copied[second])
    unlike = 1.0 - np.einsum("ed,ed->e", own[first], own[second])
    degrees = graph.degrees
    each = np.maximum(degrees, 1)
    K, F = (np.bincount(first, values, minlength=graph.n_nodes) / each for values in (apart, unlike))
    scores: NDArray[np.float64] = (divergence(plain, copied) + K) * F * np.log1p(degrees)
    return scores


def divergence(p: NDArray[Any], q: NDArray[Any]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence of each row of ``p`` from that of ``q``, in nats."""
    middle = (p + q) / 2
    both: NDArray[np.float64] = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=1) / 2
    return both

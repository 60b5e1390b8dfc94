"""How attacked a node looks: what is predicted of it against what its features promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from nodecopy.defend.donors import Matrix
from nodecopy.graph import Graph


def suspicion(
    graph: Graph, own: Matrix, plain: NDArray[Any], copied: NDArray[Any], similar: NDArray[Any]
) -> NDArray[np.float64]:
    """A score for every node; attacked nodes tend to have the highest ones.

    At first the score is (J + K) F log(1 + degree): J, the divergences of both predictions with copied
    neighbours from the plain one; K, the mean divergence between the copied predictions of the node and
    of each of its neighbours; F, the mean dissimilarity (one minus cosine) of its features to theirs. A
    node without edges has nothing that could have been attacked: its score is zero.

    An edge that looks wrong is the fault of one of its ends. Each end bears its part of the blame, by
    the two scores, and the score is multiplied by the part that a node bears of all at its edges: the
    neighbours of attacked nodes look less attacked themselves.

    Parameters
    ----------
    graph
        Whose edges may be wrong.
    own
        Directions of the nodes' features; see :func:`.feature_embedding`.
    plain, copied, similar
        Probabilities of all nodes: as the classifier gives them, with the neighbourhoods of donors, and
        with those of the nodes whose neighbourhoods are most like their own.
    """
    first, second = graph.rows.row_numbers, graph.rows.indices
    apart = divergence(copied[first], copied[second])
    unlike = 1.0 - np.einsum("ed,ed->e", own[first], own[second])

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(first, values, minlength=graph.n_nodes).astype(np.float64)

    degrees = graph.degrees
    each = np.maximum(degrees, 1)
    J = divergence(plain, copied) + divergence(plain, similar)
    scores = (J + summed(apart) / each) * summed(unlike) / each * np.log1p(degrees)
    both = scores[first] + scores[second]
    blame = np.divide(scores[first], both, out=np.full(len(both), 0.5), where=both > 0)
    wrong = apart * unlike
    total = summed(wrong)
    part = np.divide(summed(wrong * blame), total, out=np.full(len(total), 0.5), where=total > 0)
    return np.asarray(scores * part)


def divergence(p: NDArray[Any], q: NDArray[Any]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence of each row of ``p`` from that of ``q``, in nats."""
    middle = (p + q) / 2
    both: NDArray[np.float64] = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=1) / 2
    return both

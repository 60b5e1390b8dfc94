"""How attacked a node looks: what is predicted of it against what its features promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from nodecopy.features.node_embeddings import Matrix, cosines
from nodecopy.graph import Graph

ROUNDS = 2
"""How often blame is shared out: once by the first scores, then by the scores that come of it."""
POWER = 0.4
"""Of the degree: many edges that look wrong tell more than one, but not independently of each other."""
APART = 4.0
"""What it weighs that a node stands apart from its neighbours."""


def suspicion(
    graph: Graph,
    own: Matrix,
    expected: Matrix,
    plain: NDArray[Any],
    copied: NDArray[Any],
    similar: NDArray[Any],
) -> NDArray[np.float64]:
    """A score for every node; attacked nodes tend to have the highest ones.

    Two neighbours are unlike by one minus the cosine of their features times one minus that of the
    neighbourhoods which these promise, and their edge looks wrong by this times the divergence between
    the two copied predictions. At first the score is (J F + W) degree^0.4: J, the divergences of both
    predictions with copied neighbours from the plain one; F, how unlike a node is to its neighbours, and
    W, how wrong its edges look, both in the mean. A node without edges has nothing that could have been
    attacked: its score is zero.

    An edge that looks wrong is the fault of one of its ends. Each end bears its part of the blame, by
    the two scores, and the score is multiplied by the part that a node bears of all at its edges: the
    neighbours of attacked nodes look less attacked themselves.

    Last, it grows where a node, as predicted, stands apart from what is predicted of its neighbours, and
    would not with copied neighbours: by exp(4 d), with d the difference of the two mean divergences.

    Parameters
    ----------
    graph
        Whose edges may be wrong.
    own, expected
        Directions of the nodes' features and of what should stand around them; see :class:`.NodeEmbeddings`.
    plain, copied, similar
        Probabilities of all nodes: as the classifier gives them, with the neighbourhoods of donors, and
        with those of the nodes whose neighbourhoods are most like their own.
    """
    first, second = graph.rows.row_numbers, graph.rows.indices
    features, neighbourhoods = cosines(own, expected, first, second)
    unlike = (1.0 - features) * (1.0 - neighbourhoods)
    wrong = divergence(copied[first], copied[second]) * unlike

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(first, values, minlength=graph.n_nodes).astype(np.float64)

    degrees, total = graph.degrees, summed(wrong)
    J = divergence(plain, copied) + divergence(plain, similar)
    scores = blamed = (J * summed(unlike) + total) / np.maximum(degrees, 1) * degrees**POWER
    for _ in range(ROUNDS):
        both = blamed[first] + blamed[second]
        blame = np.divide(blamed[first], both, out=np.full(len(both), 0.5), where=both > 0)
        part = np.divide(summed(wrong * blame), total, out=np.full(len(total), 0.5), where=total > 0)
        blamed = scores * part
    apart = divergence(plain[first], plain[second]) - divergence(copied[first], plain[second])
    return np.asarray(blamed * np.exp(APART * summed(apart) / np.maximum(degrees, 1)))


def divergence(p: NDArray[Any], q: NDArray[Any]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence of each row of ``p`` from that of ``q``, in nats."""
    middle = (p + q) / 2
    both: NDArray[np.float64] = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=1) / 2
    return both

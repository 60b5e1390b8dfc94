"""How far the edges of a node may be believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nodecopy._core.csr import IntArray
from nodecopy.defend.pruning import with_entries, without_edges_of
from nodecopy.features.node_embeddings import Matrix, cosines, embed_neighbourhoods, expected_neighbourhoods
from nodecopy.graph import Graph

NEWTON_STEPS = 20
PENALTY = 1e-3
PAIRS_SEED = 0
"""Of the random pairs that neighbours are compared with."""


def trusted_neighbourhoods(graph: Graph, own: Matrix, nodes: IntArray) -> tuple[NDArray[np.float64], Graph]:
    """The mean belief in the edges of each node, ``[len(nodes), 1]``, and the graph with those believed.

    Belief is the probability that two nodes are neighbours rather than drawn at random, by logistic
    regression on how alike their features are and what stands around nodes with such features. It is
    learned from the graph without the edges of ``nodes``; ``own`` holds the directions of all nodes'
    features. An edge is believed above one half.
    """
    others = without_edges_of(graph, nodes)
    expected = expected_neighbourhoods(others, own, embed_neighbourhoods(others, own))
    joined = others.rows.row_numbers, others.rows.indices
    # Not from a trial's rng: thousands of pairs settle three weights, and with one draw for all, belief in an
    # edge depends on the graph and the nodes alone. The stored results of table 5 rest on this draw, too.
    drawn = np.random.default_rng(PAIRS_SEED).integers(graph.n_nodes, size=(2, len(joined[0])))
    likeness = np.vstack([_likeness(own, expected, *joined), _likeness(own, expected, *drawn)])
    weights = logistic(likeness, np.repeat([1.0, 0.0], len(joined[0])))

    first, second = graph.rows.row_numbers, graph.rows.indices
    asked = np.zeros(graph.n_nodes, bool)
    asked[nodes] = True
    touched = asked[first] | asked[second]
    belief = np.ones(len(first))
    belief[touched] = expit(_likeness(own, expected, first[touched], second[touched]) @ weights)
    mean = np.bincount(first, belief, minlength=graph.n_nodes) / np.maximum(graph.degrees, 1)
    return mean[nodes, None], with_entries(graph, belief > 0.5)


def logistic(inputs: Matrix, answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of a logistic regression, slightly penalised, by Newton's method."""
    penalty = PENALTY * np.eye(inputs.shape[1])
    weights = np.zeros(inputs.shape[1])
    for _ in range(NEWTON_STEPS):
        found = expit(inputs @ weights)
        slope = inputs.T @ (answers - found) - penalty @ weights
        curvature = inputs.T @ (inputs * (found * (1 - found))[:, None]) + penalty
        weights = weights + np.linalg.solve(curvature, slope)
    return weights


def _likeness(own: Matrix, expected: Matrix, first: Any, second: Any) -> Matrix:
    """A one, the cosine of the features, and that of the neighbourhoods they promise."""
    return np.stack([np.ones(len(first)), *cosines(own, expected, first, second)], axis=1)

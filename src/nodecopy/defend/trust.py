"""The rule for how far a node's own edges can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nodecopy._core.csr import IntArray
from nodecopy._core.logistic import fit_penalised_logistic
from nodecopy.defend.pruning import keep_edges, remove_edges_of
from nodecopy.features.node_embeddings import (
    Matrix,
    cosines,
    embed_neighbourhoods,
    expected_neighbourhoods,
)
from nodecopy.graph import Graph

N_NEWTON_STEPS = 20
PENALTY = 1e-3
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
    weights = fit_penalised_logistic(inputs, outcomes, penalty=PENALTY, max_steps=N_NEWTON_STEPS)

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

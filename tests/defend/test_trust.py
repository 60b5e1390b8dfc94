"""The trust in edges on graphs where it can be judged by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, DonorAverage
from nodecopy.defend.edges import estimate_trust
from nodecopy.features.embeddings import NodeEmbeddings

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


def two_kinds() -> Graph:
    """Two groups of thirty with features of their own; edges within groups, and node 0 has two across."""
    draw = np.random.default_rng(0)
    group = np.repeat([0, 1], 30)
    adjacency = np.triu((draw.random((60, 60)) < 0.3) & (group[:, None] == group), 1)
    adjacency[0, :] = False
    adjacency[0, [1, 2, 40, 50]] = True
    features = (draw.random((60, 20)) < np.where(group[:, None] == (np.arange(20) >= 10), 0.8, 0.1)) * 1.0
    return Graph(adjacency | adjacency.T, features, labels=group)


def test_edges_between_similar_nodes_are_trusted() -> None:
    graph = two_kinds()
    trust, kept = estimate_trust(graph, NodeEmbeddings(graph).features, np.array([0, 5]))
    assert trust.shape == (2, 1)
    assert 0.2 < trust[0, 0] < 0.6 < trust[1, 0] <= 1
    assert kept.adjacency[[0]].indices.tolist() == [1, 2]
    untouched = graph.adjacency.toarray()[1:, 1:]
    untouched[4] = untouched[:, 4] = 0
    remaining = kept.adjacency.toarray()[1:, 1:]
    remaining[4] = remaining[:, 4] = 0
    assert np.array_equal(remaining, untouched)


def test_trust_mixes_corrected_and_own_predictions() -> None:
    graph = two_kinds()
    nodes = np.array([0, 5])
    gcn = GCN(**QUICK).fit(graph, [1, 2, 40, 41], rng=0)
    for kind in (CopyingDefence, DonorAverage):
        plain, mixed = (
            kind(n_donors=3, trust_edges=trust_edges).from_classifier(gcn, graph)
            for trust_edges in (False, True)
        )
        trust, kept = estimate_trust(graph, NodeEmbeddings(graph).features, nodes)
        expected = (1 - trust) * plain.correct_proba(nodes) + trust * gcn.predict_proba(kept)[nodes]
        np.testing.assert_allclose(mixed.correct_proba(nodes), expected, atol=1e-6)

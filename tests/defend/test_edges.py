"""How plausible edges are: trust, credibility and suspicion, and graphs without some edges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, DonorAverage
from nodecopy.defend.edges import (
    build_credibility,
    divergence,
    estimate_trust,
    keep_edges,
    remove_edges_of,
    score_suspicion,
)
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.metrics.classification import area_under_roc
from tests.contracts.classifiers import planted_graph


def test_edges_are_removed() -> None:
    path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    assert list(zip(*remove_edges_of(path, np.array([0, 3])).edges()[:2], strict=True)) == [(1, 2)]
    kept = keep_edges(path, (path.rows.row_numbers + path.rows.indices) == 3)
    assert list(zip(*kept.edges()[:2], strict=True)) == [(1, 2)]


def test_edges_are_more_credible_than_random_pairs() -> None:
    graph = datasets.load("digits").subgraph(range(300))
    nodes = np.array([40, 3, 7, 59, 21, 33])
    credibility = build_credibility(NodeEmbeddings(remove_edges_of(graph, nodes)))
    of_nodes = np.isin(graph.rows.row_numbers, nodes)
    first, second = graph.rows.row_numbers[of_nodes], graph.rows.indices[of_nodes]
    others = np.random.default_rng(0).integers(graph.n_nodes, size=200)
    genuine = credibility.log_odds(first, second, np.zeros(len(first), bool))
    random = credibility.log_odds(np.resize(nodes, 200), others, np.zeros(200, bool))
    is_genuine = np.repeat([True, False], [len(genuine), 200])
    assert area_under_roc(np.concatenate([genuine, random]), is_genuine) > 0.9


def test_own_edges_of_the_first_node_do_not_count() -> None:
    """An edge is as credible as if it were not there, as far as its own end is concerned."""
    graph = planted_graph()
    embeddings = NodeEmbeddings(graph)
    credibility = build_credibility(embeddings)
    node, neighbour = int(graph.rows.row_numbers[0]), int(graph.rows.indices[0])
    without = graph.adjacency.toarray()
    without[node, neighbour] = without[neighbour, node] = 0
    changed = NodeEmbeddings(graph.replace(adjacency=without))
    vars(changed)["expected"] = embeddings.expected
    other = build_credibility(changed)
    vars(other)["weights"] = credibility.weights
    pair = np.array([node]), np.array([neighbour])
    np.testing.assert_allclose(credibility.log_odds(*pair), other.log_odds(*pair, np.array([False])))
    bare = graph.replace(adjacency=sparse.csr_array(graph.adjacency.shape))
    assert build_credibility(NodeEmbeddings(bare)).log_odds(*pair).tolist() == [0.0]


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
    untouched, remaining = (np.delete(g.adjacency.toarray(), [0, 5], axis=0) for g in (graph, kept))
    assert np.array_equal(np.delete(remaining, [0, 5], axis=1), np.delete(untouched, [0, 5], axis=1))


def test_trust_mixes_corrected_and_own_predictions() -> None:
    graph, nodes = two_kinds(), np.array([0, 5])
    gcn = GCN(n_epochs=25, learning_rate=0.05).fit(graph, [1, 2, 40, 41], rng=0)
    trust, kept = estimate_trust(graph, NodeEmbeddings(graph).features, nodes)
    for kind in (CopyingDefence, DonorAverage):
        plain, mixed = (
            kind(n_donors=3, trust_edges=trusts).from_classifier(gcn, graph, targets=nodes).predict_proba()
            for trusts in (False, True)
        )
        expected = (1 - trust) * plain[nodes] + trust * gcn.predict_proba(kept)[nodes]
        np.testing.assert_allclose(mixed[nodes], expected, atol=1e-6)


def test_divergence_of_two_distributions() -> None:
    """Opposite certainties diverge by log 2, equal ones not at all."""
    p, q = np.array([[1.0, 0.0], [0.3, 0.7]]), np.array([[0.0, 1.0], [0.3, 0.7]])
    np.testing.assert_allclose(divergence(p, q), [np.log(2), 0], atol=1e-12)
    halves = divergence(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))[0]
    assert halves == pytest.approx((np.log(4 / 3) + 0.5 * np.log(2 / 3) + 0.5 * np.log(2)) / 2)


def test_suspicion_of_a_path() -> None:
    """A path 0-1-2 and an isolated node; 0 and 1 are similar, 2 has other features and another class.

    Expected neighbourhoods of 1 and 2 have the cosine 1/2, so that their dissimilarity is 1/2 and the
    implausibility of their edge log 2 / 2. Node 1: J = 0, F = 1/4, W = log 2 / 4, degree 2. Node 2:
    J = 2 log 2, F = 1/2, W = log 2 / 2, degree 1. The blame for their edge is divided twice. The copied
    prediction of node 2 diverges by log 2 from that of its neighbour, its plain one by 0, which gives
    the factor exp(-4 log 2) = 1/16.
    """
    words = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=[0, 1, 2, 3], features=words)
    left, right = [1.0, 0.0], [0.0, 1.0]
    copied, plain = np.array([left, left, right, left]), np.array([left, left, left, right])
    neighbourhoods = np.array([[1, 0], [1, 0], [1 / 2, np.sqrt(3) / 2], [1, 0]])
    first, second = np.log(2) / 4 * 2**0.4, 3 / 2 * np.log(2)
    expected = [0, first**3 / (first**2 + second**2), second**3 / (first**2 + second**2) / 16, 0]
    features = NodeEmbeddings(graph).features
    embeddings = SimpleNamespace(graph=graph, features=features, expected=neighbourhoods)
    inputs: Any = embeddings, plain, copied, copied
    np.testing.assert_allclose(score_suspicion(*inputs), expected, atol=1e-12)

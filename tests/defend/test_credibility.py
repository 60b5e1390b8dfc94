"""The credibility of edges on planted graphs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nodecopy import datasets
from nodecopy.defend.base import remove_edges_of
from nodecopy.defend.edges import EdgeCredibility
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.metrics.classification import area_under_roc
from tests.contracts.classifiers import planted_graph


def test_edges_are_more_credible_than_random_pairs() -> None:
    graph = datasets.load("digits").subgraph(range(300))
    nodes = np.array([40, 3, 7, 59, 21, 33])
    credibility = EdgeCredibility(NodeEmbeddings(remove_edges_of(graph, nodes)))
    of_nodes = np.isin(graph.rows.row_numbers, nodes)
    first, second = graph.rows.row_numbers[of_nodes], graph.rows.indices[of_nodes]
    others = np.random.default_rng(0).integers(graph.n_nodes, size=200)
    owners = np.resize(nodes, 200)
    genuine = credibility.log_odds(first, second, is_edge=np.zeros(len(first), bool))
    random = credibility.log_odds(owners, others, is_edge=np.zeros(200, bool))
    is_genuine = np.repeat([True, False], [len(genuine), 200])
    assert area_under_roc(np.concatenate([genuine, random]), is_genuine) > 0.9


def test_own_edges_of_the_first_node_do_not_count() -> None:
    """An edge is as credible as if it were not there, as far as its own end is concerned."""
    graph = planted_graph()
    credibility = EdgeCredibility(NodeEmbeddings(graph))
    node, neighbour = int(graph.rows.row_numbers[0]), int(graph.rows.indices[0])
    without = graph.adjacency.toarray()
    without[node, neighbour] = without[neighbour, node] = 0
    other = EdgeCredibility(NodeEmbeddings(graph.replace(adjacency=without)))
    other.embeddings.__dict__["expected"] = credibility.embeddings.expected
    other.__dict__["weights"] = credibility.weights
    pair = np.array([node]), np.array([neighbour])
    np.testing.assert_allclose(
        credibility.log_odds(*pair, is_edge=np.array([True])),
        other.log_odds(*pair, is_edge=np.array([False])),
    )


def test_graph_without_edges_has_even_odds() -> None:
    graph = planted_graph()
    bare = graph.replace(adjacency=sparse.csr_array(graph.adjacency.shape))
    odds = EdgeCredibility(NodeEmbeddings(bare)).log_odds(
        np.array([0, 1]), np.array([2, 3]), is_edge=np.zeros(2, bool)
    )
    assert odds.tolist() == [0.0, 0.0]

"""Graphs as igraph graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from nodecopy import Graph, from_igraph, to_igraph
from tests.strategies import graphs

igraph = pytest.importorskip("igraph")


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_all_but_features_come_back(graph: Graph) -> None:
    network = to_igraph(graph)
    assert network.vcount() == graph.n_nodes
    assert network.ecount() == graph.n_edges
    labels = None if graph.labels is None or (graph.labels < 0).all() else graph.named_labels()
    other = from_igraph(network)
    if labels is None:
        other = other.replace(labels=None)
    assert other == Graph(graph.adjacency, None, labels, graph.node_ids, graph.directed)

"""Graphs as igraph graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from nodecopy import Graph, NodeCopying, SameLabel, datasets, from_igraph, to_igraph
from nodecopy.copying.igraph import sample, sample_many
from nodecopy.errors import InputError
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


def test_samples_are_those_of_node_copying() -> None:
    club = datasets.load("karate")
    network = to_igraph(club)
    network["name"] = "club"
    network.es["since"] = [f"{source}-{target}" for source, target in network.get_edgelist()]
    model = NodeCopying(SameLabel()).fit(from_igraph(network))
    for ours, theirs in zip(
        sample_many(network, 3, label="label", rng=4), model.sample_many(3, rng=4), strict=True
    ):
        assert from_igraph(ours) == theirs.replace(features=None)
        assert ours["name"] == "club"
        assert ours.vs["label"] == network.vs["label"]
        assert set(ours.es["since"]) <= set(network.es["since"])
    assert network.ecount() == 78


@pytest.mark.parametrize("directed", [False, True])
def test_edges_have_the_attributes_of_the_heaviest_of_those_they_are_copied_from(directed: bool) -> None:
    network = igraph.Graph([(0, 1), (0, 1), (2, 3)], directed=directed)
    network.es["weight"] = [1.0, 5.0, 2.0]
    network.es["kind"] = ["light", "heavy", "other"]
    network.vs["label"] = [0, 1, 0, 1]
    for other in sample_many(network, 5, label="label", rng=0):
        assert other.is_directed() == directed
        pairs = set(zip(other.es["kind"], other.es["weight"], strict=True))
        assert pairs <= {("heavy", 5.0), ("other", 2.0)}


def test_what_samples_need() -> None:
    network = igraph.Graph.Ring(4)
    with pytest.raises(InputError, match="label or donors must be given"):
        sample(network)
    with pytest.raises(InputError, match="no vertex has 'side'"):
        sample(network, label="side")
    empty = igraph.Graph(3)
    empty.vs["label"] = [0, 0, 1]
    assert sample(empty, label="label", rng=0).ecount() == 0

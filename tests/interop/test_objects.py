"""Graphs of other libraries: samples of them, attributes of them, and conversions to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy import (
    Graph,
    Interactions,
    NodeCopying,
    SameLabel,
    Weighted,
    as_graph,
    datasets,
    read_graph,
    sample_like,
    to_igraph,
    to_pandas,
)
from nodecopy.copying.networks import annotate
from nodecopy.errors import InputError
from nodecopy.io.networks import convert_igraph
from tests.strategies import graphs

nx = pytest.importorskip("networkx")


def towns() -> Any:
    """Nodes that are neither integers nor strings, with attributes everywhere."""
    network = nx.Graph(name="roads")
    network.add_node((0, 0), kind="port", people=5)
    network.add_node((0, 1), kind="port")
    network.add_node((1, 1), kind="farm")
    network.add_node((1, 0))
    network.add_edge((0, 0), (1, 1), weight=2.0, road="A1")
    network.add_edge((0, 1), (1, 0), road="B7")
    return network


def test_nodes_and_attributes_stay_and_the_input_is_untouched() -> None:
    before, network = towns(), towns()
    other = sample_like(network, label="kind", rng=0)
    assert dict(other.nodes(data=True)) == dict(before.nodes(data=True))
    assert list(other) == list(before)
    assert other.graph == {"name": "roads"}
    assert nx.utils.graphs_equal(network, before)
    other.nodes[0, 0]["kind"] = "ruin"
    assert network.nodes[0, 0]["kind"] == "port"


def test_edges_carry_the_attributes_of_the_edge_they_were_copied_from() -> None:
    roads = {"A1": 2.0, "B7": None}
    seen = set()
    for other in sample_like(towns(), 20, label="kind", rng=1):
        for source, target, attributes in other.edges(data=True):
            assert roads[attributes["road"]] == attributes.get("weight")
            assert {(1, 1): "A1", (1, 0): "B7"}[max(source, target)] == attributes["road"]
            seen.add((min(source, target), attributes["road"]))
    assert len(seen) == 4  # each port has had each road


@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint"])
@pytest.mark.parametrize("directed", [False, True])
def test_samples_are_those_of_the_model(directed: bool, symmetrise: str) -> None:
    club = nx.karate_club_graph()
    club = club.to_directed() if directed else club
    model = NodeCopying(SameLabel(), 0.2, symmetrise).fit(as_graph(club, labels="club"))
    for other, graph in zip(
        sample_like(club, 3, label="club", keep=0.2, symmetrise=symmetrise, rng=5),
        model.sample_many(3, rng=5),
        strict=True,
    ):
        assert as_graph(other, labels="club") == graph


def test_parallel_edges_become_the_heaviest_and_loops_of_directed_graphs_stay() -> None:
    network = nx.MultiDiGraph()
    network.add_edge("a", "b", length=3.0, name="long")
    network.add_edge("a", "b", length=1.0, name="short")
    network.add_edge("b", "b", length=1.0, name="loop")
    other = sample_like(network, donors=Weighted(np.eye(2)), weight="length", rng=0)
    assert sorted(other.edges(data="name")) == [("a", "b", "long"), ("b", "b", "loop")]
    assert type(other) is nx.DiGraph


igraph = pytest.importorskip("igraph")


@settings(max_examples=60)
@given(graph=graphs())
def test_all_but_features_come_back(graph: Graph) -> None:
    network = to_igraph(graph)
    assert network.vcount() == graph.n_nodes
    assert network.ecount() == graph.n_edges
    labels = None if graph.label_codes is None or (graph.label_codes < 0).all() else graph.labels
    other = convert_igraph(network, "weight").with_labels("label")
    if labels is None:
        other = other.replace(labels=None)
    assert other == Graph(graph.adjacency, None, labels, graph.node_ids, graph.directed)


def test_igraph_samples_are_those_of_the_model() -> None:
    club = datasets.load("karate")
    network = to_igraph(club)
    network["name"] = "club"
    network.es["since"] = [f"{source}-{target}" for source, target in network.get_edgelist()]
    model = NodeCopying(SameLabel()).fit(as_graph(network))
    for ours, theirs in zip(
        sample_like(network, 3, label="label", rng=4), model.sample_many(3, rng=4), strict=True
    ):
        assert as_graph(ours) == theirs.replace(features=None)
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
    for other in sample_like(network, 5, label="label", rng=0):
        assert other.is_directed() == directed
        pairs = set(zip(other.es["kind"], other.es["weight"], strict=True))
        assert pairs <= {("heavy", 5.0), ("other", 2.0)}


ATTRIBUTES: list[Any] = [("density", 0.5, ()), ("centrality", [1.0, 2.0], [0, 2]), ("flow", [3.0], [(1, 2)])]


def test_attributes_of_igraph() -> None:
    other = annotate(igraph.Graph.Ring(3, circular=False), ATTRIBUTES)
    assert other["density"] == 0.5
    assert other.vs["centrality"] == [1.0, None, 2.0]
    assert other.es["flow"] == [None, 3.0]


pandas = pytest.importorskip("pandas")


def test_graphs_go_out_and_come_back() -> None:
    for graph in (
        Graph.from_edges(["ann", "bob"], ["bob", "cleo"]),
        Graph.from_edges([3, 1], [1, 2], [0.5, 2.0], directed=True),
    ):
        assert read_graph(to_pandas(graph), directed=graph.directed) == graph


def test_graphs_of_the_package_are_sampled_too() -> None:
    club = datasets.load("karate")
    assert sample_like(club, rng=3) == NodeCopying().fit(club).sample(rng=3)
    assert len(list(sample_like(Interactions(np.eye(3)), 2, rng=0))) == 2


@pytest.mark.parametrize(
    ("network", "options", "fragment"),
    [
        (towns(), {"label": "color"}, "label must be a node attribute; no node has 'color'"),
        (towns(), {"n": -1}, "n of sample_like must be"),
        ({}, {}, "network must be a graph of NetworkX or igraph"),
    ],
)
def test_errors(network: Any, options: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        sample_like(network, **options)

"""NetworkX in, NetworkX out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Jaccard, NodeCopying, SameLabel, Weighted, from_networkx
from nodecopy.copying.networkx import expected, sample, sample_many
from nodecopy.errors import InputError

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
    other = sample(network, label="kind", rng=0)
    assert dict(other.nodes(data=True)) == dict(before.nodes(data=True))
    assert list(other) == list(before)
    assert other.graph == {"name": "roads"}
    assert nx.utils.graphs_equal(network, before)
    other.nodes[0, 0]["kind"] = "ruin"
    assert network.nodes[0, 0]["kind"] == "port"


def test_edges_carry_the_attributes_of_the_edge_they_were_copied_from() -> None:
    roads = {"A1": 2.0, "B7": None}
    seen = set()
    for other in sample_many(towns(), 20, label="kind", rng=1):
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
    model = NodeCopying(SameLabel(), 0.2, symmetrise).fit(from_networkx(club, label="club"))
    for other, graph in zip(
        sample_many(club, 3, label="club", keep=0.2, symmetrise=symmetrise, rng=5),
        model.sample_many(3, rng=5),
        strict=True,
    ):
        assert from_networkx(other, label="club") == graph


def test_expected_is_the_exact_one() -> None:
    club = nx.karate_club_graph()
    for edge in club.edges:
        del club.edges[edge]["weight"]
    model = NodeCopying(SameLabel()).fit(from_networkx(club, label="club"))
    found = nx.to_numpy_array(expected(club, label="club"))
    np.testing.assert_allclose(found, model.expected_adjacency().toarray(), atol=1e-12)
    assert dict(expected(club, label="club").nodes(data=True)) == dict(club.nodes(data=True))


def test_parallel_edges_become_the_heaviest_and_loops_of_directed_graphs_stay() -> None:
    network = nx.MultiDiGraph()
    network.add_edge("a", "b", length=3.0, name="long")
    network.add_edge("a", "b", length=1.0, name="short")
    network.add_edge("b", "b", length=1.0, name="loop")
    other = sample(network, donors=Weighted(np.eye(2)), weight="length", rng=0)
    assert sorted(other.edges(data="name")) == [("a", "b", "long"), ("b", "b", "loop")]
    assert type(other) is nx.DiGraph


def test_errors() -> None:
    with pytest.raises(InputError, match="label or donors must be given"):
        sample(towns(), rng=0)
    with pytest.raises(InputError, match="no node has 'color'"):
        sample(towns(), label="color", rng=0)


def test_graphs_without_edges_or_nodes() -> None:
    assert list(sample(nx.empty_graph(3), donors=Jaccard(), rng=0).edges) == []
    assert list(sample(nx.Graph(), donors=Jaccard(), rng=0)) == []

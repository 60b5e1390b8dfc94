from __future__ import annotations

import networkx as nx
import pytest

from nodecopy.copying.attributes import Attribute, annotate
from nodecopy.errors import InputError

ATTRIBUTES = [
    Attribute("density", "graph", 0.5),
    Attribute("centrality", "node", [1.0, 2.0], [0, 2]),
    Attribute("flow", "edge", [3.0], [(1, 2)]),
]


def test_attributes_of_networkx() -> None:
    network = nx.path_graph(["a", "b", "c"])
    other = annotate(network, ATTRIBUTES)
    assert other.graph == {"density": 0.5}
    assert dict(other.nodes(data=True)) == {"a": {"centrality": 1.0}, "b": {}, "c": {"centrality": 2.0}}
    assert list(other.edges(data=True)) == [("a", "b", {}), ("b", "c", {"flow": 3.0})]
    assert not network.graph
    assert not network.nodes["a"]


def test_attributes_of_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    other = annotate(igraph.Graph.Ring(3, circular=False), ATTRIBUTES)
    assert other["density"] == 0.5
    assert other.vs["centrality"] == [1.0, None, 2.0]
    assert other.es["flow"] == [None, 3.0]


def test_other_graphs_are_refused() -> None:
    with pytest.raises(InputError, match=r"network must be a NetworkX or igraph graph; got .*dict"):
        annotate({}, ATTRIBUTES)

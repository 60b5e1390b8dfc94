"""NetworkX and GraphML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.io import from_networkx, read_graph, to_networkx, write_graph


def test_order_labels_and_weights() -> None:
    network = nx.Graph()
    network.add_node("b", label="cat")
    network.add_node("a")
    network.add_edge("a", "b", weight=2.5)
    network.add_edge("b", "c")
    graph = from_networkx(network)
    assert graph.node_ids.tolist() == ["b", "a", "c"]
    assert graph.named_labels().tolist() == ["cat", "", ""]  # type: ignore[union-attr]
    assert graph.adjacency.toarray().tolist() == [[0, 2.5, 1], [2.5, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_edges_take_the_largest_weight(kind: Any) -> None:
    network = kind([(0, 1, {"weight": 1.0}), (0, 1, {"weight": 4.0}), (0, 1, {"weight": 2.0})])
    graph = from_networkx(network)
    assert graph.adjacency[0, 1] == 4
    assert graph.directed is network.is_directed()


def test_self_loops_stay_where_edges_have_a_direction() -> None:
    assert from_networkx(nx.DiGraph([(0, 0)])).n_edges == 1
    assert from_networkx(nx.Graph([(0, 0)])).n_edges == 0


def test_nothing_at_all() -> None:
    assert from_networkx(nx.Graph()).n_nodes == 0
    assert len(to_networkx(Graph(np.zeros((0, 0))))) == 0


def test_labels_of_several_kinds_become_strings() -> None:
    network = nx.Graph()
    network.add_node(0, label=1)
    network.add_node(1, label="x")
    assert from_networkx(network).label_names == ("1", "x")


@pytest.mark.parametrize("node", [(0, 1), 1.5, True, frozenset()])
def test_nodes_of_other_kinds(node: Any) -> None:
    network = nx.Graph()
    network.add_node(node)
    with pytest.raises(InputError, match="must be integers or strings"):
        from_networkx(network)


@pytest.mark.parametrize(
    ("weight", "message"),
    [("heavy", "must be a number; got 'heavy'"), (None, "got None"), (-1, "negative"), (np.nan, "finite")],
)
def test_bad_weights(weight: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_networkx(nx.Graph([(0, 1, {"weight": weight})]))


def test_python_values_go_out() -> None:
    network = to_networkx(Graph([[0, 2.0], [2.0, 0]], labels=[1, -1]))
    assert dict(network.nodes(data=True)) == {0: {"label": 1}, 1: {}}
    assert list(network.edges(data=True)) == [(0, 1, {"weight": 2.0})]
    assert {type(node) for node in network} == {int}


def test_graphml_of_others(tmp_path: Path) -> None:
    path = tmp_path / "other.graphml"
    nx.write_graphml_xml(nx.DiGraph([(3, 1), (1, 2)]), path)
    graph = read_graph(path)
    assert graph.directed
    assert graph.node_ids.tolist() == [3, 1, 2]
    assert not read_graph(path, directed=False).directed


def test_a_missing_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph([[0, 1], [1, 0]])
    write_graph(graph, tmp_path / "graph.graphml")
    write_graph(graph, tmp_path / "graph.parquet")
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"nodecopy\[data\]"):
        read_graph(tmp_path / "graph.graphml")
    with pytest.raises(MissingExtraError, match=r"nodecopy\[tables\]"):
        read_graph(tmp_path / "graph.parquet")


def test_a_label_that_is_not_a_number_is_unknown() -> None:
    network = nx.path_graph(3)
    nx.set_node_attributes(network, {0: np.nan, 1: 1.0}, "label")
    assert from_networkx(network).named_labels().tolist() == ["", "1.0", ""]  # type: ignore[union-attr]

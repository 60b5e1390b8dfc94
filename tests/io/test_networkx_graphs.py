"""NetworkX and GraphML."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import MissingExtraError
from nodecopy.io import read_graph, to_networkx, write_graph


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
    with pytest.raises(MissingExtraError, match=r"\[data\]"):
        read_graph(tmp_path / "graph.graphml")
    with pytest.raises(MissingExtraError, match=r"\[tables\]"):
        read_graph(tmp_path / "graph.parquet")


def test_nothing_at_all() -> None:
    assert len(to_networkx(Graph(np.zeros((0, 0))))) == 0


def test_attributes_that_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before, only those of GEXF were named."""
    network = nx.path_graph(["ann", "bob"])
    nx.set_node_attributes(network, {"ann": {"age": 31, "club": 0}, "bob": {"age": 45, "club": 1}})
    nx.write_graphml(network, tmp_path / "graph.graphml")
    with caplog.at_level(logging.INFO, "nodecopy"):
        read_graph(tmp_path / "graph.graphml")
        read_graph(tmp_path / "graph.graphml", label="club")
    assert caplog.messages == [
        "graph.graphml: node attributes that are not read: age, club. label=NAME reads one of them.",
        "graph.graphml: node attributes that are not read: age.",
    ]

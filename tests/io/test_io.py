"""What is written comes back: everything the format can hold."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy import Graph, Interactions, from_networkx
from nodecopy.errors import InputError
from nodecopy.io import (
    read_graph,
    read_interactions,
    to_networkx,
    write_graph,
    write_interactions,
)
from tests.strategies import TEXTS, graphs, interactions

TABLES = [".csv", ".tsv", ".csv.gz", ".parquet"]
few = settings(max_examples=40, deadline=None)


def through(graph: Graph, suffix: str) -> Graph:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"graph{suffix}"
        write_graph(graph, path)
        assert [file.name for file in Path(folder).iterdir()] == [path.name]
        return read_graph(path, directed=graph.directed)


def only_edges(graph: Graph) -> Graph:
    """What a table can hold: nodes with an edge, ascending, without labels and features."""
    rows, columns = graph.adjacency.nonzero()
    kept = np.union1d(rows, columns)
    bare = graph.subgraph(kept[np.argsort(graph.node_ids[kept])])
    return bare.replace(labels=None, features=None)


@pytest.mark.parametrize("suffix", TABLES)
@few
@given(graph=graphs(texts=TEXTS))
def test_tables_keep_edges(suffix: str, graph: Graph) -> None:
    back = through(graph, suffix)
    assert back == only_edges(graph)
    assert not back.n_nodes or back.node_ids.dtype.kind == graph.node_ids.dtype.kind


@few
@given(graph=graphs())
def test_txt_keeps_edges(graph: Graph) -> None:
    assert through(graph, ".txt") == only_edges(graph)


@few
@given(graph=graphs())
def test_graphml_keeps_all_but_features(graph: Graph) -> None:
    back = through(graph, ".graphml")
    expected = graph.replace(features=None)
    if graph.labels is not None and (graph.labels < 0).all():
        expected = expected.replace(labels=None)
    assert back == expected


@few
@given(graph=graphs(texts=TEXTS))
def test_networkx_keeps_all_but_features(graph: Graph) -> None:
    expected = graph.replace(features=None)
    if graph.labels is not None and (graph.labels < 0).all():
        expected = expected.replace(labels=None)
    assert from_networkx(to_networkx(graph)) == expected


@pytest.mark.parametrize("suffix", [*TABLES, ".txt", ".npz"])
@few
@given(log=interactions())
def test_interactions(suffix: str, log: Interactions) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"log{suffix}"
        write_interactions(log, path)
        back = read_interactions(path)
    if suffix != ".npz":
        users, items, ratings = log.table()
        log = Interactions.from_table(users, items, ratings)
    assert back == log


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".txt", ".parquet", ".npz", ".graphml"])
def test_equal_graphs_make_equal_files(suffix: str, tmp_path: Path) -> None:
    graph = Graph([[0, 2.5], [2.5, 0]], labels=["a", ""], node_ids=["x", "y"])
    for name in ("first", "second"):
        write_graph(graph, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"first{suffix}").read_bytes() == (tmp_path / f"second{suffix}").read_bytes()


def test_the_text_is_plain(tmp_path: Path) -> None:
    graph = Graph.from_edges(["b", "a"], ["c", "b"], [0.1, 2])
    write_graph(graph, tmp_path / "edges.csv")
    assert (tmp_path / "edges.csv").read_text() == "source,target,weight\na,b,2.0\nb,c,0.1\n"
    write_graph(Graph.from_edges([5], [3]), tmp_path / "edges.txt")
    assert (tmp_path / "edges.txt").read_text() == "source target\n3 5\n"


@pytest.mark.parametrize("name", ["two words", "#hash", "%percent", ""])
def test_txt_refuses_ids_it_cannot_hold(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="txt file cannot hold the id"):
        write_graph(Graph.from_edges(["a"], [name]), tmp_path / "edges.txt")
    assert not list(tmp_path.iterdir())


def test_graphml_refuses_control_characters(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="control characters"):
        write_graph(Graph.from_edges(["a\x01"], ["b"]), tmp_path / "graph.graphml")


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".graphml", ".parquet"])
def test_writing_leaves_no_half_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{suffix}"
    path.mkdir()
    with pytest.raises(InputError, match="must be a file"):
        write_graph(Graph([[0, 1], [1, 0]]), path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]

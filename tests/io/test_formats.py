"""What is written comes back: everything the format can hold; archives, Matrix Market and NetworkX files."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import Graph, Interactions
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.io import read_graph, read_interactions, to_networkx, write_graph, write_interactions
from nodecopy.io.matrices import read_matrix_market
from nodecopy.io.networks import convert_networkx
from tests.strategies import TEXTS, graphs, interactions

pytestmark = pytest.mark.filterwarnings("ignore:ids .* differ:nodecopy.errors.DataWarning")

TABLES = [".csv", ".tsv", ".csv.gz", ".parquet"]
few = settings(max_examples=40)


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


def without_features(graph: Graph) -> Graph:
    is_unlabelled = graph.label_codes is not None and (graph.label_codes < 0).all()
    return graph.replace(features=None, labels=None) if is_unlabelled else graph.replace(features=None)


@pytest.mark.parametrize("suffix", TABLES)
@few
@given(graph=graphs(texts=TEXTS))
def test_tables_keep_edges(suffix: str, graph: Graph) -> None:
    back = through(graph, suffix)
    assert back == only_edges(graph)
    assert not back.n_nodes or back.node_ids.dtype.kind == graph.node_ids.dtype.kind


@few
@given(graph=graphs())
def test_txt_and_graphml(graph: Graph) -> None:
    assert through(graph, ".txt") == only_edges(graph)
    assert through(graph, ".graphml") == without_features(graph)


@few
@given(graph=graphs(texts=TEXTS))
def test_npz_keeps_everything_and_networkx_all_but_features(graph: Graph) -> None:
    back = through(graph, ".npz")
    assert back == graph
    assert back.label_names == graph.label_names
    if graph.features is not None:
        assert back.features is not None
        assert back.features.dtype == graph.features.dtype
    assert convert_networkx(to_networkx(graph), "weight").with_labels("label") == without_features(graph)


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
def test_equal_graphs_make_equal_files_and_no_half_files(suffix: str, tmp_path: Path) -> None:
    graph = Graph([[0, 2.5], [2.5, 0]], labels=["a", ""], node_ids=["x", "y"])
    for name in ("first", "second"):
        write_graph(graph, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"first{suffix}").read_bytes() == (tmp_path / f"second{suffix}").read_bytes()
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / f"graph{suffix}").mkdir()
    with pytest.raises(InputError, match="must be a file"):
        write_graph(graph, tmp_path / "third" / f"graph{suffix}")
    assert len(list((tmp_path / "third").iterdir())) == 1


def test_the_text_is_plain(tmp_path: Path) -> None:
    write_graph(Graph.from_edges([5], [3]), tmp_path / "edges.txt")
    assert (tmp_path / "edges.txt").read_text() == "source target\n3 5\n"


@pytest.mark.parametrize(
    ("name", "file"),
    [("two words", "e.txt"), ("#hash", "e.txt"), ("%", "e.txt"), ("", "e.txt"), ("a\x01", "e.graphml")],
)
def test_ids_that_a_format_cannot_hold(name: str, file: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file cannot hold"):
        write_graph(Graph.from_edges(["a"], [name]), tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_npz_keeps_names_that_no_node_has() -> None:
    back = through(Graph(np.zeros((3, 3)), labels=["a", "b", "c"]).subgraph([2, 0]), ".npz")
    assert back.label_names == ("a", "b", "c")
    assert np.asarray(back.label_codes).tolist() == [2, 0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_scipy_files(kind: str, tmp_path: Path) -> None:
    matrix = np.array([[0, 2.0, 0], [0, 0, 1], [0, 0, 0]])
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(matrix).asformat(kind))  # type: ignore[call-overload]
    assert read_graph(tmp_path / "a.npz") == Graph(matrix)
    assert read_graph(tmp_path / "a.npz", directed=True) == Graph(matrix, directed=True)


def test_gnn_benchmark_files(tmp_path: Path) -> None:
    adjacency, attributes = sparse.csr_array([[0, 1], [0, 0]]), sparse.csr_array([[0, 1.5, 0], [2.0, 0, 0]])
    parts = {f"adj_{part}": getattr(adjacency, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "dense.npz", attr_matrix=attributes.toarray(), **parts)
    assert read_graph(tmp_path / "dense.npz") == Graph(adjacency, attributes.toarray())
    parts |= {f"attr_{part}": getattr(attributes, part) for part in ("data", "indices", "indptr", "shape")}
    names = np.array(["x", None], object)  # pickled, never read
    np.savez(tmp_path / "cora.npz", labels=[1, 0], node_names=names, **parts)
    assert read_graph(tmp_path / "cora.npz") == Graph(adjacency, attributes, [1, 0])


@pytest.mark.parametrize(
    ("arrays", "fragment"),
    [
        ({"x": [1]}, "must hold a graph; it holds x"),
        ({"indptr": [0, 1], "indices": [7], "directed": False}, "between 0 and 0; got 7"),
        ({"indptr": [0, 5], "indices": [0], "directed": False}, "indptr must"),
        ({"indptr": [0, 1], "indices": [0], "weights": [np.nan], "directed": True}, "finite"),
        ({"indptr": [0, 1], "indices": [0], "weights": [-1.0], "directed": True}, "negative"),
        ({"indptr": [0, 0], "indices": np.zeros(0, int), "directed": True, "labels": [0, 1]}, "labels"),
        ({"indptr": [0, 0], "indices": np.zeros(0, int), "directed": True, "node_ids": [0.5]}, "node_ids"),
        ({"indptr": np.array([{}]), "indices": [0], "directed": True}, "cannot be read"),
    ],
)
def test_bad_archives(arrays: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    values = {name: np.asarray(array) for name, array in arrays.items()}
    np.savez(tmp_path / "graph.npz", allow_pickle=True, **values)
    with pytest.raises(InputError, match=f"graph.npz: .*{fragment}"):
        read_graph(tmp_path / "graph.npz")


def test_archives_of_other_data(tmp_path: Path) -> None:
    write_graph(Graph([[0, 1], [1, 0]]), tmp_path / "graph.npz")
    with pytest.raises(InputError, match="must hold interactions; it holds"):
        read_interactions(tmp_path / "graph.npz")
    sparse.save_npz(tmp_path / "wide.npz", sparse.csr_array(np.ones((1, 2))))
    with pytest.raises(InputError, match="must be square"):
        read_graph(tmp_path / "wide.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(InputError, match=r"one.npz: "):
        read_graph(tmp_path / "one.npz")


COORDINATES = "%%MatrixMarket matrix coordinate pattern general\n% a comment\n"


def test_matrix_market(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(f"{COORDINATES}2 3 2\n1 2\n\n2 3\n")
    assert read_matrix_market(path).toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    path.write_text("%%MatrixMarket matrix array integer symmetric\n2 2\n0\n1\n0\n")
    assert read_matrix_market(path).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        (f"{COORDINATES}2 3 1\n1 2\n2 3\n", "lines of entries"),
        (f"{COORDINATES}2 3 3\n1 2\n2 3\n", "lines of entries"),
        (f"{COORDINATES}2 3 1\n1 2 x\n", "must hold numbers"),
        (f"{COORDINATES}2 3 1\n1 \0\n", "must hold numbers"),
        ("%%MatrixMarket matrix array real general\n100000 100000\n1\n", "an entry for each place"),
    ],
)
def test_damaged_matrix_market_files(text: str, fragment: str, tmp_path: Path) -> None:
    """SciPy's reader ends the interpreter on some of them."""
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(InputError, match=fragment):
        read_matrix_market(tmp_path / "a.mtx")


def test_networkx_and_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network = to_networkx(Graph([[0, 2.0], [2.0, 0]], labels=[1, -1]))
    assert dict(network.nodes(data=True)) == {0: {"label": 1}, 1: {}}
    assert list(network.edges(data=True)) == [(0, 1, {"weight": 2.0})]
    assert {type(node) for node in network} == {int}
    path = tmp_path / "other.graphml"
    nx.write_graphml_xml(nx.DiGraph([(3, 1), (1, 2)]), path)
    assert read_graph(path).directed
    assert read_graph(path).node_ids.tolist() == [3, 1, 2]
    assert not read_graph(path, directed=False).directed
    network = nx.path_graph(["ann", "bob"])
    nx.set_node_attributes(network, {"ann": {"age": 31, "club": 0}, "bob": {"age": 45, "club": 1}})
    nx.write_graphml(network, path)
    assert read_graph(path).label_codes is None
    assert np.asarray(read_graph(path, label="club").label_codes).tolist() == [0, 1]
    assert "node attributes that are not read: age, club. Set label" in caplog.messages[0]
    assert caplog.messages[1].endswith("not read: age.")


def test_a_missing_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix, library, extra in ((".graphml", "networkx", "data"), (".parquet", "pyarrow", "tables")):
        write_graph(Graph([[0, 1], [1, 0]]), tmp_path / f"graph{suffix}")
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
            read_graph(tmp_path / f"graph{suffix}")

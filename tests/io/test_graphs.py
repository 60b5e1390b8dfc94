"""The rules of read_graph: headers, columns, ids, labels and features."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.io import read_graph, read_matrix

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def labels(graph: Graph) -> list[Any]:
    named = graph.named_labels()
    assert named is not None
    return list(named.tolist())


@pytest.mark.parametrize(
    "text",
    [
        "source,target\n1,2\n2,3\n",
        "Target,SOURCE\n2,1\n3,2\n",
        "src,dst\n1,2\n2,3\n",
        "from,to\n1,2\n2,3\n",
        "u,v\n1,2\n2,3\n",
        "one,other\n1,2\n2,3\n",
        "year,source,target\n1999,1,2\n2001,2,3\n",
        "1,2\n2,3\n",
        "1,2\n\n2,3",
        "\ufeff1,2\r\n2,3\r\n",
        "1,2,remark\n2,3,another\n",
    ],
)
def test_headers_and_columns(text: str, write: Write) -> None:
    graph = read_graph(write("edges.csv", text))
    assert graph == Graph.from_edges([1, 2], [2, 3])


@pytest.mark.parametrize(
    "text", ["source,target,weight\na,b,2\nb,c,1\n", "a,b,2\nb,c,1\n", "to,w,from\nb,2,a\nc,1,b\n"]
)
def test_weights(text: str, write: Write) -> None:
    assert read_graph(write("edges.csv", text)) == Graph.from_edges(["a", "b"], ["b", "c"], [2, 1])


def test_named_source_and_target_take_no_weight_by_place(write: Write) -> None:
    assert not read_graph(write("edges.csv", "source,target,year\na,b,1999\n")).is_weighted


def test_the_caller_names_columns(write: Write) -> None:
    path = write("edges.csv", "a,b,c,d\nx,1,2,0.5\ny,2,3,0.25\n")
    graph = read_graph(path, source="b", target="c", weight="d")
    assert graph == Graph.from_edges([1, 2], [2, 3], [0.5, 0.25])
    with pytest.raises(InputError, match=r"edges.csv: there is no column 'z'; there are a, b, c, d"):
        read_graph(path, source="z")
    with pytest.raises(
        InputError, match=r"column for target; it has a, b, c, d\. Name it with target=NAME\."
    ):
        read_graph(path, source="b")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1,2\n", [1, 2]),
        ("-1,20\n", [-1, 20]),
        ("007,8\n", ["007", "8"]),
        ("1,b\n", ["1", "b"]),
        ("1_0,2\n", ["1_0", "2"]),
        ("+1,2\n", ["+1", "2"]),
        ("1,99999999999999999999\n", ["1", "99999999999999999999"]),
        ('"a,b"," c"\n" c",d\n', [" c", "a,b", "d"]),
    ],
)
def test_ids(text: str, ids: list[Any], write: Write) -> None:
    assert read_graph(write("edges.csv", text)).node_ids.tolist() == ids


def test_tabs_white_space_and_comments(write: Write) -> None:
    expected = Graph.from_edges(["a b", "c"], ["c", "d"])
    assert read_graph(write("edges.tsv", "a b\tc\nc\td\n")) == expected
    spaced = "# a comment\n% another\n1  2\n\n 2\t3 \n"
    assert read_graph(write("edges.txt", spaced)) == Graph.from_edges([1, 2], [2, 3])


def test_duplicates_loops_and_directions(write: Write) -> None:
    path = write("edges.csv", "a,b,1\nb,a,3\na,b,2\na,a,9\n")
    assert read_graph(path).adjacency.toarray().tolist() == [[0, 3], [3, 0]]
    assert read_graph(path, directed=True).adjacency.toarray().tolist() == [[9, 2], [3, 0]]


def test_a_header_alone_is_an_empty_graph(write: Write) -> None:
    assert read_graph(write("edges.csv", "source,target\n")).n_nodes == 0


def test_labels(write: Write) -> None:
    edges = write("edges.csv", "a,b\nb,c\n")
    table = write("labels.csv", "id,label\nb,dog\nlonely,cat\nc,\n")
    graph = read_graph(edges, labels=table, allow_isolated=True)
    assert graph.node_ids.tolist() == ["a", "b", "c", "lonely"]
    assert labels(graph) == ["", "dog", "", "cat"]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,1\nb,-1\n"))) == [1, -1, -1]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,01\nb,2\n"))) == ["01", "2", ""]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,x\nb,x\nc,x\n"))) == ["x", "x", "x"]
    for header in ("id,label", "person,team"):
        with pytest.raises(InputError, match=rf"labels.csv: there are no rows, only the header \({header}\)"):
            read_graph(edges, labels=write("labels.csv", f"{header}\n"))


def test_one_name_among_all_tables_makes_all_ids_strings(write: Write) -> None:
    table = write("labels.csv", "id,label\nx,0\n")
    graph = read_graph(write("edges.csv", "1,2\n"), labels=table, allow_isolated=True)
    assert graph.node_ids.tolist() == ["1", "2", "x"]


def test_feature_tables(write: Write) -> None:
    edges = write("edges.csv", "source,target\na,b\n")
    for text in ("b,1,2\na,3,4\nz,5,6\n", "id,f,g\nb,1,2\na,3,4\nz,5,6\n", "f,node,g\n1,b,2\n3,a,4\n5,z,6\n"):
        graph = read_graph(edges, features=write("features.csv", text), allow_isolated=True)
        assert graph.node_ids.tolist() == ["a", "b", "z"]
        np.testing.assert_array_equal(graph.features, [[3, 4], [1, 2], [5, 6]])


def test_matrices_without_ids_belong_to_numbered_nodes(write: Write, tmp_path: Path) -> None:
    edges, matrix = write("edges.csv", "1,0\n"), np.array([[1.0, 0], [0, 2]])
    np.save(tmp_path / "x.npy", matrix)
    np.savez(tmp_path / "x.npz", matrix)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(matrix))
    for name in ("x.npy", "x.npz"):
        assert read_graph(edges, features=tmp_path / name).features.tolist() == matrix.tolist()  # type: ignore[union-attr]
    assert sparse.issparse(read_graph(edges, features=tmp_path / "s.npz").features)
    np.save(tmp_path / "x.npy", matrix[:1])
    with pytest.raises(InputError, match=r"x.npy: .* the rows of nodes 0 to 0, but the graph has node 1\."):
        read_graph(edges, features=tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", a=matrix, b=matrix)
    with pytest.raises(InputError, match="must hold one matrix; it holds a, b"):
        read_graph(edges, features=tmp_path / "x.npz")


def test_a_longer_matrix_adds_isolated_nodes_on_demand(write: Write, tmp_path: Path) -> None:
    edges = write("edges.csv", "2,0\n")
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(InputError, match=r"x.npy: id 1 is not a node of the graph\. .* allow_isolated=True"):
        read_graph(edges, features=tmp_path / "x.npy")
    graph = read_graph(edges, features=tmp_path / "x.npy", allow_isolated=True)
    assert graph.node_ids.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(graph.features, np.eye(3))


@pytest.mark.parametrize("edges", ["source,target\nb,a\n", "1,2\n", "00,01\n"])
def test_a_matrix_without_ids_is_refused_for_other_nodes(edges: str, write: Write, tmp_path: Path) -> None:
    """Before, rows were given to nodes in ascending order of the ids without a word."""
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(InputError, match=r"x.npy: .* np.savez\('x.npz', ids=ids, x=matrix\)"):
        read_graph(write("edges.csv", edges), features=tmp_path / "x.npy")


def test_matrices_with_ids_are_in_any_order(write: Write, tmp_path: Path) -> None:
    edges, matrix, ids = write("edges.csv", "a,b\nb,c\n"), np.diag([1.0, 2, 3]), ["c", "a", "b"]
    csr = sparse.csr_array(matrix)
    parts = {part: getattr(csr, part) for part in ("data", "indices", "indptr", "shape")}
    for arrays in (
        {"x": matrix},
        {"features": matrix, "other": np.zeros(2)},
        {"anything": matrix},
        parts,
        parts | {"format": b"csr"},
    ):
        np.savez(tmp_path / "x.npz", ids=ids, **arrays)
        graph = read_graph(edges, features=tmp_path / "x.npz")
        dense = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
        np.testing.assert_array_equal(dense, [[0, 2, 0], [0, 0, 3], [1, 0, 0]])
        assert sparse.issparse(graph.features) == ("data" in arrays)


def test_ids_of_matrices_are_checked(write: Write, tmp_path: Path) -> None:
    edges = write("edges.csv", "source,target\na,b\n")
    for ids, message in (
        (np.array(["a", "b"], object), r"Python objects\. Write ids=np.array\(ids, str\)"),
        (["a"], "must name every row, 2 in all; the file holds 1 ids"),
        (["a", "x"], "id 'x' is not a node of the graph"),
        (["a", "a"], "node 'a' is listed more than once"),
    ):
        np.savez(tmp_path / "x.npz", ids=ids, x=np.eye(2), allow_pickle=True)
        with pytest.raises(InputError, match=f"x.npz: .*{message}"):
            read_graph(edges, features=tmp_path / "x.npz")


def test_given_nodes_order_a_matrix(write: Write, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    graph = read_graph(
        write("edges.csv", "source,target\na,b\n"), features=tmp_path / "x.npy", node_ids=["b", "a"]
    )
    np.testing.assert_array_equal(graph.features, np.eye(2))
    assert graph.node_ids.tolist() == ["b", "a"]


def test_given_nodes(write: Write) -> None:
    edges = write("edges.csv", "2,1\n")
    assert read_graph(edges, node_ids=[3, 2, 1]) == Graph.from_edges([2], [1], node_ids=[3, 2, 1])
    assert read_graph(edges, node_ids=["2", "1"]).node_ids.tolist() == ["2", "1"]
    with pytest.raises(InputError, match=r"edges.csv: line 1 has source 2, which is not in node_ids"):
        read_graph(edges, node_ids=[1, 3])
    with pytest.raises(InputError, match="unique"):
        read_graph(edges, node_ids=[1, 1, 2])
    with pytest.raises(InputError, match=r"labels.csv: id 9 is not a node of the graph. Correct the ids.$"):
        read_graph(edges, node_ids=[1, 2], labels=write("labels.csv", "9,0\n"))


@pytest.mark.parametrize("sign", [";", "|", ", ", " "])
def test_lists_of_neighbours(sign: str, write: Write) -> None:
    """They are no ids; ids that contain such a sign are."""
    rows = [("a", f"b{sign}c"), ("b", f"a{sign}c"), ("c", f"a{sign}b")]
    with pytest.warns(DataWarning, match="edges.csv: targets look like lists of ids .* a row for each edge"):
        read_graph(write("edges.csv", "source,target\n" + "".join(f'{a},"{b}"\n' for a, b in rows)))
    cities = read_graph(write("cities.csv", f'source,target\n"New{sign}York","San{sign}Jose"\n'))
    assert cities.n_nodes == 2


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("labels", "a,0\na,1\n", "node 'a' is listed more than once"),
        ("labels", "a\n", "must have a column for id and label"),
        ("labels", ",x\n", "line 1 has no id"),
        ("features", "a,1\n", "no row for a node of the graph: 'b'"),
        ("features", "a,1\nb,1\na,2\n", "node 'a' is listed more than once"),
        ("features", "a,1\nb,x\n", "line 2 has feature 1 'x', which is not a number"),
        ("features", "id,age\na,1\nb,inf\n", "line 3 has age inf; it must be finite"),
        ("features", "a\nb\n", "a column of ids and at least one of numbers"),
    ],
)
def test_bad_node_tables(kind: str, text: str, message: str, write: Write) -> None:
    tables: dict[str, Any] = {kind: write(f"{kind}.csv", text)}
    with pytest.raises(InputError, match=f"{kind}.csv: .*{message}"):
        read_graph(write("edges.csv", "source,target\na,b\n"), **tables)


def test_tables_join_whole_graphs(write: Write, tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array([[0, 1], [0, 0]]))
    table = write("labels.csv", "1,5\n")
    assert labels(read_graph(tmp_path / "a.npz", labels=table)) == [-1, 5]
    with pytest.raises(InputError, match="are for edge lists"):
        read_graph(tmp_path / "a.npz", node_ids=[1, 2])
    with pytest.raises(InputError, match="is not a node"):
        read_graph(tmp_path / "a.npz", labels=write("labels.csv", "7,5\n"))


def test_features_whose_columns_are_numbered(write: Callable[[str, str], Path]) -> None:
    edges = write("edges.csv", "source,target\na,b\n")
    graph = read_graph(edges, features=write("features.csv", "node,0,1\na,1,2\nb,3,4\n"))
    assert graph.features.tolist() == [[1, 2], [3, 4]]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "header", ["citing,cited", "node1,node2", "FromNodeId,ToNodeId", "source_id,target_id"]
)
def test_a_header_above_words(tmp_path: Path, header: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(f"{header}\nann,bob\nbob,cleo\n")
    assert read_graph(path).node_ids.tolist() == ["ann", "bob", "cleo"]


def test_matrices_between_nodes_are_in_node_order(tmp_path: Path) -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    np.savez(tmp_path / "x.npz", ids=["c", "a", "b"], x=matrix)
    expected = matrix[np.ix_([1, 2, 0], [1, 2, 0])]
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.npz", node_ids=["a", "b", "c"]), expected)
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.npz"), matrix)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(matrix))
    reversed_ = read_matrix(tmp_path / "s.npz", node_ids=[2, 1, 0])
    np.testing.assert_array_equal(reversed_.toarray(), matrix[::-1, ::-1])
    for name, ids, message in (
        ("s.npz", ["a", "b", "c"], "but the graph has node 'a'"),
        ("x.npz", ["a", "b"], "id 'c' is not a node"),
        ("x.npz", ["a", "b", "c", "d"], "no row for a node of the graph: 'd'"),
    ):
        with pytest.raises(InputError, match=f"{name}: .*{message}"):
            read_matrix(tmp_path / name, node_ids=ids)

"""The rules of read_graph: edges, ids, duplicates, labels and features."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.io import read_contacts, read_graph
from nodecopy.io.edge_lists import build_graph
from nodecopy.io.node_tables import check_known

Write = Callable[[str, str], Path]
PAIR = "source,target\na,b\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def labels(graph: Graph) -> list[Any]:
    named = graph.labels
    assert named is not None
    return list(named.tolist())


@pytest.mark.parametrize(
    "text", ["source,target,weight\na,b,2\nb,c,1\n", "a,b,2\nb,c,1\n", "to,w,from\nb,2,a\nc,1,b\n"]
)
def test_weights(text: str, write: Write) -> None:
    assert read_graph(write("edges.csv", text)) == Graph.from_edges(["a", "b"], ["b", "c"], [2, 1])
    assert not read_graph(write("edges.csv", "source,target,year\na,b,1999\n")).is_weighted


def test_the_caller_names_columns(write: Write) -> None:
    path = write("edges.csv", "a,b,c,d\nx,1,2,0.5\ny,2,3,0.25\n")
    graph = read_graph(path, source="b", target="c", weight="d")
    assert graph == Graph.from_edges([1, 2], [2, 3], [0.5, 0.25])
    assert not read_graph(path, source="b", target="c", weight="").is_weighted
    with pytest.raises(InputError, match="source must be a column; got 'z', where"):
        read_graph(path, source="z")
    assert read_graph(write("edges.csv", PAIR), header=False).n_nodes == 4


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1,2\n", [1, 2]),
        (f"{-(2**63)},20\n", [-(2**63), 20]),
        ("007,8\n", ["007", "8"]),
        ("1,b\n", ["1", "b"]),
        ("1_0,2\n", ["1_0", "2"]),
        ("1,99999999999999999999\n", ["1", "99999999999999999999"]),
        ('"a,b"," c"\n" c",d\n', [" c", "a,b", "d"]),
        ("source,target\n", []),
    ],
)
def test_ids(text: str, ids: list[Any], write: Write) -> None:
    assert read_graph(write("edges.csv", text)).node_ids.tolist() == ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann,bob\nbob,nan\nnull,ann\n", "edges.csv: nan, null is read as an id"),
        ("001,002\n002,x\n2,001\n", "ids '002' and '2' differ"),
        ("Ann,bob\nbob,cleo\ncleo,ann\n", "ids 'Ann' and 'ann' differ"),
        ("ann,#REF!\nbob,cleo\n", "#REF! is read as an id"),
    ],
)
def test_ids_that_are_probably_wrong(text: str, message: str, write: Write) -> None:
    with pytest.warns(DataWarning, match=message):
        assert read_graph(write("edges.csv", f"source,target\n{text}")).n_nodes == 4


@pytest.mark.parametrize("sign", [";", "|", ", ", " "])
def test_lists_of_neighbours_are_a_warning(sign: str, write: Write) -> None:
    rows = [("a", f"b{sign}c"), ("b", f"a{sign}c"), ("c", f"a{sign}b")]
    with pytest.warns(DataWarning, match="edges.csv: targets look like lists of ids"):
        read_graph(write("edges.csv", "source,target\n" + "".join(f'{a},"{b}"\n' for a, b in rows)))
    cities = read_graph(write("cities.csv", f'source,target\n"New{sign}York","San{sign}Jose"\n'))
    assert cities.n_nodes == 2


# Duplicates, both directions and self-loops.


def build(edges: list[tuple[int, int, float]], **options: Any) -> Graph:
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    settings: dict[str, Any] = {"directed": False, "duplicates": "max", "file": "f.csv"} | options
    n = int(max(first.max(), second.max())) + 1
    return build_graph(first, second, weights.astype(float), np.arange(n), **settings)


def weights(graph: Graph) -> dict[tuple[int, int], float]:
    source, target, values = graph.edges()
    numbers = np.ones(len(source)) if values is None else values
    return {(int(s), int(t)): float(w) for s, t, w in zip(source, target, numbers, strict=True)}


@pytest.mark.parametrize(
    ("edges", "largest", "total"),
    [
        ([(0, 1, 2), (0, 1, 3), (1, 2, 1)], 3, 5),
        ([(0, 1, 2), (1, 0, 3), (1, 2, 1)], 3, 5),
        ([(0, 1, 2), (1, 0, 2), (1, 2, 1)], 2, 4),
        ([(0, 1, 2), (1, 0, 2), (1, 2, 1), (2, 1, 1)], 2, 2),
        ([(0, 1, 2), (1, 0, 3), (1, 2, 0.5), (2, 1, 0.5)], 3, 5),
        ([(0, 1, 1), (1, 0, 2), (0, 1, 1), (1, 2, 1), (2, 1, 1)], 2, 2),
        ([(0, 1, 2), (1, 0, 0), (1, 2, 1)], 2, 2),
        ([(0, 1, 2), (0, 1, 3), (1, 1, 9), (1, 2, 1)], 3, 5),
    ],
)
def test_undirected_duplicates(edges: list[tuple[int, int, float]], largest: float, total: float) -> None:
    """A symmetric list, with each edge in both directions, is not doubled by "sum"."""
    assert weights(build(edges))[0, 1] == largest
    assert weights(build(edges, duplicates="sum"))[0, 1] == total
    assert weights(build(edges, duplicates="sum"))[1, 2] == 1


def test_directed_duplicates() -> None:
    edges = [(0, 1, 2.0), (1, 0, 3.0), (0, 1, 4.0), (0, 0, 9.0)]
    assert weights(build(edges, directed=True)) == {(0, 0): 9, (0, 1): 4, (1, 0): 3}
    assert weights(build(edges, directed=True, duplicates="sum")) == {(0, 0): 9, (0, 1): 6, (1, 0): 3}
    assert weights(build([(0, 1, 1), (1, 0, 1)], directed=True, duplicates="error")) == {(0, 1): 1, (1, 0): 1}
    symmetric = [(0, 1, 2.0), (1, 0, 2.0), (1, 2, 1.0), (2, 1, 1.0)]
    assert weights(build(symmetric, duplicates="error")) == {(0, 1): 2, (1, 2): 1}


@pytest.mark.parametrize(
    ("edges", "directed", "row"),
    [
        ([(0, 1, 1), (1, 2, 1), (0, 1, 1)], True, 2),
        ([(0, 1, 1), (1, 0, 1), (1, 2, 1)], False, 1),
        ([(0, 1, 1), (1, 0, 1), (0, 1, 1)], False, 2),
    ],
)
def test_duplicates_as_errors(edges: list[tuple[int, int, float]], directed: bool, row: int) -> None:
    with pytest.raises(InputError, match=f"row {row} repeats the edge from . to ."):
        build(edges, directed=directed, duplicates="error", row_name="row {}".format)


# Tables of labels and features, and the nodes that their rows belong to.


def test_labels(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    edges = write("edges.csv", "a,b\nb,c\n")
    table = write("labels.csv", "id,label\nb,dog\nlonely,cat\nc,\n")
    graph = read_graph(edges, labels=table, allow_isolated=True)
    assert graph.node_ids.tolist() == ["a", "b", "c", "lonely"]
    assert "ids without edges are isolated nodes (1): 'lonely'." in caplog.messages
    assert labels(graph) == ["", "dog", "", "cat"]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,1\nb,-1\n"))) == [1, -1, -1]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,01\nb,2\n"))) == ["01", "2", ""]
    assert labels(read_graph(edges, labels=write("labels.csv", "a,x\nb,x\nc,x\n"))) == ["x", "x", "x"]
    table = write("labels.csv", "id,label\nx,0\n")
    graph = read_graph(write("edges.csv", "1,2\n"), labels=table, allow_isolated=True)
    assert graph.node_ids.tolist() == ["1", "2", "x"]
    assert read_graph(write("edges.csv", "source,target\n"), labels=table).node_ids.tolist() == ["x"]


def test_missing_labels(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    edges = write("edges.csv", "source,target\nann,bob\nbob,cleo\ncleo,dan\n")
    table = write("labels.csv", "id,label\nann,gold\nbob,#N/A\ncleo,nan\ndan,none\n")
    assert labels(read_graph(edges, labels=table)) == ["gold", "", "", "none"]
    assert "labels.csv: missing labels: 2 (#N/A, nan)" in caplog.text
    frame = pandas.DataFrame({"id": ["ann", "bob", "cleo"], "label": ["gold", "NA", None]})
    assert read_graph(edges, labels=frame).label_names == ("gold",)
    numbers = write("numbers.csv", "id,label\nann,3\nbob,NA\ncleo,4\n")
    assert labels(read_graph(edges, labels=numbers)) == [3, -1, 4, -1]


@pytest.mark.parametrize("names", [("Blue team", "blue  team"), ("1", "1.0")])
def test_labels_that_differ_only_in_notation(names: tuple[str, str], write: Write) -> None:
    table = write("labels.csv", "id,label\na,{}\nb,{}\n".format(*names))
    with pytest.warns(DataWarning, match="labels '{}' and '{}' differ".format(*names)):
        read_graph(write("edges.csv", PAIR), labels=table)


def test_a_header_of_unfamiliar_names(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    edges = write("edges.csv", "from_account,to_account\nann,bob\nbob,cleo\ncleo,ann\n")
    table = write("labels.csv", "account_no,segment\nann,gold\nbob,silver\ncleo,gold\n")
    features = write("features.csv", "account_no,city\nann,Oslo\nbob,Rome\ncleo,Oslo\n")
    graph = read_graph(edges, labels=table, features=features)
    assert graph.node_ids.tolist() == ["ann", "bob", "cleo"]
    assert graph.label_names == ("gold", "silver")
    assert graph.feature_encoder.feature_names_ == ["city = Oslo", "city = Rome"]
    subjects = [message.partition(":")[0] for message in caplog.messages]
    assert subjects == ["edges.csv", "labels.csv", "features.csv", "features"]


@pytest.mark.parametrize(
    "text",
    [
        *("b,1,2\na,3,4\n", "id,f,g\nb,1,2\na,3,4\n", "f,node,g\n1,b,2\n3,a,4\n", "node,0,1\na,3,4\nb,1,2\n"),
        *(",id,x,y\n1,a,3,4\n2,b,1,2\n", ",x,y\na,3,4\nb,1,2\n", ",account,x,y\n1,a,3,4\n2,b,1,2\n"),
    ],
)
def test_feature_tables(text: str, write: Write) -> None:
    graph = read_graph(write("edges.csv", PAIR), features=write("features.csv", text))
    np.testing.assert_array_equal(graph.features, [[3, 4], [1, 2]])


def test_named_columns_and_labels_among_features(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    edges, nodes = write("edges.csv", PAIR), write("nodes.csv", "since,key,group\n2001,a,x\n2002,b,y\n")
    assert read_graph(edges, labels=nodes, id="key", label="group").label_names == ("x", "y")
    assert read_graph(edges, features=nodes, id="key").features.shape == (2, 3)  # type: ignore[union-attr]
    for kind in ("labels", "features"):
        with pytest.raises(InputError, match="got 'kee', where there are since, key, group"):
            read_graph(edges, **{kind: nodes}, id="kee")  # type: ignore[arg-type]
    archive = edges.with_name("graph.npz")
    np.savez(archive, indptr=[0, 1], indices=[0], directed=True)
    for path, names in ((edges, {"id": "key"}), (edges, {"label": "g"}), (archive, {"label": "g"})):
        with pytest.raises(InputError, match="tables of labels and features; got no such table"):
            read_graph(path, **names)  # type: ignore[arg-type]
    both, other = write("both.csv", "id,age,label\na,31,x\nb,45,y\n"), write("other.csv", "id,segment\na,x\n")
    for table in (both, other):
        graph = read_graph(edges, features=both, labels=table)
        assert graph.feature_encoder.feature_names_ == ["age"]
    assert "column label is not a feature, since it holds labels" in caplog.text
    assert len(read_graph(edges, features=both).feature_encoder.feature_names_) == 3


MATRIX = np.array([[1.0, 0], [0, 2]])


def test_matrices_without_ids_belong_to_numbered_nodes(write: Write, tmp_path: Path) -> None:
    edges = write("edges.csv", "1,0\n")
    np.save(tmp_path / "x.npy", MATRIX)
    np.savez(tmp_path / "x.npz", MATRIX)
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(MATRIX))
    for name in ("x.npy", "x.npz"):
        assert read_graph(edges, features=tmp_path / name).features.tolist() == MATRIX.tolist()  # type: ignore[union-attr]
    assert sparse.issparse(read_graph(edges, features=tmp_path / "s.npz").features)
    named = read_graph(write("edges.csv", PAIR), features=tmp_path / "x.npy", node_ids=["b", "a"])
    np.testing.assert_array_equal(named.features, MATRIX)
    for text in (PAIR, "1,2\n", "00,01\n"):
        with pytest.raises(InputError, match=r"x.npy: .* np.savez\('x.npz', ids=ids, x=matrix\)"):
            read_graph(write("edges.csv", text), features=tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.eye(3))
    edges = write("edges.csv", "2,0\n")
    with pytest.raises(InputError, match=r"x.npy: id 1 is not a node of the graph\. .*allow_isolated=True"):
        read_graph(edges, features=tmp_path / "x.npy")
    graph = read_graph(edges, features=tmp_path / "x.npy", allow_isolated=True)
    np.testing.assert_array_equal(graph.features, np.eye(3))


def test_matrices_with_ids_are_in_any_order(write: Write, tmp_path: Path) -> None:
    edges, matrix, ids = write("edges.csv", "a,b\nb,c\n"), np.diag([1.0, 2, 3]), ["c", "a", "b"]
    csr = sparse.csr_array(matrix)
    parts = {part: getattr(csr, part) for part in ("data", "indices", "indptr", "shape")}
    dense: list[Any] = [{"x": matrix}, {"features": matrix, "other": np.zeros(2)}, {"anything": matrix}]
    for arrays in (*dense, parts, parts | {"format": b"csr"}):
        np.savez(tmp_path / "x.npz", ids=ids, **arrays)
        features: Any = read_graph(edges, features=tmp_path / "x.npz").features
        assert sparse.issparse(features) == ("data" in arrays)
        values = features.toarray() if "data" in arrays else features
        np.testing.assert_array_equal(values, [[0, 2, 0], [0, 0, 3], [1, 0, 0]])


def test_ids_of_matrices_are_checked(write: Write, tmp_path: Path) -> None:
    edges = write("edges.csv", PAIR)
    for ids, fragment in (
        (np.array(["a", "b"], object), r"got objects\. Use np.array\(ids, str\)"),
        (["a"], "must name every row, 2 in all; got 1"),
        (["a", "x"], "id 'x' is not a node of the graph"),
        (["a", "a"], "node 'a' is listed more than once"),
    ):
        np.savez(tmp_path / "x.npz", ids=ids, x=np.eye(2), allow_pickle=True)
        with pytest.raises(InputError, match=f"x.npz: .*{fragment}"):
            read_graph(edges, features=tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", a=MATRIX, b=MATRIX)
    with pytest.raises(InputError, match="must hold one matrix; it holds a, b"):
        read_graph(edges, features=tmp_path / "x.npz")


def test_given_nodes_and_whole_graphs(write: Write, tmp_path: Path) -> None:
    edges = write("edges.csv", "2,1\n")
    assert read_graph(edges, node_ids=[3, 2, 1]) == Graph.from_edges([2], [1], node_ids=[3, 2, 1])
    assert read_graph(edges, node_ids=["2", "1"]).node_ids.tolist() == ["2", "1"]
    nine = write("labels.csv", "9,0\n")
    for options, fragment in (
        ({"node_ids": [1, 3]}, "edges.csv: line 1 has source 2, which is not in node_ids"),
        ({"node_ids": [1, 1, 2]}, "unique"),
        ({"node_ids": [1, 2], "labels": nine}, "labels.csv: id 9 is not a node .* Correct the ids.$"),
    ):
        with pytest.raises(InputError, match=fragment):
            read_graph(edges, **options)
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array([[0, 1], [0, 0]]))
    assert labels(read_graph(tmp_path / "a.npz", labels=write("own.csv", "1,5\n"))) == [-1, 5]
    with pytest.raises(InputError, match="are for edge lists"):
        read_graph(tmp_path / "a.npz", node_ids=[1, 2])


NAMES = "".join(f"{number},name {number}\n" for number in range(30))


@pytest.mark.parametrize(
    ("kind", "text", "fragment"),
    [
        ("labels", "a,0\na,1\n", "node 'a' is listed more than once"),
        ("labels", "a\n", "must have columns for id and label"),
        ("labels", "id,label\n", "no rows, only the header"),
        ("labels", "no,age,group\na,31,x\nb,45,y\n", "it has no, age, group. Name it .label="),
        ("labels", "a,31,x\nb,45,y\n", "it has several, and no header"),
        ("labels", "id,label\na,12.5\nb,3\n", r"got 12\.5, a measurement"),
        ("labels", f"id,label\n{NAMES}", "there are 30 in 30 rows"),
        ("features", "a,1\n", "no row for a node of the graph: 'b'"),
        ("features", "a,1\nb,x\n", "line 2 has feature 1 'x', which is not a number"),
        ("features", "id,age\na,1\nb,inf\n", "line 3 has age inf; it must be finite"),
        ("features", "a\nb\n", "a column of ids and at least one of numbers"),
        ("labels", "id,label\nanna,1\nb,2\nzzz,1\n", "2 of 3 ids are not nodes of the graph: 'anna', 'zzz'"),
        ("features", "id,x\nc,1\n", "id 'c' is not a node .* add isolated nodes .allow_isolated=True"),
    ],
)
def test_bad_node_tables(kind: str, text: str, fragment: str, write: Write) -> None:
    tables: dict[str, Any] = {kind: write(f"{kind}.csv", text)}
    with pytest.raises(InputError, match=f"{kind}.csv: .*{fragment}"):
        read_graph(write("edges.csv", PAIR), **tables)


def test_unknown_ids_are_listed_with_close_ones() -> None:
    with pytest.raises(InputError, match=r"7 of 7 ids .*: 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more\. Correct"):
        check_known([f"x{number}" for number in range(7)], {"node"}, allow_isolated=False)
    with pytest.raises(InputError, match="Did you mean anna"):
        check_known(["ana"], {"anna", "bob"}, allow_isolated=False)
    with pytest.raises(InputError, match=r"'p10' is not a node of the graph\. Correct"):  # p1 has its own row
        check_known(["p1", "p10", "p11"], {"p1", "p11"}, allow_isolated=False)


@pytest.mark.parametrize("allow_isolated", [False, True])
@pytest.mark.parametrize(
    ("edges", "table"),
    [
        ("007,012\n012,100\n", "id,label\n7,1\n12,2\n"),
        ("7,12\n12,100\n", "id,label\n007,1\n012,2\n"),
        ("7,12\n12,100\n", "id,label\n7.0,1\n12.0,2\n"),
    ],
    ids=["lost in labels", "lost in edges", "decimals"],
)
def test_ids_that_lost_their_zeros(edges: str, table: str, allow_isolated: bool, write: Write) -> None:
    files = write("edges.csv", edges), write("labels.csv", table)
    with pytest.raises(InputError, match=r"labels.csv: id '.*7.*' is not a node of the graph, but '.*7' is"):
        read_graph(files[0], labels=files[1], allow_isolated=allow_isolated)


def test_zeros_of_frames() -> None:
    edges = pandas.DataFrame({"source": ["007", "012"], "target": ["012", "100"]})
    table = pandas.DataFrame({"id": ["007"], "label": ["x"]})
    assert read_graph(edges, labels=table).node_ids.tolist() == ["007", "012", "100"]
    assert read_graph(edges.replace({"007": "7", "012": "12"})).node_ids.tolist() == ["100", "12", "7"]
    with pytest.raises(InputError, match=r"the data frame: id '7' .* but '007' is"):
        read_graph(edges, labels=table.assign(id=[7]))
    mixed = pandas.DataFrame({"source": [7, 8], "target": ["007", "9"]})
    with pytest.raises(InputError, match=r"got 7 in one column and '007' in another"):
        read_graph(mixed)
    assert read_graph(mixed.assign(target=["010", "9"])).node_ids.tolist() == ["010", "7", "8", "9"]


CONTACTS = [
    ("ann", "bob", 0),
    ("bob", "ann", 90),
    ("bob", "cleo", 100),
    ("ann", "cleo", 200),
    ("cleo", "cleo", 201),
]


def list_windows(windows: dict[Any, Graph]) -> dict[str, Any]:
    return {str(start): list(zip(*graph.edges()[:2], strict=True)) for start, graph in windows.items()}


@pytest.mark.parametrize("form", ["dates", "unix", "milliseconds", "frame", "no header"])
def test_contacts_are_cut_into_days(form: str, write: Write) -> None:
    """The days are the same in every notation of time."""
    start, hours = 1_717_027_200, [hour * 3600 for *_, hour in CONTACTS]  # 2024-05-30 00:00 UTC
    rows: list[tuple[Any, ...]] = [
        (source, target, start + seconds)
        for (source, target, _), seconds in zip(CONTACTS, hours, strict=True)
    ]
    if form == "dates":
        rows = [(*ends, datetime.fromtimestamp(time, UTC).isoformat()) for *ends, time in rows]
    elif form == "milliseconds":
        rows = [(*ends, 1000 * time) for *ends, time in rows]
    elif form == "no header":  # as SocioPatterns has it
        rows = [(time, *ends, "3B") for *ends, time in rows]
    if form == "frame":
        frame = pandas.DataFrame(rows, columns=["source", "target", "when"])
        windows = read_contacts(frame.assign(when=pandas.to_datetime(frame["when"], unit="s")))
    else:
        header = "" if form == "no header" else "source,target,time\n"
        windows = read_contacts(
            write("contacts.csv", header + "".join(",".join(map(str, row)) + "\n" for row in rows))
        )
    expected = {"2024-05-30": [("ann", "bob")], "2024-06-02": [("ann", "bob")]}
    expected |= {"2024-06-03": [("bob", "cleo")], "2024-06-07": [("ann", "cleo")]}
    assert list_windows(windows) == expected
    assert all(graph.node_ids.tolist() == ["ann", "bob", "cleo"] for graph in windows.values())


def test_windows_by_duration_and_by_number(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "nodecopy")
    text = "i,j,t,weight\n" + "".join(f"{i},{j},{t},2\n" for i, j, t in CONTACTS)
    path = write("contacts.csv", text)
    windows = read_contacts(path, window=100)
    assert list_windows(windows) == {
        "0.0": [("ann", "bob")],
        "100.0": [("bob", "cleo")],
        "200.0": [("ann", "cleo")],
    }
    assert windows[0.0].adjacency.sum() == 8  # the sum of the weights
    assert "contacts of a node with itself: 1" in caplog.text
    numbered = write("days.csv", "source,target,day\na,b,1\nb,c,1\na,c,1\na,b,2\nb,c,2\na,c,2\n")
    assert [graph.n_edges for graph in read_contacts(numbered).values()] == [3, 3]
    weeks = write(
        "weeks.csv", "source,target,date\na,b,2024-06-02\nb,c,2024-06-03\n"
    )  # a Sunday and a Monday
    assert list(map(str, read_contacts(weeks, window="1 week"))) == ["2024-05-27", "2024-06-03"]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("source,target\na,b\n", {}, "must have a column of times; it has no column of dates"),
        ("20 1 2\n40 2 3\n", {}, "must have a column of times"),
        ("a,b,begin,end\n1,2,2024-01-01,2024-01-02\n", {}, "it has 2 columns that can be. Name it"),
        ("source,target,time\na,b,20\nb,c,40\n", {}, "window must be given, in the unit of times"),
        ("source,target,time\na,b,20\n", {"window": "1 day"}, "window must be a number, or for dates"),
        ("source,target,date\na,b,2024-01-01\n", {"window": "1 month"}, "or for dates .* got '1 month'"),
        ("source,target,date\na,b,\n", {}, "time must be a column with a time in some rows"),
        ("source,target,date\na,a,2024-01-01\n", {}, "must have contacts between different nodes"),
    ],
)
def test_contacts_that_cannot_be_cut(text: str, settings: Any, message: str, write: Write) -> None:
    with pytest.raises(InputError, match=message):
        read_contacts(write("contacts.txt" if text[0] == "2" else "contacts.csv", text), **settings)

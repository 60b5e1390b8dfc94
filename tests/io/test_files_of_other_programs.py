"""Files as other programs write them: each is read rightly, or refused with a message that names the cure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas
import pytest
from scipy import sparse
from scipy.io import mmwrite

from nodecopy import Graph, Interactions, read_graph, read_interactions
from nodecopy.errors import DataWarning, InputError

TRIANGLE = Graph.from_edges(["ann", "bob", "cleo"], ["bob", "cleo", "ann"])
WEIGHTED = Graph.from_edges(["ann", "bob", "cleo"], ["bob", "cleo", "ann"], [1.5, 2, 1000])
EDGES = [("ann", "bob", 1.5), ("bob", "cleo", 2.0), ("cleo", "ann", 1000.0)]
Writer = str | Callable[[Path], object]


def text(content: str, encoding: str) -> Writer:
    return lambda path: path.write_bytes(content.encode(encoding))


def write_file(path: Path, content: Writer) -> Path:
    if callable(content):
        content(path)
    else:
        path.write_text(content, encoding="utf-8", newline="")
    return path


def frame(**options: Any) -> Writer:
    """pandas.DataFrame.to_csv."""
    table = pandas.DataFrame(EDGES, columns=["source", "target", "weight"])
    return lambda path: table.to_csv(path, **options)


def network(kind: Any = nx.Graph) -> Any:
    graph = kind()
    graph.add_weighted_edges_from(EDGES)
    return graph


def gephi() -> Any:
    """What Gephi adds: names of nodes as labels, positions, sizes and colours."""
    graph = network()
    for number, (node, name) in enumerate(zip(graph, ("Ann", "Bob", "Cleo"), strict=True)):
        viz = {"size": 10.0, "r": 0, "g": 0, "b": 255, "x": float(number), "y": 1.0}
        graph.nodes[node].update(label=name, modularity_class=number % 2, **viz)
    return graph


READ: dict[str, tuple[str, Writer, Graph]] = {
    "pandas": ("edges.csv", frame(index=False), WEIGHTED),
    "pandas with an index": ("edges.csv", frame(), WEIGHTED),
    "pandas, Parquet": (
        "edges.parquet",
        lambda path: pandas.DataFrame(EDGES, columns=["a", "b", "c"]).to_parquet(path),
        WEIGHTED,
    ),
    "R write.csv": (
        "edges.csv",
        '"","from","to"\n"1","ann","bob"\n"2","bob","cleo"\n"3","cleo","ann"\n',
        TRIANGLE,
    ),
    "R write.table": (
        "edges.txt",
        '"from" "to" "w"\n"1" "ann" "bob" 1.5\n"2" "bob" "cleo" 2\n"3" "cleo" "ann" 1e+03\n',
        WEIGHTED,
    ),
    "SNAP": (
        "web.txt",
        "# Undirected graph: ../../data/output/web.txt\r\n# Nodes: 3 Edges: 3\r\n"
        "# FromNodeId\tToNodeId\r\n30\t1412\r\n1412\t3352\r\n3352\t30\r\n",
        Graph.from_edges([30, 1412, 3352], [1412, 3352, 30]),
    ),
    "SNAP, times": (
        "sx.txt",
        "9 8 1217567877\n1 8 1217573801\n8 9 1217606247\n",
        Graph.from_edges([9, 1], [8, 8]),
    ),
    "KONECT": (
        "out.moreno_names",
        "% sym posweighted\n% 3 3 3\n1 2 5 \n2 3 1 \n3 1 1 \n",
        Graph.from_edges([1, 2, 3], [2, 3, 1], [5, 1, 1]),
    ),
    "KONECT, times": (
        "out.opsahl",
        "% asym positive\n1 2 1 1082008561\n3 4 2 1082123439\n",
        Graph.from_edges([1, 3], [2, 4], [1, 2]),
    ),
    "a byte order mark": (
        "edges.csv",
        text("Source;Target;Weight\r\nann;bob;1.5\r\nbob;cleo;2\r\ncleo;ann;1000\r\n", "utf-8-sig"),
        WEIGHTED,
    ),
    "decimal commas": (
        "edges.csv",
        "Quelle;Ziel;Gewicht\nann;bob;1,5\nbob;cleo;2\ncleo;ann;1.000,0\nbob;dan;\n",
        WEIGHTED,
    ),
    "no-break spaces": ("edges.csv", "source,target\nann\xa0,bob\nbob,\xa0cleo\ncleo,ann\n", TRIANGLE),
    "a stated delimiter": (
        "edges.csv",
        text("sep=;\r\nSource;Target\r\nann;bob\r\nbob;cleo\r\ncleo;ann\r\n", "utf-8-sig"),
        TRIANGLE,
    ),
    "Windows line ends": ("edges.csv", "ann,bob\r\nbob,cleo\r\ncleo,ann\r\n", TRIANGLE),
    "old Macintosh line ends": ("edges.csv", "source,target\rann,bob\rbob,cleo\rcleo,ann", TRIANGLE),
    "German header": ("edges.csv", "Quelle;Ziel;Gewicht\nann;bob;1.5\nbob;cleo;2\ncleo;ann;1000\n", WEIGHTED),
    "quoted commas": (
        "authors.csv",
        'source,target\n"Knuth, D.","Dijkstra, E."\n"Dijkstra, E.","Hoare, T."\n',
        Graph.from_edges(["Knuth, D.", "Dijkstra, E."], ["Dijkstra, E.", "Hoare, T."]),
    ),
    "leading zeros": (
        "zips.csv",
        "source,target\n00501,02108\n02108,10001\n",
        Graph.from_edges(["00501", "02108"], ["02108", "10001"]),
    ),
    "further columns": (
        "edges.csv",
        "date,type,source,target,note\n2020-01-01,x,ann,bob,\n2020-01-02,y,bob,cleo,hm\n2020-01-03,x,cleo,ann,",
        TRIANGLE,
    ),
    "tabs in .txt": (
        "cities.txt",
        "New York\tOslo\nOslo\tRome\n",
        Graph.from_edges(["New York", "Oslo"], ["Oslo", "Rome"]),
    ),
    "NetworkX, weights": ("edges.txt", lambda path: nx.write_weighted_edgelist(network(), path), WEIGHTED),
    "NetworkX write_edgelist without attributes": (
        "edges.txt",
        lambda path: nx.write_edgelist(nx.Graph([("ann", "bob"), ("bob", "cleo"), ("cleo", "ann")]), path),
        TRIANGLE,
    ),
    "Gephi's table of edges": (
        "edges.csv",
        "Source,Target,Type,Id,Label,timeset,Weight\nann,bob,Undirected,0,,,1.5\n"
        "bob,cleo,Undirected,1,,,2.0\ncleo,ann,Undirected,2,,,1000.0\n",
        WEIGHTED,
    ),
    "NetworkX JSON": (
        "graph.json",
        lambda path: path.write_text(json.dumps(nx.node_link_data(network(), edges="edges"))),
        WEIGHTED,
    ),
    "D3 JSON": (
        "graph.json",
        lambda path: path.write_text(
            json.dumps(
                {
                    "nodes": [{"id": name} for name in ("ann", "bob", "cleo")],
                    "links": [{"source": s, "target": t, "value": w} for s, t, w in EDGES],
                }
            )
        ),
        WEIGHTED,
    ),
    "Gephi GraphML": ("graph.graphml", lambda path: nx.write_graphml(gephi(), path), WEIGHTED),
    "Gephi GEXF": ("graph.gexf", lambda path: nx.write_gexf(gephi(), path), WEIGHTED),
    "Matrix Market": (
        "graph.mtx",
        lambda path: mmwrite(path, sparse.coo_array(np.array([[0, 2.0, 0], [2, 0, 1], [0, 1, 0]]))),
        Graph.from_edges([1, 2], [2, 3], [2, 1]),
    ),
    "Cytoscape's STRING export": (
        "string.tsv",
        "#node1\tnode2\tcombined_score\nann\tbob\t1.5\nbob\tcleo\t2\ncleo\tann\t1000\n",
        WEIGHTED,
    ),
    "years": ("papers.csv", "from,to,year\nann,bob,1999\nbob,cleo,2001\ncleo,ann,2010\n", TRIANGLE),
    "dates before payers": (
        "payments.csv",
        "date,giver,taker,amount\n2024-01-01,ann,bob,1.5\n2024-01-02,bob,cleo,2\n2024-01-02,cleo,ann,1000\n",
        WEIGHTED,
    ),
    "account numbers": (
        "payments.csv",
        "day,payer,payee\n2024-01-01,0221,0222\n2024-01-02,0222,0223\n",
        Graph.from_edges(["0221", "0222"], ["0222", "0223"]),
    ),
}


@pytest.mark.parametrize(("name", "write", "expected"), READ.values(), ids=READ.keys())
def test_files_that_are_read(name: str, write: Writer, expected: Graph, tmp_path: Path) -> None:
    graph = read_graph(write_file(tmp_path / name, write))
    order = np.argsort(graph.node_ids)  # networks keep the order of their nodes
    assert graph.subgraph(order) == expected
    assert graph.node_ids.dtype.kind == expected.node_ids.dtype.kind


REFUSED: dict[str, tuple[str, Writer, str]] = {
    "UTF-16": ("edges.csv", text("source,target\nann,bob\n", "utf-16"), "UTF-16; save it as 'CSV UTF-8'"),
    "Latin-1": ("edges.csv", text("source,target\nJosé,bob\n", "latin-1"), "iconv -f windows-1252 -t utf-8"),
    "an id in scientific notation": ("edges.csv", "source,target\n5,7\n1.23457E+12,5\n", "line 3 .* rounded"),
    "MovieLens": ("ratings.dat", "1::2::5\n", r"rename it to \.txt\."),
    "Excel": ("edges.xlsx", "PK\x03\x04", r"Save the sheet as 'CSV UTF-8'\."),
    "Excel under another name": ("edges.csv", "PK\x03\x04...", "save the sheet as 'CSV UTF-8'"),
    "bipartite KONECT": (
        "out.moreno_crime",
        "% bip unweighted\n1 1\n1 2\n2 1\n",
        "bipartite .* Use read_interactions",
    ),
    "NetworkX": ("edges.txt", lambda path: nx.write_edgelist(network(), path), "write_graphml"),
    "labels in place of edges": (
        "people.csv",
        "id,label\nann,gold\nbob,silver\n",
        "is of a table of labels, not of edges",
    ),
    "an adjacency matrix": (
        "matrix.csv",
        lambda path: np.savetxt(path, nx.to_numpy_array(nx.cycle_graph(6)), delimiter=",", fmt="%d"),
        "an adjacency matrix",
    ),
    "an adjacency matrix with names": (
        "matrix.csv",
        lambda path: nx.to_pandas_adjacency(nx.cycle_graph(list("abcdef"))).to_csv(path),
        "an adjacency matrix",
    ),
    "a small adjacency matrix": ("matrix.csv", ",a,b,c\na,0,1,1\nb,1,0,0\nc,1,0,0\n", "an adjacency matrix"),
    "two notations": ("edges.csv", "source,target\n1,2\n1.0,3\n", "ids must be written the same way"),
    "JSON of another kind": (
        "graph.json",
        lambda path: path.write_text(json.dumps(nx.adjacency_data(network()))),
        "as networkx.node_link_data returns it",
    ),
    "Pajek": ("graph.net", "*Vertices 2", "Read it with NetworkX or igraph, and write .graphml"),
    "compressed under another name": ("edges.csv", lambda path: path.write_bytes(b"\x1f\x8b\x08"), "add .gz"),
}


@pytest.mark.parametrize(("name", "write", "cure"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_are_refused(name: str, write: Writer, cure: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{name}.*{cure}"):
        read_graph(write_file(tmp_path / name, write))


@pytest.mark.parametrize("suffix", [".gexf", ".graphml"])
def test_names_of_gephi_are_no_classes(suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before, the name of each node was its class."""
    path = tmp_path / f"graph{suffix}"
    (nx.write_gexf if suffix == ".gexf" else nx.write_graphml)(gephi(), path)
    assert read_graph(path).label_codes is None
    assert "the node attribute label holds names, not classes, and is not read" in caplog.text
    graph = read_graph(path, label="modularity_class")
    assert graph.label_codes is not None
    assert graph.label_codes.tolist() == [0, 1, 0]
    with pytest.raises(InputError, match=r"no node attribute 'kind'; there are .*modularity_class"):
        read_graph(path, label="kind")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("out.net", "% asym unweighted\n1 2\n"),
        ("web.txt", "# Directed graph (each unordered pair of nodes is saved once)\n1\t2\n"),
        ("edges.csv", "Source,Target,Type\n1,2,Directed\n"),
    ],
    ids=["KONECT", "SNAP", "Gephi"],
)
def test_stated_directions(name: str, content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / name).write_text(content)
    assert not read_graph(tmp_path / name).directed
    assert "Set directed to change this" in caplog.text
    caplog.clear()
    read_graph(tmp_path / name, directed=False)
    assert "directed" not in caplog.text


LOGS: dict[str, list[str]] = {
    "MovieLens": ["userId,movieId,rating,timestamp", "1,31,2.5,9", "1,1029,3.0,9", "2,31,4.0,8"],
    "MovieLens with double colons": ["1::31::2.5::978300760", "1::1029::3::978302109", "2::31::4::978301968"],
    "unfamiliar names": ["user_id,movie_id,stars,ts", "1,31,2.5,9", "1,1029,3,9", "2,31,4,8"],
    "times before ratings": ["user_id,movie_id,when,rating", "1,31,9,2.5", "1,1029,9,3", "2,31,8,4"],
    "Amazon": ["overall,verified,reviewerID,asin", "2.5,True,1,31", "3.0,True,1,1029", "4.0,False,2,31"],
    "orders": ["customer,product,price,qty", "1,31,9.9,2.5", "1,1029,9.9,3", "2,31,5,4"],
    "an online shop": [
        "InvoiceNo,StockCode,Description,Quantity,CustomerID",
        "7,31,tea,2.5,1",
        "7,1029,jam,3,1",
        "8,31,tea,4,2",
    ],
}


@pytest.mark.parametrize("rows", LOGS.values(), ids=LOGS.keys())
def test_logs(rows: list[str], tmp_path: Path) -> None:
    path = tmp_path / ("u.tsv" if "\t" in rows[0] else "ratings.txt" if "::" in rows[0] else "log.csv")
    path.write_text("\n".join(rows) + "\n")
    assert read_interactions(path) == Interactions.from_table([1, 1, 2], [31, 1029, 31], [2.5, 3, 4])


def test_columns_of_users_are_printed_and_hold_ids(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before, the users of the first log were marks."""
    path = tmp_path / "log.csv"
    path.write_text("mark,kunde,film\n2.5,1,31\n3.0,1,1029\n4.0,2,31\n")
    assert read_interactions(path) == Interactions.from_table([1, 1, 2], [31, 1029, 31])
    assert "log.csv: kunde is the user and film is the item of each row. Set user or item" in caplog.text
    path.write_text("mark,seen,film\n2.5,True,31\n3.0,False,1029\n")
    with pytest.raises(InputError, match=r"two columns of integers or text"):
        read_interactions(path)


def test_logs_of_clicks(tmp_path: Path) -> None:
    """Unix times in the third column are no ratings, which they were before."""
    path = tmp_path / "log.csv"
    path.write_text("1,31,1260759144\n1,31,1260759179\n2,31,835355493\n")
    assert read_interactions(path) == Interactions.from_table([1, 2], [31, 31])


def test_a_log_that_is_read_as_edges(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,1,5\n2,1,3\n")
    with pytest.warns(DataWarning, match=r"ratings.csv has users and items, but is read as edges"):
        graph = read_graph(path)
    assert graph.n_nodes == read_graph(path, source="user", target="item").n_nodes == 2

"""Text and Parquet files and data frames: encodings, delimiters, wrong cells and damaged files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodecopy import Graph, Interactions
from nodecopy.errors import InputError
from nodecopy.io import read_graph, read_interactions, write_graph, write_interactions
from nodecopy.io.tables import find_delimiter, split_rows

GRAPHS = [".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".npz", ".graphml"]


def read(text: str, suffix: str) -> list[tuple[int, list[str]]]:
    return list(split_rows(StringIO(text, newline=""), suffix)[0])


@pytest.mark.parametrize(
    ("text", "suffix", "delimiter"),
    [
        ("a,b\n", ".csv", ","),
        ("a;b\n", ".csv", ";"),
        ("a\tb\n", ".csv", "\t"),
        ("a|b\n", ".csv", "|"),
        ("a b\n", ".csv", None),
        ("1::2::5\n", ".csv", "::"),
        ("fe80::1,fe80::2\n", ".csv", ","),
        ("a::b;c::d\n", ".csv", ";"),
        ("std::map std::set\n", ".txt", None),
        ("alone\n", ".csv", ","),
        ('"a;b",c\n', ".csv", ","),
        ("a,b;c\nd,e\n", ".csv", ","),
        ("Doe, Jane;Oslo\nAnn;Rome\n", ".csv", ";"),
        ("Doe, Jane | Oslo\nAnn | Rome\n", ".txt", "|"),
        ("a;b;1,5\nb;c;2\n", ".csv", ";"),
        ("id;x\na;1,5\nb;-2,25\n", ".csv", ";"),
        ("1;2,5\n2;3,5\n", ".csv", ";"),
        ("a,b\n", ".tsv", "\t"),
        ("New York\tOslo\n", ".txt", "\t"),
        ("1\t2 5\n", ".txt", None),
        ("a, b\nb, c\n", ".txt", ","),
        ("a,b c\nd e\n", ".txt", None),
        ("1::31::2.5\n1::1029::3\n", ".txt", "::"),
        ("std::map,std::set\nint,char\n", ".csv", ","),
        ("", ".csv", ","),
    ],
)
def test_delimiters(text: str, suffix: str, delimiter: str | None) -> None:
    assert find_delimiter(text, suffix) == delimiter


@pytest.mark.parametrize(
    ("text", "suffix", "rows"),
    [
        ("#python,#ai\n#ai,#r\n", ".csv", [(1, ["#python", "#ai"]), (2, ["#ai", "#r"])]),
        ("1 2\n# a comment\n% another\n2 3\n", ".txt", [(1, ["1", "2"]), (4, ["2", "3"])]),
        ("1\t2\n#a\tcomment\n2\t3\n", ".txt", [(1, ["1", "2"]), (3, ["2", "3"])]),
        ("sep=;\na,b;c\n", ".csv", [(2, ["a,b", "c"])]),
        ('"from" "to"\n"1"  "New York"\n', ".txt", [(1, ["from", "to"]), (2, ["1", "New York"])]),
        ("a ,b\t\n c, a\n", ".csv", [(1, ["a", "b"]), (2, ["c", "a"])]),
        ('"a ",b ,"say ""x"" "\n', ".csv", [(1, ["a ", "b", 'say "x" '])]),
        (' "two\nlines ", c ,\n d ,e , f\n', ".csv", [(2, ["two\nlines ", "c", ""]), (3, ["d", "e", "f"])]),
    ],
)
def test_comments_quotes_and_blanks(text: str, suffix: str, rows: Any) -> None:
    assert read(text, suffix) == rows


def test_lines_are_numbered_below_comments() -> None:
    text = "# SNAP\n# FromNodeId\tToNodeId\n\n1\t2\n2\t3\n"
    for suffix in (".tsv", ".csv", ".txt"):
        rows, comments = split_rows(StringIO(text, newline=""), suffix)
        assert list(rows) == [(4, ["1", "2"]), (5, ["2", "3"])]
        assert comments == ["SNAP", "FromNodeId\tToNodeId"]


def sample(path: Path) -> Path:
    write_graph(Graph.from_edges(["a", "b", "c"], ["b", "c", "d"], [1, 2, 3], labels=[0, 1, 0, 1]), path)
    return path


@pytest.mark.parametrize("reader", [read_graph, read_interactions])
@pytest.mark.parametrize("name", ["graph.xml", "graph", "graph.gz", "graph.npz.gz", "graph.csv.zip"])
def test_unknown_suffixes(reader: Callable[[Path], Any], name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{name} must end in one of .csv, .tsv, .txt, .parquet"):
        reader(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name} must end in"):
        write_graph(Graph([[0, 1], [1, 0]]), tmp_path / name)
    with pytest.raises(InputError, match=rf"{name} must end in"):
        write_interactions(Interactions([[1]]), tmp_path / name)


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".npz", ".graphml"])
def test_truncated_files(suffix: str, tmp_path: Path) -> None:
    path = sample(tmp_path / f"graph{suffix}")
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(InputError, match=rf"graph{suffix}: "):
            read_graph(path)


@pytest.mark.parametrize("suffix", GRAPHS)
def test_garbled_files_never_raise_anything_else(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = sample(tmp_path / f"graph{suffix}")
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    for _ in range(60):
        garbled = whole.copy()
        garbled[rng.integers(len(whole), size=3)] = rng.integers(256, size=3)
        path.write_bytes(garbled.tobytes())
        with suppress(InputError):  # some bytes do not matter
            read_graph(path)


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("e.csv", b"\xe9,b\n", "not in UTF-8; save it as 'CSV UTF-8'"),
        ("e.csv", b"a\0,b", "the file is binary, not text"),
        ("e.csv.gz", b"a,b\n", "cannot be read"),
        ("e.csv", b"a,b\nb\n", "line 2 has 1 columns where the first row has 2; add the missing cells"),
        ("e.csv", b"a,b\n\n\nb,c,d\n", "line 4 has 3 columns where the first row has 2"),
        ("e.csv", b'"a\nb",c\nd\n', "line 3 has 1 columns"),
        ("e.csv", b"a\nb\n", "must have columns for source and target; it has 1"),
        ("e.csv", b"source,target,weight\na,b,1\nb,c,heavy\n", "line 3 has weight 'heavy', which is not a"),
        ("e.csv", b"a,b,1\nb,c,inf\n", "line 2 has weight inf; it must be finite and at least 0"),
        ("e.csv", b"a,b\n,a\n", "line 2 has no source"),
        ("e.csv", b'a,"b\n', "cannot be read"),
    ],
)
def test_bad_text(name: str, content: bytes, fragment: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: .*{fragment}"):
        read_graph(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "fragment"),
    [
        ({"source": [1, None], "target": [1, 2]}, "row 2 has no source"),
        ({"source": [0.5], "target": [1]}, "column source must hold integers or strings"),
        ({"source": [1], "target": [2], "weight": ["x"]}, "row 1 has weight 'x'"),
    ],
)
def test_bad_parquet(columns: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=f"edges.parquet: .*{fragment}"):
        read_graph(tmp_path / "edges.parquet")


def test_parquet_of_others(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    pq.write_table(pa.table({"from": words, "to": pa.array(["b", "c", "c"])}), tmp_path / "edges.parquet")
    pq.write_table(pa.table({"id": ["a", "b"], "label": [1, None]}), tmp_path / "labels.parquet")
    graph = read_graph(tmp_path / "edges.parquet", labels=tmp_path / "labels.parquet")
    assert graph == Graph.from_edges(["a", "b", "a"], ["b", "c", "c"], labels=[1, -1, -1])


def test_frames_of_polars_and_arrow_are_read_like_those_of_pandas() -> None:
    columns: dict[str, Any] = {"from": ["ann", "bob"], "to": ["bob", "cleo"], "weight": [1.0, 2.5]}
    expected = Graph.from_edges(*columns.values())
    frame, table = pl.DataFrame(columns), pa.table(columns)
    coded = table.set_column(0, "from", table["from"].dictionary_encode())
    for data in (frame, frame.with_columns(pl.col("from").cast(pl.Categorical)), table, coded):
        assert read_graph(data) == expected


def test_text_for_spreadsheets_is_no_formula(tmp_path: Path) -> None:
    graph = Graph.from_edges(["=1+1", "b"], ["b", "@c"], [1.0, 2.0])
    for suffix in ("csv", "tsv", "txt"):
        write_graph(graph, tmp_path / f"plain.{suffix}")
        write_graph(graph, tmp_path / f"escaped.{suffix}", spreadsheet=True)
    plain, escaped = ((tmp_path / f"{name}.csv").read_text() for name in ("plain", "escaped"))
    assert plain.splitlines() == ["source,target,weight", "=1+1,b,1.0", "@c,b,2.0"]
    assert escaped == plain.replace("=", "'=").replace("@", "'@")
    assert read_graph(tmp_path / "escaped.csv", node_ids=["=1+1", "@c", "b"]).n_edges == 2
    assert "'=1+1" in (tmp_path / "escaped.tsv").read_text()
    assert (tmp_path / "escaped.txt").read_text() == (tmp_path / "plain.txt").read_text()
    log = Interactions.from_table(["+a", "b"], ["x", "-y"])
    write_interactions(log, tmp_path / "log.csv", spreadsheet=True)
    assert (tmp_path / "log.csv").read_text().splitlines() == ["user,item", "'+a,x", "b,'-y"]

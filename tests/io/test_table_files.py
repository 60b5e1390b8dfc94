"""Text and Parquet files: damaged, of another format or with wrong cells; every error names the file."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import suppress
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

GRAPHS = [".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".npz", ".graphml"]
Reader = Callable[[Path], Any]


def sample(path: Path) -> Path:
    write_graph(Graph.from_edges(["a", "b", "c"], ["b", "c", "d"], [1, 2, 3], labels=[0, 1, 0, 1]), path)
    return path


@pytest.mark.parametrize("reader", [read_graph, read_interactions])
@pytest.mark.parametrize("name", ["graph.xml", "graph", "graph.gz", "graph.npz.gz", "graph.csv.zip"])
def test_unknown_suffixes(reader: Reader, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{name} must end in one of .csv, .tsv, .txt, .parquet"):
        reader(tmp_path / name)


def test_unknown_suffixes_of_other_paths(tmp_path: Path) -> None:
    edges = sample(tmp_path / "edges.csv")
    for kind in ("labels", "features"):
        paths: dict[str, Any] = {kind: "nodes.xlsx"}
        with pytest.raises(InputError, match=r"nodes.xlsx must end in"):
            read_graph(edges, **paths)
    with pytest.raises(InputError, match=r"out.xlsx must end in"):
        write_graph(read_graph(edges), tmp_path / "out.xlsx")
    with pytest.raises(InputError, match=r"out.graphml must end in"):
        write_interactions(Interactions([[1]]), tmp_path / "out.graphml")


@pytest.mark.parametrize("suffix", GRAPHS)
def test_missing_and_empty_files_and_folders(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{suffix}"
    with pytest.raises(InputError, match=rf"graph{suffix} does not exist"):
        read_graph(path)
    path.touch()
    with pytest.raises(InputError, match=rf"graph{suffix}: the file is empty"):
        read_graph(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        read_graph(path)


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
    ("text", "message"),
    [
        ("a,b\nb\n", "line 2 has 1 columns where the first row has 2; add the missing cells"),
        ("a,b\n\n\nb,c,d\n", "line 4 has 3 columns where the first row has 2"),
        ('"a\nb",c\nd\n', "line 3 has 1 columns"),
        ("a\nb\n", "must have a column for source and target; it has 1"),
        ("source,target,weight\na,b,1\nb,c,heavy\n", "line 3 has weight 'heavy', which is not a number"),
        ("a,b,1\nb,c,\n", "line 2 has weight '', which is not a number"),
        ("a,b,1\nb,c,nan\n", "line 2 has weight nan; it must be finite and at least 0"),
        ("a,b,1\nb,c,inf\n", "line 2 has weight inf"),
        ("a,b,1\nb,c,-3\n", "line 2 has weight -3"),
        ("a,b\n,a\n", "line 2 has no source"),
        ("a,b\na,\n", "line 2 has no target"),
        ("\n\n", "holds no rows"),
        ('a,"b\n', "cannot be read"),
    ],
)
def test_bad_text(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=f"edges.csv: .*{message}"):
        read_graph(path)


def test_other_encodings_and_false_gzip(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes("é,b\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"not encoded in UTF-8 \(byte 0xe9\); save it as 'CSV UTF-8'"):
        read_graph(tmp_path / "edges.csv")
    (tmp_path / "edges.csv.gz").write_bytes(b"a,b\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_graph(tmp_path / "edges.csv.gz")
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match="holds no rows"):
        read_graph(tmp_path / "edges.csv.gz")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": [1, None], "target": [1, 2]}, "row 2 has no source"),
        ({"source": ["a", None], "target": ["b", "c"]}, "row 2 has no source"),
        ({"source": [0.5], "target": [1]}, "column source must hold integers or strings"),
        ({"source": [1], "target": [2], "weight": ["x"]}, "row 1 has weight 'x'"),
        ({"source": [1], "target": [2], "weight": pa.array([None], pa.float64())}, "row 1 has weight nan"),
        ({"source": [1]}, "it has 1 in all"),
    ],
)
def test_bad_parquet(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match=f"edges.parquet: .*{message}"):
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
    frame = pl.DataFrame(columns)
    assert read_graph(frame) == expected
    assert read_graph(frame.with_columns(pl.col("from").cast(pl.Categorical))) == expected
    table = pa.table(columns)
    encoded = table.set_column(0, "from", table["from"].dictionary_encode())
    assert read_graph(table) == read_graph(encoded) == expected


def test_spaces_after_commas_are_not_part_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("source, target\nann, bob\nbob, cleo\n")
    assert read_graph(path).node_ids.tolist() == ["ann", "bob", "cleo"]
    spaced = Graph.from_edges([" ann"], ["bob "])
    write_graph(spaced, path)
    assert read_graph(path) == spaced


def test_text_for_spreadsheets_is_no_formula(tmp_path: Path) -> None:
    graph = Graph.from_edges(["=1+1", "b"], ["b", "@c"], [1.0, 2.0])
    for suffix in ("csv", "tsv", "txt"):
        write_graph(graph, tmp_path / f"plain.{suffix}")
        write_graph(graph, tmp_path / f"escaped.{suffix}", spreadsheet=True)
    plain, escaped = ((tmp_path / f"{name}.csv").read_text() for name in ("plain", "escaped"))
    assert plain.splitlines() == ["source,target,weight", "=1+1,b,1.0", "@c,b,2.0"]
    assert escaped == plain.replace("=", "'=").replace("@", "'@")
    assert "'=1+1" in (tmp_path / "escaped.tsv").read_text()
    assert (tmp_path / "escaped.txt").read_text() == (tmp_path / "plain.txt").read_text()
    log = Interactions.from_table(["+a", "b"], ["x", "-y"])
    write_interactions(log, tmp_path / "log.csv", spreadsheet=True)
    assert (tmp_path / "log.csv").read_text().splitlines() == ["user,item", "'+a,x", "b,'-y"]

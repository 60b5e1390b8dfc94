from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from nodecopy import Graph, NodeCopying, SameLabel, datasets, read_graph, write_graph
from nodecopy.edge_tables import EdgeTableCopying
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.parquet"
    write_graph(Graph.from_edges(["ann", "bob", "cleo", "dan"], ["bob", "cleo", "dan", "ann"]), path)
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("id,label\nann,x\nbob,y\ncleo,x\ndan,y\n")
    return path


def test_tables_come_back_with_the_ids_that_went_in(run: Run, edges: Path, labels: Path) -> None:
    arguments = ("--labels", labels, "--donors", "same-label", "--n", "5", "--seed", "4", "--out", "out")
    assert run("sample", edges, *arguments).code == 0
    names = sorted(path.name for path in Path("out").iterdir())
    assert names == [*(f"sample-{s}.parquet" for s in range(5)), "samples.json"]
    model = NodeCopying(SameLabel()).fit(read_graph(edges, labels=labels))
    for s, expected in enumerate(model.sample_many(5, rng=4)):
        written = read_graph(f"out/sample-{s}.parquet", node_ids=expected.node_ids)
        assert written.rows == expected.rows
    origin = json.loads(Path("out/samples.json").read_text())
    assert (origin["seed"], origin["n"], origin["donors"]) == (4, 5, "same-label")


def test_the_number_of_samples_and_workers_do_not_change_a_sample(run: Run) -> None:
    assert run("sample", "karate", "--out", "single").code == 0
    assert run("sample", "karate", "-n", "12", "--workers", "2", "--out", "many").code == 0
    assert Path("single/sample-0.csv").read_text() == Path("many/sample-00.csv").read_text()


def test_json_is_for_programs(run: Run) -> None:
    result = run("sample", "karate", "-n", "3", "--seed", "9", "--json").json()
    sizes = [entry["edges"] for entry in result["samples"]]
    model = NodeCopying(SameLabel()).fit(datasets.load("karate"))
    assert sizes == [sample.n_edges for sample in model.sample_many(3, rng=9)]


def test_donor_rules_with_settings(run: Run, edges: Path) -> None:
    jaccard = ("--donors", "jaccard", "--max-donors", "1")
    result = run("sample", edges, *jaccard, "--json").json()
    assert result["max_donors"] == 1


def test_a_full_folder_is_left_alone_unless_told(run: Run) -> None:
    Path("out").mkdir()
    Path("out/precious.txt").write_text("mine")
    ran = run("sample", "karate", "--out", "out")
    assert ran.code == 2
    assert "out must be empty or new" in ran.err
    assert run("sample", "karate", "--out", "out", "--overwrite").code == 2
    assert Path("out/precious.txt").read_text() == "mine"
    assert run("sample", "karate", "--out", "mine").code == 0
    assert run("sample", "karate", "--n", "2", "--out", "mine", "--overwrite").code == 0
    assert Path("mine/sample-1.csv").exists()
    ran = run("sample", "mine/sample-1.csv", "--out", "mine", "--overwrite")
    assert (ran.code, "must not be a folder that is read" in ran.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_a_stopped_run_keeps_the_finished_samples(run: Run, tmp_path: Path, name: str) -> None:
    """All of them were lost."""
    number = getattr(signal, name)
    started = subprocess.Popen(
        [sys.executable, "-m", "nodecopy", "sample", "karate", "--n", "10000000", "--out", "samples"],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: name == "SIGKILL" or signal.signal(number, signal.SIG_DFL),  # nohup ignores it
    )
    until = time.monotonic() + 60
    while not Path("samples/sample-0000009.csv").exists() and time.monotonic() < until:
        time.sleep(0.05)
    started.send_signal(number)
    assert started.wait(timeout=60) == (-number if name == "SIGKILL" else 128 + number)
    about = json.loads(Path("samples/samples.json").read_text())
    paths = [Path("samples", row["file"]) for row in about["samples"].values()]
    if name != "SIGKILL":  # the sample that was being written may be there
        others = {*Path().rglob("*.*")} - {*paths, Path("samples/samples.json")}
        assert len(others) <= 1
    assert len(paths) == about["n"] >= 7
    times = [path.stat().st_mtime_ns for path in paths]
    result = run("sample", "karate", "--n", about["n"] + 1, "--out", "samples", "--json").json()
    assert [path.stat().st_mtime_ns for path in paths] == times
    model = NodeCopying(SameLabel()).fit(datasets.load("karate"))
    sizes = [sample.n_edges for sample in model.sample_many(about["n"] + 1, rng=0)]
    assert [row["edges"] for row in result["samples"]] == sizes
    sample = read_graph(paths[0], node_ids=model.graph_.node_ids)
    assert sample.rows == model.sample(rng=0).rows
    assert run("sample", "karate", "--out", "samples", "--overwrite").code == 0
    assert {path.name for path in tmp_path.rglob("*")} == {"samples", "sample-0.csv", "samples.json"}


@pytest.mark.parametrize("header", ["user,item,rating", "userId;movieId", '"user_id","item_id"'])
def test_a_table_of_users_and_items_is_read_as_interactions(run: Run, header: str) -> None:
    """It was read as a graph in which user 1 and item 1 were one node."""
    delimiter = ";" if ";" in header else ","
    n_columns = header.count(delimiter) + 1
    rows = ["1 2 5", "2 3 4", "1 3 2", "2 2 1"]
    cells = [delimiter.join(row.split()[:n_columns]) for row in rows]
    Path("ratings.csv").write_text("\n".join([header, *cells, ""]))
    ran = run("sample", "ratings.csv")
    assert "ratings.csv is read as interactions, since its columns are " in ran.err
    Path("commented.csv").write_text("# of 2024\n" + Path("ratings.csv").read_text())
    assert run("sample", "commented.csv").out == ran.out  # a comment hid the header
    if delimiter == ",":
        assert ran.out.split()[:1] == ["interactions"]
        assert run("sample", "ratings.csv", "--graph").out.split()[:1] == ["edges"]


pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IDS = ["'; DROP TABLE nodes; --", 'a"b', "", "é\u202e", "null", "a b", "{x}", "%s", "\\", "日本", "$1", "?"]


def engine_rows(path: Path | str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pq.read_table(path).to_pylist())


@pytest.fixture
def engine_files(tmp_path: Path) -> tuple[str, str]:
    """A graph with ids that a careless statement would stumble over, and labels for them."""
    pairs = np.random.default_rng(0).choice(len(IDS), (30, 2))
    source, target = (np.array(IDS)[column] for column in pairs.T)
    write_table(tmp_path / "it's edges.parquet", {"source": source, "target": target})
    write_table(tmp_path / "labels.parquet", {"id": np.array(IDS), "label": np.arange(len(IDS)) % 3})
    return "it's edges.parquet", "labels.parquet"


@pytest.mark.parametrize("more", [("--symmetrise", "maximum"), ("--directed",), ("--keep", "0.25")])
def test_engine_samples_are_equal(run: Run, engine_files: tuple[str, str], more: tuple[str, ...]) -> None:
    edges, labels = engine_files
    shared = (edges, "--labels", labels, "-n", "3", "--seed", "5", *more)
    assert run("sample", *shared, "--out", "there", "--engine", "duckdb", "--memory", "200MB").code == 0
    assert sorted(path.name for path in Path("there").iterdir()) == [
        *(f"sample-{s}.parquet" for s in range(3)),
        "samples.json",
    ]
    table = pq.read_table(edges).to_pydict()
    order = sorted(IDS)
    graph = Graph.from_edges(
        table["source"],
        table["target"],
        node_ids=order,
        labels=[IDS.index(i) % 3 for i in order],
        directed="--directed" in more,
    )
    rule = "maximum" if "maximum" in more else "one-endpoint"
    model = NodeCopying(SameLabel(), 0.25 if "--keep" in more else 0.0, rule).fit(graph)
    for number, sample in enumerate(model.sample_many(3, rng=5)):
        source, target, _ = sample.edges()
        assert engine_rows(f"there/sample-{number}.parquet") == sorted(
            zip(source.tolist(), target.tolist(), strict=True)
        )
    origin = json.loads(Path("there/samples.json").read_text())
    assert (origin["engine"], origin["donors"], origin["seed"]) == ("duckdb", "same-label", 5)
    assert {path.name for path in Path().iterdir()} == {*engine_files, "there"}


def contents(folder: str) -> dict[str, Any]:
    return {
        path.name: engine_rows(path) if path.suffix == ".parquet" else path.read_text()
        for path in Path(folder).iterdir()
    }


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_running_again_computes_the_rest(run: Run, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Six samples that fail in the fifth left nothing."""
    write_table("edges.parquet", dict(zip(("a", "b"), np.arange(40).reshape(2, 20) % 7, strict=True)))
    write_table("labels.parquet", {"id": np.arange(7), "class": np.arange(7) % 2})
    shared = ("sample", "edges.parquet", "--labels", "labels.parquet", "--engine", engine, "--out")
    assert run(*shared, "whole", "-n", "6").code == 0
    owner, name = (NodeCopying, "draw") if engine == "memory" else (EdgeTableCopying, "write")
    proper, calls = getattr(owner, name), []

    def fail_in_the_fifth(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        return proper(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail_in_the_fifth)
        assert run(*shared, "out", "-n", "6").code == 1
    about = json.loads(Path("out/samples.json").read_text())
    assert list(about["samples"]) == ["0", "1", "2", "3"]
    assert about["files"] == [f"sample-{number}.parquet" for number in range(4)]
    times = {path: path.stat().st_mtime_ns for path in Path("out").glob("sample-*")}
    assert len(times) == 4
    ran = run(*shared, "out", "-n", "6", "--json").json()
    assert contents("out") == contents("whole")
    assert ran == run(*shared, "whole", "-n", "6", "--json").json()
    assert {path: path.stat().st_mtime_ns for path in times} == times
    later = run(*shared, "later", "-n", "2", "--first", "4", "--json").json()
    assert later["samples"] == ran["samples"][4:]
    assert {**contents("whole"), **contents("later")} == {**contents("whole"), "samples.json": ANY}
    assert run(*shared, "out", "-n", "2", "--first", "9").code == 0
    assert {path.name for path in Path("out").glob("*")} == {
        *contents("whole"),
        "sample-9.parquet",
        "sample-10.parquet",
    }
    before = contents("out")
    for options, difference in {
        ("--seed", "3"): "seed was 0 there and is 3 now",
        ("--keep", "0.5"): "keep was 0.0 there and is 0.5 now",
        ("--directed",): "input was",
        ("--weight", ""): "input was",
    }.items():
        ran = run(*shared, "out", "-n", "6", *options)
        assert (ran.code, difference in ran.err, "--overwrite" in ran.err) == (2, True, True)
    write_table("labels.parquet", {"id": np.arange(7), "class": np.arange(7) % 3})
    assert "input was" in run(*shared, "out", "-n", "6").err
    assert contents("out") == before
    assert run(*shared, "out", "-n", "2", "--overwrite").code == 0
    assert {path.name for path in Path("out").glob("*")} == {
        *(f"sample-{s}.parquet" for s in range(2)),
        "samples.json",
    }


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_engines_and_memory_read_the_same_columns(run: Run, engine: str) -> None:
    """--source, --target, --weight, --id and --label were refused with an engine."""
    columns = {"when": [5, 6, 7], "kg": [0.5, 1.0, 2.0], "giver": [1, 2, 3], "taker": [2, 3, 1]}
    Path("parts").mkdir()
    for number in range(2):
        rows = slice(number, number + 2)
        write_table(f"parts/{number}.parquet", {name: np.array(c)[rows] for name, c in columns.items()})
    write_table("labels.parquet", {"x": np.arange(3), "who": np.arange(1, 4), "kind": np.zeros(3, int)})
    roles = ("--source", "taker", "--target", "giver", "--weight", "kg", "--directed")
    labels = ("--labels", "labels.parquet", "--id", "who", "--label", "kind")
    shared = (*roles, *labels, "--engine", engine, "--format", "parquet")
    assert run("sample", "parts/*.parquet", *shared, "--out", "out").code == 0
    graph = Graph.from_edges([2, 3, 1], [1, 2, 3], [0.5, 1, 2], labels=[0, 0, 0], directed=True)
    sample = NodeCopying(SameLabel()).fit(graph).sample(rng=0)
    edges = zip(*(column.tolist() for column in sample.edges() if column is not None), strict=True)
    assert engine_rows("out/sample-0.parquet") == sorted(edges)
    write_table("labels.parquet", {"who": np.arange(1, 5), "kind": np.zeros(4, int)})
    ran = run("sample", "parts/*.parquet", *shared, "--out", "unknown")
    assert (ran.code, "4" in ran.err, "--allow-isolated" in ran.err) == (2, True, True)
    assert run("sample", "parts/*.parquet", *shared, "--allow-isolated", "--out", "isolated").code == 0
    named = ("--user", "giver", "--item", "taker", "--rating", "kg", "--engine", engine)
    assert run("sample", "parts/*.parquet", *named, "--format", "parquet", "--out", "log").code == 0
    assert pq.read_table("log/sample-0.parquet").column_names == ["user", "item", "rating"]


@pytest.mark.parametrize("megabytes", [0.05, 0.3])
def test_a_full_disk_leaves_nothing(tmp_path: Path, megabytes: float) -> None:
    """Files may not grow past a limit, as if the disk were full: early, or while samples are written."""
    resource: Any = pytest.importorskip("resource")  # not on Windows
    n = 60_000
    pairs = np.random.default_rng(0).integers(0, n, (2, n))
    write_graph(Graph.from_edges(*pairs), tmp_path / "edges.parquet")
    nodes = np.arange(n)
    write_table(tmp_path / "labels.parquet", {"id": nodes, "label": nodes % 2})
    limit = int(megabytes * 2**20)
    arguments = ["edges.parquet", "--labels", "labels.parquet", "--engine", "duckdb", "--out", "out"]
    ran = subprocess.run(
        [sys.executable, "-c", "from nodecopy.cli import main; main()", "sample", *arguments],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    assert "the disk is full or a limit is reached" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"edges.parquet", "labels.parquet"}

"""``nodecopy sample --engine duckdb``: same edges, odd ids, and nothing half done."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, NodeCopying, SameLabel, write_graph
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run

pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IDS = ["'; DROP TABLE nodes; --", 'a"b', "", "é\u202e", "null", "a b", "{x}", "%s", "\\", "日本", "$1", "?"]


def rows(path: Path | str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pq.read_table(path).to_pylist())


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A graph with ids that a careless statement would stumble over, and labels for them."""
    pairs = np.random.default_rng(0).choice(len(IDS), (30, 2))
    source, target = (np.array(IDS)[column] for column in pairs.T)
    write_table(tmp_path / "it's edges.parquet", {"source": source, "target": target})
    write_table(tmp_path / "labels.parquet", {"id": np.array(IDS), "label": np.arange(len(IDS)) % 3})
    return "it's edges.parquet", "labels.parquet"


@pytest.mark.parametrize("more", [("--symmetrise", "maximum"), ("--directed",), ("--keep", "0.25")])
def test_the_engine_gives_the_samples_of_memory(
    run: Run, files: tuple[str, str], more: tuple[str, ...]
) -> None:
    edges, labels = files
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
        assert rows(f"there/sample-{number}.parquet") == sorted(
            zip(source.tolist(), target.tolist(), strict=True)
        )
    origin = json.loads(Path("there/samples.json").read_text())
    assert (origin["engine"], origin["donors"], origin["seed"]) == ("duckdb", "same-label", 5)
    assert {path.name for path in Path().iterdir()} == {*files, "there"}


@pytest.mark.parametrize("megabytes", [0.05, 0.3])
def test_a_full_disk_leaves_nothing(tmp_path: Path, megabytes: float) -> None:
    """Files may not grow past a limit, as if the disk were full: early, or while samples are written."""
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


def test_what_is_read_is_not_overwritten(run: Run, files: tuple[str, str]) -> None:
    assert run("sample", files[0], "--engine", "duckdb", "--out", "out").code == 0
    ran = run("sample", "out/sample-0.parquet", "--engine", "duckdb", "--out", "out", "--overwrite")
    assert ran.code == 2
    assert "must not be a folder that is read" in ran.err
    assert Path("out/sample-0.parquet").is_file()

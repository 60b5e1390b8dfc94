"""Samples by a local Spark and trials on a local Dask cluster, both for real: ``make spark-demo``.

Each is set beside what one process gives for the same seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nodecopy import NodeCopying, SameLabel, datasets, write_graph
from nodecopy.classify.base import Prediction, Trial
from nodecopy.io.table_files import write_table

EXPERIMENT = """
title = "Label spreading on the karate club"
[protocol]
datasets = ["karate"]
labels = [2, 4]
trials = 4
validation = 4
test = 16
[methods.spreading]
title = "Label spreading"
class = "examples.clusters.demo:LabelSpreading"
"""


class LabelSpreading:
    """A method of one's own: labels spread along the edges of a sampled graph, in closed form."""

    def __init__(self, *, device: str) -> None:
        self.device = device

    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        return [self._fit(trial) for trial in trials]

    def _fit(self, trial: Trial) -> Prediction:
        labels = trial.graph.labels
        assert labels is not None
        known = np.zeros((len(labels), labels.max() + 1))
        known[trial.train, labels[trial.train]] = 1.0
        adjacency = (
            NodeCopying(SameLabel(), keep=0.5).fit(trial.graph).sample(rng=trial.rng).adjacency.toarray()
        )
        shares = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
        spread = np.linalg.solve(np.eye(len(labels)) - 0.9 * shares, known) + 1e-3
        probabilities = (spread / spread.sum(axis=1, keepdims=True)).astype(np.float32)
        return Prediction(probabilities, 1 - probabilities.max(axis=1), {})


def main() -> None:
    """Both demonstrations."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    with tempfile.TemporaryDirectory() as folder:
        samples(Path(folder))
        trials(Path(folder))


def samples(folder: Path) -> None:
    """Two samples of the karate club by each engine; they must have the same edges."""
    from pyarrow import parquet

    graph = datasets.load("karate")
    write_graph(graph, folder / "edges.parquet")
    write_table(folder / "labels.parquet", {"id": graph.node_ids, "label": graph.labels})
    found = {}
    for engine in (["memory"], ["duckdb", "--memory", "1GB"], ["spark", "--master", "local[2]"]):
        nodecopy("sample", "edges.parquet", "--labels", "labels.parquet", "-n", "2", "--engine", *engine,
                 "--out", engine[0], folder=folder)  # fmt: skip
        tables = [parquet.read_table(folder / engine[0] / f"sample-{s}.parquet") for s in range(2)]
        found[engine[0]] = [
            sorted(zip(*(one[c].to_pylist() for c in ("source", "target")), strict=True)) for one in tables
        ]
        print(f"{engine[0]}: {[len(edges) for edges in found[engine[0]]]} edges")
    assert found["memory"] == found["duckdb"] == found["spark"]
    print("memory, DuckDB and Spark gave the same edges\n")


def trials(folder: Path) -> None:
    """Eight trials by one process, and by two workers of a cluster."""
    from distributed import LocalCluster

    (folder / "karate.toml").write_text(EXPERIMENT)
    run = ("reproduce", "karate.toml", "--batch", "1")
    nodecopy(*run, "--store", "here", "--out", "alone", folder=folder)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        nodecopy(
            *run,
            "--backend",
            "dask",
            "--scheduler",
            address,
            "--store",
            "there",
            "--out",
            "dask",
            folder=folder,
        )
    accuracies = [_accuracies(folder / name) for name in ("here", "there")]
    assert accuracies[0] == accuracies[1]
    print(f"one process and Dask gave the same {len(accuracies[0])} trials")


def nodecopy(*arguments: str, folder: Path) -> None:
    """Run a command as a user does, this file within its reach."""
    code = "from nodecopy.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, check=True)


def _accuracies(store: Path) -> dict[str, object]:
    return {
        str(path.relative_to(store)): json.loads(path.read_text())["scores"] for path in store.rglob("*.json")
    }


if __name__ == "__main__":
    main()

"""Samples by a local Spark and trials on a local Dask cluster: ``make spark-demo``.

Both are compared with the results of a single process for the same seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from nodecopy import NodeCopying, SameLabel, datasets, write_graph
from nodecopy.classify import Classifier, Prediction, Trial
from nodecopy.io.tables import write_table

EXPERIMENT = """
title = "Label spreading on the karate club"
task = "classify"
[protocol]
datasets = ["karate"]
labels = [2, 4]
trials = 4
validation = 4
test = 16
[methods.spreading]
title = "Label spreading"
class = "examples.clusters.demo.LabelSpreading"
"""


class LabelSpreading(Classifier):
    """Label spreading on a sampled graph, in closed form."""

    def predict_trial(self, trial: Trial) -> Prediction:
        n_nodes, codes = trial.graph.n_nodes, trial.codes
        training = np.zeros((n_nodes, trial.n_classes))
        training[trial.train, codes[trial.train]] = 1.0
        sample = NodeCopying(SameLabel(), keep=0.5).fit(trial.graph).sample(rng=trial.rng)
        adjacency = sample.adjacency.toarray()
        transitions = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
        scores = np.linalg.solve(np.eye(n_nodes) - 0.9 * transitions, training) + 1e-3
        probabilities = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
        return Prediction(probabilities, 1 - probabilities.max(axis=1), {})


def main() -> None:
    """Run both demonstrations."""
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    with tempfile.TemporaryDirectory() as folder:
        compare_samples(Path(folder))
        compare_trials(Path(folder))


def compare_samples(folder: Path) -> None:
    """Draw two samples of the karate club by each engine; they must have the same edges."""
    from pyarrow import parquet

    graph = datasets.load("karate")
    write_graph(graph, folder / "edges.parquet")
    write_table(folder / "labels.parquet", {"id": graph.node_ids, "label": graph.labels})
    edges = {}
    for engine in (["memory"], ["duckdb", "--memory", "1GB"], ["spark", "--master", "local[2]"]):
        nodecopy("sample", "edges.parquet", "--labels", "labels.parquet", "-n", "2", "--engine", *engine,
                 "--out", engine[0], folder=folder)  # fmt: skip
        tables = [parquet.read_table(folder / engine[0] / f"sample-{s}.parquet") for s in range(2)]
        edges[engine[0]] = [
            sorted(zip(*(table[c].to_pylist() for c in ("source", "target")), strict=True))
            for table in tables
        ]
        print(f"{engine[0]}: {[len(sample) for sample in edges[engine[0]]]} edges")
    assert edges["memory"] == edges["duckdb"] == edges["spark"]
    print("memory, DuckDB and Spark drew the same edges\n")


def compare_trials(folder: Path) -> None:
    """Compute eight trials in one process, and with two workers of a cluster."""
    from distributed import LocalCluster

    (folder / "karate.toml").write_text(EXPERIMENT)
    command = ("reproduce", "karate.toml", "--batch-size", "1")
    nodecopy(*command, "--store", "local-store", "--out", "local", folder=folder)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        backend = ("--backend", "dask", "--scheduler", cluster.scheduler_address)
        nodecopy(*command, *backend, "--store", "dask-store", "--out", "dask", folder=folder)
    scores = [_read_scores(folder / name) for name in ("local-store", "dask-store")]
    assert scores[0] == scores[1]
    print(f"one process and Dask gave the same {len(scores[0])} trials")


def nodecopy(*arguments: str, folder: Path) -> None:
    """Run a command in a process of its own, which can import this file."""
    code = "from nodecopy.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, check=True)


def _read_scores(store: Path) -> dict[str, object]:
    return {
        str(path.relative_to(store)): json.loads(path.read_text())["scores"] for path in store.rglob("*.json")
    }


if __name__ == "__main__":
    main()

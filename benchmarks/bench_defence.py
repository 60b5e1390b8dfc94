"""Time of corrections after the training: ``python -m benchmarks.bench_defence``.

A correction by copying has two parts: the search for donors, one pass over all embeddings for each target,
and the prediction with their neighbourhoods, which reads only two hops around each donor. A correction by all
evidence reads the target's own edges; what all nodes share is prepared once, in memory linear in the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bench_classification import add_features
from benchmarks.measurement import measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph, datasets
from nodecopy._core.arrays import IntArray
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, Defence, EvidenceDefence
from nodecopy.defend.copying import MODES

N_TARGETS, N_DONORS = 40, 10


def main() -> None:
    measure_cora()
    measure_scaling()
    measure_evidence_scaling()


def measure_cora() -> None:
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    gcn = GCN().fit(graph, split.train, rng=0)
    targets = split.test[:N_TARGETS]
    tasks: dict[str, Callable[[], object]] = {}
    for donors in ("expected", "features", "vgae"):
        for mode in MODES:
            defence = CopyingDefence(donors=donors, mode=mode).from_classifier(gcn, graph, targets=[], rng=0)
            tasks[f"{donors}, {mode}"] = _build_correction(defence, targets)
    evidence = EvidenceDefence().from_classifier(gcn, graph, targets=[], rng=0)
    tasks["all evidence"] = _build_correction(evidence, targets)
    print(f"Cora, {N_TARGETS} targets, {N_DONORS} donors each")
    for name, measurement in measure_interleaved(tasks, rounds=5).items():
        print(f"{name:<24}{measurement.milliseconds:>8.1f} ms")


def measure_scaling() -> None:
    """Correct the same number of targets in larger graphs, and print the entries of their two hops."""
    print(f"\n{'nodes':>10}{'two hops':>12}{'mode':>15}{'predicting ms':>15}{'per 10^5 entries':>18}")
    for n_nodes in (10**4, 10**5, 10**6):
        graph = add_features(power_law_graph(10 * n_nodes, n_communities=7, rng=0))
        split = datasets.label_split(graph.labels, 20, rng=0)
        gcn = GCN(n_epochs=5).fit(graph, split.train, rng=0)
        rng = np.random.default_rng(0)
        pairs = np.repeat(split.test[:N_TARGETS], N_DONORS), rng.integers(n_nodes, size=N_TARGETS * N_DONORS)
        line = np.arange(n_nodes, dtype=float)[:, None]  # any embeddings, because donors are given below
        size = _count_two_hop_entries(graph, pairs[1])
        tasks = {
            mode: _build_prediction(
                CopyingDefence(donors=line, mode=mode).from_classifier(gcn, graph, targets=[]), *pairs
            )
            for mode in MODES
        }
        for mode, measurement in measure_interleaved(tasks, rounds=3).items():
            time = measurement.milliseconds
            print(f"{n_nodes:>10,}{size:>12,}{mode:>15}{time:>15.1f}{1e5 * time / size:>18.1f}")


def measure_evidence_scaling() -> None:
    """Prepare the evidence of all nodes without donors, and correct the same number of targets."""
    print(f"\n{'nodes':>10}{'edges':>12}{'preparing s':>13}{'peak MB':>10}{'correcting ms':>15}")
    for n_nodes in (10**5, 10**6):
        graph = add_features(power_law_graph(10 * n_nodes, n_communities=7, rng=0))
        split = datasets.label_split(graph.labels, 20, rng=0)
        gcn = GCN(n_epochs=5).fit(graph, split.train, rng=0)
        defence = EvidenceDefence()
        tasks = {
            "prepare": lambda d=defence, g=gcn, graph=graph: d.from_classifier(g, graph, targets=[], rng=0)
        }
        preparation = measure_interleaved(tasks, rounds=1)["prepare"]
        correction = measure_interleaved(
            {"correct": _build_correction(defence, split.test[:N_TARGETS])}, rounds=3
        )["correct"]
        seconds, peak = preparation.milliseconds / 1e3, preparation.megabytes
        time = correction.milliseconds
        print(f"{n_nodes:>10,}{graph.n_edges:>12,}{seconds:>13.1f}{peak:>10,.0f}{time:>15.1f}")


def _build_correction(defence: Defence, targets: IntArray) -> Callable[[], object]:
    return lambda: defence.correction_.predict_proba(targets)


def _build_prediction(defence: CopyingDefence, nodes: IntArray, donors: IntArray) -> Callable[[], object]:
    correction: Any = defence.correction_
    return lambda: correction.copier(nodes, donors)


def _count_two_hop_entries(graph: Graph, donors: IntArray) -> int:
    degrees = graph.degrees.astype(np.int64)
    return int((graph.adjacency[donors] @ degrees).sum())


if __name__ == "__main__":
    main()

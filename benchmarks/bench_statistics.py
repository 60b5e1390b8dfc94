"""All statistics except path lengths, compared with networkit's triangles and components.

Run from the repository: ``python -m benchmarks.bench_statistics [n_entries]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import networkit
import numpy as np

from benchmarks.measurement import measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy.graph import Graph
from nodecopy.metrics.structure import statistics

N_ROUNDS = 3


def main(n_entries: int = 10_000_000) -> None:
    graph = power_law_graph(n_entries, rng=0)
    print(f"{graph}; {graph.rows.n_entries:,} stored entries")
    converted = _build_networkit_graph(graph)
    # networkit's two exact triangle counters, each with components
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy, all statistics": lambda: statistics(graph, path_length=False),
        "networkit, edge triangles and components": lambda: _networkit_edge_triangles(converted),
        "networkit, local clustering and components": lambda: _networkit_local_clustering(converted),
    }
    assert statistics(graph, path_length=False)["triangles"] == _networkit_triangles(converted)
    measurements = measure_interleaved(tasks, N_ROUNDS)
    for name, measurement in measurements.items():
        print(f"{name:<44}{measurement.milliseconds:>8.0f} ms, {measurement.megabytes:>6.0f} MB")
    ours, *others = (measurement.milliseconds for measurement in measurements.values())
    print(f"{'the fastest networkit / nodecopy':<44}{min(others) / ours:>8.2f}")


def _build_networkit_graph(graph: Graph) -> networkit.Graph:
    upper = graph.rows.row_numbers < graph.rows.indices
    first = graph.rows.row_numbers[upper].astype(np.uint64)
    second = graph.rows.indices[upper].astype(np.uint64)
    converted = networkit.GraphFromCoo((np.ones(len(first)), (first, second)), n=graph.n_nodes)
    converted.indexEdges()
    return converted


def _networkit_edge_triangles(converted: networkit.Graph) -> None:
    networkit.sparsification.TriangleEdgeScore(converted).run()
    networkit.components.ConnectedComponents(converted).run()


def _networkit_local_clustering(converted: networkit.Graph) -> None:
    networkit.centrality.LocalClusteringCoefficient(converted, True).run()
    networkit.components.ConnectedComponents(converted).run()


def _networkit_triangles(converted: networkit.Graph) -> int:
    return int(sum(networkit.sparsification.TriangleEdgeScore(converted).run().scores())) // 3


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:2]))

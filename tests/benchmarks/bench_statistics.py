"""All statistics but path lengths, against networkit's triangles and components alone.

Run from the repository: ``python -m tests.benchmarks.bench_statistics [n_entries]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import networkit
import numpy as np

from nodecopy.graph import Graph
from nodecopy.metrics.structure import statistics
from tests.benchmarks.graphs import power_law_graph
from tests.benchmarks.measuring import interleaved

N_ROUNDS = 3


def main(n_entries: int = 10_000_000) -> None:
    graph = power_law_graph(n_entries, rng=0)
    print(f"{graph}; {graph.rows.n_entries:,} stored entries")
    rival = _networkit_graph(graph)
    # networkit's exact triangle counters, fastest first in most runs; each with components
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy, all statistics": lambda: statistics(graph, path_length=False),
        "networkit, edge triangles and components": lambda: _networkit_edge_triangles(rival),
        "networkit, local clustering and components": lambda: _networkit_local_clustering(rival),
    }
    assert statistics(graph, path_length=False)["triangles"] == _networkit_triangles(rival)
    found = interleaved(tasks, N_ROUNDS)
    for name, one in found.items():
        print(f"{name:<44}{one.ms:>8.0f} ms, {one.mb:>6.0f} MB")
    ours, *rivals = (one.ms for one in found.values())
    print(f"{'the fastest networkit / nodecopy':<44}{min(rivals) / ours:>8.2f}")


def _networkit_graph(graph: Graph) -> networkit.Graph:
    once = graph.rows.row_numbers < graph.rows.indices
    first = graph.rows.row_numbers[once].astype(np.uint64)
    second = graph.rows.indices[once].astype(np.uint64)
    rival = networkit.GraphFromCoo((np.ones(len(first)), (first, second)), n=graph.n_nodes)
    rival.indexEdges()
    return rival


def _networkit_edge_triangles(rival: networkit.Graph) -> None:
    networkit.sparsification.TriangleEdgeScore(rival).run()
    networkit.components.ConnectedComponents(rival).run()


def _networkit_local_clustering(rival: networkit.Graph) -> None:
    networkit.centrality.LocalClusteringCoefficient(rival, True).run()
    networkit.components.ConnectedComponents(rival).run()


def _networkit_triangles(rival: networkit.Graph) -> int:
    return int(sum(networkit.sparsification.TriangleEdgeScore(rival).run().scores())) // 3


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:2]))

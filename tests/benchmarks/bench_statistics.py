"""All statistics but path lengths, against networkit's triangles and components alone.

Run from the repository: ``python tests/benchmarks/bench_statistics.py [n_entries]``.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import networkit
import numpy as np
from graphs import power_law_graph

from nodecopy.graph import Graph
from nodecopy.metrics.structure import statistics

N_ROUNDS = 3


def main(n_entries: int = 10_000_000) -> None:
    graph = power_law_graph(n_entries, rng=0)
    before = _peak_memory()
    print(f"{graph}; {graph.rows.n_entries:,} stored entries; peak memory {before:.2f} GiB")
    rival = _networkit_graph(graph)
    # networkit's exact triangle counters, fastest first in most runs; each with components
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy, all statistics": lambda: statistics(graph, path_length=False),
        "networkit, edge triangles and components": lambda: _networkit_edge_triangles(rival),
        "networkit, local clustering and components": lambda: _networkit_local_clustering(rival),
    }
    assert statistics(graph, path_length=False)["triangles"] == _networkit_triangles(rival)
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(N_ROUNDS + 1):  # interleaved, since other work on the machine comes and goes
        for name, task in tasks.items():
            start = perf_counter()
            task()
            if number:  # the first round warms up
                seconds[name].append(perf_counter() - start)
    ours, *rivals = (median(times) for times in seconds.values())
    for name, times in seconds.items():
        print(f"{name:<44}{median(times):8.3f} s   ({', '.join(f'{t:.3f}' for t in times)})")
    print(f"{'the fastest networkit / nodecopy':<44}{min(rivals) / ours:8.2f}")
    print(f"{'peak memory, both graphs':<44}{_peak_memory():8.2f} GiB")


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


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:2]))

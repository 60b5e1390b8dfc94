"""Samples and their statistics, compared with the configuration model and the statistics of igraph.

Run from the repository: ``python -m benchmarks.bench_inference [n_samples]``. The graph has 10^5 nodes
and 5 x 10^5 edges. CPU times of one sample are compared first, since they depend less on the load of the
machine; samples are independent, so that two workers halve them. igraph's fast configuration model has loops
and multiple edges; ``fast_heur_simple`` has none, as samples of node copying. Triangles are derived from the
transitivity, which igraph counts faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from time import process_time
from typing import Any

import igraph
import numpy as np

from benchmarks.measurement import measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph, NodeCopying
from nodecopy.inference import DegreeClasses, bootstrap
from nodecopy.inference.statistics import prepare_measure

STATISTICS = [
    "density",
    "mean_degree",
    "max_degree",
    "degree_variance",
    "triangles",
    "transitivity",
    "assortativity",
    "modularity",
    "largest_eigenvalue",
    "pagerank",
]
N_ROUNDS, N_CPU_ROUNDS = 3, 5


def main(n_samples: int = 40) -> None:
    graph = power_law_graph(1_000_000, rng=0)
    assert graph.labels is not None
    print(f"{graph}; {n_samples} samples with {', '.join(STATISTICS)}")
    degrees, labels = graph.degrees.tolist(), graph.labels.tolist()
    rule = DegreeClasses("labels")
    compare_cpu_times(graph, rule)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        halves = [n_samples // 2, n_samples - n_samples // 2]
        tasks: dict[str, Callable[[], Any]] = {
            "nodecopy, two workers": lambda: bootstrap(
                graph, STATISTICS, model=rule, n=n_samples, workers=2, rng=0
            ),
            "igraph, configuration": partial(igraph_samples, degrees, labels, n_samples, "configuration"),
            "igraph, configuration, two processes": lambda: list(
                pool.map(partial(igraph_samples, degrees, labels), halves, ["configuration"] * 2)
            ),
        }
        measurements = measure_interleaved(tasks, N_ROUNDS)
    ours = measurements["nodecopy, two workers"]
    for name, measurement in measurements.items():
        time, ratio = measurement.milliseconds / n_samples, measurement.ratio_to(ours)
        print(f"{name:<38}{time:>9.1f} ms per sample{ratio:>8.1f} times ours")


def compare_cpu_times(graph: Graph, donors: DegreeClasses) -> None:
    """Compare the CPU time of one sample with its statistics, by medians of interleaved ratios."""
    assert graph.labels is not None
    degrees, labels = graph.degrees.tolist(), graph.labels.tolist()
    model, (_, measure) = NodeCopying(donors).fit(graph), prepare_measure(STATISTICS, graph, None)
    tasks: dict[str, Callable[[], Any]] = {
        "nodecopy": lambda: measure(model.sample(rng=0)),
        "igraph, configuration": partial(igraph_samples, degrees, labels, 1, "configuration"),
        "igraph, simple": partial(igraph_samples, degrees, labels, 1, "fast_heur_simple"),
    }
    tasks["nodecopy"]()  # compiles or loads the kernels
    seconds = np.array([[_cpu_seconds(task) for task in tasks.values()] for _ in range(N_CPU_ROUNDS)])
    for number, name in enumerate(tasks):
        time, ratio = 1e3 * np.median(seconds[:, number]), np.median(seconds[:, number] / seconds[:, 0])
        print(f"{name:<38}{time:>9.1f} ms of CPU per sample{ratio:>8.1f} times ours")


def _cpu_seconds(task: Callable[[], Any]) -> float:
    start = process_time()
    task()
    return process_time() - start


def igraph_samples(degrees: list[int], labels: list[int], n: int, method: str) -> list[list[float]]:
    """Return the statistics of samples."""
    return [igraph_statistics(igraph.Graph.Degree_Sequence(degrees, method=method), labels) for _ in range(n)]


def igraph_statistics(graph: Any, labels: list[int]) -> list[float]:
    """Return the same statistics by igraph."""
    degrees = np.array(graph.degree())
    transitivity = graph.transitivity_undirected()
    return [
        graph.density(),
        degrees.mean(),
        degrees.max(),
        degrees.var(),
        transitivity * (degrees * (degrees - 1)).sum() / 6,
        transitivity,
        graph.assortativity_degree(directed=False),
        graph.modularity(labels),
        graph.eigenvector_centrality(return_eigenvalue=True)[1],
        graph.pagerank()[0],
    ]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

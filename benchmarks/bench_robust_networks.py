"""Time of robust networks, dense and sparse: ``python -m benchmarks.bench_robust_networks``.

Most features of Cora and Citeseer are zero. A dense product draws a dropout mask for every one of them.
"""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

from benchmarks.measurement import measure_interleaved
from nodecopy import Graph, datasets
from nodecopy._core.arrays import IntArray
from nodecopy.defend import GNNGuard, SoftMedianGCN, robust_networks

N_EPOCHS, ROUNDS = 40, 3
MAX_DENSITIES = {"dense": -1.0, "sparse": robust_networks.MAX_DENSITY}


def main() -> None:
    for name in ("cora", "citeseer", "pubmed"):
        graph = datasets.load(name)
        train = datasets.label_split(graph.labels, 20, rng=0).train
        for defence in (GNNGuard, SoftMedianGCN):
            tasks = {
                key: partial(fit, defence, graph, train, density) for key, density in MAX_DENSITIES.items()
            }
            times = measure_interleaved(tasks, ROUNDS)
            both = ", ".join(f"{key} {time.milliseconds:6.0f} ms" for key, time in times.items())
            ratio = times["sparse"].ratio_to(times["dense"])
            print(f"{name:9} {defence.__name__:14} {N_EPOCHS} epochs: {both}, ratio {ratio:.2f}", flush=True)


def fit(defence: type[GNNGuard | SoftMedianGCN], graph: Graph, train: IntArray, max_density: float) -> None:
    with patch.object(robust_networks, "MAX_DENSITY", max_density):
        defence(n_epochs=N_EPOCHS).fit(graph, train, rng=0)


if __name__ == "__main__":
    main()

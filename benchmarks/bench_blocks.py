"""One sample of each block model and classical model, compared with igraph and networkit.

Run from the repository: ``python -m benchmarks.bench_blocks [n_entries]``. Samples of
nodecopy are complete graphs with sorted rows; the others are the objects that the libraries return.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import igraph
import networkit
import numpy as np

from benchmarks.bench_sampling import build_igraph_sbm
from benchmarks.measurement import measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph
from nodecopy.generators import (
    SBM,
    BarabasiAlbert,
    ChungLu,
    ConfigurationModel,
    DegreeCorrectedSBM,
    ErdosRenyi,
)
from nodecopy.generators.base import EdgeListModel, list_edges


def main(n_entries: int = 1_000_000) -> None:
    graph = power_law_graph(n_entries, rng=0)
    print(f"{graph}, largest degree {graph.degrees.max():,}")
    models = [SBM(), DegreeCorrectedSBM(), ErdosRenyi(), ChungLu(), ConfigurationModel(), BarabasiAlbert()]
    tasks: dict[str, Callable[[], Any]] = {
        type(model).__name__: _build_sampler(model, graph) for model in models
    }
    for name, measurement in measure_interleaved(tasks | _other_libraries(graph), rounds=3).items():
        print(f"{name:<28}{measurement.milliseconds:>9.0f} ms{measurement.megabytes:>8.0f} MB")


def _build_sampler(model: EdgeListModel, graph: Graph) -> Callable[[], Graph]:
    fitted = model.fit(graph, rng=0)
    return lambda: fitted.sample(rng=0)


def _other_libraries(graph: Graph) -> dict[str, Callable[[], Any]]:
    n_nodes, degrees = graph.n_nodes, graph.degrees.tolist()
    simple = igraph.Graph(n_nodes, np.stack(list_edges(graph), axis=1).tolist())
    density = 2 * graph.n_edges / (n_nodes * (n_nodes - 1))
    return {
        "SBM, igraph": build_igraph_sbm(graph),
        "ErdosRenyi, networkit": lambda: networkit.generators.ErdosRenyiGenerator(
            n_nodes, density
        ).generate(),
        "ChungLu, networkit": lambda: networkit.generators.ChungLuGenerator(degrees).generate(),
        "ConfigurationModel, igraph": lambda: simple.copy().rewire(10 * graph.n_edges),
        "BarabasiAlbert, igraph": lambda: igraph.Graph.Barabasi(n_nodes, 5),
    }


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:]))

"""One sample of each block and classical model beside igraph and networkit, where they have it.

Run from the repository: ``python -m tests.benchmarks.bench_blocks [n_entries]``. Ours are whole
graphs, sorted and ready for use; theirs are what their generators return.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import igraph
import networkit
import numpy as np

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
from tests.benchmarks.bench_sampling import _igraph_sbm
from tests.benchmarks.graphs import power_law_graph
from tests.benchmarks.measuring import interleaved


def main(n_entries: int = 1_000_000) -> None:
    graph = power_law_graph(n_entries, rng=0)
    print(f"{graph}, largest degree {graph.degrees.max():,}")
    models = [SBM(), DegreeCorrectedSBM(), ErdosRenyi(), ChungLu(), ConfigurationModel(), BarabasiAlbert()]
    tasks: dict[str, Callable[[], Any]] = {type(model).__name__: _sampler(model, graph) for model in models}
    found = interleaved(tasks | _others(graph), rounds=3)
    for name, one in found.items():
        print(f"{name:<28}{one.ms:>9.0f} ms{one.mb:>8.0f} MB")


def _sampler(model: EdgeListModel, graph: Graph) -> Callable[[], Graph]:
    fitted = model.fit(graph, rng=0)
    return lambda: fitted.sample(rng=0)


def _others(graph: Graph) -> dict[str, Callable[[], Any]]:
    n_nodes, degrees = graph.n_nodes, graph.degrees.tolist()
    simple = igraph.Graph(n_nodes, np.stack(list_edges(graph), axis=1).tolist())
    density = 2 * graph.n_edges / (n_nodes * (n_nodes - 1))
    return {
        "SBM, igraph": _igraph_sbm(graph),
        "ErdosRenyi, networkit": lambda: networkit.generators.ErdosRenyiGenerator(
            n_nodes, density
        ).generate(),
        "ChungLu, networkit": lambda: networkit.generators.ChungLuGenerator(degrees).generate(),
        "ConfigurationModel, igraph": lambda: simple.copy().rewire(10 * graph.n_edges),
        "BarabasiAlbert, igraph": lambda: igraph.Graph.Barabasi(n_nodes, 5),
    }


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:]))

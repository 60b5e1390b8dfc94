"""How long a correction by copying takes after training: ``python -m tests.benchmarks.bench_defence``.

Correcting has two parts: finding donors, one pass over all embeddings for each victim, and predicting
with their neighbourhoods, which touches two hops around each donor and nothing else of the graph.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nodecopy import Graph, datasets
from nodecopy._core.csr import IntArray
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from tests.benchmarks.bench_classification import _featured
from tests.benchmarks.graphs import power_law_graph
from tests.benchmarks.measuring import interleaved

N_VICTIMS, N_DONORS = 40, 10


def main() -> None:
    on_cora()
    growth()


def on_cora() -> None:
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    gcn = GCN().fit(graph, split.train, rng=0)
    victims = split.test[:N_VICTIMS]
    tasks: dict[str, Callable[[], object]] = {}
    for donors in ("expected", "features", "vgae"):
        for place in ("donor", "row"):
            defence = CopyingDefence(donors=donors, place=place).around(gcn, graph, rng=0)
            tasks[f"{donors}, {place}"] = _correction(defence, victims)
    print(f"Cora, {N_VICTIMS} victims, {N_DONORS} donors each")
    for name, one in interleaved(tasks, rounds=5).items():
        print(f"{name:<24}{one.ms:>8.1f} ms")


def growth() -> None:
    """The same number of pairs in larger graphs, with how many entries their two hops have."""
    print(f"\n{'nodes':>10}{'two hops':>12}{'place':>8}{'predicting ms':>15}{'per 10^5 entries':>18}")
    for n_nodes in (10**4, 10**5, 10**6):
        graph = _featured(power_law_graph(10 * n_nodes, n_communities=7, rng=0))
        split = datasets.label_split(graph.labels, 20, rng=0)
        gcn = GCN(n_epochs=5).fit(graph, split.train, rng=0)
        draw = np.random.default_rng(0)
        pairs = np.repeat(split.test[:N_VICTIMS], N_DONORS), draw.integers(n_nodes, size=N_VICTIMS * N_DONORS)
        line = np.arange(n_nodes, dtype=float)[:, None]  # donors are given below, not looked for
        size = _two_hops(graph, pairs[1])
        tasks = {
            place: _prediction(CopyingDefence(donors=line, place=place).around(gcn, graph), *pairs)
            for place in ("donor", "row")
        }
        for place, one in interleaved(tasks, rounds=3).items():
            print(f"{n_nodes:>10,}{size:>12,}{place:>8}{one.ms:>15.1f}{1e5 * one.ms / size:>18.1f}")


def _correction(defence: CopyingDefence, victims: IntArray) -> Callable[[], object]:
    return lambda: defence.correct(victims)


def _prediction(defence: CopyingDefence, nodes: IntArray, donors: IntArray) -> Callable[[], object]:
    return lambda: defence.corrector_.told(nodes, donors)


def _two_hops(graph: Graph, donors: IntArray) -> int:
    degrees = graph.degrees.astype(np.int64)
    return int((graph.adjacency[donors] @ degrees).sum())


if __name__ == "__main__":
    main()

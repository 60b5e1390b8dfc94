"""Networks of PyG inside BayesianGCN compared with a plain loop of PyG over the same sampled graphs.

Run from the repository: ``python -m benchmarks.bench_custom_network``. Both train as many networks for
as many epochs on the same graphs and average as many dropout samples on the observed graph. The loop does not
check outputs, seed generators, or scale and keep anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from benchmarks.measurement import measure_interleaved
from nodecopy import Graph, NodeCopying, SameLabel, datasets, to_pyg
from nodecopy.classify import BayesianGCN, CustomNetwork
from nodecopy.nn.modules import Factory

EPOCHS, N_GRAPHS, N_WEIGHT_SAMPLES, ROUNDS = 40, 2, 10, 5
FACTORIES: dict[str, Factory] = {
    "GCN": lambda n, k: GCN(n, 16, 2, k, dropout=0.5),
    "GraphSAGE": lambda n, k: GraphSAGE(n, 16, 2, k, dropout=0.5),
    "GAT": lambda n, k: GAT(n, 8, 2, k, heads=4, dropout=0.5),
    "GIN": lambda n, k: GIN(n, 16, 2, k, dropout=0.5, norm="batch_norm"),
}


def main() -> None:
    graph = datasets.load("digits")
    split = datasets.label_split(graph.labels, 5, validation=0, test=1000, rng=0)
    print(f"digits, {N_GRAPHS} graphs, {EPOCHS} epochs, {torch.get_num_threads()} threads")
    for name, factory in FACTORIES.items():
        base = CustomNetwork(factory, n_epochs=EPOCHS)
        ours = BayesianGCN(_copying(), N_GRAPHS, N_WEIGHT_SAMPLES, base=base)
        tasks: dict[str, Callable[[], object]] = {
            "nodecopy": lambda ours=ours: ours.fit(graph, split.train, rng=0),  # type: ignore[misc]
            "loop": _build_loop(factory, graph, split.train),
        }
        measurements = measure_interleaved(tasks, rounds=ROUNDS)
        ratio = measurements["nodecopy"].ratio_to(measurements["loop"])
        seconds = [measurement.milliseconds / 1e3 for measurement in measurements.values()]
        print(f"{name:<12}{seconds[0]:>8.2f} s, loop {seconds[1]:.2f} s, ratio {ratio:.2f}", flush=True)


def _copying() -> NodeCopying[Any]:
    return NodeCopying(SameLabel(), keep=0.5)


def _build_loop(factory: Factory, graph: Graph, train: Any) -> Callable[[], object]:
    data, nodes = to_pyg(graph), torch.from_numpy(train)
    x = (data.x - data.x.mean(dim=0)) / data.x.std(dim=0).clamp(min=1e-6)

    def fit_network(edges: torch.Tensor) -> Any:
        network: Any = factory(graph.features.shape[1], 10)  # type: ignore[union-attr]
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
        network.train()
        for _ in range(EPOCHS):
            optimiser.zero_grad()
            loss = functional.cross_entropy(network(x, edges)[nodes], data.y[nodes])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return network

    def fit() -> object:
        network = fit_network(data.edge_index).eval()
        with torch.no_grad():
            predicted = network(x, data.edge_index).argmax(dim=1).numpy()
        predicted[train] = np.asarray(graph.labels)[train]
        samples = _copying().fit(graph.replace(labels=predicted)).sample_many(N_GRAPHS, rng=0)
        total = 0.0
        for sample in samples:
            network = fit_network(to_pyg(sample).edge_index)
            with torch.no_grad():
                for _ in range(N_WEIGHT_SAMPLES):
                    total = total + network(x, data.edge_index).softmax(dim=1)
        return total

    return fit


if __name__ == "__main__":
    main()

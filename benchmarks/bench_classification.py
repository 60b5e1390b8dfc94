"""A Bayesian GCN with 20 sampled graphs compared with a GCN of PyG, self-training, and scaling.

Run from the repository: ``python -m benchmarks.bench_classification``. The first parts need Cora
(see ``nodecopy datasets fetch cora``).
"""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import sparse
from torch.nn import functional
from torch_geometric.nn import GCNConv

from benchmarks.measurement import Measurement, measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph, datasets, to_pyg
from nodecopy.classify import GCN, BayesianGCN, Classifier, SelfTraining

FIGURE_PATH = Path(__file__).parents[1] / "docs" / "growth.png"

EPOCHS, N_GRAPHS, N_WEIGHT_SAMPLES = 200, 20, 10


def main() -> None:
    compare_with_pyg()
    measure_beside_busy_process()
    measure_scaling()


def compare_with_pyg() -> None:
    """Train all with the same number of epochs: two layers, 16 hidden units, dropout one half."""
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    ours = _build_bayesian_gcn()
    tasks: dict[str, Callable[[], object]] = {
        f"nodecopy, Bayesian GCN, {N_GRAPHS} graphs": lambda: ours.fit(graph, split.train, rng=0),
        "PyG, one GCN, dense features": _build_pyg_fit(graph, split.train, is_sparse=False),
        "PyG, one GCN, sparse features": _build_pyg_fit(graph, split.train, is_sparse=True),
    }
    measurements = measure_interleaved(tasks, rounds=3)
    first, *_ = measurements.values()
    print(f"Cora, {EPOCHS} epochs, {torch.get_num_threads()} threads")
    for name, measurement in measurements.items():
        ratio = first.milliseconds / measurement.milliseconds
        print(f"{name:<36}{measurement.milliseconds / 1e3:>8.2f} s   ours / this: {ratio:.2f}")


def measure_beside_busy_process() -> None:
    """Measure classifiers on a quiet machine and beside a process that keeps one core busy."""
    graph = datasets.load("cora")
    classifiers: dict[str, tuple[Classifier, int]] = {
        "SelfTraining(), 5 labels": (SelfTraining(), 5),
        f"Bayesian GCN, {N_GRAPHS} graphs": (_build_bayesian_gcn(), 20),
    }
    print(f"\n{'Cora':<28}{'quiet':>10}{'busy':>10}{'ratio':>8}")
    for name, (classifier, n_labels) in classifiers.items():
        fit = _build_fit(classifier, graph, datasets.label_split(graph.labels, n_labels, rng=0).train)
        seconds = [_median_seconds(fit)]
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            try:
                seconds.append(_median_seconds(fit))
            finally:
                busy.kill()
        print(
            f"{name:<28}{seconds[0]:>8.2f} s{seconds[1]:>8.2f} s{seconds[1] / seconds[0]:>8.2f}", flush=True
        )


def _median_seconds(task: Callable[[], object]) -> float:
    (measurement,) = measure_interleaved({"task": task}, rounds=3).values()
    return measurement.milliseconds / 1e3


def _build_bayesian_gcn() -> BayesianGCN:
    return BayesianGCN(n_graphs=N_GRAPHS, n_weight_samples=N_WEIGHT_SAMPLES, base=GCN(n_epochs=EPOCHS))


def measure_scaling() -> None:
    """Measure time and memory against the number of nodes and of graphs, and save a figure."""
    print(f"\n{'nodes':>10}{'graphs':>8}{'seconds':>10}{'peak MB':>10}")
    by_nodes = [(n_nodes, _measure_fit(n_nodes, 5)) for n_nodes in (10**4, 30_000, 10**5, 300_000, 10**6)]
    by_graphs = [(n_graphs, _measure_fit(10**5, n_graphs)) for n_graphs in (2, 5, 10, 20, 40)]
    _save_figure({"nodes (5 graphs)": by_nodes, "graphs (100,000 nodes)": by_graphs})


def _measure_fit(n_nodes: int, n_graphs: int) -> Measurement:
    graph = add_features(power_law_graph(10 * n_nodes, n_communities=7, rng=0))
    split = datasets.label_split(graph.labels, 20, rng=0)
    classifier = BayesianGCN(n_graphs=n_graphs, n_weight_samples=5, base=GCN(n_epochs=50))
    (measurement,) = measure_interleaved(
        {"fit": _build_fit(classifier, graph, split.train)}, rounds=1
    ).values()
    print(
        f"{n_nodes:>10,}{n_graphs:>8}{measurement.milliseconds / 1e3:>10.1f}{measurement.megabytes:>10,.0f}",
        flush=True,
    )
    return measurement


def _save_figure(series: dict[str, list[tuple[int, Measurement]]]) -> None:
    """Plot seconds and memory on logarithmic axes, with lines of slope one."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    for row, (what, points) in zip(figure.subplots(2, 2), series.items(), strict=True):
        x = np.array([number for number, _ in points], float)
        for axes, name, y in zip(
            row,
            ("seconds", "MB above the graph"),
            (
                np.array([measurement.milliseconds / 1e3 for _, measurement in points]),
                np.array([measurement.megabytes for _, measurement in points]),
            ),
            strict=True,
        ):
            axes.loglog(x, y, "o-", color="#5e81ac")
            axes.loglog(x, y[-1] * x / x[-1], ":", color="#3b4252", label="linear")
            axes.set(xlabel=what, ylabel=name)
            axes.set_xticks(x, [f"{number:,.0f}" for number in x])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
            axes.legend()
    figure.savefig(FIGURE_PATH, dpi=110)
    print(f"saved to {FIGURE_PATH}")


def _build_fit(classifier: Classifier, graph: Graph, train: Any) -> Callable[[], object]:
    """Return a fit to a copy of the features, so that no embedding of an earlier fit is found again."""
    return lambda: classifier.fit(graph.replace(features=copy.copy(graph.features)), train, rng=0)


def add_features(graph: Graph) -> Graph:
    """Return the graph with eight ones among 64 features per node, more often those of its community."""
    assert graph.labels is not None
    rng = np.random.default_rng(0)
    own = rng.random((graph.n_nodes, 8)) < 0.3
    columns = np.where(
        own, 9 * graph.labels[:, None] + rng.integers(9, size=own.shape), rng.integers(64, size=own.shape)
    )
    rows = np.repeat(np.arange(graph.n_nodes), 8)
    return graph.replace(features=sparse.csr_array((np.ones(rows.size, np.float32), (rows, columns.ravel()))))


class _PygGCN(torch.nn.Module):
    """The network of PyG's example; dropout of sparse features applies to their values."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = GCNConv(n_features, 16, cached=True)
        self.second = GCNConv(16, n_classes, cached=True)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        if x.is_sparse:
            values = functional.dropout(x.values(), 0.5, self.training)
            x = torch.sparse_coo_tensor(
                x.indices(), values, x.shape, is_coalesced=True, check_invariants=False
            )
        else:
            x = functional.dropout(x, 0.5, self.training)
        x = functional.dropout(self.first(x, edges).relu(), 0.5, self.training)
        out: torch.Tensor = self.second(x, edges)
        return out


def _build_pyg_fit(graph: Graph, train: Any, *, is_sparse: bool) -> Callable[[], object]:
    data = to_pyg(graph)
    x = data.x / data.x.sum(dim=1, keepdim=True).clamp(min=1)
    x = x.to_sparse().coalesce() if is_sparse else x
    nodes = torch.from_numpy(train)

    def fit() -> object:
        network = _PygGCN(data.x.shape[1], int(data.y.max()) + 1)
        groups = [
            {"params": network.first.parameters(), "weight_decay": 5e-4},
            {"params": network.second.parameters()},
        ]
        optimiser = torch.optim.Adam(groups, lr=0.01)
        network.train()
        for _ in range(EPOCHS):
            optimiser.zero_grad()
            functional.cross_entropy(network(x, data.edge_index)[nodes], data.y[nodes]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return network

    return fit


if __name__ == "__main__":
    main()

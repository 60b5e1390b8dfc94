"""One Bayesian GCN with 20 sampled graphs beside one plain GCN of PyG, and how it grows.

Run from the repository: ``python -m tests.benchmarks.bench_classification``. The first part needs Cora
(see ``nodecopy datasets fetch cora``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import sparse
from torch.nn import functional
from torch_geometric.nn import GCNConv

from nodecopy import Graph, datasets, to_pyg
from nodecopy.classify import GCN, BayesianGCN
from tests.benchmarks.graphs import power_law_graph
from tests.benchmarks.measuring import Measured, interleaved

PICTURE = Path(__file__).parents[2] / "docs" / "growth.png"

EPOCHS, N_GRAPHS, N_WEIGHT_SAMPLES = 200, 20, 10


def main() -> None:
    beside_pyg()
    growth()


def beside_pyg() -> None:
    """The same epochs for everybody: two layers, 16 hidden units, dropout one half."""
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    ours = BayesianGCN(n_graphs=N_GRAPHS, n_weight_samples=N_WEIGHT_SAMPLES, base=GCN(n_epochs=EPOCHS))
    tasks: dict[str, Callable[[], object]] = {
        f"nodecopy, Bayesian GCN, {N_GRAPHS} graphs": lambda: ours.fit(graph, split.train, rng=0),
        "PyG, one GCN, dense features": _pyg(graph, split.train, is_sparse=False),
        "PyG, one GCN, sparse features": _pyg(graph, split.train, is_sparse=True),
    }
    found = interleaved(tasks, rounds=3)
    first, *_ = found.values()
    print(f"Cora, {EPOCHS} epochs, {torch.get_num_threads()} threads")
    for name, one in found.items():
        print(f"{name:<36}{one.ms / 1e3:>8.2f} s   ours / this: {first.ms / one.ms:.2f}")


def growth() -> None:
    """Time and memory against the number of nodes and of graphs; a picture of both."""
    print(f"\n{'nodes':>10}{'graphs':>8}{'seconds':>10}{'peak MB':>10}")
    by_nodes = [(n_nodes, _measured(n_nodes, 5)) for n_nodes in (10**4, 30_000, 10**5, 300_000, 10**6)]
    by_graphs = [(n_graphs, _measured(10**5, n_graphs)) for n_graphs in (2, 5, 10, 20, 40)]
    _draw({"nodes (5 graphs)": by_nodes, "graphs (100,000 nodes)": by_graphs})


def _measured(n_nodes: int, n_graphs: int) -> Measured:
    graph = _featured(power_law_graph(10 * n_nodes, n_communities=7, rng=0))
    split = datasets.label_split(graph.labels, 20, rng=0)
    classifier = BayesianGCN(n_graphs=n_graphs, n_weight_samples=5, base=GCN(n_epochs=50))
    (one,) = interleaved({"fit": _fit(classifier, graph, split.train)}, rounds=1).values()
    print(f"{n_nodes:>10,}{n_graphs:>8}{one.ms / 1e3:>10.1f}{one.mb:>10,.0f}", flush=True)
    return one


def _draw(series: dict[str, list[tuple[int, Measured]]]) -> None:
    """Seconds and memory on logarithmic axes, each beside a line of slope one."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    for row, (what, points) in zip(figure.subplots(2, 2), series.items(), strict=True):
        x = np.array([number for number, _ in points], float)
        for axes, name, y in zip(
            row,
            ("seconds", "MB above the graph"),
            (np.array([one.ms / 1e3 for _, one in points]), np.array([one.mb for _, one in points])),
            strict=True,
        ):
            axes.loglog(x, y, "o-", color="#5e81ac")
            axes.loglog(x, y[-1] * x / x[-1], ":", color="#3b4252", label="linear")
            axes.set(xlabel=what, ylabel=name)
            axes.set_xticks(x, [f"{number:,.0f}" for number in x])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
            axes.legend()
    figure.savefig(PICTURE, dpi=110)
    print(f"drawn to {PICTURE}")


def _fit(classifier: BayesianGCN, graph: Graph, train: Any) -> Callable[[], object]:
    return lambda: classifier.fit(graph, train, rng=0)


def _featured(graph: Graph) -> Graph:
    """Eight ones among 64 features, more often those of the node's community."""
    assert graph.labels is not None
    draw = np.random.default_rng(0)
    own = draw.random((graph.n_nodes, 8)) < 0.3
    columns = np.where(
        own, 9 * graph.labels[:, None] + draw.integers(9, size=own.shape), draw.integers(64, size=own.shape)
    )
    rows = np.repeat(np.arange(graph.n_nodes), 8)
    return graph.replace(features=sparse.csr_array((np.ones(rows.size, np.float32), (rows, columns.ravel()))))


class _PygGCN(torch.nn.Module):
    """PyG's example network; sparse features are dropped out on their values."""

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


def _pyg(graph: Graph, train: Any, *, is_sparse: bool) -> Callable[[], object]:
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

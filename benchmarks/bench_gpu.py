"""On one GPU: a Bayesian GCN on a million nodes, CopyEASE and EASE on Gowalla.

Run from the repository, with ``NODECOPY_DATA`` for the last part: ``python -m benchmarks.bench_gpu``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch.nn import functional
from torch_geometric.nn import GCNConv

from nodecopy import Graph, Jaccard, datasets
from nodecopy.classify import GCN, BayesianGCN
from nodecopy.recommend import EASE, CopyEASE

N_NODES, N_EDGES, N_CLASSES, N_FEATURES, N_EPOCHS = 1_000_000, 10_300_000, 7, 64, 200
DEVICE = "cuda"


def main() -> None:
    """Measure all parts."""
    many_nodes()
    gowalla()


def many_nodes() -> None:
    """Print times and memory of ``BayesianGCN`` and of one full-batch GCN of PyG."""
    small = build_graph(30_000, 300_000)
    BayesianGCN(n_graphs=2, base=GCN(n_epochs=20, device=DEVICE)).fit(small, np.arange(140), rng=0)
    graph, order = build_graph(N_NODES, N_EDGES), np.random.default_rng(1).permutation(N_NODES)
    print(graph, flush=True)
    for name, train in (("20 labels per class", order[:140]), ("10 % labelled", order[: N_NODES // 10])):
        seconds, gib = measure(pyg_fit(graph, train))
        print(f"{name}: one GCN of PyG {seconds:.1f} s, {gib:.1f} GiB", flush=True)
        for n_graphs in (2, 10):
            model = BayesianGCN(n_graphs=n_graphs, base=GCN(n_epochs=N_EPOCHS, device=DEVICE))
            ours, gib = measure(partial(model.fit, graph, np.sort(train), rng=0))
            print(
                f"{name}: BayesianGCN, {n_graphs} graphs {ours:.1f} s, {gib:.1f} GiB, "
                f"{ours / (n_graphs * seconds):.2f} times {n_graphs} GCNs",
                flush=True,
            )


def gowalla() -> None:
    """Print times and memory of exact fits; the first of each compiles and loads libraries."""
    train = datasets.load_split("gowalla").train.binary()
    common: Any = {"regularisation_exponent": 0.25, "popularity_penalty": 0.05, "device": DEVICE}
    users, items = Jaccard(False, 2.0, 50), Jaccard(False, 3.0, 200)
    for number in (1, 2):
        models = (
            CopyEASE(
                user_share=0.4, item_share=0.5, user_donors=users, item_donors=items, item_bonus=0.0, **common
            ),
            EASE(**common),
        )
        for model in models:
            seconds, gib = measure(partial(model.fit, train))
            print(
                f"Gowalla, {type(model).__name__}, fit {number}: {seconds:.1f} s, {gib:.0f} GiB", flush=True
            )


def build_graph(n_nodes: int, n_edges: int) -> Graph:
    """Return a graph with power-law degrees, most edges within a class, and eight words of each node."""
    rng = np.random.default_rng(0)
    weights = np.minimum((1 - rng.random(n_nodes)) ** (-1 / 1.5), np.sqrt(n_nodes))
    cumulative = np.cumsum(weights)
    first, second = (np.searchsorted(cumulative, rng.random(n_edges) * cumulative[-1]) for _ in range(2))
    moved = np.minimum(second - second % N_CLASSES + first % N_CLASSES, n_nodes - 1)
    second = np.where(rng.random(n_edges) < 0.65, moved, second)
    labels = np.arange(n_nodes) % N_CLASSES
    own = rng.random((n_nodes, 8)) < 0.2
    words = np.where(
        own, 9 * labels[:, None] + rng.integers(9, size=own.shape), rng.integers(64, size=own.shape)
    )
    rows = np.repeat(np.arange(n_nodes), 8)
    features = sparse.csr_array((np.ones(rows.size), (rows, words.ravel())), shape=(n_nodes, N_FEATURES))
    keys = np.unique(np.minimum(first, second) * n_nodes + np.maximum(first, second))
    low, high = keys // n_nodes, keys % n_nodes
    low, high = low[low != high], high[low != high]
    upper = sparse.csr_array((np.ones(len(low)), (low, high)), shape=(n_nodes, n_nodes))
    return Graph(upper + upper.T, features=features, labels=labels)


def pyg_fit(graph: Graph, train: NDArray[np.int64]) -> Callable[[], None]:
    """Return a function that trains a GCN of PyG on the whole graph."""
    features: Any = graph.features
    x = torch.from_numpy(features.toarray().astype(np.float32)).to(DEVICE)
    y, nodes = torch.from_numpy(np.array(graph.labels)).to(DEVICE), torch.from_numpy(train).to(DEVICE)
    entries = graph.adjacency.tocoo()
    edges = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64)).to(DEVICE)

    def fit() -> None:
        layers = torch.nn.ModuleList(
            [GCNConv(N_FEATURES, 16, cached=True), GCNConv(16, N_CLASSES, cached=True)]
        ).to(DEVICE)
        optimiser = torch.optim.Adam(layers.parameters(), lr=0.01)
        for _ in range(N_EPOCHS):
            optimiser.zero_grad()
            hidden = layers[0](functional.dropout(x), edges).relu()
            scores = layers[1](functional.dropout(hidden), edges)
            loss: Any = functional.cross_entropy(scores[nodes], y[nodes])
            loss.backward()
            optimiser.step()

    return fit


def measure(task: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds and peak memory in GiB."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start = time.perf_counter()
    task()
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.cuda.max_memory_allocated() / 2**30


if __name__ == "__main__":
    main()

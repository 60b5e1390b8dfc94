"""VGAE compared with that of PyG, its memory on Pubmed, and link prediction of autoencoders on Cora.

Run ``python -m benchmarks.bench_generators``; link prediction takes minutes.
Needs Cora and Pubmed (see ``nodecopy datasets fetch``). PyG's example replaces most of the loss by as many
random pairs as there are edges; PyG is measured with the loss of Kipf and Welling, over all pairs, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time

import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric import nn as pyg

from benchmarks.measurement import measure_interleaved
from nodecopy import Graph, datasets, to_pyg
from nodecopy.generators import DGLFRMB, GAE, VGAE, Graphite
from nodecopy.generators.autoencoders import GraphAutoencoder
from tests.generators.scoring import score_link_prediction

EPOCHS, FEW_EPOCHS = 200, 3
PUBLISHED: dict[type[GraphAutoencoder], tuple[float, float, int]] = {
    GAE: (91.0, 92.0, 8),
    VGAE: (91.4, 92.6, 8),
    Graphite: (91.5, 93.2, 8),
    DGLFRMB: (91.6, 91.8, 2),
}
"""Published AUC and AP on Cora, and the number of splits to compare them on; DGLFRM-B is slow."""


def main() -> None:
    compare_with_pyg()
    measure_pubmed_memory()
    predict_links_of_cora()


def compare_with_pyg() -> None:
    """Train all with the same number of epochs: 32 hidden units, 16 dimensions, Adam."""
    graph = datasets.load("cora")
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy, all pairs": lambda: VGAE(n_epochs=EPOCHS, sampler="raw").fit(graph, rng=0),
        "PyG, all pairs": _build_pyg_fit(graph, all_pairs=True),
        "nodecopy, sampled pairs": lambda: VGAE(n_epochs=EPOCHS, pairs="sampled").fit(graph, rng=0),
        "PyG, sampled pairs": _build_pyg_fit(graph, all_pairs=False),
    }
    measurements = measure_interleaved(tasks, rounds=3)
    all_pairs, _, sampled, _ = measurements.values()
    print(f"VGAE on Cora, {EPOCHS} epochs, {torch.get_num_threads()} threads; ours / this")
    for name, measurement in measurements.items():
        seconds = measurement.milliseconds / 1e3
        ratios = [ours.milliseconds / measurement.milliseconds for ours in (all_pairs, sampled)]
        columns = f"{seconds:>8.2f} s{measurement.megabytes:>8,.0f} MB"
        print(f"{name:<24}{columns}   all pairs {ratios[0]:.2f}, sampled {ratios[1]:.2f}")


def measure_pubmed_memory() -> None:
    graph = datasets.load("pubmed")
    tasks = {"Pubmed": lambda: VGAE(n_epochs=FEW_EPOCHS).fit(graph, rng=0).sample(rng=0)}
    (measurement,) = measure_interleaved(tasks, rounds=1).values()
    print(
        f"\nVGAE on Pubmed, {FEW_EPOCHS} epochs, calibration and a sample: "
        f"{measurement.megabytes:,.0f} MB above the graph"
    )


def predict_links_of_cora() -> None:
    cora = datasets.load("cora")
    heads = f"{'splits':>8}{'AUC':>8}{'AP':>8}{'published':>16}{'CPU s per fit':>14}"
    print(f"\nLink prediction on Cora\n{'':<12}{heads}")
    for kind, (auc, precision, n_splits) in PUBLISHED.items():
        start = process_time()
        scores = score_link_prediction(partial(kind, sampler="raw"), cora, n_splits)
        seconds = (process_time() - start) / n_splits
        numbers = f"{n_splits:>8}{scores[0]:>8.1f}{scores[1]:>8.1f}{auc:>10.1f}{precision:>6.1f}"
        print(f"{kind.__name__:<12}{numbers}{seconds:>14.1f}", flush=True)


class _Encoder(torch.nn.Module):
    """The encoder of PyG's example."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.first = pyg.GCNConv(n_features, 32, cached=True)
        self.mean, self.log_s = (pyg.GCNConv(32, 16, cached=True) for _ in range(2))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.first(x, edges).relu()
        return self.mean(x, edges), self.log_s(x, edges)


def _build_pyg_fit(graph: Graph, *, all_pairs: bool) -> Callable[[], object]:
    data, n_nodes = to_pyg(graph), graph.n_nodes
    ones = data.edge_index.shape[1]
    targets = torch.eye(n_nodes)
    targets[data.edge_index[0], data.edge_index[1]] = 1
    weight = torch.tensor((n_nodes**2 - ones) / ones)

    def fit() -> object:
        model = pyg.VGAE(_Encoder(data.x.shape[1]))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        model.train()
        for _ in range(EPOCHS):
            optimiser.zero_grad()
            z = model.encode(data.x, data.edge_index)
            if all_pairs:
                loss = binary_cross_entropy_with_logits(z @ z.T, targets, pos_weight=weight)
            else:
                loss = model.recon_loss(z, data.edge_index)
            (loss + model.kl_loss() / n_nodes).backward()
            optimiser.step()
        return model

    return fit


if __name__ == "__main__":
    main()

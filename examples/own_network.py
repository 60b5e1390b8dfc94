"""
Attack and correct your own network
===================================

Any trained ``torch.nn.Module`` with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_weight)`` can
be attacked and defended. Here it is a network of PyTorch Geometric, trained in a plain loop.
"""

# %%
# A network and its training
# --------------------------
# A GCN with batch normalisation and dropout is trained on 20 digits of each class.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import GCNConv

from nodecopy import datasets, to_pyg
from nodecopy.attacks import FGA
from nodecopy.classify import ModuleClassifier
from nodecopy.defend import CopyingDefence


class Network(torch.nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(n_features)
        self.first, self.second = GCNConv(n_features, 32), GCNConv(32, n_classes)

    def forward(self, x, edge_index, edge_weight=None):
        hidden = self.first(self.norm(x), edge_index, edge_weight).relu()
        hidden = functional.dropout(hidden, 0.5, self.training)
        return self.second(hidden, edge_index, edge_weight)


digits = datasets.load("digits")
split = datasets.label_split(digits.labels, 20, validation=0, test=1000, rng=0)
data, train = to_pyg(digits), torch.from_numpy(split.train)

torch.manual_seed(0)
network = Network(data.num_features, 10)
optimiser = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(100):
    optimiser.zero_grad()
    loss = functional.cross_entropy(network(data.x, data.edge_index)[train], data.y[train])
    loss.backward()
    optimiser.step()

# %%
# :class:`.ModuleClassifier` wraps the network as a classifier, which predicts on any graph.

classifier = ModuleClassifier(network).fit(digits, split.train)
print("accuracy on the other digits:", round(classifier.score(), 3))

# %%
# Two attacks
# -----------
# :class:`.FGA` trains its own GCN, like an attacker who does not know the network. With
# ``surrogate=network``, it uses the gradient of the network itself with respect to the edges. Each target has
# as many flips as edges.

is_correct = classifier.predict() == digits.labels
targets = np.array([node for node in split.test if is_correct[node]][:15])
attacks = {
    "unknown network": FGA().attack(digits, targets, budget="degree", train=split.train, rng=0),
    "known network": FGA(surrogate=network).attack(digits, targets, budget="degree", rng=0),
}

# %%
# The correction
# --------------
# The network is not retrained. :class:`.CopyingDefence` evaluates it with the neighbourhoods of similar
# digits in place of the targets' own.

accuracies = {"before": [], "attacked": [], "corrected": []}
for perturbation in attacks.values():
    attacked = perturbation.apply(digits)
    defence = CopyingDefence().from_classifier(network, attacked, targets=targets)
    predictions = classifier.predict(), defence.undefended(), defence.predict()
    for values, predicted in zip(accuracies.values(), predictions, strict=True):
        values.append((predicted == digits.labels)[targets].mean())

figure, axes = plt.subplots(layout="constrained")
for shift, ((name, values), colour) in enumerate(zip(accuracies.items(), ("0.7", "C3", "C2"), strict=True)):
    print(f"{name:10}", *(f"{value:.2f}" for value in values))
    bars = axes.bar(np.arange(2) + 0.27 * shift, values, 0.25, color=colour, label=name)
    axes.bar_label(bars, fmt="%.2f")
axes.set_xticks(np.arange(2) + 0.27, attacks)
axes.set(ylabel="accuracy at the targets", ylim=(0, 1.45), yticks=[])
axes.legend(ncols=3, fontsize="small")

"""
Attack and defence
==================

A few flipped edges can change the prediction of a graph neural network for a node. If a node may have been
attacked, its own edges are unreliable, and the neighbourhoods of similar nodes can replace them.
"""

# %%
# An attack
# ---------
# Nettack flips edges of five correctly classified digits, until its surrogate model misclassifies them.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets
from nodecopy.attacks import Nettack
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.report import draw_attacked_node

digits = datasets.load("digits")
split = datasets.label_split(digits.labels, 5, validation=0, test=1000, rng=0)
clean = GCN().fit(digits, split.train, rng=0)
is_correct = (clean.predict() == digits.labels) & (digits.degrees <= 8)
targets = split.test[is_correct[split.test]][:5]

perturbation = Nettack().attack(digits, targets, train=split.train, rng=0)
print(perturbation)
attacked = perturbation.apply(digits)

# %%
# The defence
# -----------
# :class:`.CopyingDefence` is trained on the attacked graph like any classifier. For the targets, ``predict``
# uses the neighbourhoods of similar nodes; ``undefended`` returns the predictions without the defence.

defence = CopyingDefence().fit(attacked, split.train, targets=targets, rng=0)
true, wrong, corrected = digits.labels[targets], defence.undefended()[targets], defence.predict()[targets]
print("true      ", true)
print("attacked  ", wrong)
print("corrected ", corrected)

# %%
# One target, before and after the attack
# ---------------------------------------

target = targets[np.argmax((wrong != true) & (corrected == true))]
before = set(digits.adjacency[[target]].indices.tolist())
after = attacked.adjacency[[target]].indices.tolist()
copied = np.unique(attacked.adjacency[defence.nearest_donors([target])[0][:3]].indices)
neighbours = {
    "before": [(node, "own") for node in sorted(before)],
    "attacked": [(node, "own" if node in before else "added") for node in after],
    "corrected": [(node, "copied") for node in copied.tolist() if node != target],
}
probabilities = {
    "before": clean.predict_proba()[target],
    "attacked": defence.undefended_proba()[target],
    "corrected": defence.predict_proba()[target],
}
figure, axes = plt.subplots(2, 3, figsize=(9, 6), height_ratios=[3, 2], layout="constrained")
names = [str(name) for name in defence.classes_]
images = np.asarray(digits.features).reshape(-1, 8, 8)
draw_attacked_node(target, neighbours, probabilities, digits.labels, names, images=images, axes=axes)

# %%
# Detecting attacked nodes
# ------------------------
# If the attacked nodes are unknown, rank all nodes by their suspicion score. :class:`.SuspectCorrection`
# corrects the most suspicious nodes; the accuracy on validation nodes determines how many.

suspicion = defence.score_suspicion()
rank = (-suspicion).argsort().argsort()
print("ranks of the targets among", digits.n_nodes, "nodes:", np.sort(rank[targets] + 1))

"""
Attack and defence
==================

A few flipped edges make a graph neural network say what an attacker wants. Where a node may have been
attacked, its own neighbours cannot be trusted; those of similar nodes can.
"""

# %%
# An attack
# ---------
# Five digits that a GCN classifies well; Nettack flips edges at them until its surrogate is fooled.

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
right = (clean.predict() == digits.labels) & (digits.degrees <= 8)
victims = split.test[right[split.test]][:5]

flips = Nettack().attack(digits, victims, train=split.train, rng=0)
print(flips)
attacked = flips.apply(digits)

# %%
# The defence
# -----------
# :class:`.CopyingDefence` is trained on the attacked graph like any classifier. ``predict`` says what the
# classifier says; ``correct`` what it says with the neighbourhoods of similar nodes.

defence = CopyingDefence().fit(attacked, split.train, rng=0)
corrected = defence.classes_[defence.correct(victims).argmax(axis=1)]
print("true      ", digits.labels[victims])
print("attacked  ", defence.predict()[victims])
print("corrected ", corrected)

# %%
# One victim, before and after
# ----------------------------

victim = victims[np.argmax(corrected == digits.labels[victims])]
own = set(digits.adjacency[[victim]].indices.tolist())
now = attacked.adjacency[[victim]].indices.tolist()
copied = np.unique(attacked.adjacency[defence.nearest_donors([victim])[0][:3]].indices)
neighbours = {
    "before": [(node, "own") for node in sorted(own)],
    "attacked": [(node, "own" if node in own else "added") for node in now],
    "with copied neighbours": [(node, "copied") for node in copied.tolist() if node != victim],
}
probabilities = {
    "before": clean.predict_proba()[victim],
    "attacked": defence.predict_proba()[victim],
    "with copied neighbours": defence.correct([victim])[0],
}
figure, axes = plt.subplots(2, 3, figsize=(11, 6), height_ratios=[3, 2], layout="constrained")
names = [str(name) for name in defence.classes_]
images = np.asarray(digits.features).reshape(-1, 8, 8)
draw_attacked_node(victim, neighbours, probabilities, digits.labels, names, images=images, axes=axes)

# %%
# Nobody told which nodes were attacked?
# --------------------------------------
# Every node has a suspicion; victims should rank high. See :class:`.SuspectCorrection`, which corrects those
# that validation nodes can bear.

suspicion = defence.suspects()
rank = (-suspicion).argsort().argsort()
print("ranks of the victims among", digits.n_nodes, "nodes:", np.sort(rank[victims] + 1))

"""
Knowing where one errs
======================

Sampled graphs and sampled weights give many predictions for every node. How much they disagree is the
*epistemic* uncertainty; what stays within each of them is the *aleatoric* one. Together they are the total.
"""

# %%
# Does uncertainty find the errors?
# ---------------------------------
# Order nodes from the most to the least certain: the accuracy among the first ones should be high.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets
from nodecopy.classify import GCN, BayesianGCN, Trial
from nodecopy.report import draw_accuracy_by_certainty

digits = datasets.load("digits")
splits = [datasets.label_split(digits.labels, 1, validation=0, test=1500, rng=seed) for seed in range(4)]
trials = [Trial(digits, split.train, None, seed) for seed, split in enumerate(splits)]

curves = {}
for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=5)}.items():
    found = list(zip(classifier.fit_trials(trials), (split.test for split in splits), strict=True))
    right = [(p.probabilities.argmax(axis=1) == digits.labels)[test] for p, test in found]
    unsure = [p.uncertainty().total[test] for p, test in found]
    curves[name] = np.concatenate(right), np.concatenate(unsure)
    print(f"{name:13} accuracy {curves[name][0].mean():.3f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
draw_accuracy_by_certainty(curves, axes=axes)

# %%
# The most uncertain digits
# -------------------------
# What to label next? Those on which the samples disagree most.

test = splits[0].test
classifier.fit(digits, splits[0].train, rng=0)
unsure = classifier.uncertainty()
worst = test[np.argsort(-unsure.epistemic[test])][:10]
figure, axes = plt.subplots(1, 10, figsize=(11, 1.7), layout="constrained")
for panel, node in zip(axes, worst, strict=True):
    panel.imshow(digits.features[node].reshape(8, 8), cmap="Greys")
    panel.set_title(f"{classifier.predict()[node]}?\nis {digits.labels[node]}", fontsize="small")
    panel.set_axis_off()

# %%
# As a table
# ----------

table = classifier.to_pandas().iloc[worst]
print(table.filter(regex="predicted|uncertainty").round(2).to_string())

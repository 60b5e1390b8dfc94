"""
Uncertainty
===========

Sampled graphs and sampled weights give many predictions for every node. Their disagreement is the *epistemic*
uncertainty, the mean uncertainty of the single predictions the *aleatoric* one. The total uncertainty is the
sum of both.
"""

# %%
# Accuracy by certainty
# ---------------------
# Nodes are sorted from the most to the least certain. The accuracy should be high among the first.

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
    pairs = list(zip(classifier.fit_trials(trials), (split.test for split in splits), strict=True))
    is_correct = [(p.probabilities.argmax(axis=1) == digits.labels)[test] for p, test in pairs]
    uncertainties = [p.uncertainty().total[test] for p, test in pairs]
    curves[name] = np.concatenate(is_correct), np.concatenate(uncertainties)
    print(f"{name:13} accuracy {curves[name][0].mean():.3f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
draw_accuracy_by_certainty(curves, axes=axes)

# %%
# The most uncertain digits
# -------------------------
# The nodes with the largest epistemic uncertainty are candidates for labelling (active learning).

test = splits[0].test
classifier.fit(digits, splits[0].train, rng=0)
uncertainty = classifier.uncertainty()
most_uncertain = test[np.argsort(-uncertainty.epistemic[test])][:10]
figure, axes = plt.subplots(1, 10, figsize=(11, 1.7), layout="constrained")
for panel, node in zip(axes, most_uncertain, strict=True):
    panel.imshow(digits.features[node].reshape(8, 8), cmap="Greys")
    panel.set_title(f"{classifier.predict()[node]}?\ntrue {digits.labels[node]}", fontsize="small")
    panel.set_axis_off()

# %%
# As a table
# ----------

table = classifier.to_pandas().iloc[most_uncertain]
print(table.filter(regex="predicted|uncertainty").round(2).to_string())

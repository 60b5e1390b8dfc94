"""
Classification with few labels
==============================

With one label per class a graph neural network leans on every edge near a labelled node. The Bayesian GCN
trains networks on *sampled* graphs and averages them, so no single edge decides.
"""

# %%
# Handwritten digits, each joined with the five nearest
# -----------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets
from nodecopy.classify import GCN, BayesianGCN, Trial
from nodecopy.metrics.classification import scores

digits = datasets.load("digits")
print(digits)

# %%
# Several splits at once
# ----------------------
# A :class:`.Trial` is a problem: a graph, the nodes whose labels may be seen, a seed. Trials are trained side
# by side in one pass.

splits = [datasets.label_split(digits.labels, 1, validation=0, test=1000, rng=seed) for seed in range(6)]
trials = [Trial(digits, split.train, None, seed) for seed, split in enumerate(splits)]

found = {}
for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=5)}.items():
    predictions = classifier.fit_trials(trials)
    found[name] = [
        scores(prediction.probabilities, digits.labels, split.test)
        for prediction, split in zip(predictions, splits, strict=True)
    ]
    mean = {key: np.mean([one[key] for one in found[name]]) for key in ("accuracy", "nll", "ece")}
    print(f"{name:13}", "   ".join(f"{key} {value:.3f}" for key, value in mean.items()))

# %%
# Better in which splits?
# -----------------------

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
pairs = np.array([[one["accuracy"] for one in each] for each in found.values()])
axes.plot(pairs, "o-", color="#5e81ac")
axes.set_xticks([0, 1], list(found))
axes.set_xlim(-0.4, 1.4)
axes.set_ylabel("accuracy")
axes.set_title("six splits, one label per class")

# %%
# The paper's settings, 50 splits and three citation graphs: see the table of results in the documentation.

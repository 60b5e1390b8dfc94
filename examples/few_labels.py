"""
Classification with few labels
==============================

With one label per class, the predictions of a graph neural network depend strongly on single edges near the
labelled nodes. The Bayesian GCN averages networks that are trained on *sampled* graphs, which reduces this
dependence.
"""

# %%
# A nearest-neighbour graph of handwritten digits
# -----------------------------------------------

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
# A :class:`.Trial` is a graph with training nodes and a seed. All trials are trained together in one pass.

splits = [datasets.label_split(digits.labels, 1, validation=0, test=1000, rng=seed) for seed in range(6)]
trials = [Trial(digits, split.train, None, seed) for seed, split in enumerate(splits)]

results = {}
for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=5)}.items():
    predictions = classifier.fit_trials(trials)
    results[name] = [
        scores(prediction.probabilities, digits.labels, split.test)
        for prediction, split in zip(predictions, splits, strict=True)
    ]
    mean = {key: np.mean([values[key] for values in results[name]]) for key in ("accuracy", "nll", "ece")}
    print(f"{name:13}", "   ".join(f"{key} {value:.3f}" for key, value in mean.items()))

# %%
# Accuracy split by split
# -----------------------

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
pairs = np.array([[values["accuracy"] for values in splits] for splits in results.values()])
axes.plot(pairs, "o-", color="#5e81ac")
axes.set_xticks([0, 1], list(results))
axes.set_xlim(-0.4, 1.4)
axes.set_ylabel("accuracy")
axes.set_title("six splits, one label per class")

# %%
# The tables of results in the documentation have the settings of the paper: 50 splits of three citation
# graphs.

"""
Classification with few labels
==============================

With one label per class, the predictions of a graph neural network depend strongly on single edges near the
labelled nodes. *Node copying* averages networks that are trained on sampled graphs; *self-training* takes
confident predictions as further labels. :doc:`/few_labels` has larger comparisons and recommendations.
"""

# %%
# A nearest-neighbour graph of handwritten digits
# -----------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets
from nodecopy.classify import GCN, BayesianGCN, SelfTraining, Trial
from nodecopy.metrics.classification import scores

digits = datasets.load("digits").subgraph(np.arange(600))
print(digits)

# %%
# Four classifiers
# ----------------
# A GCN, an ensemble of GCNs on sampled graphs, and :class:`.SelfTraining`, a vote of simple classifiers,
# without (``n_rounds=0``) and with pseudo-labels.

classifiers = {
    "GCN": GCN(),
    "copying": BayesianGCN(n_graphs=5),
    "vote": SelfTraining(n_rounds=0),
    "self-training": SelfTraining(),
}

# %%
# Several splits at once
# ----------------------
# A :class:`.Trial` is a graph with training nodes and a seed. ``fit_trials`` trains all trials together.

splits = [datasets.label_split(digits.labels, 1, validation=0, test=500, rng=seed) for seed in range(4)]
trials = [Trial(digits, split.train, None, seed) for seed, split in enumerate(splits)]

results = {}
for name, classifier in classifiers.items():
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

figure, axes = plt.subplots(layout="constrained")
accuracy = np.array([[values["accuracy"] for values in of_method] for of_method in results.values()])
axes.plot(accuracy, "o-", color="#5e81ac", alpha=0.6)
axes.plot(accuracy.mean(axis=1), "k_", markersize=24, label="mean")
axes.set_xticks(range(len(results)), list(results))
axes.set_ylabel("accuracy, 1 label per class")
axes.legend(loc="upper left")

# %%
# Pseudo-labels
# -------------
# The most confident predictions become pseudo-labels, and the vote is trained again. This is their number in
# each class in the last round:

print(predictions[0].details["pseudo_labels"])

# %%
# Four splits of a small graph illustrate the methods, but are too few to compare them.

"""
Classification with few labels
==============================

With one label per class, the predictions of a graph neural network depend strongly on single edges near the
labelled nodes. Two remedies are compared here, and both together: *node copying* averages networks that are
trained on sampled graphs, and *self-training* takes confident predictions as further labels. What to pick is
said in :doc:`/few_labels`, by larger tables.
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
# Networks, sampled graphs, and a vote
# ------------------------------------
# A GCN, an ensemble of GCNs on sampled graphs, the vote of :class:`.SelfTraining` without pseudo-labels
# (``n_rounds=0``), and with them.

classifiers = {
    "GCN": GCN(),
    "copying": BayesianGCN(n_graphs=5),
    "vote": SelfTraining(n_rounds=0),
    "self-training": SelfTraining(),
}

# %%
# Several splits at once
# ----------------------
# A :class:`.Trial` is a graph with training nodes and a seed. All trials are trained together in one pass.

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

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
accuracy = np.array([[values["accuracy"] for values in of_method] for of_method in results.values()])
axes.plot(accuracy, "o-", color="#5e81ac", alpha=0.6)
axes.plot(accuracy.mean(axis=1), "k_", markersize=24, label="mean")
axes.set_xticks(range(len(results)), list(results))
axes.set_ylabel("accuracy")
axes.set_title("four splits, one label per class")
axes.legend()

# %%
# What self-training did
# ----------------------
# The base predicts, its most confident predictions become pseudo-labels, and it is trained again. The details
# of a prediction say how many nodes of each class have a pseudo-label in the last round.

print(predictions[0].details["pseudo_labels"])

# %%
# Four splits of a small graph are an illustration, and too few to compare methods. The results tables have 50
# splits of five graphs.

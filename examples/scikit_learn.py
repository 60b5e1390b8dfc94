"""
Tables with few labels, in scikit-learn
=======================================

:class:`.GraphClassifier` is an estimator of scikit-learn for tables of which few rows have labels. It
standardises the columns, joins each row with its nearest neighbours, and trains a graph neural network on the
labelled rows of that graph.
"""

# %%
# Unlabelled rows are marked by -1
# --------------------------------
# as in ``sklearn.semi_supervised``; among strings by the empty string or ``None``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from nodecopy.classify import APPNP, GraphClassifier

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)


def keep_labels(y, per_class):
    few = np.full(len(y), -1)
    for digit in range(10):
        chosen = rng.choice(np.flatnonzero(y == digit), per_class, replace=False)
        few[chosen] = digit
    return few


few = keep_labels(y, per_class=5)
model = GraphClassifier(random_state=0).fit(X[:1500], few[:1500])
print("fitted rows:", round((model.transduction_ == y[:1500])[few[:1500] == -1].mean(), 3))
print("new rows:   ", round(model.score(X[1500:], y[1500:]), 3))

# %%
# New rows are connected to their nearest fitted rows, and the trained network predicts on the larger graph. A
# row that was fitted gets the same prediction as in ``transduction_``.

print("uncertainty of new rows, in nats:", model.uncertainty(X[1500:]).total[:5].round(2))

# %%
# Compared with simpler methods
# -----------------------------
# ``LogisticRegression`` learns from the labelled rows alone; ``LabelSpreading`` uses nearest neighbours. Raw
# columns are better than standardised ones here, since all pixels have the same unit: choose the scaling by
# what the columns are. Over ten splits with 1, 5 and 20 labels per class, the accuracy of label spreading on
# raw columns is 68.3, 91.7 and 96.5 %, that of ``GraphClassifier`` 73.2, 91.8 and 96.4 % by default and 78.5,
# 93.5 and 97.3 % on raw columns. Label spreading is about thirty times faster.

scaled = StandardScaler().fit_transform(X)
names = [
    "logistic regression",
    "label spreading, standardised",
    "label spreading, raw",
    "GraphClassifier, standardised",
    "GraphClassifier, raw",
]
sizes = [1, 5, 20]
accuracies = np.zeros((len(names), len(sizes)))
for column, per_class in enumerate(sizes):
    few = keep_labels(y, per_class)
    is_labelled = few != -1
    predictions = [
        LogisticRegression(max_iter=1000).fit(scaled[is_labelled], y[is_labelled]).predict(scaled),
        LabelSpreading(kernel="knn", n_neighbors=10).fit(scaled, few).transduction_,
        LabelSpreading(kernel="knn", n_neighbors=10).fit(X, few).transduction_,
        GraphClassifier(random_state=0).fit(X, few).transduction_,
        GraphClassifier(scale="none", random_state=0).fit(X / 16, few).transduction_,
    ]
    accuracies[:, column] = [(predicted == y)[~is_labelled].mean() for predicted in predictions]

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, row in zip(names, accuracies, strict=True):
    axes.plot(sizes, row, "o-", label=name)
axes.set_xscale("log")
axes.set_xticks(sizes, sizes)
axes.set_xlabel("labels per class")
axes.set_ylabel("accuracy on unlabelled rows, one split")
axes.legend(frameon=False)

# %%
# Pipelines, cross-validation and grid searches
# ---------------------------------------------
# ``score`` leaves unlabelled rows out, so that cross-validation needs the few labels only. Parameters of the
# network are those of ``classifier``.

X, few = X[:600], keep_labels(y[:600], per_class=10)
pipeline = make_pipeline(
    StandardScaler(), GraphClassifier(APPNP(n_epochs=50, features="none"), scale="none", random_state=0)
)
print("cross-validation:", cross_val_score(pipeline, X, few, cv=3).round(2))
grid = {"graphclassifier__n_neighbours": [5, 20], "graphclassifier__classifier__teleport": [0.05, 0.2]}
search = GridSearchCV(pipeline, grid, cv=3).fit(X, few)
print("best of the grid:", search.best_params_, round(search.best_score_, 3))

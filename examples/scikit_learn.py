"""
Tables with few labels, in scikit-learn
=======================================

:class:`.GraphClassifier` is an estimator of scikit-learn for tables in which few rows have labels. It
standardises the columns, connects each row to its nearest neighbours, and trains a graph neural network on
the labelled rows.
"""

# %%
# Fitting
# -------
# Unlabelled rows have the label -1, as in ``sklearn.semi_supervised``; among strings, the empty string or
# ``None``.

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
# New rows are connected to their nearest fitted rows, and the network predicts on the larger graph.

print("uncertainty of new rows, in nats:", model.uncertainty(X[1500:]).total[:5].round(2))

# %%
# Comparison with simpler methods
# -------------------------------
# ``LogisticRegression`` uses the labelled rows only; ``LabelSpreading`` uses nearest neighbours and is about
# thirty times faster. All pixels have the same unit, so the columns are not standardised here. Over ten
# splits with 1, 5 and 20 labels per class, the accuracy is 68.3, 91.7 and 96.5 % for label spreading and
# 78.5, 93.5 and 97.3 % for ``GraphClassifier`` (by default, with standardised columns, 73.2, 91.8 and 96.4
# %).

scaled = X / 16
methods = {
    "GraphClassifier": GraphClassifier(scale="none", random_state=0),
    "label spreading": LabelSpreading(kernel="knn", n_neighbors=10),
    "logistic regression": LogisticRegression(max_iter=1000),
}
sizes = [1, 5, 20]
accuracies = {name: [] for name in methods}
for per_class in sizes:
    few = keep_labels(y, per_class)
    rows = few != -1
    for name, method in methods.items():
        if name == "logistic regression":
            predicted = method.fit(scaled[rows], y[rows]).predict(scaled)
        else:
            predicted = method.fit(scaled, few).transduction_
        accuracies[name].append((predicted == y)[~rows].mean())

figure, axes = plt.subplots(layout="constrained")
for name, values in accuracies.items():
    axes.plot(sizes, values, "o-", label=name)
axes.set(xscale="log", xlabel="labels per class", ylabel="accuracy, one split")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(frameon=False)

# %%
# Pipelines, cross-validation and grid searches
# ---------------------------------------------
# ``score`` ignores unlabelled rows, so cross-validation needs few labels. The parameters of the network
# belong to ``classifier``.

X, few = X[:600], keep_labels(y[:600], per_class=10)
pipeline = make_pipeline(
    StandardScaler(), GraphClassifier(APPNP(n_epochs=50, features="none"), scale="none", random_state=0)
)
print("cross-validation:", cross_val_score(pipeline, X, few, cv=3).round(2))
grid = {"graphclassifier__n_neighbours": [5, 20], "graphclassifier__classifier__teleport": [0.05, 0.2]}
search = GridSearchCV(pipeline, grid, cv=3).fit(X, few)
print("best of the grid:", search.best_params_, round(search.best_score_, 3))

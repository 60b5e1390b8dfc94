"""
Uncertainty
===========

Sampled graphs and sampled weights give many predictions for every node. Their disagreement is the *epistemic*
uncertainty; the mean uncertainty of single predictions is the *aleatoric* uncertainty. The total is the sum
of both.
"""

# %%
# Selective accuracy
# ------------------
# The selective accuracy is the accuracy without the most uncertain nodes. It rises if the errors are among
# these.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets
from nodecopy.classify import GCN, SGC, BayesianGCN, SelfTraining, Trial
from nodecopy.metrics.classification import (
    area_under_roc,
    expected_calibration_error,
    reliability_curve,
    selective_accuracy,
)
from nodecopy.report import draw_accuracy_by_certainty

digits = datasets.load("digits").subgraph(np.arange(800))
splits = [datasets.label_split(digits.labels, 1, validation=0, test=700, rng=seed) for seed in range(2)]
trials = [Trial(digits, split.train, None, seed) for seed, split in enumerate(splits)]
classifiers = {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=5), "self-training": SelfTraining()}

curves = {}
print("left out           0 %  10 %  20 %  50 %")
for name, classifier in classifiers.items():
    pairs = list(zip(classifier.fit_trials(trials), (split.test for split in splits), strict=True))
    is_correct = np.concatenate(
        [(p.probabilities.argmax(axis=1) == digits.labels)[test] for p, test in pairs]
    )
    uncertainty = np.concatenate([p.uncertainty().total[test] for p, test in pairs])
    curves[name] = is_correct, uncertainty
    accuracies = selective_accuracy(is_correct, uncertainty, [0, 0.1, 0.2, 0.5])
    print(f"{name:15}", " ".join(f"{accuracy:.3f}" for accuracy in accuracies))

figure, axes = plt.subplots(layout="constrained")
draw_accuracy_by_certainty(curves, axes=axes)

# %%
# Calibrated probabilities
# ------------------------
# Classifiers may be over-confident or, like :class:`.SGC` here, under-confident. ``calibrate`` fits a
# temperature to the validation nodes; below 1, it raises the confidence. The predicted classes stay the same.

split = datasets.label_split(digits.labels, 5, validation=200, test=500, rng=0)
classifier = SGC().fit(digits, split.train, validation=split.validation, rng=0)
probabilities = {"as predicted": classifier.predict_proba()}
probabilities["calibrated"] = classifier.calibrate().predict_proba()

figure, axes = plt.subplots(layout="constrained")
for name, p in probabilities.items():
    error = expected_calibration_error(p, digits.labels, split.test)
    confidence, accuracy, _ = reliability_curve(p, digits.labels, split.test, n_bins=8)
    axes.plot(confidence, accuracy, "o-", label=f"{name}, error {error:.2f}")
axes.plot([0, 1], [0, 1], ":", color="grey")
axes.set_xlabel("confidence")
axes.set_ylabel("accuracy")
axes.legend()
print(f"temperature {classifier.temperature_:.2f}")

# %%
# A class without labels
# ----------------------
# Without labelled nines, every nine gets a wrong class. Is its uncertainty higher? The area under the ROC
# curve is the probability that a nine is more uncertain than another digit. Here, the single GCN has the
# largest area, so a more accurate classifier does not always detect an unknown class better.

labels = np.where(digits.labels == 9, -1, digits.labels)
train = split.train[labels[split.train] >= 0]
for name, classifier in classifiers.items():
    total = classifier.fit(digits.replace(labels=labels), train, rng=0).uncertainty().total
    print(f"{name:13}", round(area_under_roc(total[split.test], digits.labels[split.test] == 9), 2))

# %%
# The most uncertain digits
# -------------------------
# The nodes with the largest epistemic uncertainty are candidates for labelling (active learning).
# ``to_pandas`` lists the predictions.

test = splits[0].test
classifier = SelfTraining().fit(digits, splits[0].train, rng=0)
uncertainty = classifier.uncertainty()
most_uncertain = test[np.argsort(-uncertainty.epistemic[test])][:6]
figure, axes = plt.subplots(1, 6, figsize=(8, 2.2), layout="constrained")
for panel, node in zip(axes, most_uncertain, strict=True):
    panel.imshow(digits.features[node].reshape(8, 8), cmap="Greys")
    panel.set_title(f"{classifier.predict()[node]}?\ntrue {digits.labels[node]}")
    panel.set_axis_off()

table = classifier.to_pandas().iloc[most_uncertain]
print(table.filter(regex="predicted|uncertainty").round(2).to_string())

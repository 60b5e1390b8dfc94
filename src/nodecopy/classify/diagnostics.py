"""Signs that a classifier has not learned from its training nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nodecopy._core.hints import Hint
from nodecopy._core.notices import warn_about_data
from nodecopy.classify.ensemble import Prediction

MAX_EXCESS = 0.1
"""Probabilities are nearly uniform where the largest is at most this share above 1 / n_classes."""
MAX_DECISIVE_SHARE = 0.05
"""Share of nodes above which predictions that are not nearly uniform show that something was learned."""
ADVICE = (
    "Check that measurements are standardised, that training lasts long enough, and that the labels belong "
    "to the nodes."
)
HINT = Hint("Try {}.", features="standardise", n_epochs=int)


def warn_if_not_learned(prediction: Prediction, classes: Sequence[Any]) -> None:
    """Warn if all nodes have the same predicted class, or nearly all have nearly uniform probabilities.

    A GCN on Cora, CiteSeer or PubMed with a single label per class is far from both: after its 200 epochs the
    largest probability of the median node is 50 % to 100 % above uniform, after five epochs 2 % to 3 %.
    """
    largest = prediction.probabilities.max(axis=1)
    n_classes = len(classes)
    predicted = np.unique(prediction.probabilities.argmax(axis=1))
    is_decisive = largest * n_classes - 1 > MAX_EXCESS
    if is_decisive.mean() <= MAX_DECISIVE_SHARE:
        sign = f"the probabilities of {1 - is_decisive.mean():.0%} of the nodes are nearly uniform"
    elif len(predicted) == 1:
        name = classes[predicted[0]]
        sign = f"all {len(largest)} nodes are predicted to be of class {name}, one of {n_classes}"
    else:
        return
    warn_about_data(f"the classifier has learned almost nothing: {sign}. {ADVICE}", HINT)

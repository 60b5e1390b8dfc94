"""Signs that a classifier has not learned from its training nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.hints import Hint, name_parameter
from nodecopy._core.notices import warn_about_data
from nodecopy.classify.ensemble import Prediction
from nodecopy.metrics import TemperatureScaling

MAX_EXCESS = 0.2
"""Probabilities are nearly uniform where the largest is at most this share above 1 / n_classes."""
MIN_UNIFORM_SHARE = 0.8
"""Share of nodes with nearly uniform probabilities from which on nothing was learned."""
ADVICE = (
    "Check that measurements are standardised, that training lasts long enough, and that the labels belong "
    "to the nodes."
)
SETTINGS = {"features": "standardise", "n_epochs": int}
"""Parameters to try, of classifiers that have them."""
ADVICE_WITHOUT_FEATURES = (
    "Check that most edges connect nodes of the same class, and that the labels belong to the nodes."
)


def warn_if_not_learned(
    prediction: Prediction,
    classes: Sequence[Any],
    *,
    needs_features: bool = True,
    parameters: Collection[str] = tuple(SETTINGS),
    owner: str = "",
) -> None:
    """Warn if all nodes have the same predicted class, or 80 % have nearly uniform probabilities.

    The advice is about features and training only for classifiers that need features, and names only
    ``parameters`` that can be set. If they are not those of the classifier, ``owner`` says whose they are.

    A GCN on Cora, Citeseer or Pubmed with a single label per class is far from both: after its 200 epochs the
    largest probability of the median node is 55 % to 111 % above uniform, after five epochs 1 % to 3 %. On
    measurements of different units that are scaled by rows it is about 10 %.
    """
    largest = prediction.probabilities.max(axis=1)
    n_classes = len(classes)
    predicted = np.unique(prediction.probabilities.argmax(axis=1))
    is_uniform = largest * n_classes - 1 <= MAX_EXCESS
    if is_uniform.mean() >= MIN_UNIFORM_SHARE:
        sign = (
            f"the largest probability of {is_uniform.mean():.0%} of the nodes is at most "
            f"{(1 + MAX_EXCESS) / n_classes:.2f}, and {1 / n_classes:.2f} would be uniform"
        )
    elif len(predicted) == 1:
        name = classes[predicted[0]]
        sign = f"all {len(largest)} nodes are predicted to be of class {name}, one of {n_classes}"
    else:
        return
    advice = ADVICE if needs_features else ADVICE_WITHOUT_FEATURES
    settings = {name: value for name, value in SETTINGS.items() if needs_features and name in parameters}
    call = " or ".join(name_parameter(*setting) for setting in settings.items()) + f" of {owner}"
    hints = [Hint("Try {}.", call if owner else "", **settings)] if settings else []
    warn_about_data(f"the classifier has learned almost nothing: {sign}. {advice}", *hints)


def warn_if_not_calibrated(
    scaling: TemperatureScaling, probabilities: NDArray[np.float32], codes: NDArray[np.int64]
) -> None:
    """Warn if the labelled nodes do not determine the temperature that was fitted to them."""
    n, n_right = len(codes), int((probabilities.argmax(axis=1) == codes).sum())
    if n_right in (0, n):
        reason = f"{'all' if n_right else 'none'} of the {n} nodes are predicted correctly"
    elif scaling.is_at_bound:
        reason = f"it is at the bound of what is allowed ({n_right} of {n} nodes are predicted correctly)"
    else:
        return
    warn_about_data(
        f"the temperature {scaling.temperature:.3g} does not calibrate the probabilities: {reason}. "
        "Calibrate by more labelled nodes, some of which are misclassified; dozens are needed."
    )

"""Figures of predictions and their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import check_mapping, type_name
from nodecopy.errors import InputError
from nodecopy.metrics.classification import selective_accuracy
from nodecopy.report.graph_plots import check_axes, create_axes

COLOURS = ("#3b4252", "#d08770", "#5e81ac", "#a3be8c")
MIN_PERCENT = 5
"""Where certainty curves start: the accuracy of fewer nodes varies too much to be read."""


def draw_accuracy_by_certainty(
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike]], *, axes: Any = None
) -> Any:
    """Draw the accuracy among the most certain nodes against their share of all nodes.

    The curve of a classifier whose uncertainty points at its errors falls to the right.

    Parameters
    ----------
    predictions
        For each classifier: whether each prediction is correct, and its uncertainty.
    axes
        Matplotlib axes to draw on. By default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> axes = draw_accuracy_by_certainty({"a coin": ([True, False], [0.1, 0.2])})
    >>> axes.get_ylabel()
    'accuracy among them (%)'
    """
    check_mapping(predictions, "predictions", "a dictionary of pairs of arrays")
    for pair in predictions.values():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(f"predictions must hold pairs of arrays; got {type_name(pair)}.")
    if axes is None:
        axes = create_axes((6, 4.5), "drawing accuracy")
    (axes,) = check_axes(axes, (1,))
    for number, (name, (correct, uncertainty)) in enumerate(predictions.items()):
        share, accuracy = certainty_curve(correct, uncertainty)
        axes.plot(100 * share, 100 * accuracy, label=name, color=COLOURS[number % len(COLOURS)])
    axes.set_xlabel("most certain nodes (%)")
    axes.set_ylabel("accuracy among them (%)")
    axes.set_xlim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend()
    return axes


def certainty_curve(
    correct: ArrayLike, uncertainty: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares 5 %, 6 %, ... 100 % of the nodes and the accuracy among the most certain ones.

    The accuracies are those of :func:`~nodecopy.metrics.classification.selective_accuracy`.

    Parameters
    ----------
    correct
        Whether each prediction is correct.
    uncertainty
        Uncertainty of each prediction; of nodes that tie, the expected accuracy counts.

    Examples
    --------
    >>> _, accuracy = certainty_curve([True, False, True, True], [0.1, 0.9, 0.2, 0.3])
    >>> float(accuracy[50]), float(accuracy[-1])
    (1.0, 0.75)
    """
    share = np.arange(MIN_PERCENT, 101) / 100
    return share, selective_accuracy(correct, uncertainty, 1 - share)

"""Pictures of what classifiers found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import check_vector
from nodecopy.errors import InputError
from nodecopy.report.pictures import new_axes

COLOURS = ("#3b4252", "#d08770", "#5e81ac", "#a3be8c")


def accuracy_by_certainty(found: Mapping[str, tuple[ArrayLike, ArrayLike]], *, axes: Any = None) -> Any:
    """Draw the accuracy among the most certain nodes against their share of all nodes.

    A curve that falls to the right is that of a classifier that knows where it errs.

    Parameters
    ----------
    found
        For each classifier: whether each prediction is right, and how uncertain it is.
    axes
        Where to draw; on a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> axes = accuracy_by_certainty({"a coin": ([True, False], [0.1, 0.2])})
    >>> axes.get_ylabel()
    'accuracy among them (%)'
    """
    if axes is None:
        axes = new_axes((6, 4.5), "drawing accuracy")
    for number, (name, (correct, uncertainty)) in enumerate(found.items()):
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
    """Shares 5 %, 6 %, ... 100 % of the nodes, and the accuracy among that many most certain ones.

    It starts at 5 % since a few nodes make a jagged line.

    >>> _, accuracy = certainty_curve([True, False, True, True], [0.1, 0.9, 0.2, 0.3])
    >>> float(accuracy[50]), float(accuracy[-1])
    (1.0, 0.75)
    """
    right = check_vector(correct, "correct").astype(bool)
    unsure = check_vector(uncertainty, "uncertainty", length=len(right))
    if not len(right):
        raise InputError("correct must hold at least one node; got none.")
    share = np.arange(5, 101) / 100
    taken = np.ceil(share * len(right) - 1e-9).astype(np.int64)
    hits = np.cumsum(right[np.argsort(unsure, kind="stable")])
    return share, hits[taken - 1] / taken

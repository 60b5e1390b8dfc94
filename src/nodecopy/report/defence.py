"""A picture of one attacked node and its correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy.errors import InputError
from nodecopy.report.pictures import KEPT, NEW, new_axes

COPIED = "#5e81ac"
RIGHT, WRONG = "#a3be8c", "#c9ced8"
MOST_SHOWN = 16
"""Neighbours in a panel; a ring of more cannot be read."""


def attacked_node(
    node: int,
    neighbours: Mapping[str, Sequence[tuple[int, str]]],
    probabilities: Mapping[str, ArrayLike],
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    images: NDArray[Any] | None = None,
    axes: Any = None,
) -> Any:
    """Draw a node's neighbourhood and its prediction, in one column for each stage.

    Parameters
    ----------
    node
        The attacked node.
    neighbours
        For each stage, such as "before", the neighbours and how each came to be one: ``"own"``,
        ``"added"`` by the attack or ``"copied"``.
    probabilities
        For the same stages, the probability of every class.
    labels
        The class number of every node.
    class_names
        Of all classes.
    images
        A small picture of every node, to be drawn in its place; by default its class is written.
    axes
        Where to draw: two rows, a column for each stage; on a new figure by default.

    Returns
    -------
    array of matplotlib.axes.Axes, two rows

    Examples
    --------
    >>> around = {"before": [(1, "own")], "attacked": [(1, "own"), (2, "added")]}
    >>> chances = {"before": [0.9, 0.1], "attacked": [0.4, 0.6]}
    >>> attacked_node(0, around, chances, [0, 0, 1], ["cat", "dog"]).shape
    (2, 2)
    """
    if list(neighbours) != list(probabilities):
        raise InputError("neighbours and probabilities must tell of the same stages, in the same order.")
    if axes is None:
        grid: dict[str, Any] = {
            "nrows": 2,
            "ncols": len(neighbours),
            "squeeze": False,
            "height_ratios": [3, 2],
        }
        axes = new_axes((3.6 * len(neighbours), 6), "drawing an attacked node", **grid)
    codes = np.asarray(labels)
    for (title, around), (above, below) in zip(neighbours.items(), np.asarray(axes).T, strict=True):
        above.set_title(title)
        _ring(above, node, around[:MOST_SHOWN], codes, class_names, images)
        if len(around) > MOST_SHOWN:
            above.text(0, -1.45, f"and {len(around) - MOST_SHOWN} more", ha="center", fontsize="small")
        _bars(below, np.asarray(probabilities[title]), int(codes[node]), class_names)
    axes[0][0].figure.supxlabel(
        f"green: the true class, {class_names[int(codes[node])]}; "
        "lines: own (dark), added (orange), copied (blue)",
        fontsize="small",
    )
    return axes


def _ring(
    axes: Any,
    node: int,
    around: Sequence[tuple[int, str]],
    codes: NDArray[Any],
    class_names: Sequence[str],
    images: NDArray[Any] | None,
) -> None:
    angles = np.pi / 2 + 2 * np.pi * np.arange(len(around)) / max(1, len(around))
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    for (_, kind), (x, y) in zip(around, places, strict=True):
        colour = {"own": KEPT, "added": NEW, "copied": COPIED}[kind]
        axes.plot([0, x], [0, y], color=colour, linewidth=1.6, zorder=1)
    for number, place in zip([node, *(one for one, _ in around)], [(0.0, 0.0), *places], strict=True):
        if images is None:
            name = class_names[int(codes[number])]
            axes.text(*place, name, ha="center", va="center", zorder=3, bbox={"fc": "white", "pad": 2})
        else:
            half = 0.2
            x, y = place
            axes.imshow(
                images[number], extent=(x - half, x + half, y - half, y + half), cmap="Greys", zorder=3
            )
    axes.set_xlim(-1.5, 1.5)
    axes.set_ylim(-1.5, 1.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _bars(axes: Any, probabilities: NDArray[Any], true: int, class_names: Sequence[str]) -> None:
    places = np.arange(len(probabilities))
    colours = [RIGHT if place == true else WRONG for place in places]
    axes.bar(places, probabilities, color=colours, edgecolor=KEPT, linewidth=0.6)
    axes.set_xticks(places, list(class_names))
    axes.set_ylim(0, 1)
    axes.set_ylabel("probability")
    axes.spines[["top", "right"]].set_visible(False)

"""Figures of an attacked node and its correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.validation import (
    check_choice,
    check_indices,
    check_integer,
    check_mapping,
    check_numbers,
    check_sequence,
    check_vector,
    show,
)
from nodecopy.errors import InputError
from nodecopy.report.graph_plots import NEW_EDGE, OBSERVED_EDGE, check_axes, create_axes

EDGE_COLOURS = {"own": OBSERVED_EDGE, "added": NEW_EDGE, "copied": "#5e81ac"}
TRUE_CLASS, OTHER_CLASS = "#a3be8c", "#c9ced8"
MAX_NEIGHBOURS = 16
"""Neighbours drawn in a panel, so that their images or class names do not overlap."""


def draw_attacked_node(
    node: int,
    neighbours: Mapping[str, Sequence[tuple[int, str]]],
    probabilities: Mapping[str, ArrayLike],
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    images: NDArray[Any] | None = None,
    axes: Any = None,
) -> Any:
    """Draw a node's neighbourhood and its prediction, with one column for each stage.

    Parameters
    ----------
    node
        Position of the attacked node.
    neighbours
        For each stage, such as "before", the positions of the neighbours and the origin of each edge:
        ``"own"``, ``"added"`` by the attack or ``"copied"``.
    probabilities
        For the same stages, the probability of every class.
    labels
        The class number of every node.
    class_names
        Names of all classes, in the order of their numbers.
    images
        An image ``[height, width]`` of every node, drawn in its place. By default the name of its class.
    axes
        Matplotlib axes to draw on: two rows, one column for each stage. By default those of a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes, two rows

    Examples
    --------
    >>> neighbours = {"before": [(1, "own")], "attacked": [(1, "own"), (2, "added")]}
    >>> probabilities = {"before": [0.9, 0.1], "attacked": [0.4, 0.6]}
    >>> draw_attacked_node(0, neighbours, probabilities, [0, 0, 1], ["cat", "dog"]).shape
    (2, 2)
    """
    check_mapping(neighbours, "neighbours", "a dictionary of stages")
    check_mapping(probabilities, "probabilities", "a dictionary of stages")
    names = check_sequence(class_names, "class_names", "a list of names")
    codes = check_indices(labels, "labels", size=len(names))
    check_integer(node, "node", low=0, high=len(codes) - 1)
    for title, edges in neighbours.items():
        _check_edges(edges, f"neighbours[{title!r}]", len(codes))
    for title, part in probabilities.items():
        check_vector(check_numbers(part, title), f"probabilities[{title!r}]", length=len(names), per="class")
    if images is not None:
        images = check_numbers(images, "images")
        if images.ndim != 3 or len(images) != len(codes):
            raise InputError(
                f"images must have the shape (n_nodes, height, width) of {len(codes)} nodes; "
                f"got {images.shape}."
            )
    if list(neighbours) != list(probabilities):
        raise InputError(
            "neighbours and probabilities must have the same stages in the same order; got "
            f"{list(neighbours)} and {list(probabilities)}."
        )
    if axes is None:
        grid = {"nrows": 2, "ncols": len(neighbours), "squeeze": False, "height_ratios": [3, 2]}
        axes = create_axes((3.6 * len(neighbours), 6), "drawing an attacked node", **grid)
    axes = check_axes(axes, (2, len(neighbours)))
    for (title, edges), (above, below) in zip(neighbours.items(), axes.T, strict=True):
        above.set_title(title)
        _draw_neighbourhood(above, node, edges[:MAX_NEIGHBOURS], codes, names, images)
        if len(edges) > MAX_NEIGHBOURS:
            above.text(0, -1.45, f"and {len(edges) - MAX_NEIGHBOURS} more", ha="center", fontsize="small")
        _draw_probabilities(below, np.asarray(probabilities[title]), int(codes[node]), names)
    axes[0][0].figure.supxlabel(
        f"green: the true class, {names[int(codes[node])]}; "
        "edges: own (dark), added by the attack (orange), copied (blue)",
        fontsize="small",
    )
    return axes


def _check_edges(edges: Any, name: str, n_nodes: int) -> None:
    for edge in check_sequence(edges, name, "a list of pairs of a node and an origin"):
        if not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise InputError(f"{name} must hold pairs of a node and an origin; got {show(edge)}.")
        check_integer(edge[0], name, low=0, high=n_nodes - 1)
        check_choice(edge[1], f"origin of {name}", EDGE_COLOURS)


def _draw_neighbourhood(
    axes: Any,
    node: int,
    edges: Sequence[tuple[int, str]],
    codes: NDArray[Any],
    class_names: Sequence[str],
    images: NDArray[Any] | None,
) -> None:
    """Draw the node in the centre and its neighbours on a circle."""
    angles = np.pi / 2 + 2 * np.pi * np.arange(len(edges)) / max(1, len(edges))
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for (_, origin), (x, y) in zip(edges, circle, strict=True):
        axes.plot([0, x], [0, y], color=EDGE_COLOURS[origin], linewidth=1.6, zorder=1)
    nodes = [node, *(neighbour for neighbour, _ in edges)]
    for number, (x, y) in zip(nodes, [(0.0, 0.0), *circle], strict=True):
        if images is None:
            name = class_names[int(codes[number])]
            axes.text(x, y, name, ha="center", va="center", zorder=3, bbox={"fc": "white", "pad": 2})
        else:
            extent = (x - 0.2, x + 0.2, y - 0.2, y + 0.2)
            axes.imshow(images[number], extent=extent, cmap="Greys", zorder=3)
    axes.set_xlim(-1.5, 1.5)
    axes.set_ylim(-1.5, 1.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_probabilities(
    axes: Any, probabilities: NDArray[Any], true_class: int, class_names: Sequence[str]
) -> None:
    classes = np.arange(len(probabilities))
    colours = [TRUE_CLASS if code == true_class else OTHER_CLASS for code in classes]
    axes.bar(classes, probabilities, color=colours, edgecolor=OBSERVED_EDGE, linewidth=0.6)
    axes.set_xticks(classes, list(class_names))
    axes.set_ylim(0, 1)
    axes.set_ylabel("probability")
    axes.spines[["top", "right"]].set_visible(False)

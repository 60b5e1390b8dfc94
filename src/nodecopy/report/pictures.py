"""Pictures of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import to_networkx

KEPT, NEW = "#3b4252", "#d08770"


def side_by_side(graphs: Mapping[str, Graph], *, seed: int = 0, axes: Any = None) -> Any:
    """Draw graphs on the same nodes beside each other, with the layout of the first.

    Nodes are coloured by label; edges that the first graph does not have stand out.

    Parameters
    ----------
    graphs
        Title and graph; the first is the observed one.
    seed
        Seed of the layout.
    axes
        Where to draw, one for each graph; on a new figure by default.

    Returns
    -------
    array of matplotlib.axes.Axes

    Examples
    --------
    >>> from nodecopy import NodeCopying, SameLabel, datasets
    >>> karate = datasets.load("karate")
    >>> sample = NodeCopying(SameLabel()).fit(karate).sample(rng=0)
    >>> len(side_by_side({"observed": karate, "sample": sample}))
    2
    """
    first, *others = graphs.values()
    if any(other.n_nodes != first.n_nodes for other in others):
        raise InputError("graphs must have the same nodes to be drawn side by side.")
    if axes is None:
        axes = new_axes((4.5 * len(graphs), 4.8), "drawing graphs", ncols=len(graphs))
    panels, place = np.ravel(axes), _layout(first, seed)
    for panel, (title, graph) in zip(panels, graphs.items(), strict=True):
        draw(panel, graph, place, observed=first)
        panel.set_title(f"{title}\n{graph.n_edges} edges")
    panels[0].figure.supxlabel(
        "orange: edges that the observed graph does not have", fontsize="small", color=NEW
    )
    return panels


def new_axes(size: tuple[float, float], purpose: str, **grid: Any) -> Any:
    """Axes, or a grid of them, on a new figure that no window and no pyplot knows."""
    figure = import_optional("matplotlib.figure", purpose).Figure(figsize=size, layout="constrained")
    return figure.subplots(**grid)


def draw(axes: Any, graph: Graph, place: Any, *, observed: Graph) -> None:
    """Draw one graph on given axes with given places of its nodes."""
    collections = import_optional("matplotlib.collections", "drawing graphs")
    known = observed.adjacency[graph.rows.row_numbers, graph.rows.indices] > 0
    lines = np.stack([place[graph.rows.row_numbers], place[graph.rows.indices]], axis=1)
    for is_known, colour, width in ((True, KEPT, 0.8), (False, NEW, 0.9)):
        axes.add_collection(
            collections.LineCollection(lines[known == is_known], colors=colour, linewidths=width, zorder=1)
        )
    size = 40 + 15 * np.sqrt(observed.degrees)
    colours = np.zeros(graph.n_nodes) if observed.labels is None else observed.labels
    axes.scatter(*place.T, s=size, c=colours, cmap="tab10", edgecolors="white", linewidths=0.8, zorder=2)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _layout(graph: Graph, seed: int) -> Any:
    """Places of the nodes; small graphs afford the layout that shows distances best."""
    networkx = import_optional("networkx", "drawing graphs")
    network = to_networkx(graph)
    if graph.n_nodes <= 300:
        layout = networkx.kamada_kawai_layout(network)
    else:
        layout = networkx.spring_layout(network, seed=seed)
    return np.array([layout[node] for node in graph.node_ids.tolist()]).reshape(-1, 2)

"""Figures of graphs side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.validation import check_integer, type_name
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import to_networkx

OBSERVED_EDGE, NEW_EDGE = "#3b4252", "#d08770"
MAX_KAMADA_KAWAI_NODES = 300
"""Larger graphs get a spring layout: the time of the Kamada-Kawai layout grows with the cube of the nodes."""


def draw_graphs(
    graphs: Mapping[str, GraphLike] | Sequence[GraphLike] | GraphLike, *, seed: int = 0, axes: Any = None
) -> Any:
    """Draw graphs on the same nodes side by side, with the layout of the first.

    Nodes are coloured by label. Edges that the first graph does not have are orange.

    Parameters
    ----------
    graphs
        Graphs, or what :func:`.as_graph` converts, by title; the first is the observed graph. A single graph
        and a list of graphs get the titles "observed", "sample 1", "sample 2" and so on.
    seed
        Seed of the layout, which is random for more than 300 nodes.
    axes
        Matplotlib axes to draw on, one for each graph. By default those of a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes

    Examples
    --------
    >>> from nodecopy import NodeCopying, SameLabel, datasets
    >>> karate = datasets.load("karate")
    >>> sample = NodeCopying(SameLabel()).fit(karate).sample(rng=0)
    >>> len(draw_graphs({"observed": karate, "sample": sample}))
    2
    """
    if not isinstance(graphs, Mapping) or sparse.issparse(graphs):  # a DOK matrix is a mapping
        given = graphs if isinstance(graphs, list | tuple) else [graphs]
        graphs = {f"sample {number}" if number else "observed": graph for number, graph in enumerate(given)}
    if not graphs:
        raise InputError("graphs must hold at least one graph to be drawn; got none.")
    graphs = {title: convert_graph(graph, f"graph {title!r}") for title, graph in graphs.items()}
    observed, *others = graphs.values()
    if any(other.n_nodes != observed.n_nodes for other in others):
        raise InputError(
            "graphs must have the same nodes to be drawn side by side; got graphs of "
            f"{', '.join(str(graph.n_nodes) for graph in graphs.values())} nodes."
        )
    check_integer(seed, "seed", low=0)
    if axes is None:
        axes = create_axes((4.5 * len(graphs), 4.8), "drawing graphs", ncols=len(graphs))
    panels = check_axes(axes, (len(graphs),))
    positions = _compute_positions(observed, seed)
    for panel, (title, graph) in zip(panels, graphs.items(), strict=True):
        _draw_graph(panel, graph, positions, observed)
        panel.set_title(f"{title}\n{graph.n_edges} edges")
    panels[0].figure.supxlabel(
        "orange: edges that the observed graph does not have", fontsize="small", color=NEW_EDGE
    )
    return panels


def create_axes(size: tuple[float, float], purpose: str, **grid: Any) -> Any:
    """Create axes, or a grid of them, on a new figure that is not registered with pyplot."""
    figure = import_optional("matplotlib.figure", purpose).Figure(figsize=size, layout="constrained")
    return figure.subplots(**grid)


def check_axes(axes: Any, shape: tuple[int, ...]) -> Any:
    """Return Matplotlib axes as an array of the given shape, or raise an error."""
    array = np.asarray(axes, object)
    if array.size != math.prod(shape) or not all(hasattr(panel, "set_xlim") for panel in array.flat):
        wanted = " x ".join(map(str, shape))
        raise InputError(f"axes must be Matplotlib axes, {wanted} of them; got {type_name(axes)}.")
    return array.reshape(shape)


def _draw_graph(axes: Any, graph: Graph, positions: Any, observed: Graph) -> None:
    collections = import_optional("matplotlib.collections", "drawing graphs")
    pairs = [g.rows.row_numbers.astype(np.int64) * g.n_nodes + g.rows.indices for g in (graph, observed)]
    is_observed = np.isin(pairs[0], pairs[1])
    lines = np.stack([positions[graph.rows.row_numbers], positions[graph.rows.indices]], axis=1)
    for mask, colour, width in ((is_observed, OBSERVED_EDGE, 0.8), (~is_observed, NEW_EDGE, 0.9)):
        axes.add_collection(
            collections.LineCollection(lines[mask], colors=colour, linewidths=width, zorder=1)
        )
    size = 40 + 15 * np.sqrt(observed.degrees)
    colours = np.zeros(graph.n_nodes) if observed.labels is None else observed.labels
    axes.scatter(*positions.T, s=size, c=colours, cmap="tab10", edgecolors="white", linewidths=0.8, zorder=2)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _compute_positions(graph: Graph, seed: int) -> Any:
    """Return node positions by Kamada-Kawai for small graphs, which shows distances best."""
    networkx = import_optional("networkx", "drawing graphs")
    network = to_networkx(graph)
    if graph.n_nodes <= MAX_KAMADA_KAWAI_NODES:
        positions = networkx.kamada_kawai_layout(network)
    else:
        positions = networkx.spring_layout(network, seed=seed)
    return np.array([positions[node] for node in graph.node_ids.tolist()]).reshape(-1, 2)

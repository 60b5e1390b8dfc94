"""Figures of graphs, samples, predictions, attacked nodes and the coverage of intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Array, Floats
from nodecopy._core.checks import (
    check_choice,
    check_indices,
    check_integer,
    check_mapping,
    check_numbers,
    check_sequence,
    check_vector,
    create_axes,
    show,
    type_name,
)
from nodecopy._core.imports import import_optional
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph, to_networkx
from nodecopy.metrics.classification import selective_accuracy

COLOURS = DARK, ORANGE, BLUE, GREEN = ("#3b4252", "#d08770", "#5e81ac", "#a3be8c")
COVERAGE_COLOURS = (ORANGE, BLUE, "#b48ead", GREEN, "#4c566a")
EDGE_COLOURS = {"own": DARK, "added": ORANGE, "copied": BLUE}
OTHER_CLASS = "#c9ced8"
MAX_KAMADA_KAWAI_NODES = 300  # larger graphs get a spring layout
LOGARITHMIC_RATIO = 30  # an axis with a larger ratio of its values is logarithmic
POWERS_OF_TEN_RATIO = 100  # and has ticks at powers of ten only
MIN_PERCENT = 5  # where certainty curves start
MAX_NEIGHBOURS = 16  # in a panel
MARKERS = "osD^vPX*<>"
INTENDED_RATIO, INTENDED_COVERAGE = (0.9, 1.25), (90.0, 98.0)
SHOWN_RATIOS = (0.2, 5.0)  # ratios outside are drawn at the border


def draw_graphs(
    graphs: Mapping[str, GraphLike] | Sequence[GraphLike] | GraphLike, *, seed: int = 0, axes: Any = None
) -> Any:
    """Draw graphs on the same nodes side by side, with the layout of the first.

    Nodes are coloured by label. Edges that the first graph does not have are orange. Returns the axes.

    Parameters
    ----------
    graphs
        Graphs, or what :func:`.as_graph` converts, by title; the first is the observed graph. A graph or a
        list gets the titles "observed", "sample 1" and so on.
    seed
        Seed of the layout, which is random for more than 300 nodes.
    axes
        Matplotlib axes, one for each graph. By default, new axes.

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
        raise InputError("graphs", "must hold at least one graph to be drawn; got none.")
    graphs = {title: convert_graph(graph, f"graph {title!r}") for title, graph in graphs.items()}
    observed, *others = graphs.values()
    if any(other.n_nodes != observed.n_nodes for other in others):
        sizes = ", ".join(str(graph.n_nodes) for graph in graphs.values())
        raise InputError("graphs", f"must have the same nodes; got graphs of {sizes} nodes.")
    check_integer(seed, "seed", low=0)
    panels = create_axes(axes, "drawing graphs", (4.5, 4.8), (len(graphs),))
    networkx = import_optional("networkx", "drawing graphs")
    is_small = observed.n_nodes <= MAX_KAMADA_KAWAI_NODES
    layout = networkx.kamada_kawai_layout if is_small else partial(networkx.spring_layout, seed=seed)
    position_of = layout(to_networkx(observed))
    positions = np.array([position_of[node] for node in observed.node_ids.tolist()]).reshape(-1, 2)
    for panel, (title, graph) in zip(panels, graphs.items(), strict=True):
        _draw_graph(panel, graph, positions, observed)
        panel.set_title(f"{title}\n{graph.n_edges} edges")
    text = "orange: edges that the observed graph does not have"
    panels[0].figure.supxlabel(text, fontsize="small", color=ORANGE)
    return panels


def _draw_graph(axes: Any, graph: Graph, positions: Any, observed: Graph) -> None:
    collections = import_optional("matplotlib.collections", "drawing graphs")
    pairs = [g.rows.row_numbers.astype(np.int64) * g.n_nodes + g.rows.indices for g in (graph, observed)]
    is_observed = np.isin(pairs[0], pairs[1])
    lines = np.stack([positions[graph.rows.row_numbers], positions[graph.rows.indices]], axis=1)
    for mask, colour, width in ((is_observed, DARK, 0.8), (~is_observed, ORANGE, 0.9)):
        segments = collections.LineCollection(lines[mask], colors=colour, linewidths=width, zorder=1)
        axes.add_collection(segments)
    size = 40 + 15 * np.sqrt(observed.degrees)
    colours = np.zeros(graph.n_nodes) if observed.label_codes is None else observed.label_codes
    axes.scatter(*positions.T, s=size, c=colours, cmap="tab10", edgecolors="white", linewidths=0.8, zorder=2)
    axes.set_aspect("equal")
    axes.set_axis_off()


class StatisticSamples(NamedTuple):
    """The observed value of a statistic, and its values in the samples of every model."""

    observed: float
    samples: Mapping[str, Sequence[float]]


def draw_sample_statistics(
    graphs: Mapping[str, Mapping[str, StatisticSamples]], *, highlight: Collection[str] = ()
) -> Any:
    """Return a figure with the range and the mean of each model's samples.

    It has a row for each graph and a column for each statistic, of which all graphs have the same; models in
    ``highlight`` have another colour.
    """
    names = list(next(iter(graphs.values())))
    panels = [panel for statistics in graphs.values() for panel in statistics.values()]
    models = list(dict.fromkeys(model for panel in panels for model in panel.samples))
    size = (2.6 + 2.1 * len(names), len(graphs) * (0.9 + 0.17 * len(models)))
    shape = {"nrows": len(graphs), "ncols": len(names)}
    grid = _create_grid(size, "drawing samples", **shape)
    for row, (graph, statistics) in zip(grid, graphs.items(), strict=True):
        for axes, (name, panel) in zip(row, statistics.items(), strict=True):
            _draw_panel(axes, panel, models, highlight)
            axes.set_title(name, fontsize="small")
        row[0].set_ylabel(graph)
    figure = grid[0, 0].figure
    figure.supxlabel("line: range of the samples; point: their mean; green: observed", fontsize="small")
    return figure


def _create_grid(size: tuple[float, float], purpose: str, **grid: Any) -> Any:
    """Create axes on a figure that pyplot does not know, since it is returned and thus shown already."""
    figure = import_optional("matplotlib.figure", purpose).Figure(figsize=size, layout="constrained")
    return figure.subplots(squeeze=False, sharey=True, **grid)


def _draw_panel(axes: Any, panel: StatisticSamples, models: list[str], highlight: Collection[str]) -> None:
    axes.axvline(panel.observed, color=GREEN, linewidth=2, zorder=1)
    for row, model in enumerate(models):
        values = panel.samples.get(model, ())
        if len(values):
            colour = ORANGE if model in highlight else DARK
            axes.plot([min(values), max(values)], [row, row], color=colour, linewidth=1.2, zorder=2)
            axes.plot([float(np.mean(values))], [row], "o", color=colour, markersize=3, zorder=3)
    everything = [panel.observed, *(value for values in panel.samples.values() for value in values)]
    low, high = min(everything), max(everything)
    if low > 0 and high > LOGARITHMIC_RATIO * low:
        axes.set_xscale("log")
        subs = [1.0, 3.0] if high < POWERS_OF_TEN_RATIO * low else [1.0]
        axes.locator_params(axis="x", subs=subs, numticks=4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    axes.set_yticks(range(len(models)), models, fontsize="x-small")
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize="x-small")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_accuracy_by_certainty(
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike]], *, axes: Any = None
) -> Any:
    """Draw the accuracy among the most certain nodes against their share of all nodes.

    The curve of a classifier whose uncertainty points at its errors falls to the right. Returns the axes.

    Parameters
    ----------
    predictions
        For each classifier: whether each prediction is correct, and its uncertainty.
    axes
        Matplotlib axes. By default, new axes.

    Examples
    --------
    >>> axes = draw_accuracy_by_certainty({"a coin": ([True, False], [0.1, 0.2])})
    >>> axes.get_ylabel()
    'accuracy among them (%)'
    """
    check_mapping(predictions, "predictions", "a dictionary of pairs of arrays")
    for pair in predictions.values():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("predictions", f"must hold pairs of arrays; got {type_name(pair)}.")
    (axes,) = create_axes(axes, "drawing accuracy", (6, 4.5))
    for number, (name, (correct, uncertainty)) in enumerate(predictions.items()):
        share, accuracy = certainty_curve(correct, uncertainty)
        axes.plot(100 * share, 100 * accuracy, label=name, color=COLOURS[number % len(COLOURS)])
    axes.set_xlabel("most certain nodes (%)")
    axes.set_ylabel("accuracy among them (%)")
    axes.set_xlim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend()
    return axes


def certainty_curve(correct: ArrayLike, uncertainty: ArrayLike) -> tuple[Floats, Floats]:
    """Return the shares 5 %, 6 %, ... 100 % of the nodes and the accuracy among the most certain ones."""
    share = np.arange(MIN_PERCENT, 101) / 100
    return share, selective_accuracy(correct, uncertainty, 1 - share)


def draw_attacked_node(
    node: int,
    neighbours: Mapping[str, Sequence[tuple[int, str]]],
    probabilities: Mapping[str, ArrayLike],
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    images: Array | None = None,
    axes: Any = None,
) -> Any:
    """Draw a node's neighbourhood and its prediction, with one column for each stage; return the axes.

    Parameters
    ----------
    node
        Position of the attacked node.
    neighbours
        For each stage, such as "before", the positions of the neighbours and the origins of the edges:
        ``"own"``, ``"added"`` or ``"copied"``.
    probabilities
        For the same stages, the probability of every class.
    labels
        The class number of every node.
    class_names
        Names of all classes, in the order of their numbers.
    images
        An image ``[height, width]`` of every node, drawn in place of the name of its class.
    axes
        Matplotlib axes: two rows, one column for each stage. By default, new axes.

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
            raise InputError("images", f"must be ({len(codes)}, height, width); got {images.shape}.")
    if list(neighbours) != list(probabilities):
        got = f"{list(neighbours)} and {list(probabilities)}"
        raise InputError(f"neighbours and probabilities must have the same stages in order; got {got}.")
    shape = (2, len(neighbours))
    axes = create_axes(axes, "drawing an attacked node", (3.6, 3), shape, height_ratios=[3, 2])
    for (title, edges), (above, below) in zip(neighbours.items(), axes.T, strict=True):
        above.set_title(title)
        _draw_neighbourhood(above, node, edges[:MAX_NEIGHBOURS], codes, names, images)
        if len(edges) > MAX_NEIGHBOURS:
            above.text(0, -1.45, f"and {len(edges) - MAX_NEIGHBOURS} more", ha="center", fontsize="small")
        _draw_probabilities(below, np.asarray(probabilities[title]), int(codes[node]), names)
    edge_text = "edges: own (dark), added by the attack (orange), copied (blue)"
    text = f"green: the true class, {names[int(codes[node])]}; {edge_text}"
    axes[0][0].figure.supxlabel(text, fontsize="small")
    return axes


def _check_edges(edges: Any, name: str, n_nodes: int) -> None:
    for edge in check_sequence(edges, name, "a list of pairs of a node and an origin"):
        if not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise InputError(name, f"must hold pairs of a node and an origin; got {show(edge)}.")
        check_integer(edge[0], name, low=0, high=n_nodes - 1)
        check_choice(edge[1], f"origin of {name}", EDGE_COLOURS)


def _draw_neighbourhood(
    axes: Any, node: int, edges: Sequence[tuple[int, str]], codes: Any, names: Sequence[str], images: Any
) -> None:
    angles = np.pi / 2 + 2 * np.pi * np.arange(len(edges)) / max(1, len(edges))
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for (_, origin), (x, y) in zip(edges, circle, strict=True):
        axes.plot([0, x], [0, y], color=EDGE_COLOURS[origin], linewidth=1.6, zorder=1)
    nodes = [node, *(neighbour for neighbour, _ in edges)]
    for number, (x, y) in zip(nodes, [(0.0, 0.0), *circle], strict=True):
        if images is None:
            name = names[int(codes[number])]
            axes.text(x, y, name, ha="center", va="center", zorder=3, bbox={"fc": "white", "pad": 2})
        else:
            extent = (x - 0.2, x + 0.2, y - 0.2, y + 0.2)
            axes.imshow(images[number], extent=extent, cmap="Greys", zorder=3)
    axes.set_xlim(-1.5, 1.5)
    axes.set_ylim(-1.5, 1.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_probabilities(axes: Any, probabilities: Any, true_class: int, names: Sequence[str]) -> None:
    classes = np.arange(len(probabilities))
    colours = [GREEN if code == true_class else OTHER_CLASS for code in classes]
    axes.bar(classes, probabilities, color=colours, edgecolor=DARK, linewidth=0.6)
    axes.set_xticks(classes, list(names))
    axes.set_ylim(0, 1)
    axes.set_ylabel("probability")
    axes.spines[["top", "right"]].set_visible(False)


class IntervalQuality(NamedTuple):
    """Coverage in percent, and the ratio of the standard error to the true standard deviation."""

    coverage: float
    ratio: float


Panel = Mapping[str, Mapping[str, IntervalQuality]]  # by method and statistic


def draw_coverage(rows: Mapping[str, Mapping[str, Panel]]) -> Any:
    """Return a figure of the ratio of standard errors of every statistic and method.

    Points are filled if coverage is as intended. Ratios below 0.2 and above 5 are drawn at the border.
    """
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    panels = [panel for row in rows.values() for panel in row.values()]
    methods = list(dict.fromkeys(method for panel in panels for method in panel))
    names = list(dict.fromkeys(name for panel in panels for values in panel.values() for name in values))
    size = (2.2 + 2.2 * len(columns), 1.2 + len(rows) * (0.6 + 0.19 * len(names)))
    shape = {"nrows": len(rows), "ncols": len(columns), "sharex": True}
    grid = _create_grid(size, "drawing coverage", **shape)
    for axes_row, (heading, row) in zip(grid, rows.items(), strict=True):
        for axes, column in zip(axes_row, columns, strict=True):
            _draw_coverage(axes, row.get(column, {}), methods, names)
        axes_row[0].set_ylabel(heading)
    for axes, column in zip(grid[0], columns, strict=True):
        axes.set_title(column, fontsize="small")
    grid[0, 0].invert_yaxis()  # shared: the first statistic is at the top
    figure = grid[0, 0].figure
    handles = [
        grid[0, 0].plot([], [], linestyle="", label=method, **_style(number, is_filled=True))[0]
        for number, method in enumerate(methods)
    ]
    text = "standard error over true standard deviation; filled: coverage of 90 to 98 %"
    settings = {"fontsize": "small", "title_fontsize": "small", "frameon": False}
    figure.legend(handles=handles, loc="outside lower center", ncols=3, title=text, **settings)
    return figure


def _draw_coverage(axes: Any, panel: Panel, methods: list[str], names: list[str]) -> None:
    axes.axvspan(*INTENDED_RATIO, color="#d8dee9", alpha=0.6, zorder=0)
    axes.axvline(1.0, color="#4c566a", linewidth=0.8, zorder=1)
    for number, method in enumerate(methods):
        for name, (coverage, ratio) in panel.get(method, {}).items():
            is_filled = INTENDED_COVERAGE[0] <= coverage <= INTENDED_COVERAGE[1]
            position = min(max(ratio, SHOWN_RATIOS[0]), SHOWN_RATIOS[1])
            axes.plot([position], [names.index(name)], zorder=3, clip_on=False, **_style(number, is_filled))
    axes.set_xscale("log")
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
    axes.set_xlim(*SHOWN_RATIOS)
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names, fontsize="x-small")


def _style(number: int, is_filled: bool) -> dict[str, Any]:
    marker, colour = MARKERS[number % len(MARKERS)], COVERAGE_COLOURS[number % len(COVERAGE_COLOURS)]
    face = colour if is_filled else "none"
    return {"marker": marker, "color": colour, "markerfacecolor": face, "markersize": 4}

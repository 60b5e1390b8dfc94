"""The pictures of the page "The model": how a sample is made, two rules of symmetrisation, a plate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from nodecopy import Graph, NodeCopying, SameLabel

CLASS_COLOURS = ("#0072b2", "#e69f00")
COPIED, OBSERVED, LIGHT = "#009e73", "#555555", "#d0d0d0"
NAMES = "abcdefgh"
EDGES = "ab ac bc bd ad de ef eg fg fh gh"
PLACES = np.array(
    [[0.0, 1.6], [0.2, 0.1], [0.8, 2.3], [1.35, 1.3], [2.6, 1.75], [3.3, 2.4], [3.3, 0.2], [4.2, 1.2]]
)
SEED = 161
matplotlib.rcParams["svg.hashsalt"] = "nodecopy"  # the same file in every build


def eight_nodes() -> Graph:
    """Return the example: two groups of four nodes."""
    first, second = (np.array([NAMES.index(pair[end]) for pair in EDGES.split()]) for end in (0, 1))
    return Graph.from_edges(first, second, labels=[0] * 4 + [1] * 4)


def draw_steps() -> Figure:
    """Draw the observed graph, the donors, the copied rows and a sample."""
    graph = eight_nodes()
    directed_model = NodeCopying(SameLabel(), symmetrise="none").fit(graph)
    model = NodeCopying(SameLabel()).fit(graph)
    donors = model.draw_donors(rng=SEED)
    figure, axes = _panels(4, n_rows=2)
    _edges(axes[0], _pairs(graph), OBSERVED)
    _title(axes[0], "1. The observed graph", "Colours are labels.")
    _edges(axes[1], _pairs(graph), LIGHT)
    for node, donor in enumerate(donors.tolist()):
        if node != donor:
            _arrow(axes[1], node, donor, COPIED, "-|>", 0.25)
    own = [NAMES[node] for node in range(8) if donors[node] == node]
    note = f" {' and '.join(own)} drew {'itself' if len(own) == 1 else 'themselves'}." if own else ""
    _title(axes[1], "2. Every node draws a donor", f"Here: a node of the same label.{note}")
    copied_rows = directed_model.copy(donors, rng=SEED).adjacency.toarray()
    for node, other in np.argwhere(copied_rows):
        if node != other:
            _arrow(axes[2], node, other, OBSERVED, "-|>", 0.08)
    donor = NAMES[donors[0]]
    _title(axes[2], "3. It copies the donor's neighbours", f"Node a has the neighbours of {donor}.")
    sample = model.copy(donors, rng=SEED)
    _edges(axes[3], _pairs(sample), OBSERVED)
    edges = f"{sample.n_edges} edges; the graph has {graph.n_edges}."
    _title(axes[3], "4. A coin decides for each pair", edges)
    _nodes(axes)
    return figure


def draw_rules() -> Figure:
    """Draw the same copied rows, symmetrised by one endpoint and by the maximum."""
    graph = eight_nodes()
    figure, axes = _panels(3)
    donors = NodeCopying(SameLabel()).fit(graph).draw_donors(rng=SEED)
    copied = NodeCopying(SameLabel(), symmetrise="none").fit(graph).copy(donors, rng=SEED).adjacency.toarray()
    is_mutual = (copied > 0) & (copied.T > 0)
    for node, other in np.argwhere(copied):
        if node != other:
            _arrow(axes[0], node, other, OBSERVED if is_mutual[node, other] else COPIED, "-|>", 0.08)
    _title(axes[0], "The copied rows", "Green: only one endpoint has the other.")
    for axis, rule, title in (
        (axes[1], "one-endpoint", "One endpoint (default)"),
        (axes[2], "maximum", "Maximum (the paper)"),
    ):
        sample = NodeCopying(SameLabel(), symmetrise=rule).fit(graph).copy(donors, rng=SEED)
        pairs = _pairs(sample)
        _edges(axis, [pair for pair in pairs if is_mutual[pair]], OBSERVED)
        _edges(axis, [pair for pair in pairs if not is_mutual[pair]], COPIED)
        reason = "a coin for each green one" if rule == "one-endpoint" else "all green ones"
        _title(axis, title, f"{sample.n_edges} edges: {reason}.")
    _nodes(axes)
    return figure


def draw_plate() -> Figure:
    """Draw the plate diagram of Algorithm 1, the Bayesian GCN with node copying."""
    figure = Figure(figsize=(8.5, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.set(xlim=(-0.7, 9.3), ylim=(-1.3, 2.2), aspect="equal")
    axis.axis("off")
    plates = [
        (1.45, -0.75, 1.5, 1.6, "nodes j = 1 ... N"),
        (1.25, -1.2, 5.35, 2.75, "graphs i = 1 ... $N_G$"),
        (4.95, -0.75, 1.45, 1.6, "weights s = 1 ... S"),
    ]
    for left, bottom, width, height, text in plates:
        box = FancyBboxPatch(
            (left, bottom), width, height, boxstyle="round,pad=0.05", fc="none", ec="#888888"
        )
        axis.add_patch(box)
        axis.text(left + width, bottom, text, ha="right", va="bottom", fontsize=8, color=OBSERVED)
    nodes = {
        "observed": (0.0, 1.6, "$G_{obs}$\n$X, Y_L$", True),
        "classes": (0.0, 0.1, "$\\hat c$", False),
        "donor": (2.2, 0.1, "$\\zeta^j$", False),
        "graph": (4.0, 0.1, "$G_i$", False),
        "weights": (5.7, 0.1, "$W_{s,i}$", False),
        "prediction": (8.3, 0.1, "$Z$", False),
    }
    for x, y, text, is_observed in nodes.values():
        axis.add_patch(Circle((x, y), 0.42, fc=LIGHT if is_observed else "white", ec="black", zorder=3))
        axis.text(x, y, text, ha="center", va="center", fontsize=11 if "\n" not in text else 8, zorder=4)
    arrows = [
        "observed classes",
        "classes donor",
        "donor graph",
        "graph weights",
        "weights prediction",
        "observed graph",
    ]
    for pair in arrows:
        (x, y, *_), (u, v, *_) = (nodes[name] for name in pair.split())
        axis.add_patch(
            FancyArrowPatch((x, y), (u, v), arrowstyle="-|>", mutation_scale=12, shrinkA=27, shrinkB=27)
        )
    captions = {"classes": "predicted\nclasses", "prediction": "mean of all\npredictions"}
    for name, text in captions.items():
        axis.text(
            nodes[name][0], nodes[name][1] - 0.55, text, ha="center", va="top", fontsize=8, color=OBSERVED
        )
    return figure


def _panels(n: int, n_rows: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(3.1 * n / n_rows, 2.5 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n // n_rows).ravel()
    for axis in axes:
        axis.set(xlim=(-0.5, 4.6), ylim=(-0.15, 2.65), aspect="equal")
        axis.axis("off")
    return figure, axes


def _pairs(graph: Graph) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in np.argwhere(graph.adjacency.toarray()) if i < j]


def _edges(axis: Any, pairs: list[tuple[int, int]], colour: str) -> None:
    for i, j in pairs:
        axis.plot(*PLACES[[i, j]].T, color=colour, lw=1.6, zorder=1)


def _arrow(axis: Any, start: int, end: int, colour: str, style: str, bend: float) -> None:
    arrow = FancyArrowPatch(
        tuple(PLACES[start]),
        tuple(PLACES[end]),
        arrowstyle=style,
        mutation_scale=10,
        shrinkA=9,
        shrinkB=9,
        color=colour,
        lw=1.3,
        connectionstyle=f"arc3,rad={bend}",
        zorder=2,
    )
    axis.add_patch(arrow)


def _title(axis: Any, title: str, text: str) -> None:
    axis.set_title(title, fontsize=10, fontweight="bold", loc="left")
    axis.text(0, -0.02, text, transform=axis.transAxes, fontsize=8.5, va="top")


def _nodes(axes: Any) -> None:
    for axis in axes:
        for node, (x, y) in enumerate(PLACES):
            axis.add_patch(Circle((x, y), 0.2, fc=CLASS_COLOURS[node // 4], ec="white", zorder=3))
            axis.text(
                x,
                y,
                NAMES[node],
                ha="center",
                va="center",
                color="white",
                fontsize=9,
                fontweight="bold",
                zorder=4,
            )


PICTURES = {"copying_steps": draw_steps, "symmetrisation": draw_rules, "plate": draw_plate}


def write_pictures(folder: Path) -> None:
    """Write all pictures as SVG files on a white ground, so that they can be read on dark pages too."""
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        draw().savefig(folder / f"{name}.svg", metadata={"Date": None}, facecolor="white")

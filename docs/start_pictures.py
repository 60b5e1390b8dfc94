"""The pictures of the start page and of the README: what each use of node copying shows.

The build draws those of the start page; ``python -m docs.start_pictures`` writes the one of the README.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nodecopy import NodeCopying, SameLabel, datasets, inference
from nodecopy._core.layout import compute_layout
from nodecopy.classify import SelfTraining
from nodecopy.links import LinkPredictor

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#999999"
SIZE = (4.0, 2.6)


def draw_interval(axis: Any) -> None:
    """Draw the interval of the transitivity of the karate club, and what chance would give."""
    club = datasets.load("karate")
    result = inference.bootstrap(club, "transitivity", rng=0)
    row = result["transitivity"]
    null = inference.null_test(club, "transitivity", null="configuration", rng=0)
    axis.hist(null["transitivity"].values, 13, color="#dddddd", label="random graphs, same degrees")
    height = axis.get_ylim()[1]
    axis.plot([row.low, row.high], [height * 0.55] * 2, color=BLUE, lw=3, solid_capstyle="round")
    label = f"observed: {row.observed:.2f} [{row.low:.2f}, {row.high:.2f}]"
    axis.plot(row.observed, height * 0.55, "o", color=BLUE, ms=9, label=label)
    axis.set(yticks=[], ylim=(0, 1.5 * height), xlabel="transitivity")
    axis.legend(frameon=False, fontsize=8, loc="upper right")


def draw_links(axis: Any) -> None:
    """Draw the karate club with its most doubtful edges and the most probable missing ones."""
    club = datasets.load("karate")
    positions = compute_layout(club.adjacency, rng=1)
    model = LinkPredictor().fit(club, rng=0)
    edges = np.argwhere(np.triu(club.adjacency.toarray() > 0))
    missing, doubtful = model.missing(4).positions, model.doubtful(4).positions
    for pairs, style in (
        (edges, {"color": "#cccccc", "lw": 0.9}),
        (doubtful, {"color": RED, "lw": 2.2, "label": "doubtful edges"}),
        (missing, {"color": GREEN, "lw": 2.0, "ls": (0, (2, 1.5)), "label": "missing edges"}),
    ):
        for pair in pairs:
            axis.plot(*positions[pair].T, **style, zorder=1)
            style.pop("label", None)
    colours = np.where(club.label_codes == 0, BLUE, ORANGE)
    axis.scatter(*positions.T, s=26, c=colours, zorder=2, linewidths=0)
    axis.set_axis_off()
    axis.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(-0.05, -0.08))


def draw_digits(axis: Any) -> None:
    """Draw handwritten digits that are classified by ten labels: the most certain and the least."""
    digits = datasets.load("digits").subgraph(np.arange(600))
    split = datasets.label_split(digits.labels, 1, validation=0, test=500, rng=0)
    classifier = SelfTraining().fit(digits, split.train, rng=0)
    predicted, uncertainty = classifier.predict(), classifier.uncertainty().total
    order = split.test[np.argsort(uncertainty[split.test])]
    images = digits.features.toarray() if hasattr(digits.features, "toarray") else digits.features
    for row, (title, nodes) in enumerate((("certain", order[:60:12]), ("uncertain", order[-1:-61:-12]))):
        for column, node in enumerate(nodes):
            box = axis.inset_axes((0.2 + column * 0.16, 0.56 - row * 0.52, 0.15, 0.32))
            box.imshow(images[node].reshape(8, 8), cmap="Greys")
            box.set_axis_off()
            right = predicted[node] == digits.labels[node]
            box.set_title(str(predicted[node]), fontsize=9, pad=1, color=GREEN if right else RED)
        axis.text(0.17, 0.7 - row * 0.52, title, ha="right", fontsize=9, transform=axis.transAxes)
    accuracy = (predicted[split.test] == digits.labels[split.test]).mean()
    axis.text(
        0.6, -0.06, f"ten labels, {accuracy:.0%} right", ha="center", fontsize=8, transform=axis.transAxes
    )
    axis.set_axis_off()


def draw_recommenders(axis: Any) -> None:
    """Draw the recall of EASE and of CopyEASE, from the stored table."""
    with (HERE.parent / "results" / "table6.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["score"] == "recall@20" and row["mean"]]
    places = {"ml-100k": "MovieLens 100k", "amazon-cds": "Amazon CDs"}
    methods = {"ease": ("EASE", GREY), "copy-ease": ("CopyEASE", GREEN)}
    for shift, (method, (title, colour)) in enumerate(methods.items()):
        means = [
            float(next(row["mean"] for row in rows if (row["dataset"], row["method"]) == (place, method)))
            for place in places
        ]
        bars = axis.bar(np.arange(2) + 0.38 * shift, means, 0.36, color=colour, label=title)
        axis.bar_label(bars, fmt="%.1f", fontsize=8)
    axis.set_xticks(np.arange(2) + 0.19, places.values())
    axis.set(yticks=[], ylabel="recall@20, %")
    axis.margins(y=0.25)
    axis.legend(frameon=False, fontsize=8, loc="upper right")


def draw_samples(axis: Any) -> None:
    """Draw the karate club beside a sample of it."""
    club = datasets.load("karate")
    positions = compute_layout(club.adjacency, rng=1)
    sample = NodeCopying(SameLabel()).fit(club).sample(rng=3)
    width = np.ptp(positions[:, 0]) * 1.25
    for shift, graph, title in ((0.0, club, "observed"), (width, sample, "sample")):
        places = positions + np.array([shift, 0])
        for pair in np.argwhere(np.triu(graph.adjacency.toarray() > 0)):
            is_old = club.adjacency[pair[0], pair[1]] > 0
            axis.plot(*places[pair].T, color="#bbbbbb" if is_old else GREEN, lw=0.8, zorder=1)
        colours = np.where(club.label_codes == 0, BLUE, ORANGE)
        axis.scatter(*places.T, s=20, c=colours, zorder=2, linewidths=0)
        axis.text(places[:, 0].mean(), places[:, 1].max(), title, ha="center", va="bottom", fontsize=9)
    axis.set_axis_off()


CARDS: dict[str, Callable[[Any], None]] = {
    "interval": draw_interval,
    "links": draw_links,
    "digits": draw_digits,
    "recommenders": draw_recommenders,
    "samples": draw_samples,
}


def _style(axis: Any) -> None:
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def write_pictures(folder: Path) -> None:
    """Write a picture for each card, unless it exists."""
    folder.mkdir(exist_ok=True)
    for name, draw in CARDS.items():
        path = folder / f"card-{name}.png"
        if path.exists():
            continue
        figure = Figure(figsize=SIZE, layout="constrained")
        axis = figure.subplots()
        draw(axis)
        _style(axis)
        figure.savefig(path, dpi=160)


def main() -> None:
    """Write the picture of the README."""
    figure = Figure(figsize=(3 * SIZE[0], SIZE[1] + 0.4), layout="constrained")
    titles = (
        "How uncertain is a statistic?",
        "Which edges are doubtful or missing?",
        "Which predictions are uncertain?",
    )
    for axis, title, name in zip(figure.subplots(1, 3), titles, CARDS, strict=False):
        CARDS[name](axis)
        _style(axis)
        axis.set_title(title, fontsize=11)
    figure.savefig(HERE / "benefits.png", dpi=120)


if __name__ == "__main__":
    main()

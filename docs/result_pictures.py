"""The pictures of the pages of results: our means against those of the paper, one dot for each cell."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from docs.result_tables.defence import BUDGETS, find_curves
from nodecopy.experiments.config import load
from nodecopy.report.page import DATASETS

RESULTS = Path(__file__).parents[1] / "results"
WITH_COPYING = re.compile("copy|ebpr|sgbpr")
COPYING, OTHER = "#009e73", "#888888"
TABLES = {
    "table1": "log",
    "table2": "linear",
    "table3": "linear",
    "table4": "linear",
    "table5": "linear",
    "table6": "linear",
}
"""The tables with published numbers, and the scale of their axes."""


def read_cells(experiment: str) -> dict[str, list[dict[str, Any]]]:
    """Return the cells of a table that have our mean and a published one, by dataset."""
    with (RESULTS / f"{experiment}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mean"] and row["published"]]
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["method"] != "observed":
            numbers = {"ours": float(row["mean"]), "paper": float(row["published"])}
            cells.setdefault(row["dataset"], []).append(
                numbers | {"copies": bool(WITH_COPYING.search(row["method"]))}
            )
    return cells


def draw_comparison(experiment: str) -> Figure:
    """Draw our means against the published ones, a panel for each dataset."""
    cells, scale = read_cells(experiment), TABLES[experiment]
    figure = Figure(figsize=(2.7 * len(cells), 2.9), layout="constrained")
    axes = figure.subplots(1, len(cells), squeeze=False)[0]
    for axis, (dataset, rows) in zip(axes, cells.items(), strict=True):
        values = [row[key] for row in rows for key in ("ours", "paper") if row[key] > 0 or scale == "linear"]
        low, high = min(values), max(values)
        margin = (low * 0.7, high * 1.4) if scale == "log" else (low - 3, high + 3)
        axis.plot(margin, margin, color="#bbbbbb", lw=1, zorder=0)
        for copies, colour, marker in ((False, OTHER, "o"), (True, COPYING, "D")):
            part = [row for row in rows if row["copies"] == copies]
            label = "with node copying" if copies else "other methods"
            paper, ours = ([row[key] for row in part] for key in ("paper", "ours"))
            axis.scatter(paper, ours, s=22, color=colour, marker=marker, label=label, alpha=0.85)
        axis.set(xscale=scale, yscale=scale, xlim=margin, ylim=margin, aspect="equal")
        axis.set_title(DATASETS.get(dataset, dataset), fontsize=10)
        axis.set_xlabel("paper", fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("here", fontsize=9)
    axes[0].legend(fontsize=7, loc="lower right", frameon=False)
    return figure


def draw_robustness() -> Figure:
    """Draw accuracy over the attacker's budget, each method under the attack that knows it."""
    with (RESULTS / "robustness.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    titles = {method.name: method.title for method in load("robustness").methods}
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    budgets = [budget for budget in BUDGETS if budget.isdigit()]
    for axis, dataset in zip(axes, ("cora", "citeseer"), strict=True):
        for (method, curve), marker in zip(find_curves(rows, dataset).items(), "osDv^XP*", strict=False):
            shown = [(budgets.index(budget), curve[budget]) for budget in budgets if budget in curve]
            style = "-" if "evidence" in method else "--"
            axis.plot(*zip(*shown, strict=True), style, marker=marker, ms=4, lw=1.3, label=titles[method])
        axis.set_xticks(range(len(budgets)), budgets)
        axis.set_title(DATASETS[dataset], fontsize=10)
        axis.set_xlabel("flips for each target", fontsize=9)
        axis.set_ylim(0, 100)
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("accuracy at targets, %", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=7)
    return figure


def draw_links() -> Figure:
    """Draw the AUC of predictors of missing and of planted edges, one dot for each."""
    rows, path = [], RESULTS / "links.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["mean"] and row["score"] == "auc"]
    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, question, title in zip(
        axes, ("missing", "random"), ("missing edges", "planted edges"), strict=True
    ):
        cells = [row for row in rows if row["question"] == question]
        names = list(dict.fromkeys(row["dataset"] for row in cells))
        for label, methods, colour, marker in (
            ("other methods", None, OTHER, "o"),
            ("one score of copying", ("copied-one", "copied-both"), COPYING, "o"),
            ("LinkPredictor without copying", ("without-copying",), OTHER, "D"),
            ("LinkPredictor", ("default",), COPYING, "D"),
        ):
            own = {"copied-one", "copied-both", "without-copying", "default"}
            part = [
                row for row in cells if (row["method"] in methods if methods else row["method"] not in own)
            ]
            x, y = [names.index(row["dataset"]) for row in part], [float(row["mean"]) for row in part]
            axis.scatter(x, y, s=26, color=colour, marker=marker, label=label, alpha=0.85)
        axis.set_xticks(
            range(len(names)), [DATASETS[name] for name in names], rotation=30, ha="right", fontsize=8
        )
        axis.set_title(title, fontsize=10)
        axis.set_ylim(40, 101)
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("AUC, %", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return figure


def write_pictures(folder: Path) -> None:
    """Write the picture of every table that has published numbers, and those of robustness and links."""
    folder.mkdir(exist_ok=True)
    draw_links().savefig(folder / "links.svg", metadata={"Date": None}, facecolor="white")
    draw_robustness().savefig(folder / "robustness.svg", metadata={"Date": None}, facecolor="white")
    for experiment in TABLES:
        path = folder / f"{experiment}.svg"
        draw_comparison(experiment).savefig(path, metadata={"Date": None}, facecolor="white")

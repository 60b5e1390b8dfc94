"""Pictures of graph models: how near the statistics of their samples are to those of the observed graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError

OBSERVED, ONE, OTHER = "#a3be8c", "#d08770", "#3b4252"
WIDE = 30
"""Largest value over smallest from which an axis is logarithmic."""
VERY_WIDE = 100
"""The same from which it has ticks at powers of ten alone."""


class Panel(NamedTuple):
    """One statistic of one graph: its observed value, and the values of every model's samples."""

    observed: float
    samples: Mapping[str, Sequence[float]]


def spreads(graphs: Mapping[str, Mapping[str, Panel]], *, highlight: Collection[str] = ()) -> Any:
    """Draw for each graph (a row) and statistic (a column) the range and the mean of each model's samples.

    Parameters
    ----------
    graphs
        By graph and statistic what is drawn; all graphs have the same statistics.
    highlight
        Models that stand out.

    Returns
    -------
    matplotlib.figure.Figure
    """
    statistics = list(next(iter(graphs.values()), {}))
    if not statistics or any(list(panels) != statistics for panels in graphs.values()):
        raise InputError("graphs must hold at least one graph, and of all the same statistics.")
    models = list(
        dict.fromkeys(m for panels in graphs.values() for one in panels.values() for m in one.samples)
    )
    figure_module = import_optional("matplotlib.figure", "drawing samples")
    size = (2.6 + 2.1 * len(statistics), len(graphs) * (0.9 + 0.17 * len(models)))
    figure = figure_module.Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(graphs), len(statistics), squeeze=False, sharey=True)
    for row, (graph, panels) in zip(grid, graphs.items(), strict=True):
        for axes, (statistic, panel) in zip(row, panels.items(), strict=True):
            _draw(axes, panel, models, highlight)
            axes.set_title(statistic, fontsize="small")
        row[0].set_ylabel(graph)
    figure.supxlabel("line: range of the samples; point: their mean; green: observed", fontsize="small")
    return figure


def _draw(axes: Any, panel: Panel, models: list[str], highlight: Collection[str]) -> None:
    axes.axvline(panel.observed, color=OBSERVED, linewidth=2, zorder=1)
    for place, model in enumerate(models):
        values = panel.samples.get(model, ())
        if len(values):
            colour = ONE if model in highlight else OTHER
            axes.plot([min(values), max(values)], [place, place], color=colour, linewidth=1.2, zorder=2)
            axes.plot([float(np.mean(values))], [place], "o", color=colour, markersize=3, zorder=3)
    shown = [panel.observed, *(value for values in panel.samples.values() for value in values)]
    if min(shown) > 0 and max(shown) > WIDE * min(shown):
        axes.set_xscale("log")
        subs = [1.0, 3.0] if max(shown) < VERY_WIDE * min(shown) else [1.0]
        axes.locator_params(axis="x", subs=subs, numticks=4)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    axes.set_yticks(range(len(models)), models, fontsize="x-small")
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize="x-small")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)

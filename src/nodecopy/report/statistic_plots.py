"""Figures of graph models: the statistics of their samples beside those of the observed graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nodecopy._core.validation import check_mapping, check_sequence, check_type
from nodecopy.errors import InputError
from nodecopy.report.graph_plots import create_axes

OBSERVED, HIGHLIGHTED, OTHER = "#a3be8c", "#d08770", "#3b4252"
LOGARITHMIC_RATIO = 30
"""Largest value over smallest from which an axis is logarithmic."""
POWERS_OF_TEN_RATIO = 100
"""Largest value over smallest from which a logarithmic axis has ticks at powers of ten only."""


class StatisticSamples(NamedTuple):
    """One statistic of one graph: its observed value, and its values in the samples of every model."""

    observed: float
    samples: Mapping[str, Sequence[float]]


def draw_sample_statistics(
    graphs: Mapping[str, Mapping[str, StatisticSamples]], *, highlight: Collection[str] = ()
) -> Any:
    """Draw the range and the mean of each model's samples, for each graph (row) and statistic (column).

    Parameters
    ----------
    graphs
        Statistics by graph and by name; all graphs have the same statistics.
    highlight
        Models that are drawn in another colour.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from nodecopy.report import StatisticSamples, draw_sample_statistics
    >>> degrees = StatisticSamples(observed=4.6, samples={"copying": [4.4, 4.7], "SBM": [4.1, 5.0]})
    >>> figure = draw_sample_statistics({"karate": {"mean degree": degrees}}, highlight=["copying"])
    >>> len(figure.axes)
    1
    """
    for statistics in check_mapping(graphs, "graphs", "a dictionary of statistics by graph").values():
        check_mapping(statistics, "graphs", "a dictionary of statistics by graph")
        for panel in statistics.values():
            check_type(panel, StatisticSamples, "graphs", "a dictionary of StatisticSamples")
    highlight = check_sequence(highlight, "highlight", "a list of names of models")
    names = list(next(iter(graphs.values()), {}))
    if not names or any(list(statistics) != names for statistics in graphs.values()):
        raise InputError("graphs must hold at least one graph, and the same statistics of every graph.")
    panels = [panel for statistics in graphs.values() for panel in statistics.values()]
    models = list(dict.fromkeys(model for panel in panels for model in panel.samples))
    size = (2.6 + 2.1 * len(names), len(graphs) * (0.9 + 0.17 * len(models)))
    shape = {"nrows": len(graphs), "ncols": len(names), "squeeze": False, "sharey": True}
    grid = create_axes(size, "drawing samples", **shape)
    for row, (graph, statistics) in zip(grid, graphs.items(), strict=True):
        for axes, (name, panel) in zip(row, statistics.items(), strict=True):
            _draw_panel(axes, panel, models, highlight)
            axes.set_title(name, fontsize="small")
        row[0].set_ylabel(graph)
    figure = grid[0, 0].figure
    figure.supxlabel("line: range of the samples; point: their mean; green: observed", fontsize="small")
    return figure


def _draw_panel(axes: Any, panel: StatisticSamples, models: list[str], highlight: Collection[str]) -> None:
    axes.axvline(panel.observed, color=OBSERVED, linewidth=2, zorder=1)
    for row, model in enumerate(models):
        values = panel.samples.get(model, ())
        if len(values):
            colour = HIGHLIGHTED if model in highlight else OTHER
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

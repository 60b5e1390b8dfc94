"""A figure of the coverage of intervals and of their width beside the correct one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodecopy._core.validation import check_mapping, check_type
from nodecopy.errors import InputError
from nodecopy.report.graph_plots import create_axes

MARKERS, COLOURS = "osD^vPX*<>", ("#d08770", "#5e81ac", "#b48ead", "#a3be8c", "#4c566a")
INTENDED_RATIO, INTENDED_COVERAGE = (0.9, 1.25), (90.0, 98.0)


class IntervalQuality(NamedTuple):
    """Coverage in percent, and the ratio of the standard error to the true standard deviation.

    Examples
    --------
    >>> from nodecopy.report import IntervalQuality
    >>> IntervalQuality(coverage=95.2, ratio=1.02).ratio
    1.02
    """

    coverage: float
    ratio: float


Panel = Mapping[str, Mapping[str, IntervalQuality]]
"""By method and statistic."""


SHOWN_RATIOS = (0.2, 5.0)
"""Ratios outside are drawn at the border."""


def draw_coverage(rows: Mapping[str, Mapping[str, Panel]]) -> Any:
    """Draw the ratio of standard errors of every statistic and method; filled if coverage is as intended.

    Ratios below 0.2 and above 5 are drawn at the border.

    Parameters
    ----------
    rows
        Panels by row and column, such as size and kind of networks.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from nodecopy.report import IntervalQuality, draw_coverage
    >>> panel = {"copying": {"density": IntervalQuality(95, 1.0), "triangles": IntervalQuality(85, 0.8)}}
    >>> len(draw_coverage({"200 nodes": {"sbm": panel}}).axes)
    1
    """
    form = "a dictionary of rows of panels, which hold IntervalQuality by method and statistic"
    for row in check_mapping(rows, "rows", form).values():
        for panel in check_mapping(row, "rows", form).values():
            for values in check_mapping(panel, "rows", form).values():
                for value in check_mapping(values, "rows", form).values():
                    check_type(value, IntervalQuality, "rows", form)
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    panels = [panel for row in rows.values() for panel in row.values()]
    methods = list(dict.fromkeys(method for panel in panels for method in panel))
    names = list(dict.fromkeys(name for panel in panels for values in panel.values() for name in values))
    if not names:
        raise InputError("rows must hold at least one panel with a method and a statistic.")
    size = (2.2 + 2.2 * len(columns), 1.2 + len(rows) * (0.6 + 0.19 * len(names)))
    shape = {"nrows": len(rows), "ncols": len(columns), "squeeze": False, "sharey": True, "sharex": True}
    grid = create_axes(size, "drawing coverage", **shape)
    for axes_row, (heading, row) in zip(grid, rows.items(), strict=True):
        for axes, column in zip(axes_row, columns, strict=True):
            _draw_panel(axes, row.get(column, {}), methods, names)
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


def _draw_panel(axes: Any, panel: Panel, methods: list[str], names: list[str]) -> None:
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
    colour = COLOURS[number % len(COLOURS)]
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "color": colour,
        "markerfacecolor": colour if is_filled else "none",
        "markersize": 4,
    }

"""Tables in Markdown, and the cells of the experiment on coverage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodecopy.experiments.tasks.coverage import STATISTICS

Row = Mapping[str, str]
Cells = dict[tuple[str, str, str, str, str], float]
"""Means by dataset, nodes, degree, method and score, in percent."""
DEFAULTS = ("class-copying",)
COVERAGE = (90.0, 98.0)
SMOOTH = [name for name in STATISTICS if name not in ("max_degree", "found_modularity")]


def read_cells(rows: Iterable[Row]) -> Cells:
    """Return the means of all cells that were run."""
    keys = ("dataset", "nodes", "degree", "method", "score")
    return {tuple(row[key] for key in keys): float(row["mean"]) for row in rows if row["mean"]}  # type: ignore[misc]


def find_default(cells: Cells) -> Cells:
    """Return the cells of the default model, without the method."""
    return {(*place[:3], "default", place[4]): x for place, x in cells.items() if place[3] in DEFAULTS}


def not_computed(experiment: str) -> str:
    """Return the text of a table whose experiment was not run."""
    return f"Not computed yet; `nodecopy reproduce {experiment}` does it."


def format_table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

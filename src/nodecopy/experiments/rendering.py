"""Tables as Markdown, CSV and LaTeX, and as plain rows for a terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from nodecopy._core.messages import escape_cell, escape_latex, escape_markdown, join_lines
from nodecopy.experiments.spec import Column
from nodecopy.experiments.summary import Gain, Results, Summary

Grid = tuple[list[str], list[list[str]]]  # headings and rows
SECONDS = "Seconds: the fewest among trials 1 to {}. The time of a batch is shared evenly among its trials."


class Style(NamedTuple):
    """How a format writes best results, deviations and text."""

    best: str
    star: str = "*"
    plus_minus: str = " ± "
    escape: Callable[[str], str] = join_lines


MARKDOWN = Style("**{}**", r"\*", escape=escape_markdown)
LATEX = Style(r"\textbf{{{}}}", plus_minus=r"$\pm$", escape=escape_latex)
TERMINAL = Style("{} best")


def render_markdown(results: Results) -> str:
    """Return the tables of each dataset, with notes and provenance."""
    experiment = results.experiment
    notes = [f"- {escape_markdown(note)}" for note in _build_notes(results)]
    lines = [f"# {experiment.name}: {escape_markdown(experiment.title)}", "", *notes, ""]
    for dataset, tables in iterate_tables(results, MARKDOWN):
        lines += [f"## {escape_markdown(dataset)}", ""] if dataset else []
        for headings, rows in tables:
            rules = ["---"] * len(headings)
            lines += [*(f"| {' | '.join(row)} |" for row in (headings, rules, *rows)), ""]
    return "\n".join([*lines, *(f"- {escape_markdown(line)}" for line in build_footer(results)), ""])


def render_latex(results: Results) -> str:
    """Return ``tabular`` environments with a block per dataset; they need the booktabs package."""
    experiment = results.experiment
    comments = [f"{experiment.name}: {experiment.title}", *_build_notes(results), *build_footer(results)]
    lines = [f"% {join_lines(line)}" for line in comments]
    for columns in _split_columns(results):
        for number, dataset in enumerate(experiment.task.datasets):
            headings, rows = main_grid(results, dataset, LATEX, columns)
            texts = [rf"{' & '.join(row)} \\" for row in (headings, *rows)]
            if number == 0:
                lines += [rf"\begin{{tabular}}{{{'l' * len(headings)}}}", r"\toprule", texts[0]]
            title = rf"\textit{{{LATEX.escape(dataset)}}}"
            lines += [r"\midrule", rf"\multicolumn{{{len(headings)}}}{{l}}{{{title}}} \\", *texts[1:]]
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def render_csv(results: Results, *, spreadsheet: bool = False) -> str:
    """Return one line per cell with every number in full, and its provenance."""
    others = sorted({other for method in results.experiment.methods for other in method.gain_over})
    rows = []
    for cell in results.cells.values():
        row = {"experiment": results.experiment.name, **cell.numbers()}
        for other in others:
            gain = cell.gain_over(other)
            row[f"gain_over_{other}"] = gain.gain if gain else None
            row[f"p_over_{other}"] = gain.p if gain else None
            row[f"published_gain_over_{other}"] = gain.published if gain else None
        row["seed"] = results.seed if cell.n else None
        row |= {key: "; ".join(values) for key, values in cell.provenance.items()}
        if spreadsheet:
            row = {name: escape_cell(value) for name, value in row.items()}
        rows.append({name: f"{x:.6g}" if isinstance(x, float) else x for name, x in row.items()})
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _split_columns(results: Results) -> list[list[Column]]:
    columns = results.experiment.task.columns
    parts = dict.fromkeys(column.part for column in columns)
    return [[column for column in columns if column.part == part] for part in parts]


def iterate_tables(results: Results, style: Style) -> Iterator[tuple[str, list[Grid]]]:
    """Yield each dataset with its tables of results, gains and run times, then "" with the ranks."""
    for dataset in results.experiment.task.datasets:
        tables = []
        for columns in _split_columns(results):
            grids = (make(results, dataset, style, columns) for make in (main_grid, _gain_grid, time_grid))
            tables += [(headings, rows) for headings, rows in grids if rows]
        if tables:
            yield dataset, tables
    headings, rows = rank_grid(results, style)
    if rows:
        yield "", [(headings, rows)]


def main_grid(results: Results, dataset: str, style: Style, columns: Sequence[Column]) -> Grid:
    """Return results, with the paper's number and a verdict where it prints one."""
    compared = {column for _, column, _ in results.experiment.published}
    headings = ["method"]
    for column in columns:
        headings.append(style.escape(column.heading))
        headings += [results.experiment.task.published_by, "verdict"] if column in compared else []
    rows = []
    for method in results.experiment.methods:
        cells = {column: results.cells.get((dataset, column, method.name)) for column in columns}
        if any(cells.values()):
            rows.append([style.escape(method.title)])
            for column, cell in cells.items():
                rows[-1] += _format_cell(cell, style, results)[: 3 if column in compared else 1]
    return headings, rows


def _gain_grid(results: Results, dataset: str, style: Style, columns: Sequence[Column]) -> Grid:
    titles = {method.name: method.title for method in results.experiment.methods}
    rows = []
    for method in results.experiment.methods:
        cells = [results.cells.get((dataset, column, method.name)) for column in columns]
        for other in method.gain_over:
            gains = [cell.gain_over(other) if cell else None for cell in cells]
            if any(gains):
                name = style.escape(f"{method.title} over {titles[other]}")
                rows.append([name, *(_format_gain(gain, results.experiment.task.digits) for gain in gains)])
    return ["gain", *(style.escape(column.heading) for column in columns)], rows


def time_grid(results: Results, dataset: str, style: Style, columns: Sequence[Column]) -> Grid:
    """Return seconds per trial and their ratios to one method, beside the paper's."""
    timing = results.experiment.timing
    if timing is None or timing.column not in columns:
        return [], []
    titles = {method.name: style.escape(method.title) for method in results.experiment.methods}
    headings = ["seconds per trial", style.escape(timing.column.heading)]
    headings += [f"ratio to {titles.get(timing.over, timing.over)}", "paper", "paper's ratio"]
    cells = {name: results.cells.get((dataset, timing.column, name)) for name in {*titles, timing.over}}
    ours = {name: cell.seconds_alone for name, cell in cells.items() if cell}
    rows = []
    for name, title in titles.items():
        numbers = [(seconds.get(name), seconds.get(timing.over)) for seconds in (ours, timing.published)]
        if any(value is not None for value, _ in numbers):
            rows.append([title])
            for value, base in numbers:
                ratio = value / base if value is not None and base else None
                rows[-1] += [_format_spread(value), _format_spread(ratio)]
    return headings, rows


def rank_grid(results: Results, style: Style) -> Grid:
    """Return mean ranks by dataset, if there is a reference: 1 is always nearest."""
    experiment, task = results.experiment, results.experiment.task
    ranks: dict[tuple[str, str], list[int]] = {}
    for dataset, column in product(task.datasets, task.columns):
        cells = [results.cells.get((dataset, column, method.name)) for method in experiment.methods]
        means = {cell.method: cell.mean for cell in cells if cell and cell.mean is not None}
        if task.reference in means and column.is_compared:
            target = means.pop(task.reference)
            distances = {name: abs(mean - target) for name, mean in means.items()}
            for name, distance in distances.items():
                n_nearer = sum(other < distance for other in distances.values())
                ranks.setdefault((dataset, name), []).append(1 + n_nearer)
    rows = []
    for method in experiment.methods:
        own = [ranks.get((dataset, method.name)) for dataset in task.datasets]
        if any(own):
            texts = (f"{sum(places) / len(places):.1f}" if places else "-" for places in own)
            rows.append([style.escape(method.title), *texts])
    return ["mean rank of nearness", *map(style.escape, task.datasets)], rows


def _build_notes(results: Results) -> list[str]:
    experiment, task, timing = results.experiment, results.experiment.task, results.experiment.timing
    lines = task.notes({method.name: method.title for method in experiment.methods})
    lines += task.notes_on_paper() if experiment.published else []
    if timing is not None and timing.column in task.columns:
        lines.append(SECONDS.format(min(timing.trials, task.trials)))
    return [*lines, *experiment.notes]


def build_footer(results: Results) -> list[str]:
    """Return where the numbers come from, a line each."""
    lines = [f"trials: {results.experiment.task.trials}", f"seed: {results.seed}"]
    for key, values in results.provenance.items():
        joined = (" to " if key == "date" else "; ").join(values)
        lines.append(f"{key}: {joined or 'nothing was run'}")
    return lines


def _format_cell(cell: Summary | None, style: Style, results: Results) -> tuple[str, str, str]:
    if cell is None:
        return "-", "-", "-"
    task, verdict = results.experiment.task, "-"
    ours = _format_spread(cell.mean, cell.std, task.digits, style.plus_minus)
    paper = _format_spread(cell.published, cell.published_std, task.digits, style.plus_minus)
    if cell.best:
        ours = style.best.format(ours) + (style.star if cell.significant else "")
    if 0 < cell.n < task.trials:
        ours += f" (n = {cell.n})"
    if cell.difference is not None:
        decimals = _decimals(cell.published or 0.0, task.digits)
        verdict = f"{cell.verdict} {cell.difference:+.{decimals}f}" if cell.verdict else "one trial only"
    return ours, paper, verdict


def _format_spread(
    mean: float | None, std: float | None = None, digits: int | None = None, plus_minus: str = ""
) -> str:
    if mean is None:
        return "-"
    decimals = _decimals(mean, digits)
    return f"{mean:.{decimals}f}" + ("" if std is None else f"{plus_minus}{std:.{decimals}f}")


def _decimals(value: float, digits: int | None) -> int:
    if digits is not None:
        return digits
    return min(6, max(0, 2 - math.floor(math.log10(abs(value))))) if value else 2


def _format_gain(gain: Gain | None, digits: int | None) -> str:
    if gain is None:
        return "-"
    remarks = [] if gain.p is None else [f"p = {gain.p:.2g}"]
    remarks += [] if gain.published is None else [f"paper {gain.published:+.{digits}f}"]
    return f"{gain.gain:+.{digits}f}" + (f" ({', '.join(remarks)})" if remarks else "")

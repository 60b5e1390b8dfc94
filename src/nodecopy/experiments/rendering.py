"""Summaries of the finished trials of each cell, and tables as Markdown, CSV, LaTeX and plain rows.

Deviations are standard deviations over trials (divisor n - 1); so are the paper's, which it calls standard
errors. The notes of tables define verdicts and best methods. If the paper prints no deviation, ours
is taken; one trial has no verdict.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from nodecopy._core.messages import escape_cell, escape_latex, escape_markdown, join_lines, warn_about_data
from nodecopy.experiments.spec import CellKey, Column, Experiment, Published, rounding_error
from nodecopy.experiments.store import Record, Store, list_forms
from nodecopy.metrics.significance import is_significantly_better, signed_rank_p

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


TrialValues = Mapping[str, Mapping[int, float]]  # by method and number of the trial
MIN_TRIALS_FOR_P = 6  # with fewer the signed-rank test cannot reach 5 %: p is at least 2 / 2^n


@dataclass(frozen=True)
class Gain:
    """The gain of a method over another on the same trials, with the p value if there are enough."""

    over: str
    gain: float
    p: float | None
    published: float | None


@dataclass(frozen=True)
class Summary:
    """A cell of the table; a method that was not run has ``n`` = 0 and only published numbers."""

    dataset: str
    column: Column
    method: str
    n: int
    mean: float | None
    std: float | None
    published: float | None
    published_std: float | None
    difference: float | None
    verdict: str | None
    best: bool
    significant: bool
    gains: tuple[Gain, ...]
    extra_scores: Mapping[str, float | None]  # means of the scores that the task lists beside every column
    seconds: float | None  # mean per trial
    seconds_alone: float | None  # the fewest among the first trials, see Timing
    seconds_total: float
    values: tuple[float, ...]  # one per trial
    samples: tuple[float, ...]  # one per sample that was drawn in the trials
    provenance: Mapping[str, tuple[str, ...]]

    def numbers(self) -> dict[str, Any]:
        place = {"dataset": self.dataset, **dict(self.column.conditions), "score": self.column.score}
        left_out = ("dataset", "column", "gains", "extra_scores", "values", "samples", "provenance")
        own = {name: value for name, value in vars(self).items() if name not in left_out}
        return place | own | dict(self.extra_scores)

    def to_dict(self) -> dict[str, Any]:
        others = {name: getattr(self, name) for name in ("values", "samples", "provenance")}
        return self.numbers() | {"gains": [vars(gain) for gain in self.gains]} | others

    def gain_over(self, other: str) -> Gain | None:
        return next((gain for gain in self.gains if gain.over == other), None)


@dataclass(frozen=True)
class Results:
    """All cells of an experiment and their provenance."""

    experiment: Experiment
    seed: int
    cells: Mapping[CellKey, Summary]
    provenance: Mapping[str, tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        cells = [cell.to_dict() for cell in self.cells.values() if cell.n]
        place = {"experiment": self.experiment.name, "seed": self.seed}
        return place | {"cells": cells, "provenance": self.provenance}


def summarise(experiment: Experiment, store: Store, *, seed: int = 0) -> Results:
    """Summarise the trials of an experiment that the store holds."""
    task, records = experiment.task, {}
    for cell in experiment.cells(seed):
        place = cell.dataset, tuple(cell.conditions.items()), cell.method
        records[place] = store.read_finished(cell, range(task.trials))
    for name in task.datasets:
        of_dataset = (own for (dataset, *_), own in records.items() if dataset == name)
        if len(list_forms(chain.from_iterable(of_dataset))) > 1:
            warn_about_data(f"trials of {name} are of several forms of the dataset: do not compare them.")
    cells: dict[CellKey, Summary] = {}
    for dataset, column in product(task.datasets, task.columns):
        by_method, values = {}, {}
        for method in experiment.methods:
            finished = records.get((dataset, column.conditions, method.name), [])
            own = by_method[method.name] = [r for r in finished if column.score in r.scores]
            values[method.name] = {r.trial: column.scale * r.scores[column.score] for r in own}
        best, is_significant = _find_best(values, column, task.reference)
        for method in experiment.methods:
            key, own = (dataset, column, method.name), by_method[method.name]
            if own or key in experiment.published:
                marks = method.name == best, method.name == best and is_significant
                cells[key] = _summarise_cell(experiment, key, own, values, method.gain_over, *marks)
    return Results(experiment, seed, cells, _join_provenance(list(chain(*records.values()))))


def compare_with_published(
    mean: float, std: float | None, n: int, published: Published, trials: int, digits: int | None = 1
) -> str | None:
    """Return whether ours is ``ahead`` of the published mean of some trials, ``level`` or ``behind``."""
    if std is None:
        return None
    difference, rounding = mean - published.mean, published.rounding
    theirs = std**2 / n if published.std is None else published.std**2 / trials
    if rounding is None and digits is not None:
        rounding = rounding_error(digits)
    if abs(difference) <= 2 * math.sqrt(std**2 / n + theirs) + (rounding or 0.0):
        return "level"
    higher, lower = ("above", "below") if digits is None else ("ahead", "behind")
    return higher if difference > 0 else lower


def _summarise_cell(
    experiment: Experiment,
    key: CellKey,
    records: Sequence[Record],
    values: TrialValues,
    gain_over: Iterable[str],
    best: bool,
    significant: bool,
) -> Summary:
    _, column, method = key
    task, timing, own = experiment.task, experiment.timing, tuple(values[method].values())
    mean, std = _mean_and_std(own)
    published, difference, verdict = experiment.published.get(key), None, None
    compared = own or tuple(values.get(task.verdict_of, {}).values())
    if published and compared:
        ours, deviation = _mean_and_std(compared)
        deviation = 0.0 if deviation is None and task.has_fixed_split else deviation
        rest = len(compared), published, experiment.published_trials, task.digits
        difference, verdict = ours - published.mean, compare_with_published(ours, deviation, *rest)
    timed = [record.seconds for record in records if timing and record.trial < timing.trials]
    samples = (x for record in records for x in record.details.get("samples", {}).get(column.score, []))
    gains = (_find_gain(experiment, key, other, values) for other in gain_over)
    return Summary(
        *key,
        n=len(records),
        mean=mean if own else None,
        std=std,
        published=published.mean if published else None,
        published_std=published.std if published else None,
        difference=difference,
        verdict=verdict,
        best=best,
        significant=significant,
        gains=tuple(gain for gain in gains if gain),
        extra_scores={
            name: _mean([record.scores[name] for record in records if name in record.scores])
            for name in task.extra_scores
        },
        seconds=_mean([record.seconds for record in records]),
        seconds_alone=min(timed, default=None),
        seconds_total=math.fsum(record.seconds for record in records),
        values=own,
        samples=tuple(column.scale * value for value in samples),
        provenance=_join_provenance(records),
    )


def _mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    mean = float(np.mean(values)) if values else math.nan
    return mean, float(np.std(values, ddof=1)) if len(values) > 1 else None


def _find_best(values: TrialValues, column: Column, reference: str) -> tuple[str | None, bool]:
    if not column.is_compared:
        return None, False
    most = max(map(len, values.values()), default=0)
    values = {name: trials for name, trials in values.items() if 2 * len(trials) >= most}
    if column.lower_is_better:
        values = {name: {trial: -x for trial, x in trials.items()} for name, trials in values.items()}
    means = {name: float(np.mean(list(trials.values()))) for name, trials in values.items() if trials}
    if reference:
        if reference not in means:
            return None, False
        target = means.pop(reference)
        means = {name: -abs(mean - target) for name, mean in means.items()}
        values = {name: {trial: -abs(x - target) for trial, x in values[name].items()} for name in means}
    ranking = sorted(means, key=lambda name: -means[name])  # stable
    if len(ranking) < 2:
        return None, False
    pairs = _pair(values[ranking[0]], values[ranking[1]])
    return ranking[0], bool(pairs[0]) and is_significantly_better(*pairs)


def _find_gain(experiment: Experiment, key: CellKey, other: str, values: TrialValues) -> Gain | None:
    dataset, column, method = key
    first, second = _pair(values[method], values.get(other, {}))
    if not first:
        return None
    ours, theirs = (experiment.published.get((dataset, column, name)) for name in (method, other))
    published = ours.mean - theirs.mean if ours and theirs else None
    p = signed_rank_p(first, second) if len(first) >= MIN_TRIALS_FOR_P else None
    return Gain(other, float(np.mean(first) - np.mean(second)), p, published)


def _pair(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[list[float], list[float]]:
    common = [trial for trial in first if trial in second]
    return [first[trial] for trial in common], [second[trial] for trial in common]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _join_provenance(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    joined: dict[str, tuple[str, ...]] = {}
    for key in ("commit", "versions", "machine"):
        parts = [record.provenance.get(key, "unknown") for record in records]
        tables = [part if isinstance(part, dict) else {"": part} for part in parts]
        texts = {", ".join(f"{name} {entry}".strip() for name, entry in table.items()) for table in tables}
        joined[key] = tuple(sorted(texts))
    days = sorted({str(record.provenance.get("finished", "unknown"))[:10] for record in records})
    return joined | {"date": tuple(dict.fromkeys([days[0], days[-1]])) if days else ()}

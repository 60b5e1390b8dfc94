"""Tables as text: Markdown to read, CSV to compute with, LaTeX to print; and plain rows for a terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, TypeAlias

from nodecopy.experiments.measures import MEASURES
from nodecopy.experiments.spec import Column, Protocol
from nodecopy.experiments.summary import Gain, Results, Summary, rounding

Grid: TypeAlias = tuple[list[str], list[list[str]]]
"""Heads and rows."""

NODES = "In percent, mean and standard deviation over trials."
INTERACTIONS = (
    "In percent, mean and standard deviation over trials, which are random splits. Settings were chosen in "
    "every trial by Recall@20 on its validation part, out of as many for each method."
)
CONVENTIONS = (
    "Recall and NDCG by the paper's formulas, with the items of training and validation left out of the "
    "candidates. Printed convention: what the paper's numbers fit, with validation items among the "
    "candidates and the ideal list made of the hits in a user's own first 100; only for a comparison with it."
)
SAMPLES = (
    "Every training of a model is a trial; of it {} graphs are sampled. Means and standard deviations "
    "over trials, in the units of the paper."
)
NEAREST = (
    "Bold: the nearest of ours to {}. Asterisk: nearer than our second nearest by the Wilcoxon signed-rank "
    "test at 5 %."
)
BEST = (
    "Bold: the best of ours. Asterisk: better than our second best by the Wilcoxon signed-rank test at 5 %."
)
VERDICT = (
    "Verdict: level where ours and the paper's mean differ by at most two standard errors of the difference "
    "plus {} (the paper's rounding); otherwise {} by the difference."
)
CALLED_ERRORS = (
    "The paper calls its deviations standard errors; by their size they are standard deviations too."
)
NO_DEVIATIONS = "The paper prints no deviations: they are taken to be ours."
SECONDS = "Seconds: the fewest among trials 1 to {}. A trial has its share of those of its batch."


class Style(NamedTuple):
    """How a format writes a best result, a deviation and text that might hold its special characters."""

    best: Callable[[str, bool], str]
    plus_minus: str
    plain: Callable[[str], str] = str


MARKDOWN = Style(
    lambda text, star: f"**{text}**" + (r"\*" if star else ""), " ± ", lambda text: text.replace("|", r"\|")
)
LATEX = Style(
    lambda text, star: rf"\textbf{{{text}}}" + ("*" if star else ""), r"$\pm$", lambda text: _tex(text)
)
TERMINAL = Style(lambda text, star: f"{text} best" + ("*" if star else ""), " ± ")


def markdown(results: Results) -> str:
    """A table per dataset, the gains below it, and where the numbers come from."""
    lines = [f"# {_title(results)}", "", *(f"- {note}" for note in notes(results)), ""]
    for dataset in results.experiment.protocol.datasets:
        lines += [f"## {dataset}", ""]
        for heads, rows in grids(results, dataset, MARKDOWN):
            lines += [*_pipes(heads, rows), ""]
    heads, rows = rank_grid(results, MARKDOWN)
    if rows:
        lines += [*_pipes(heads, rows), ""]
    return "\n".join([*lines, *(f"- {line}" for line in footer(results)), ""])


def latex(results: Results) -> str:
    """A ``tabular`` with a block per dataset, or several of them; needs the booktabs package."""
    lines = [f"% {line}" for line in (_title(results), *notes(results), *footer(results))]
    return "\n".join([*lines, *map(_tabular, parts(results))])


def _tabular(results: Results) -> str:
    heads, _ = grid(results, results.experiment.protocol.datasets[0], LATEX)
    lines = [rf"\begin{{tabular}}{{{'l' * len(heads)}}}", r"\toprule", _ampersands(heads)]
    for dataset in results.experiment.protocol.datasets:
        lines += [r"\midrule", rf"\multicolumn{{{len(heads)}}}{{l}}{{\textit{{{_tex(dataset)}}}}} \\"]
        lines += [_ampersands(row) for row in grid(results, dataset, LATEX)[1]]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def comma_separated(results: Results) -> str:
    """One line per cell with every number in full, and its provenance."""
    others = sorted({other for method in results.experiment.methods for other in method.gain_over})
    names = [*Column.__dataclass_fields__, *Summary.__dataclass_fields__]
    plain = [
        name
        for name in names
        if name not in ("dataset", "column", "gains", "values", "samples", "provenance")
    ]
    gains = [f"{what}_{other}" for other in others for what in ("gain_over", "p_over", "published_gain_over")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", "dataset", *plain, *gains, "seed", *results.provenance])
    for cell in results.cells.values():
        described = vars(cell) | vars(cell.column)
        numbers = [described[name] for name in plain]
        for other in others:
            gain = _gain_over(cell, other)
            numbers += [gain.gain, gain.p, gain.published] if gain else [None] * 3
        origin = [str(results.seed) if cell.n else "", *map("; ".join, cell.provenance.values())]
        writer.writerow([results.experiment.name, cell.dataset, *map(_number, numbers), *origin])
    return text.getvalue()


def parts(results: Results) -> list[Results]:
    """What one table shows: all of it, or one attack where each has several scores, so it stays narrow."""
    experiment = results.experiment
    if len(experiment.protocol.scores) == 1 or not experiment.protocol.attackers:
        return [results]
    narrow = (experiment.narrowed(attacks=[one.name]) for one in experiment.protocol.attackers)
    return [replace(results, experiment=one) for one in narrow]


def grids(results: Results, dataset: str, style: Style) -> Iterator[Grid]:
    """The tables of a dataset: the results, and below them the gains and the run times, if there are any."""
    for part in parts(results):
        for below in (grid, gain_grid, time_grid):
            heads, rows = below(part, dataset, style)
            if rows or below is grid:
                yield heads, rows


def grid(results: Results, dataset: str, style: Style) -> Grid:
    """Heads and rows of a dataset's table: ours, and where the paper prints something, that and a verdict."""
    protocol = results.experiment.protocol
    compared = {column for _, column, _ in results.experiment.published}
    heads = ["method"]
    for column in protocol.columns:
        heads.append(style.plain(protocol.heading(column)))
        heads += ["paper", "verdict"] if column in compared else []
    rows = []
    for method in results.experiment.methods:
        cells = {column: results.cells.get((dataset, column, method.name)) for column in protocol.columns}
        if any(cells.values()):
            texts = (
                text
                for column, cell in cells.items()
                for text in _texts(cell, style, protocol)[: 3 if column in compared else 1]
            )
            rows.append([style.plain(method.title), *texts])
    return heads, rows


def gain_grid(results: Results, dataset: str, style: Style) -> Grid:
    """Heads and rows of the gains of methods over others on the same trials."""
    protocol = results.experiment.protocol
    titles = {method.name: method.title for method in results.experiment.methods}
    heads = ["gain", *(style.plain(protocol.heading(column)) for column in protocol.columns)]
    rows = []
    for method in results.experiment.methods:
        for other in method.gain_over:
            cells = [results.cells.get((dataset, column, method.name)) for column in protocol.columns]
            gains = [_gain_over(cell, other) for cell in cells]
            if any(gains):
                name = style.plain(f"{method.title} over {titles[other]}")
                rows.append([name, *(_gain(gain, protocol.digits) for gain in gains)])
    return heads, rows


def time_grid(results: Results, dataset: str, style: Style) -> Grid:
    """Heads and rows of seconds per trial and of their ratios to those of one method, beside the paper's."""
    timing, protocol = results.experiment.timing, results.experiment.protocol
    if timing is None or timing.labels not in protocol.labels:
        return [], []
    titles = {method.name: style.plain(method.title) for method in results.experiment.methods}
    column = next(one for one in protocol.columns if one.labels == timing.labels)
    ratio = f"ratio to {titles.get(timing.over, timing.over)}"
    heads = ["seconds per trial", f"{timing.labels} labels", ratio, "paper", "paper's ratio"]
    cells = {name: results.cells.get((dataset, column, name)) for name in {*titles, timing.over}}
    ours = {name: cell.seconds_alone if cell else None for name, cell in cells.items()}
    rows = []
    for name, title in titles.items():
        theirs, base = timing.published.get(name), timing.published.get(timing.over)
        if theirs is not None or ours[name] is not None:
            texts = [_significant(ours[name]), _ratio(ours[name], ours[timing.over])]
            rows.append([title, *texts, _significant(theirs), _ratio(theirs, base)])
    return heads, rows


def rank_grid(results: Results, style: Style) -> Grid:
    """Heads and rows of the mean rank of graph models by dataset: 1 is nearest on every statistic."""
    experiment, protocol = results.experiment, results.experiment.protocol
    if not protocol.reference:
        return [], []
    ranks: dict[tuple[str, str], list[int]] = {}
    for dataset, column in product(protocol.datasets, protocol.columns):
        found = {one.name: results.cells.get((dataset, column, one.name)) for one in experiment.methods}
        means = {name: one.mean for name, one in found.items() if one and one.mean is not None}
        if protocol.reference in means and MEASURES[column.score].aimed_at:
            aim = means.pop(protocol.reference)
            away = {name: abs(mean - aim) for name, mean in means.items()}
            for name, one in away.items():
                ranks.setdefault((dataset, name), []).append(1 + sum(other < one for other in away.values()))
    rows = []
    for method in experiment.methods:
        own = [ranks.get((dataset, method.name)) for dataset in protocol.datasets]
        if any(own):
            texts = ("-" if one is None else f"{sum(one) / len(one):.1f}" for one in own)
            rows.append([style.plain(method.title), *texts])
    return ["mean rank of nearness", *map(style.plain, protocol.datasets)], rows


def notes(results: Results) -> list[str]:
    """How to read the table."""
    experiment, protocol = results.experiment, results.experiment.protocol
    clock = experiment.timing
    timed = clock is not None and clock.labels in protocol.labels
    timing = [SECONDS.format(min(clock.trials, protocol.trials))] if clock and timed else []
    if protocol.digits is None:
        title = next((one.title for one in experiment.methods if one.name == protocol.reference), "")
        first = [SAMPLES.format(protocol.samples), NEAREST.format(title)]
        paper = [VERDICT.format("half a unit of the printed digits", "above or below"), NO_DEVIATIONS]
    else:
        first = [NODES, BEST] if protocol.labels else [INTERACTIONS, CONVENTIONS, BEST]
        paper = [VERDICT.format(f"{rounding(protocol.digits):g}", "ahead or behind")]
        paper += [CALLED_ERRORS] if protocol.labels else []
    return [*first, *(paper if experiment.published else []), *timing, *experiment.notes]


def footer(results: Results) -> list[str]:
    """Where the numbers come from, a line each."""
    lines = [f"trials: {results.experiment.protocol.trials}", f"seed: {results.seed}"]
    for key, values in results.provenance.items():
        joined = " to " if key == "date" else "; "
        lines.append(f"{key}: {joined.join(values) or 'nothing was run'}")
    return lines


def _texts(cell: Summary | None, style: Style, protocol: Protocol) -> tuple[str, str, str]:
    """Ours, the paper's, the verdict; ours says its number of trials where some are missing."""
    digits = protocol.digits
    if cell is None:
        return "-", "-", "-"
    ours, paper = "-", "-"
    if cell.mean is not None:
        ours = _spread(cell.mean, cell.std, style, digits)
        ours = style.best(ours, cell.significant) if cell.best else ours
        ours += f" (n = {cell.n})" if cell.n < protocol.trials else ""
    if cell.published is not None:
        paper = _spread(cell.published, cell.published_std, style, digits)
    return ours, paper, _verdict(cell, digits)


def _verdict(cell: Summary, digits: int | None) -> str:
    if cell.difference is None:
        return "-"
    if cell.verdict is None:
        return "one trial only"
    return f"{cell.verdict} {cell.difference:+.{_decimals(cell.published or 0.0, digits)}f}"


def _spread(mean: float, std: float | None, style: Style, digits: int | None) -> str:
    decimals = _decimals(mean, digits)
    return f"{mean:.{decimals}f}" + ("" if std is None else f"{style.plus_minus}{std:.{decimals}f}")


def _decimals(value: float, digits: int | None) -> int:
    """Digits behind the point: those given, or as many as leave three that count."""
    if digits is not None:
        return digits
    return min(6, max(0, 2 - math.floor(math.log10(abs(value))))) if value else 2


def _significant(value: float | None) -> str:
    return "-" if value is None else f"{value:.{_decimals(value, None)}f}"


def _ratio(value: float | None, base: float | None) -> str:
    return "-" if value is None or not base else _significant(value / base)


def _gain_over(cell: Summary | None, other: str) -> Gain | None:
    return next((gain for gain in cell.gains if gain.over == other), None) if cell else None


def _gain(gain: Gain | None, digits: int | None) -> str:
    if gain is None:
        return "-"
    notes = [] if gain.p is None else [f"p = {gain.p:.2g}"]
    notes += [] if gain.published is None else [f"paper {gain.published:+.{digits}f}"]
    return f"{gain.gain:+.{digits}f}" + (f" ({', '.join(notes)})" if notes else "")


def _title(results: Results) -> str:
    return f"{results.experiment.name}: {results.experiment.title}"


def _number(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _pipes(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tex(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, f"\\{character}")
    return text

"""Summarise the finished trials of each cell of a table.

Deviations are standard deviations over trials (divisor n - 1); so are the paper's, which it calls standard
errors. The notes of tables define verdicts and best methods. If the paper prints no deviation, ours
is taken; one trial has no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np

from nodecopy._core.messages import warn_about_data
from nodecopy.experiments.spec import CellKey, Column, Experiment, Published, rounding_error
from nodecopy.experiments.store import Record, Store, list_forms
from nodecopy.metrics.significance import is_significantly_better, signed_rank_p

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

"""From finished trials to what a table says of each cell.

All numbers are in the unit of their column (:mod:`.measures`), mostly percent. A deviation is the standard
deviation over trials (divisor n - 1), which is also what the paper prints, although it says standard
errors.

*Verdict.* Ours and the published mean are both averages over random trials, ours of n, the paper's of N,
on different splits. Their difference d has the standard error e = sqrt(s^2 / n + S^2 / N). Up to 2 e plus
half a unit of the last digit, the paper's rounding, is chance: level. Beyond: ahead or behind by d. One
trial has no deviation, hence no verdict. Where the paper prints no deviation, S = s and N = n; of
statistics of graphs, where higher is not better, the verdict is above or below.

*Best.* The highest mean of ours, of statistics the mean nearest to the reference's; significant where the
Wilcoxon signed-rank test on the trials that it shares with the second best says so at 5 %, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nodecopy.experiments.measures import MEASURES
from nodecopy.experiments.spec import Column, Experiment, Method, Place, Published, Timing
from nodecopy.experiments.store import Record, Store
from nodecopy.metrics.significance import is_significantly_better, signed_rank_p

FEWEST_TRIALS = 6
"""The fewest of which the signed-rank test can find 5 %: p is at least 2 / 2^n."""


@dataclass(frozen=True)
class Gain:
    """How much better than another method on the same trials, with the p value of the signed-rank test.

    Of fewer than ``FEWEST_TRIALS`` there is no p value.
    """

    over: str
    gain: float
    p: float | None
    published: float | None


@dataclass(frozen=True)
class Summary:
    """A cell of the table; a method that was not run has ``n`` = 0 and only published numbers.

    ``values`` are the trials', ``samples`` those of all graphs that a graph model drew in them.
    """

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
    nll: float | None
    brier: float | None
    ece: float | None
    seconds: float | None
    seconds_alone: float | None
    seconds_total: float
    values: tuple[float, ...]
    samples: tuple[float, ...]
    provenance: Mapping[str, tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; ``seconds`` are per trial, those ``alone`` by :class:`.Timing`."""
        place = {"dataset": self.dataset, **vars(self.column), "method": self.method}
        own = {key: value for key, value in vars(self).items() if key not in ("dataset", "column", "method")}
        return {
            **place,
            **own,
            "gains": [vars(gain) for gain in self.gains],
            "values": list(self.values),
            "samples": list(self.samples),
            "provenance": {key: list(values) for key, values in self.provenance.items()},
        }


@dataclass(frozen=True)
class Results:
    """All cells of an experiment and where they come from."""

    experiment: Experiment
    seed: int
    cells: Mapping[Place, Summary]
    provenance: Mapping[str, tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; only cells that were run."""
        return {
            "experiment": self.experiment.name,
            "seed": self.seed,
            "cells": [cell.to_dict() for cell in self.cells.values() if cell.n],
            "provenance": {key: list(values) for key, values in self.provenance.items()},
        }


def summarise(experiment: Experiment, store: Store, *, seed: int = 0) -> Results:
    """Gather what the store holds of an experiment; trials that are missing are left out."""
    trials = range(experiment.protocol.trials)
    records = {
        (cell.dataset, cell.labels, cell.attack, cell.method): store.records(cell, trials)
        for cell in experiment.cells(seed)
    }
    cells: dict[Place, Summary] = {}
    for dataset, column in product(experiment.protocol.datasets, experiment.protocol.columns):
        shown = {
            method.name: [
                one
                for one in records.get((dataset, column.labels, column.attack, method.name), [])
                if column.score in one.scores
            ]
            for method in experiment.methods
        }
        best, is_significant = _best(shown, column.score, experiment.protocol.reference)
        for method in experiment.methods:
            place = dataset, column, method.name
            if shown[method.name] or place in experiment.published:
                is_best = method.name == best
                cells[place] = _summary(experiment, place, method, shown, is_best, is_best and is_significant)
    return Results(experiment, seed, cells, _provenance([one for many in records.values() for one in many]))


def verdict(
    mean: float,
    std: float | None,
    n: int,
    published: Published | None,
    published_trials: int,
    digits: int | None = 1,
) -> str | None:
    """Whether ours is ``ahead`` of the published mean, ``level`` with it or ``behind``.

    Without ``digits``, that is of statistics: ``above``, ``level`` or ``below``.

    >>> verdict(73.0, 2.8, 50, Published(73.8, 2.7), 50)
    'level'
    >>> verdict(72.0, 2.8, 50, Published(73.8, 2.7), 50)
    'behind'
    """
    if published is None or std is None:
        return None
    difference = mean - published.mean
    theirs = std**2 / n if published.std is None else published.std**2 / published_trials
    rounded = published.rounding if digits is None else rounding(digits)
    if abs(difference) <= 2 * math.sqrt(std**2 / n + theirs) + (rounded or 0.0):
        return "level"
    if digits is None:
        return "above" if difference > 0 else "below"
    return "ahead" if difference > 0 else "behind"


def rounding(digits: int) -> float:
    """How far a number printed with so many digits behind the point may be from its own."""
    return 0.5 * 0.1**digits


def _summary(
    experiment: Experiment,
    place: Place,
    method: Method,
    column: Mapping[str, list[Record]],
    best: bool,
    significant: bool,
) -> Summary:
    records = column[method.name]
    n = len(records)
    values = tuple(_values(records, place[1].score).values())
    mean = float(np.mean(values)) if n else None
    std = float(np.std(values, ddof=1)) if n > 1 else None
    published = experiment.published.get(place)
    printed = experiment.published_trials, experiment.protocol.digits
    return Summary(
        *place,
        n=n,
        mean=mean,
        std=std,
        published=published.mean if published else None,
        published_std=published.std if published else None,
        difference=mean - published.mean if mean is not None and published else None,
        verdict=None if mean is None else verdict(mean, std, n, published, *printed),
        best=best,
        significant=significant,
        gains=tuple(_gains(experiment, place, method, column)),
        nll=_mean([one.scores["nll"] for one in records if "nll" in one.scores]),
        brier=_mean([one.scores["brier"] for one in records if "brier" in one.scores]),
        ece=_mean([one.scores["ece"] for one in records if "ece" in one.scores]),
        seconds=_mean([one.seconds for one in records]),
        seconds_alone=_seconds_alone(records, experiment.timing),
        seconds_total=math.fsum(one.seconds for one in records),
        values=values,
        samples=_samples(records, place[1].score),
        provenance=_provenance(records),
    )


def _best(column: Mapping[str, list[Record]], score: str, reference: str) -> tuple[str | None, bool]:
    """The method with the highest mean, or with that nearest to the reference's, and whether it beats the
    second best significantly.
    """
    found = {name: _values(records, score) for name, records in column.items() if records}
    means = {name: float(np.mean(list(values.values()))) for name, values in found.items()}
    if reference:
        if reference not in found or not MEASURES[score].aimed_at:
            return None, False
        aim = means.pop(reference)
        means = {name: -abs(mean - aim) for name, mean in means.items()}
        found = {name: {trial: -abs(one - aim) for trial, one in found[name].items()} for name in means}
    ranking = sorted(means, key=lambda name: -means[name])  # stable
    if len(ranking) < 2:
        return (ranking[0] if ranking else None), False
    pairs = _paired(found[ranking[0]], found[ranking[1]])
    return ranking[0], bool(pairs[0]) and is_significantly_better(*pairs)


def _gains(
    experiment: Experiment, place: Place, method: Method, column: Mapping[str, list[Record]]
) -> list[Gain]:
    dataset, where, _ = place
    ours = _values(column[method.name], where.score)
    gains = []
    for other in method.gain_over:
        first, second = _paired(ours, _values(column.get(other, []), where.score))
        if first:
            both = [experiment.published.get((dataset, where, name)) for name in (method.name, other)]
            published = both[0].mean - both[1].mean if both[0] and both[1] else None
            gain = float(np.mean(first) - np.mean(second))
            p = signed_rank_p(first, second) if len(first) >= FEWEST_TRIALS else None
            gains.append(Gain(other, gain, p, published))
    return gains


def _values(records: Sequence[Record], score: str) -> dict[int, float]:
    """A score of each trial in the unit of its column."""
    return {one.trial: MEASURES[score].scale * one.scores[score] for one in records}


def _samples(records: Sequence[Record], score: str) -> tuple[float, ...]:
    each = [value for one in records for value in one.details.get("samples", {}).get(score, [])]
    return tuple(MEASURES[score].scale * value for value in each)


def _paired(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[list[float], list[float]]:
    """The results of the trials that both have."""
    common = [trial for trial in first if trial in second]
    return [first[trial] for trial in common], [second[trial] for trial in common]


def _seconds_alone(records: Sequence[Record], timing: Timing | None) -> float | None:
    timed = [one.seconds for one in records if timing and one.trial < timing.trials]
    return min(timed, default=None)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _provenance(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Every commit, set of versions, machine and day behind the results: one of each, if all is well."""

    def distinct(key: str) -> tuple[str, ...]:
        return tuple(sorted({_words(one.provenance.get(key, "unknown")) for one in records}))

    days = sorted({str(one.provenance.get("finished", "unknown"))[:10] for one in records})
    return {
        "commit": distinct("commit"),
        "versions": distinct("versions"),
        "machine": distinct("machine"),
        "date": tuple(dict.fromkeys([days[0], days[-1]])) if days else (),
    }


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items())
    return str(value)

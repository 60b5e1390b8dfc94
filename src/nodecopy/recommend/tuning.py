"""Coordinate search for the parameters of recommenders, by interactions that are held out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_integer
from nodecopy._core.messages import log_decision
from nodecopy._core.parallel import track
from nodecopy._core.random import Rng
from nodecopy.datasets import interaction_split
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike
from nodecopy.metrics.ranking import Lists
from nodecopy.recommend.algebra import best_unseen, row_blocks
from nodecopy.recommend.base import MAX_BLOCK_SCORES, align, check_nonempty

HELD_OUT_SHARE, DEFAULT_K = 0.1, 20
REGULARISATIONS = (5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 90.0, 130.0, 200.0, 300.0, 450.0, 700.0, 1000.0)
MIN_GAIN, MIN_STANDARD_ERRORS = 1e-5, 0.5  # smallest gain: more than rounding, and than noise over users


class Coordinate(NamedTuple):
    """Parameters that share a value, and values to try, ascending; strings such as 'auto' among them."""

    names: tuple[str, ...]
    values: tuple[float | str, ...]

    def directions(self, value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the values above a value, then those below it, the nearest first."""
        if value in self.values:
            at = self.values.index(value)
            return self.values[at + 1 :], self.values[:at][::-1]
        numbers = [other for other in self.values if not isinstance(other, str)]
        above = tuple(other for other in numbers if other > float(value))
        return above, tuple(other for other in numbers if other < float(value))[::-1]


def tune(model: Any, interactions: InteractionsLike, validation: Any, budget: int, k: Any, rng: Rng) -> None:
    """Set the best parameters of a model on held-out interactions; see its method ``tune``."""
    if not model.coordinates():
        raise InputError(f"tune needs a model that declares coordinates(); {type(model).__name__} has none.")
    train = check_nonempty(interactions, "interactions")
    check_integer(budget, "budget", low=1)
    k = min(DEFAULT_K, train.n_items) if k is None else k
    check_integer(k, "k", low=1, high=train.n_items, high_name="n_items")
    model.check_params()
    fitted, held_out = _hold_out(train, validation, rng)
    users = np.flatnonzero((held_out.rows.degrees > 0) & (fitted.rows.degrees > 0))
    if not len(users):
        raise InputError("a user must have interactions to fit and others in validation; got no such user.")
    search = Search(model, fitted, held_out, users, k, budget)
    best = search.run()
    model.set_params(**best.settings)
    names = "settings", f"recall@{k}", f"ndcg@{k}"
    model.tuning_ = [dict(zip(names, (trial.settings, *trial.means), strict=True)) for trial in search.trials]
    chosen = ", ".join(f"{name}={_show(value)}" for name, value in best.settings.items())
    (recall, ndcg), (first_recall, first_ndcg) = best.means, search.trials[0].means
    log_decision(
        f"{type(model).__name__} was tuned with {len(search.trials)} settings on "
        f"{held_out.n_interactions:,} held-out interactions: {chosen}. recall@{k} is {recall:.4f} "
        f"(before: {first_recall:.4f}), ndcg@{k} {ndcg:.4f} ({first_ndcg:.4f}).",
        *(["budget"] if len(search.trials) == budget else []),
    )
    if curves := search.curves(best):
        log_decision(f"validation curves, {' + '.join(names[1:])} around the choice: {'; '.join(curves)}.")


def _show(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _hold_out(train: Interactions, validation: Any, rng: Rng) -> tuple[Interactions, Interactions]:
    if validation is None:
        return interaction_split(train, (1 - HELD_OUT_SHARE, HELD_OUT_SHARE, 0.0), rng=rng)[:2]
    held_out = check_nonempty(align(validation, train, "validation"), "validation")
    n_outside = held_out.difference(train).n_interactions
    if n_outside not in (0, held_out.n_interactions):
        got = f"{n_outside:,} of its {held_out.n_interactions:,} are outside"
        allowed = "must be inside interactions or have none in common with them"
        raise InputError("validation", f"{allowed}; {got}. Pass train.union(validation) as interactions.")
    fitted = train if n_outside else train.difference(held_out)
    return check_nonempty(fitted, "interactions without validation"), held_out


class ScoredSettings(NamedTuple):
    """Settings with the recall and NDCG of each user, in two rows."""

    settings: dict[str, Any]
    by_user: NDArray[np.float64]

    @property
    def means(self) -> tuple[float, float]:
        return float(self.by_user[0].mean()), float(self.by_user[1].mean())

    def is_better_than(self, other: ScoredSettings) -> bool:
        """Return whether the gain in recall + NDCG is more than rounding and noise."""
        gains = (self.by_user - other.by_user).sum(axis=0)
        noise = gains.std() / np.sqrt(len(gains))
        return bool(gains.mean() > max(MIN_GAIN, MIN_STANDARD_ERRORS * noise))


@dataclass
class Search:
    """A coordinate search of at most ``budget`` fits of a model."""

    model: Any
    fitted: Interactions
    held_out: Interactions
    users: IntArray
    k: int
    budget: int
    trials: list[ScoredSettings] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)  # what fits share

    def coordinates(self) -> list[Coordinate]:
        """Return the coordinates whose values are numbers, or among those to try."""
        params = self.model.get_params()

        def is_allowed(part: Coordinate) -> bool:
            values = [params[name] for name in part.names]
            return all(isinstance(value, (int, float)) or value in part.values for value in values)

        return [part for part in self.model.coordinates() if part.names and is_allowed(part)]

    def run(self) -> ScoredSettings:
        """Return the best trial."""
        params, coordinates = self.model.get_params(), self.coordinates()
        start = {name: params[name] for part in coordinates for name in part.names}
        steps = track(range(self.budget), "setting")
        before, best = None, self.fit(start, steps)
        assert best is not None  # the parameters of the model have been checked
        while best is not before and len(self.trials) < self.budget:
            before = best
            for coordinate in coordinates:
                best = self.climb(best, coordinate, steps)
        for _ in steps:  # the rest of the budget is not needed
            pass
        return best

    def curves(self, best: ScoredSettings) -> list[str]:
        """Return recall + NDCG by the values tried for each coordinate, with the best ones of all others."""
        curves = []
        for names, values in self.coordinates():
            scores = [
                (value, sum(trial.means))
                for value in values
                for trial in self.trials
                if trial.settings == best.settings | dict.fromkeys(names, value)
            ]
            points = [f"{_show(value)}: {score:.4f}" for value, score in scores]
            if len(points) > 1:
                curves.append(f"{' and '.join(names)} {', '.join(points)}")
        return curves

    def climb(self, best: ScoredSettings, coordinate: Coordinate, steps: Iterator[int]) -> ScoredSettings:
        """Follow a coordinate upwards, or else downwards, as long as the score improves."""
        start = best
        for values in coordinate.directions(best.settings[coordinate.names[0]]):
            for value in values:
                trial = self.fit(best.settings | dict.fromkeys(coordinate.names, value), steps)
                if trial is None or not trial.is_better_than(best):
                    break
                best = trial
            if best is not start:
                break
        return best

    def fit(self, settings: dict[str, Any], steps: Iterator[int]) -> ScoredSettings | None:
        """Return the scores of settings; ``None`` if they are wrong or the budget is spent."""
        for trial in self.trials:
            if trial.settings == settings:
                return trial
        params = copy.deepcopy(self.model.get_params(deep=False))  # with donor rules of its own
        candidate = type(self.model)(**params).set_params(**settings)
        try:
            candidate.check_params()
        except InputError:  # such as shares above one
            return None
        if next(steps, None) is None:
            return None
        candidate.fit_trial(self.fitted, self.shared)
        self.trials.append(ScoredSettings(settings, self.evaluate(candidate)))
        return self.trials[-1]

    def evaluate(self, model: Any) -> NDArray[np.float64]:
        """Return the recall and the NDCG of each user."""
        parts = []
        for block in row_blocks(len(self.users), max(1, MAX_BLOCK_SCORES // self.fitted.n_items)):
            users = self.users[block]
            rows, relevant = self.fitted.matrix[users], self.held_out.rows.csr[users]
            on_device = hasattr(getattr(model, "weights_", None), "cpu")
            scores = model.score_rows(rows) if on_device else np.array(model.score_positions(users))
            items = best_unseen(rows, scores, self.k)
            hits = np.take_along_axis(relevant.toarray() > 0, items, axis=1)
            lists = Lists(items, hits, np.diff(relevant.indptr), np.diff(relevant.indptr))
            parts.append([lists.metric(name, self.k) for name in ("recall", "ndcg")])
        return np.concatenate(parts, axis=1)

"""The tasks ``recommend``, on random splits, and ``public-split``, on the splits by which papers compare.

Of a method's ``search``, the settings with the best Recall@20 on the validation part count; ties go to the
first. A setting ``{ class = "module.Class", use = "fitted", ... }`` is
the recommender that the table shows on its own.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from nodecopy import datasets
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments.runner import FIT_CACHE
from nodecopy.experiments.spec import Cell, Column, TrialSeeds, instantiate, key, merge_settings
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks import BEST_NOTE, Task
from nodecopy.interactions import Interactions
from nodecopy.metrics.ranking import DEFAULT_METRICS

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender

TimedFit: TypeAlias = "tuple[Recommender, float]"  # a fitted recommender and the seconds of its fit
SELECTION_SCORE = "recall@20"
FITTED_DETAILS = ("n_epochs_", "n_neighbours_", "item_bonus_")  # a record keeps them
SETTINGS_AFTER_FIT = ("test_graph",)  # recommenders that differ in nothing else share a fit
FORMULA = {f"{name.lower()}@{k}": f"{name}@{k}" for name in ("Recall", "NDCG") for k in (10, 20)}
TAIL = {"tail_recall@20": "Tail recall@20"}
SCORES = FORMULA | {
    f"printed {score}": f"{heading}, printed convention" for score, heading in FORMULA.items()
}
UNITS = (
    "In percent, mean and standard deviation over trials, which are random splits. Settings were chosen in "
    "every trial by Recall@20 on its validation part, out of as many for each method."
)
CONVENTIONS = (
    "Recall and NDCG by the paper's formulas, with the items of training and validation left out of the "
    "candidates. Printed convention: what the paper's numbers fit, with validation items among the "
    "candidates and the ideal list made of the hits in a user's own first 100; only for a comparison with it."
)
SPLIT_UNITS = (
    "In percent, on the published test part. All items but those of train are ranked. Recall@20 is the "
    "number of hits divided by the number of test items; the ideal list of NDCG@20 has min(20, number of "
    "test items) hits. Means are over users with test items. Settings were chosen on the validation part,"
    " which is inside train, and were then fitted to all of train. Bold: the best method."
)
VERDICTS = (
    "Verdict: level where the difference is at most the rounding of the published number, otherwise ahead"
    " or behind by the difference. There is one split, hence no standard error."
)


@dataclass(frozen=True, kw_only=True)
class RankingTask(Task):
    """Recommendation of the interactions in a test part."""

    scores: tuple[str, ...] = key([SCORES], default=tuple(SCORES))

    main_score = SELECTION_SCORE
    family = "a recommender"
    family_methods = ("fit", "evaluate")
    data_kind = "interactions"
    digits = 2
    unused_keys = ()
    allowed_uses = ("fitted",)

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(score, heading=(SCORES | TAIL)[score]) for score in self.scores)


@dataclass(frozen=True, kw_only=True)
class RecommendTask(RankingTask):
    """Recommendation on random splits; ``validation`` and ``test`` are shares of the interactions."""

    validation: float = key("share")
    test: float = key("share")

    protocol_fields = ("validation", "test")

    def check(self) -> None:
        super().check()
        if 0 in (self.validation, self.test) or self.validation + self.test >= 1:
            allowed, got = "above 0 and below 1 together", f"{self.validation:g} and {self.test:g}"
            raise InputError(f"validation and test of [protocol] must be {allowed}; got {got}.")

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [UNITS, CONVENTIONS, BEST_NOTE]

    def split(self, cell: Cell, trial: int) -> Split[Interactions]:
        shares = (1 - self.validation - self.test, self.validation, self.test)
        seed = cell.trial_seed(trial, TrialSeeds.SPLIT)
        return datasets.interaction_split(self.load(cell), shares, rng=seed)

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        for trial in trials:
            start = time.perf_counter()
            split = self.split(cell, trial)
            best, details = TrialFits(cell, trial, device, split).search()
            trial_scores: dict[str, float] = {}
            for convention, prefix in (("formula", ""), ("printed", "printed ")):
                ranked = best.evaluate(split.test, validation=split.validation, convention=convention)
                trial_scores |= {prefix + name: value for name, value in ranked.items()}
            yield Record(trial, trial_scores, time.perf_counter() - start, details)


@dataclass(frozen=True, kw_only=True)
class PublicSplitTask(RankingTask):
    """Recommendation on published splits."""

    scores: tuple[str, ...] = key([FORMULA | TAIL], default=("recall@20", "ndcg@20", *TAIL))
    verdict_of: str = key("text", default="")

    published_by = "published"
    published_examples = "'17.65'"
    has_fixed_split = True
    file_kind = "split"

    def check(self) -> None:
        super().check()
        for name in set(self.datasets) - {own.name for own in self.own_datasets}:
            if not datasets.describe(name).has_split:
                raise InputError(f"datasets of [protocol] must have a published split; {name} has none.")

    def protocol(self, cell: Cell) -> dict[str, Any]:
        return {"split": "published"} | super().protocol(cell)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        title = titles.get(self.verdict_of, self.verdict_of)
        return [SPLIT_UNITS, *([f"Rows that are not run have the verdict of {title}."] if title else [])]

    def notes_on_paper(self) -> list[str]:
        return [VERDICTS]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        own = self.find_own(cell)
        split = cast("Split[Interactions]", own.load()) if own else datasets.load_split(cell.dataset)
        for trial in trials:
            start = time.perf_counter()
            rest = split._replace(train=split.train.difference(split.validation))
            fits = TrialFits(cell, trial, device, rest, is_cached=False)
            details: dict[str, Any] = fits.search()[1] if cell.search else {}
            settings = merge_settings(cell.settings, details.get("chosen", {}))
            model, seconds = replace(fits, split=split, has_validation=False).fit(cell.path, settings)
            scores = dict(model.evaluate(split.test, metrics=[*DEFAULT_METRICS, *TAIL]))
            details |= _describe_fit(model, seconds)
            yield Record(trial, scores, time.perf_counter() - start, details)


@dataclass(frozen=True)
class TrialFits:
    """The recommenders that are fitted in one trial of one cell."""

    cell: Cell
    trial: int
    device: str
    split: Split[Interactions]
    has_validation: bool = True  # whether methods get the validation part, to stop early
    is_cached: bool = True  # models of many items take too much memory

    def search(self) -> tuple[Recommender, dict[str, Any]]:
        cell = self.cell
        if not cell.search:
            best, seconds = self.fit(cell.path, cell.settings)
            return best, _describe_fit(best, seconds)
        candidate_scores: list[dict[str, Any]] = []
        best_recall = -1.0
        for choice in cell.search:
            model, time_to_fit = self.fit(cell.path, merge_settings(cell.settings, choice))
            recall = model.evaluate(self.split.validation, metrics=[SELECTION_SCORE])[SELECTION_SCORE]
            candidate_scores.append({"settings": dict(choice), SELECTION_SCORE: recall})
            if recall > best_recall:  # the first of ties
                best, seconds, best_recall, chosen = model, time_to_fit, recall, dict(choice)
        return best, {"chosen": chosen, "search": candidate_scores, **_describe_fit(best, seconds)}

    def fit(self, path: str, settings: Mapping[str, Any]) -> TimedFit:
        before = {name: value for name, value in settings.items() if name not in SETTINGS_AFTER_FIT}

        def fit() -> TimedFit:
            use = lambda part, others: self.fit(part, others)[0]  # noqa: E731
            model = instantiate(path, before, self.cell.section, self.device, use)
            seed = self.cell.trial_seed(self.trial, TrialSeeds.METHOD)
            start = time.perf_counter()
            validation = self.split.validation if self.has_validation else None
            model.fit(self.split.train, validation=validation, rng=seed)
            return model, time.perf_counter() - start

        parts = self.cell, self.trial, self.device, {"class": path, **before}
        model, seconds = FIT_CACHE.get_or_fit(fit, *parts) if self.is_cached else fit()
        model = copy.copy(model)
        for name in SETTINGS_AFTER_FIT:
            if name in settings:
                setattr(model, name, settings[name])
        return model, seconds


def _describe_fit(model: Recommender, seconds: float) -> dict[str, Any]:
    fitted = {name.strip("_"): getattr(model, name) for name in FITTED_DETAILS if hasattr(model, name)}
    return {"seconds_to_fit": seconds, **fitted}

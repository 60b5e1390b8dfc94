"""Trials of recommenders: each learns from one part of the interactions and is judged on another.

Of a method's ``search`` the settings with the best Recall@20 on the validation part count, of equals the
first. Every candidate gets child 1 of the trial's seed, and so does every part that a method is built on:
where a setting reads ``{ fitted = "module.Class", ... }``, the part is the very recommender that the table
shows of it alone. ``{ class = "module.Class", ... }`` is made and not fitted, such as a donor law.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.random import SeedSequence

from nodecopy._core.random import child
from nodecopy.datasets import Split
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.spec import Cell, merged
from nodecopy.experiments.store import Store
from nodecopy.experiments.trials import Solved, trial_interactions, trial_seed
from nodecopy.interactions import Interactions

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender

Fitted: TypeAlias = "tuple[Recommender, float]"
"""A recommender and the seconds it took to fit."""
CHOSEN_BY = "recall@20"
LEARNT = ("n_epochs_", "threshold_")
"""What recommenders tell of themselves, where they have it."""
KEPT: dict[str, Fitted] = {}
N_KEPT = 32
"""Networks stay in memory for the methods that are built on them; closed forms are soon fitted again."""
AT_TEST = ("test_graph",)
"""Settings that matter after training alone: what differs in nothing else is trained once."""


def recommended(cell: Cell, trials: list[int], store: Store, device: str) -> Iterator[Solved]:
    """Recall and NDCG on the test part by both conventions, and coverage and novelty."""
    for trial in trials:
        start = time.perf_counter()
        split = trial_interactions(cell, trial)
        task = _Task(cell, trial, split, child(trial_seed(cell, trial), 1), device)
        best, details = task.chosen()
        judged: dict[str, float] = {}
        for convention, prefix in (("formula", ""), ("printed", "printed ")):
            found = best.evaluate(split.test, validation=split.validation, convention=convention)
            judged |= {prefix + name: value for name, value in found.items()}
        yield Solved(trial, judged, time.perf_counter() - start, details)


@dataclass(frozen=True)
class _Task:
    """One trial of one method."""

    cell: Cell
    trial: int
    split: Split[Interactions]
    seed: SeedSequence
    device: str
    done: dict[str, Fitted] = field(default_factory=dict)

    def chosen(self) -> tuple[Recommender, dict[str, Any]]:
        """The recommender that is best on the validation part, and what is kept of the search.

        ``seconds_to_fit`` are those of the chosen settings alone, without parts that were fitted before.
        """
        tried: list[dict[str, Any]] = []
        best: Fitted | None = None
        for choice in self.cell.search or ({},):
            model, seconds = self.fitted(self.cell.path, merged(self.cell.settings, choice))
            recall = self._recall(model) if self.cell.search else 0.0
            if best is None or recall > max(one[CHOSEN_BY] for one in tried):
                best, settings = (model, seconds), choice
            tried.append({"settings": dict(choice), CHOSEN_BY: recall})
        assert best is not None
        learnt = {name.strip("_"): getattr(best[0], name) for name in LEARNT if hasattr(best[0], name)}
        search = {"chosen": dict(settings), "search": tried} if self.cell.search else {}
        return best[0], {**search, "seconds_to_fit": best[1], **learnt}

    def fitted(self, path: str, settings: Mapping[str, Any]) -> Fitted:
        """A recommender fitted to the trial's training part, and the seconds that took."""
        draw = [self.cell.dataset, self.cell.seed, self.cell.validation, self.cell.test, self.trial]
        learns = {name: value for name, value in settings.items() if name not in AT_TEST}
        key = json.dumps([draw, self.device, path, learns], sort_keys=True)
        found = KEPT.get(key) or self.done.get(key)
        if found is None:
            model = assembled(
                self.cell.method, path, learns, self.device, fitted=lambda *part: self.fitted(*part)[0]
            )
            start = time.perf_counter()
            model.fit(self.split.train, validation=self.split.validation, rng=self.seed)
            found = model, time.perf_counter() - start
            while len(KEPT) >= N_KEPT:
                del KEPT[next(iter(KEPT))]
            (KEPT if hasattr(model, "n_epochs_") else self.done)[key] = found
        model, seconds = copy.copy(found[0]), found[1]
        vars(model).update({name: settings[name] for name in AT_TEST if name in settings})
        return model, seconds

    def _recall(self, model: Recommender) -> float:
        return model.evaluate(self.split.validation, metrics=[CHOSEN_BY])[CHOSEN_BY]

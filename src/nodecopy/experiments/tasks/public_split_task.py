"""The task ``public-split``: recommenders on the fixed splits by which publications compare them.

The validation part is inside train. Of a method's ``search``, the settings with the best Recall@20 on it
after a fit to the rest of train are then fitted to all of train, as are the settings of methods without a
search; networks are trained for all their epochs. The test part is scored once. Trials differ only in the
seeds of the methods.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from nodecopy import datasets
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments.assembly import merge_settings
from nodecopy.experiments.sections import key, make_choice_reader, make_list_reader, read_text
from nodecopy.experiments.spec import Cell, Published, rounding_error
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.recommend_task import FORMULA, RankingTask, TrialFits, describe_fit
from nodecopy.interactions import Interactions

PRINTED = re.compile(r"\d+(?:\.(\d+))?")
UNITS = (
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
class PublicSplitTask(RankingTask):
    """Recommendation on published splits.

    ``verdict_of`` is the method that is compared with the published numbers of methods that are not run.
    """

    scores: tuple[str, ...] = key(
        make_list_reader(make_choice_reader(FORMULA)), default=("recall@20", "ndcg@20")
    )
    verdict_of: str = key(read_text, default="")

    published_by: ClassVar[str] = "published"
    has_fixed_split: ClassVar[bool] = True
    file_kind: ClassVar[str] = "split"

    def check(self) -> None:
        super().check()
        for name in set(self.datasets) - {own.name for own in self.own_datasets}:
            if not datasets.describe(name).has_split:
                raise InputError(f"datasets of [protocol] must have a published split; {name} has none.")

    def protocol(self, cell: Cell) -> dict[str, Any]:
        return {"split": "published"} | super().protocol(cell)

    def read_published(self, entry: Any, where: str) -> Published:
        """Read a number of the section ``[published]``, such as ``"17.65"``."""
        printed = PRINTED.fullmatch(entry) if isinstance(entry, str) else None
        if printed is None:
            raise InputError(f"{where} must hold entries such as '17.65' or '-'; got {entry!r}.")
        return Published(float(entry), None, rounding_error(len(printed[1] or "")))

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        others = f"Rows that are not run have the verdict of {titles.get(self.verdict_of, self.verdict_of)}."
        return [UNITS, others] if self.verdict_of else [UNITS]

    def notes_on_paper(self) -> list[str]:
        return [VERDICTS]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield the scores on the test part."""
        own = self.find_own(cell)
        split = cast("Split[Interactions]", own.load()) if own else datasets.load_split(cell.dataset)
        for trial in trials:
            start = time.perf_counter()
            rest = Split(split.train.difference(split.validation), split.validation, split.test)
            fits = TrialFits(cell, trial, device, rest, is_cached=False)
            details: dict[str, Any] = {}
            if cell.search:
                details = fits.search()[1]
            settings = merge_settings(cell.settings, details.get("chosen", {}))
            model, seconds = replace(fits, split=split, has_validation=False).fit(cell.path, settings)
            scores = model.evaluate(split.test)
            yield Record(
                trial, dict(scores), time.perf_counter() - start, details | describe_fit(model, seconds)
            )

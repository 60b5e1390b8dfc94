"""The contract of task types: what a file says of trials, how they are solved, what columns show."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from nodecopy import datasets
from nodecopy._core.lookup import check_name
from nodecopy.errors import InputError
from nodecopy.experiments.sections import key, list_of, read_count, read_section, read_text
from nodecopy.experiments.spec import Cell, Column, Published, choose
from nodecopy.experiments.store import Record, Store

PRINTED = re.compile(r"(\d+(?:\.\d+)?)\s*±\s*(\d+(?:\.\d+)?)")
BEST = (
    "Bold: the best of ours. Asterisk: better than our second best by the Wilcoxon signed-rank test at 5 %."
)
VERDICT = (
    "Verdict: level where ours and the paper's mean differ by at most two standard errors of the difference "
    "plus {} (the paper's rounding); otherwise {} by the difference."
)


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What the trials of an experiment are; its fields are the keys of the section ``[protocol]``.

    A task type is a subclass, named in ``TASKS``. It has a :attr:`cell_type`, writes :attr:`columns`,
    :meth:`solve` and :meth:`notes`, and overrides what differs from the defaults below.
    """

    datasets: tuple[str, ...] = key(list_of(read_text))
    trials: int = key(read_count)
    largest_component: tuple[str, ...] = key(list_of(read_text, may_be_empty=True), default=())
    """Datasets of which only the largest component is used."""
    reference: str = ""
    """The row to which the others should be near; empty where higher is better."""

    cell_type: ClassVar[type[Cell]]
    """Fields that its cells have in common with the task, and ``largest_component``, are set by the task."""

    sections: ClassVar[tuple[str, ...]] = ("protocol",)
    """Sections of the file that the task reads."""
    data_kind: ClassVar[str] = "graph"
    """What datasets hold: ``"graph"`` or ``"interactions"``."""
    digits: ClassVar[int | None] = 1
    """Digits after the decimal point, in the paper's table and in ours; ``None``: three significant ones."""
    choices: ClassVar[tuple[str, ...]] = ("datasets",)
    """Fields by which an experiment can be narrowed, which are also options of ``nodecopy reproduce``."""
    unused_keys: ClassVar[tuple[str, ...]] = ("search",)
    """Keys of [methods.x] that mean nothing to the task."""
    uses: ClassVar[tuple[str, ...]] = ()
    """Values that ``use`` may have in an object among settings."""
    extra_scores: ClassVar[tuple[str, ...]] = ()
    """Scores whose means are listed beside every column."""
    solves_together: ClassVar[bool] = False
    """Whether many trials of a cell are faster together. If not, trials are solved one after another, each by
    all methods, so that methods can share fits."""

    @classmethod
    def read(cls, sections: Mapping[str, Any]) -> Self:
        """Read the sections of the task, and check them."""
        task = read_section(cls, sections.get("protocol", {}), "[protocol]")
        task.check()
        return task

    def check(self) -> None:
        """Check what depends on more than one key."""
        allowed = [name for name in datasets.names() if datasets.describe(name).kind == self.data_kind]
        for name in self.datasets:
            check_name(name, allowed, "datasets of [protocol]")
        for name in self.largest_component:
            check_name(name, self.datasets, "largest_component of [protocol]")
        if self.largest_component and self.data_kind != "graph":
            raise InputError("largest_component of [protocol] must be left out: interactions have none.")

    def read_published(self, entry: Any, where: str) -> Published:
        """Read a number of the section ``[published]``, such as ``"70.0±3.7"``."""
        printed = PRINTED.fullmatch(entry) if isinstance(entry, str) else None
        if printed is None:
            raise InputError(f"{where} must hold entries such as '70.0±3.7' or '-'; got {entry!r}.")
        return Published(*map(float, printed.groups()))

    def narrow(self, experiment: str, **choices: Sequence[Any]) -> Self:
        """Return the task with some values of the fields in ``choices``; errors name the experiment."""
        for name, wanted in choices.items():
            if name not in self.choices:
                given = ", ".join(map(str, wanted))
                raise InputError(f"{name} must be left out: {experiment} has none; got {given}.")
        chosen: dict[str, Any] = {
            name: choose(getattr(self, name), wanted, f"{name} of {experiment}")
            for name, wanted in choices.items()
        }
        return replace(self, **chosen)

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        """The conditions of the cells of a method on a dataset, see :attr:`.Cell.conditions`."""
        return ({},)

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns of a dataset's table."""

    def cell_fields(self, dataset: str) -> dict[str, Any]:
        """Return the fields of cells that the task sets."""
        names = {entry.name for entry in fields(self)} & {entry.name for entry in fields(self.cell_type)}
        own = {name: getattr(self, name) for name in names - {*self.cell_type.condition_fields}}
        if "largest_component" in own:
            own["largest_component"] = dataset in self.largest_component
        return own

    @abstractmethod
    def solve(self, cell: Any, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield the records of trials of a cell, each as soon as it is finished."""

    @abstractmethod
    def notes(self, titles: Mapping[str, str]) -> list[str]:
        """Return how to read the table; ``titles`` are those of the methods."""

    def notes_on_paper(self) -> list[str]:
        """Return how to read the columns with the paper's numbers."""
        return [VERDICT.format(f"{rounding(self.digits or 0):g}", "ahead or behind")]


def rounding(digits: int) -> float:
    """Return how far a number printed with so many digits after the point may be from its own."""
    return 0.5 * 0.1**digits

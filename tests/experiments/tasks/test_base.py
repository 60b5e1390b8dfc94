"""The contract of tasks: a task of one's own, written with public methods only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from nodecopy._core.imports import import_by_name
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import tasks
from nodecopy.experiments.rendering import render_markdown
from nodecopy.experiments.runner import run
from nodecopy.experiments.spec import Cell, Column, Published, key, read_count
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.summary import summarise
from nodecopy.experiments.tasks.base import Task

TOML = """
title = "Degrees"
task = "count"
[protocol]
datasets = ["karate"]
trials = 2
least = 10
[methods.all]
title = "All"
class = "builtins.dict"
[published.karate]
all = ["3.0±1.0"]
"""


@dataclass(frozen=True, kw_only=True)
class CountTask(Task):
    """Counts nodes of at least some degree."""

    least: int = key(read_count)

    main_score: ClassVar[str] = "hubs"
    protocol_fields: ClassVar[tuple[str, ...]] = ("least",)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("hubs", heading="hubs", scale=1.0),)

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        for trial in trials:
            hubs = (self.load(cell).degrees >= self.least).sum() + trial
            yield Record(trial, {"hubs": float(hubs)}, 0.5, {})

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [f"Nodes of at least {self.least} edges, by {titles['all']}."]


def test_a_task_of_ones_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "tests.experiments.tasks.test_base.CountTask"
    monkeypatch.setattr(tasks, "TASKS", tasks.TASKS | {"count": path})
    experiment, store = toml.parse(TOML, "degrees"), Store(tmp_path)
    run(experiment, store)
    results = summarise(experiment, store)
    (cell,) = results.cells.values()
    n_hubs = 4  # the two leaders, and nodes 2 and 32
    assert list(cell.values) == [n_hubs, n_hubs + 1]
    text = render_markdown(results)
    assert "- Nodes of at least 10 edges, by All." in text
    assert "| All | 4.5 ± 0.7 | 3.0 ± 1.0 | level +1.5 |" in text
    assert "plus 0.05 (the paper's rounding); otherwise ahead or behind" in text
    with pytest.raises(InputError, match=r"datasets of \[protocol\] must be one of"):
        toml.parse(TOML.replace("karate", "library"), "degrees")
    with pytest.raises(InputError, match="labels must be left out: degrees has none; got 5"):
        experiment.narrow(labels=[5])
    with pytest.raises(InputError, match=r"search of \[methods.all\] must be left out"):
        toml.parse(TOML.replace('title = "All"', 'title = "All"\nsearch = [{}]'), "degrees")


def test_every_task_is_registered_under_its_name() -> None:
    for name in tasks.TASKS:
        kind = import_by_name(name, tasks.TASKS, "task")
        assert issubclass(kind, Task)
        assert kind.__name__ == f"{name.title().replace('-', '')}Task"
    with pytest.raises(InputError, match=r"task must be one of .* Did you mean attack"):
        import_by_name("atack", tasks.TASKS, "task")


def test_printed_numbers() -> None:
    task = CountTask(datasets=("karate",), trials=1, least=1)
    assert task.read_published("70.0 ± 3.7", "x") == Published(70.0, 3.7)
    with pytest.raises(InputError, match="x must hold entries such as"):
        task.read_published("70", "x")

"""Experiments, whatever their task: cells, fingerprints, narrowing, seeds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import tasks
from nodecopy.experiments.rendering import render_markdown, summarise
from nodecopy.experiments.runner import run
from nodecopy.experiments.spec import Cell, Column, TrialSeeds, dataset_seed, key, read_count, trial_seed
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks import Task, digest_dataset, load_data
from nodecopy.experiments.tasks.generate import GenerationSeeds
from tests.experiments.fakes import TOML, load, make_experiment


def test_a_method_under_some_conditions_only() -> None:
    text = TOML.replace('title = "Weak"', 'title = "Weak"\nconditions = {{ labels = [3] }}')
    cells = [str(cell) for cell in make_experiment(text=text).cells(0)]
    assert cells == ["karate, 1 labels, strong", "karate, 3 labels, weak", "karate, 3 labels, strong"]


def test_narrowing() -> None:
    table = load("table2")
    narrow = table.narrow(datasets=["pubmed", "cora"], labels=[10], methods=["bgcn-copy", "gcn"], trials=3)
    assert [str(cell) for cell in narrow.cells(0)] == [
        "cora, 10 labels, gcn",
        "cora, 10 labels, bgcn-copy",
        "pubmed, 10 labels, gcn",
        "pubmed, 10 labels, bgcn-copy",
    ]
    assert (narrow.task.trials, narrow.published_trials) == (3, 50)
    assert table.narrow() == table
    same = {cell.folders: cell for cell in table.cells(0)}
    assert all(same[cell.folders] == cell for cell in narrow.cells(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attacks": ["dice"]}, "attacks must be left out: table2 has none; got dice"),
        ({"labels": [7]}, r"labels of table2 must be one of 5, 10, 20; got 7"),
        ({"methods": ["bgcn"]}, r"Did you mean .*bgcn-copy"),
        ({"methods": ["dfnet-att"], "datasets": ["pubmed"]}, "dfnet-att runs with dataset cora or"),
        ({"methods": []}, r"a method that table2 runs must be given; got none. Allowed: gcn, "),
    ],
)
def test_narrowing_to_what_is_not_there(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("table2").narrow(**options)


def test_the_fingerprint_follows_what_a_result_depends_on() -> None:
    def fingerprint(old: str = "", new: str = "") -> Any:
        return make_experiment(text=TOML.replace(old, new) if old else TOML).cells(0)[0].fingerprint

    assert fingerprint() == fingerprint()
    assert fingerprint() == fingerprint("trials = 6", "trials = 60")
    assert fingerprint() == fingerprint("skill = 2.0", "skill = 3.0")  # of the other method
    changes = [
        ("skill = 0.3", "skill = 0.4"),
        ("validation = 4", "validation = 5"),
        ("test = 16", "test = 15"),
        ("test = 16", "test = 16\nwithout_test_edges = true"),
        ("test = 16", 'test = 16\nlargest_component = ["karate"]'),
    ]
    assert len({fingerprint(), *(fingerprint(*change) for change in changes)}) == 1 + len(changes)


@pytest.mark.parametrize("path", ["nodecopy.copying.NodeCopying", "nodecopy.copying.model.NodeCopying"])
def test_the_fingerprint_digests_public_names(path: str) -> None:
    """A class may be named by another path, or move: the trials of its cells stay valid."""
    cell = load("table1").cells(0)[-1]
    assert cell.path == "nodecopy.NodeCopying"
    moved = replace(cell, path=path)
    assert moved.fingerprint == cell.fingerprint
    rule = {**cell.settings["donors"], "class": "nodecopy.copying.donors.Balanced"}
    inner = replace(cell, settings={**cell.settings, "donors": rule})
    assert inner.settings != cell.settings
    assert inner.fingerprint == cell.fingerprint


def test_the_fingerprint_digests_the_version_of_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_experiment().cells(0)[0].fingerprint
    monkeypatch.setattr("nodecopy.experiments.spec.SEED_SCHEME", 99)
    assert make_experiment().cells(0)[0].fingerprint != before


def test_the_path_of_a_seed_is_dataset_labels_and_trial() -> None:
    path = (zlib.crc32(b"karate"), 3, 7)
    cell = make_experiment().cells(5)[2]
    for seed in (trial_seed(5, "karate", 7, labels=3), cell.trial_seed(7)):
        assert (seed.entropy, seed.spawn_key) == (5, path)
    assert trial_seed(5, "karate", 7).spawn_key == (path[0], 0, 7)
    assert dataset_seed(5, "karate").spawn_key == path[:1]


def test_splits_depend_on_seed_dataset_labels_and_trial_alone() -> None:
    first, *_, last = make_experiment().cells(0)
    text = TOML.replace("test = 16", "test = 16\nwithout_test_edges = true")
    scarce = make_experiment(text=text).cells(0)[0]
    other = make_experiment().cells(1)[0]
    split = first.task.split
    assert all(map(np.array_equal, split(first, 3), scarce.task.split(scarce, 3)))
    assert not np.array_equal(split(first, 3).train, split(first, 4).train)
    assert not np.array_equal(split(first, 3).test, split(other, 3).test)
    assert [len(part) for part in split(last, 0)] == [6, 4, 16]


@pytest.mark.parametrize("seeds", [TrialSeeds, GenerationSeeds])
def test_no_two_purposes_share_a_stream(seeds: type[TrialSeeds]) -> None:
    """Neither in a trial nor between trials, labels and datasets."""
    streams = [
        tuple(child(trial_seed(0, dataset, trial, labels=labels), purpose).generate_state(4))
        for dataset in ("cora", "citeseer")
        for labels in (0, 5, 20)
        for trial in range(3)
        for purpose in seeds.__members__.values()
    ]
    assert len(seeds) == len(seeds.__members__)  # no alias
    assert len(set(streams)) == len(streams) == 18 * len(seeds)


def test_the_numbers_of_seeds_stay() -> None:
    names = ["SPLIT", "METHOD", "TARGETS", "ATTACK", "VISIBLE_VALIDATION", "VALIDATION"]
    assert {seed.name: int(seed) for seed in TrialSeeds} == {name: i for i, name in enumerate(names)}
    assert {seed.name: int(seed) for seed in GenerationSeeds} == {"FIT": 1, "SAMPLES": 2}


def test_the_digest_of_a_dataset_does_not_depend_on_types_of_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(features: Any, labels: Any = (0, 1, 1)) -> str:
        graph = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]], features=features, labels=labels)
        load_data.cache_clear()
        digest_dataset.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr("nodecopy.datasets.load", lambda name, **options: graph)
            return digest_dataset("three")

    features = sparse.csr_array(np.eye(3, dtype=np.float32))
    longer = features.copy()
    longer.indices, longer.indptr = longer.indices.astype(np.int64), longer.indptr.astype(np.int64)
    assert digest(features) == digest(longer)
    others = digest(features[[1, 0, 2]]), digest(None), digest(features, (0, 0, 1))
    assert len({digest(features), *others}) == 4
    load_data.cache_clear()
    digest_dataset.cache_clear()


COUNTS = """
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
    path = "tests.experiments.test_spec.CountTask"
    monkeypatch.setattr(tasks, "TASKS", tasks.TASKS | {"count": path})
    experiment, store = toml.parse(COUNTS, "degrees", trust=True), Store(tmp_path)
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
        toml.parse(COUNTS.replace("karate", "library"), "degrees", trust=True)
    with pytest.raises(InputError, match="labels must be left out: degrees has none; got 5"):
        experiment.narrow(labels=[5])
    with pytest.raises(InputError, match=r"search of \[methods.all\] must be left out"):
        toml.parse(COUNTS.replace('title = "All"', 'title = "All"\nsearch = [{}]'), "degrees", trust=True)

"""The runner with a fake classifier, in real processes that are killed or share a store."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from nodecopy import datasets
from nodecopy.errors import DataWarning, InputError
from nodecopy.experiments import runner
from nodecopy.experiments.rendering import render_markdown, summarise
from nodecopy.experiments.runner import (
    CachedGraphModel,
    FitCache,
    JobResult,
    _describe_environment,
    collect_provenance,
    run,
)
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks import digest_dataset, load_data
from nodecopy.generators import ErdosRenyi
from tests.experiments.fakes import TOML, make_experiment

ROOT = Path(__file__).parents[2]


def read_records(table: Experiment, store: Store, seed: int = 0) -> dict[tuple[str, ...], list[Record]]:
    return {cell.folders: store.read_finished(cell, range(table.task.trials)) for cell in table.cells(seed)}


def scores(table: Experiment, store: Store) -> dict[tuple[str, ...], list[dict[str, float]]]:
    return {place: [one.scores for one in records] for place, records in read_records(table, store).items()}


def start(folder: Path, log: Path, *, pause: float, workers: int = 1) -> subprocess.Popen[bytes]:
    """Run the fake experiment, trial by trial, in a process of its own."""
    code = f"""
from pathlib import Path
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from tests.experiments.fakes import make_experiment
if __name__ == "__main__":
    table = make_experiment(pause={pause}, log={str(log)!r})
    run(table, Store(Path({str(folder)!r})), batch_size=1, workers={workers})
"""
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def other_form(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function from whose call on the karate club has its nodes in the reverse order."""
    club = load_data("karate").subgraph(range(33, -1, -1))

    def clear_caches() -> None:
        load_data.cache_clear()
        digest_dataset.cache_clear()

    def replace_dataset() -> None:
        clear_caches()
        monkeypatch.setattr("nodecopy.datasets.load", lambda name, **options: club)

    yield replace_dataset
    clear_caches()


@pytest.mark.parametrize("methods", [["weak", "strong"], ["weak"]], ids=["some trials", "one method"])
def test_two_forms_of_a_dataset(store: Store, other_form: Callable[[], None], methods: list[str]) -> None:
    table = make_experiment()
    run(table.narrow(trials=2, methods=methods), store)
    other_form()
    run(table.narrow(trials=2, methods=methods), store)  # nothing is missing, and nothing is computed
    with pytest.raises(InputError, match=r"dataset karate must be the same as for the trials in .*afresh"):
        run(table, store)
    run(table, store, fresh=True)
    records = chain(*read_records(table, store).values())
    assert len({record.provenance["data"] for record in records}) == 1


def test_a_table_of_two_forms_of_a_dataset_warns(store: Store, other_form: Callable[[], None]) -> None:
    table = make_experiment()
    run(table, store)
    cell = table.cells(0)[0]
    (first, *_) = store.read_finished(cell, range(6))
    store.write(cell, replace(first, provenance=first.provenance | {"data": "another form"}))
    with pytest.warns(DataWarning, match="trials of karate are of several forms of the dataset"):
        summarise(table, store)


def test_every_trial_is_computed_and_kept(store: Store) -> None:
    table = make_experiment()
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    assert [(str(one.job.cell), one.n_computed) for one in reports] == [
        (f"karate, {labels} labels, {method}", n)
        for labels in (1, 3)
        for method in ("weak", "strong")
        for n in (1, 5)  # the first trial shows how many fit into half a minute
    ]
    for records in read_records(table, store).values():
        assert [record.trial for record in records] == list(range(6))
        for one in records:
            assert one.details["count"] == 2
            assert one.seconds >= 0
            assert set(one.provenance) == {"commit", "versions", "machine", "finished", "data"}
            assert set(one.provenance["versions"]) == {"python", "nodecopy", "numpy", "scipy", "torch"}
            assert one.provenance["machine"]["device"] == "cpu"


def test_a_second_start_does_only_what_is_missing(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = make_experiment(log=str(log))
    run(table.narrow(trials=2), store)
    assert len(log.read_text().splitlines()) == 8
    store.remove(table.cells(0)[1], [0])
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    assert [one.job.trials for one in reports] == [
        *((2,), (3, 4, 5)),
        *((0,), (2, 3, 4, 5)),
        *((2,), (3, 4, 5)),
        *((2,), (3, 4, 5)),
    ]
    assert len(log.read_text().splitlines()) == 8 + 17
    run(table, store, on_batch=reports.append)
    assert len(reports) == 8


def test_every_method_sees_the_same_splits_and_seeds(store: Store) -> None:
    table = make_experiment(text=TOML.replace("skill = 2.0", "skill = 0.30"))  # two names for one method
    run(table, store)
    both = read_records(table, store)
    for labels in (1, 3):
        weak, strong = both["karate", str(labels), "weak"], both["karate", str(labels), "strong"]
        assert [one.details["seen"] for one in weak] == [one.details["seen"] for one in strong]
        assert [one.scores for one in weak] == [one.scores for one in strong]
        assert len({one.details["seen"] for one in weak}) == 6  # and trials differ


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_trials_do_not_depend_on_order_or_batch(tmp_path: Path, batch_size: int | None) -> None:
    table = make_experiment()
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    run(table, whole)
    for cell in table.cells(0):
        (alone,) = table.task.solve(cell, [5], parts, "cpu")
        assert [alone.scores] == [record.scores for record in whole.read_finished(cell, [5])]
        parts.write(cell, alone)
    run(table, parts, batch_size=batch_size)
    assert scores(table, parts) == scores(table, whole)


@pytest.mark.slow
def test_processes_change_nothing(tmp_path: Path) -> None:
    table = make_experiment()
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    run(table, one)
    reports: list[JobResult] = []
    run(table, two, workers=2, on_batch=reports.append)
    assert sorted(trial for finished in reports for trial in finished.job.trials) == sorted([*range(6)] * 4)
    assert scores(table, two) == scores(table, one)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")
def test_killed_and_resumed_equals_unbroken(tmp_path: Path) -> None:
    """Two kills, the second of a run with workers, which must not outlive it; then a run to the end."""
    log = tmp_path / "log"
    table = make_experiment(pause=0.05, log=str(log))
    broken, unbroken = Store(tmp_path / "broken"), Store(tmp_path / "unbroken")

    def n_done() -> int:
        return sum(len(records) for records in read_records(table, broken).values())

    for workers, enough in ((1, 4), (2, 10)):
        process = start(broken.folder, log, pause=0.05, workers=workers)
        try:
            wait_until(lambda enough=enough: n_done() >= enough)  # type: ignore[misc]
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    processes = {int(line.split(";")[0]) for line in log.read_text().splitlines()}
    wait_until(lambda: not any(map(is_alive, processes)))
    n_before, n_computed = n_done(), len(log.read_text().splitlines())
    assert 10 <= n_before < 24
    reports: list[JobResult] = []
    run(table, broken, batch_size=1, on_batch=reports.append)
    assert sum(one.n_computed for one in reports) == 24 - n_before  # nothing twice
    assert len(log.read_text().splitlines()) == n_computed + 24 - n_before
    run(table, unbroken)
    assert scores(table, broken) == scores(table, unbroken)
    tables = [render_markdown(summarise(table, store)).split("- seed")[0] for store in (broken, unbroken)]
    assert tables[0] == tables[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")
def test_the_trials_of_a_killed_worker_are_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = make_experiment(text=TOML.replace("fakes.Fake", "fakes.KilledOnce"), log=str(tmp_path / "log"))
    store = Store(tmp_path / "store")
    run(table, store, workers=2)
    assert all(len(records) == 6 for records in read_records(table, store).values())
    assert caplog.text.count("a worker was killed") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")
def test_workers_that_are_always_killed_end_the_run(store: Store) -> None:
    table = make_experiment(text=TOML.replace("fakes.Fake", "fakes.KilledAlways", 1))
    with pytest.raises(InputError, match="workers must have enough memory; 3 were killed"):
        run(table, store, workers=2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_two_processes_share_one_store_and_the_work(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "shared"
    both = [start(folder, log, pause=0.1) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    computed = Counter(line.split(";", 1)[1] for line in log.read_text().splitlines())
    assert len(computed) == 24
    assert set(computed.values()) == {1}
    alone = Store(tmp_path / "alone")
    table = make_experiment(pause=0.1, log=str(log))
    run(table, alone)
    assert scores(table, Store(folder)) == scores(table, alone)


def test_batches_are_as_long_as_a_kill_may_cost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """All trials of a cell were one batch: a kill after an hour lost an hour."""
    monkeypatch.setattr(runner, "BATCH_SECONDS", 0.25)
    table = make_experiment(pause=0.1).narrow(methods=["weak"], labels=[1])
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    sizes = [one.n_computed for one in reports]
    assert sum(sizes) == 6
    assert sizes[0] == 1
    assert max(sizes) <= 2
    assert [one.rest is None for one in reports] == [False] * (len(sizes) - 1) + [True]


CELL, OTHER = make_experiment().cells(0)[:2]


def test_a_fit_is_made_once_for_the_same_data_and_settings() -> None:
    cache = FitCache(9)
    fits: list[Any] = []

    def fit() -> int:
        fits.append("fit")
        return len(fits)

    def get(cell: Any = CELL, trial: int | None = 0, device: str = "cpu", **settings: Any) -> Any:
        return cache.get_or_fit(fit, cell, trial, device, "a.B", settings)

    assert get(k=1, n=2) == get(n=2, k=1) == get(OTHER, k=1, n=2) == 1  # another method, the same data
    assert get(k=2) == 2
    assert get(trial=1, k=1, n=2) == 3
    assert get(device="cuda", k=1, n=2) == 4
    assert get(make_experiment().cells(1)[0], k=1, n=2) == 5
    assert get(trial=None, k=1, n=2) == 6
    assert len(fits) == len(cache.entries) == 6


def test_threads_share_one_fit() -> None:
    cache, fits = FitCache(2), []

    def fit() -> str:
        time.sleep(0.01)
        fits.append(1)
        return "model"

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: cache.get_or_fit(fit, CELL, 0, "cpu", "a.B", {}), range(8)))
    assert (models, fits) == (["model"] * 8, [1])


def test_a_cached_graph_model_is_not_fitted_again() -> None:
    graph, other = datasets.load("karate"), datasets.load("karate").subgraph(range(20))
    model = CachedGraphModel(ErdosRenyi().fit(graph), seconds=3.0)
    assert model.fit(other) is copy.deepcopy(model) is model
    assert model.graph_ is graph
    expected = list(model.model.sample_many(2, rng=5))
    assert list(model.sample_many(2, rng=5)) == expected
    assert model.sample(rng=5) == expected[0]


@pytest.fixture(autouse=True)
def forget_commit() -> Iterator[None]:
    _describe_environment.cache_clear()
    yield
    _describe_environment.cache_clear()


def test_the_environment_names_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODECOPY_COMMIT", "v9-3-gabc")
    assert collect_provenance("cpu")["commit"] == "v9-3-gabc"


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        ("", {}, "AVX2,STRICT"),
        ("", {"MKL_CBWR": "COMPATIBLE"}, "COMPATIBLE"),
        ("import torch", {}, "None"),  # too late to have an effect
    ],
)
def test_products_have_the_same_bits_from_python(before: str, given: dict[str, str], expected: str) -> None:
    """Before, only the command line and workers set the variable."""
    code = f"""
import os
{before}
from nodecopy import experiments
experiments.load("table2")
print(os.environ.get("MKL_CBWR"))
"""
    environment = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"} | given
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == expected

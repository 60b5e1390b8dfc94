"""Trials on a real local Dask cluster, one worker of which is killed on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments.runner import run
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Store
from tests.experiments.fakes import make_experiment

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # what Dask warns of is not ours


def scores(table: Experiment, store: Store) -> Any:
    return {
        cell.folders: [one.scores for one in store.read_finished(cell, range(table.task.trials))]
        for cell in table.cells(0)
    }


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    root = str(Path(__file__).parents[2])
    monkeypatch.chdir(root)  # so that workers import the fakes
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


def test_a_worker_is_killed_and_results_are_those_of_one_process(cluster: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    table = make_experiment(pause=0.3, log=str(log))
    killed = []

    def kill_one_that_works() -> None:
        while not (log.exists() and log.read_text()):
            time.sleep(0.01)
        killed.append(int(log.read_text().partition(";")[0]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one_that_works)
    killer.start()
    run(table, there, batch_size=1, scheduler=cluster.scheduler_address)
    killer.join()
    workers = {int(line.partition(";")[0]) for line in log.read_text().splitlines()}
    assert killed[0] in workers
    assert len(workers) > 1
    assert os.getpid() not in workers
    run(make_experiment(), here)
    assert scores(table, there) == scores(make_experiment(), here)


def test_an_address_where_nobody_is() -> None:
    with pytest.raises(InputError, match="must be the address of a Dask scheduler"):
        run(make_experiment(), Store(Path("nowhere")), scheduler="no address")

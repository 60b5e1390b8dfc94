"""Compute the trials that the store does not hold yet, in this process, in several, or on a Dask cluster."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import platform
import signal
import subprocess
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any, Self

from numpy.random import SeedSequence

import nodecopy
from nodecopy._core.checks import check_integer
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decisions_once
from nodecopy._core.random import Rng
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments.spec import Cell, Experiment, set_same_bits, use_public_names
from nodecopy.experiments.store import COPIED_FROM, Store, list_forms
from nodecopy.graph import Graph
from nodecopy.models import GraphModel

LOG = logging.getLogger(__name__)
BATCH_SECONDS = 30.0  # on a CPU: a kill loses no more than that, or one trial that takes longer
MAX_KILLS = 3
KILLED_TOO_OFTEN = (
    "workers must have enough memory; {} were killed. Start again with fewer: finished trials are kept."
)


@dataclass(frozen=True)
class Job:
    """Trials of one cell. The first ``size`` of them are computed together, by default all."""

    cell: Cell
    trials: tuple[int, ...]
    size: int | None = None


@dataclass(frozen=True)
class JobResult:
    """The outcome of trials that were computed together."""

    job: Job
    n_computed: int
    seconds: float
    locked_elsewhere: tuple[int, ...]
    skip_reason: str = ""
    rest: Job | None = None


Solve = Callable[[Job], JobResult]
SolveAll = Callable[[Solve, list[Job]], Generator[JobResult]]


def run(
    experiment: Experiment,
    store: Store,
    *,
    seed: int = 0,
    device: str = "cpu",
    batch_size: int | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    fresh: bool = False,
    on_batch: Callable[[JobResult], object] = lambda result: None,
) -> None:
    """Compute every trial of an experiment that the store does not hold.

    Methods that need a missing package are skipped; it is an error if all are. ``batch_size`` trials are
    solved together: by default, on a CPU as many as take about half a minute, elsewhere all of a cell, and 1
    in tasks without batches. ``scheduler`` is the address of a Dask cluster, whose workers are used in place
    of ``workers`` processes; they need the datasets, and the store's folder under the same path. With
    ``fresh``, everything is computed again.
    """
    check_integer(workers, "workers", low=1)
    check_integer(seed, "seed", low=0, high=math.inf)
    if batch_size is not None:
        check_integer(batch_size, "batch_size", low=1)
    if device != "cpu" and scheduler is None:
        import_optional("torch", f"device {device}")
        from nodecopy.nn.training import check_device

        check_device(device)
    set_same_bits()
    task, cells = experiment.task, experiment.cells(seed)
    with _open_workers(workers, scheduler) as (solve_all, workers):
        if fresh:
            for cell in cells:
                store.remove(cell, range(task.trials))
        first_size = 1 if device == "cpu" and batch_size is None and task.is_batched else None
        jobs = []
        for cell in cells:
            missing = store.find_missing(cell, range(task.trials))
            size = batch_size or (math.ceil(len(missing) / workers) if task.is_batched else 1)
            for start in range(0, len(missing), size or 1):
                jobs.append(Job(cell, tuple(missing[start : start + size]), first_size))
        if not task.is_batched:
            jobs.sort(key=lambda job: (task.datasets.index(job.cell.dataset), job.trials))
        with log_decisions_once():
            for cell in {job.cell.folders: job.cell for job in jobs}.values():
                task.log_decisions(cell)
        for cell in {job.cell.dataset: job.cell for job in jobs}.values():
            _check_data(cells, cell, store)
        solve = partial(_solve_job, store=store, device=device)
        locked_elsewhere, skipped = [], {}  # trials of other processes are waited for at the end
        # Closed at once if on_batch is interrupted, so that no worker goes on.
        with closing(solve_all(partial(solve, wait=False), jobs)) as results:
            for result in results:
                on_batch(result)
                cell, locked = result.job.cell, result.locked_elsewhere
                if result.skip_reason:
                    skipped[cell.folders] = result.skip_reason
                elif result.n_computed and store.find_missing(cell, set(result.job.trials) - set(locked)):
                    raise InputError(f"the store {store.folder} must be a folder that all workers see.")
                if locked:
                    locked_elsewhere.append(Job(cell, locked, first_size))
        with closing(solve_all(partial(solve, wait=True), locked_elsewhere)) as results:
            for result in results:
                on_batch(result)
        if skipped and len(skipped) == len(cells):
            raise MissingExtraError(next(iter(skipped.values())))


def _check_data(cells: list[Cell], cell: Cell, store: Store) -> None:
    trials = range(cell.task.trials)
    stored = (store.read_finished(other, trials) for other in cells if other.dataset == cell.dataset)
    if list_forms(chain.from_iterable(stored)) - {cell.task.digest_data(cell)}:
        wanted = f"the same as for the trials in {store.folder}"
        hint = "Choose another store, or compute all trials afresh"
        raise InputError(f"the dataset {cell.dataset} must be {wanted}; it differs. {hint}.")


def _solve_job(job: Job, store: Store, device: str, wait: bool) -> JobResult:
    cell, trials, n_solved = job.cell, job.trials[: job.size], 0
    others = job.trials[len(trials) :]
    if replace(cell).fingerprint != cell.fingerprint:
        raise InputError(f"code of {cell.section} must not change during a run; a worker has another.")
    with store.claim(cell, trials, wait=wait) as held:
        start = time.perf_counter()
        missing_trials = store.find_missing(cell, held)  # another process may have been faster
        try:
            for record in cell.task.solve(cell, missing_trials, store, device) if missing_trials else ():
                if COPIED_FROM not in record.provenance:
                    origin = collect_provenance(device) | {"data": cell.task.digest_data(cell)}
                    record, n_solved = replace(record, provenance=origin), n_solved + 1
                store.write(cell, record)
        except MissingExtraError as error:
            return JobResult(Job(cell, job.trials), 0, 0.0, (), str(error))
        except InputError as error:
            error.place = error.place or f"{cell}: "
            raise
    seconds, size = time.perf_counter() - start, job.size
    if n_solved and size is not None:
        # A power of two, so that batches do not depend on small differences of the time.
        size = 1 << max(0, int(BATCH_SECONDS * n_solved / seconds).bit_length() - 1)
    locked_elsewhere = tuple(trial for trial in trials if trial not in held)
    rest = Job(cell, others, size) if others else None
    return JobResult(Job(cell, trials), len(missing_trials), seconds, locked_elsewhere, rest=rest)


@contextmanager
def _open_workers(workers: int, scheduler: str | None) -> Iterator[tuple[SolveAll, int]]:
    if scheduler is None:
        yield partial(_solve_in_processes, workers), workers
        return
    distributed = import_optional("distributed", "a Dask cluster")
    try:
        client = distributed.Client(scheduler)
    except (OSError, ValueError) as error:
        message = f"must be the address of a Dask scheduler; got {scheduler!r}."
        raise InputError("scheduler", message) from error
    with client:

        def count_threads() -> int:
            threads: dict[str, int] = client.nthreads()
            return max(1, sum(threads.values()))

        def solve_all(solve: Solve, jobs: list[Job]) -> Generator[JobResult]:
            try:
                yield from _solve_in_executor(client.get_executor(), count_threads, solve, deque(jobs))
            except distributed.KilledWorker as error:
                raise InputError(KILLED_TOO_OFTEN.format("several")) from error

        yield solve_all, count_threads()


def _solve_in_processes(workers: int, solve: Solve, jobs: list[Job]) -> Generator[JobResult]:
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            rest: Job | None = job
            while rest is not None:
                result = solve(rest)
                yield result
                rest = result.rest
        return
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    waiting, n_kills = deque(jobs), 0
    while waiting:
        with ProcessPoolExecutor(min(workers, len(waiting)), context, _prepare_worker, (workers,)) as pool:
            try:
                for result in _solve_in_executor(pool, lambda: workers, solve, waiting):
                    n_kills = 0 if result.n_computed else n_kills
                    yield result
            except BrokenExecutor as error:  # which ends all workers
                n_kills += 1
                if n_kills == MAX_KILLS:
                    raise InputError(KILLED_TOO_OFTEN.format(n_kills)) from error
                LOG.warning("a worker was killed, perhaps for lack of memory; its trials are computed again.")
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                if not isinstance(error, Exception):  # an interruption: do not wait for what is under way
                    for process in multiprocessing.active_children():
                        process.terminate()
                raise


def _solve_in_executor(
    executor: Executor, count_workers: Callable[[], int], solve: Solve, waiting: deque[Job]
) -> Generator[JobResult]:
    """Solve jobs in an executor, as many at once as it has workers, each to its end before others."""
    running: dict[Future[JobResult], Job] = {}
    try:
        while waiting or running:
            while waiting and len(running) < count_workers():
                running[executor.submit(solve, waiting[0])] = waiting[0]
                waiting.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                result = future.result()
                del running[future]
                if result.rest is not None:
                    waiting.appendleft(result.rest)
                yield result
    except BrokenExecutor:
        waiting.extend(running.values())  # after others, which may not be killed
        raise


def _prepare_worker(workers: int) -> None:
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, threads)
    set_same_bits()
    logging.getLogger("nodecopy.experiments").setLevel(logging.ERROR)  # the parent warns of what it reads
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    parent = multiprocessing.parent_process()

    def exit_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()


def collect_provenance(device: str) -> dict[str, Any]:
    """Return plain values that are stored with every result."""
    return _describe_environment(device) | {"finished": datetime.now(UTC).isoformat(timespec="seconds")}


@lru_cache
def _describe_environment(device: str) -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in ("nodecopy", "numpy", "scipy", "torch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    try:  # Linux: platform.processor() knows only the architecture
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        import torch

        device = f"{device}: {torch.cuda.get_device_name(device)}"
    machine = {"processor": processor, "cores": os.cpu_count(), "device": device}
    return {"commit": _find_commit(), "versions": versions, "machine": machine}


def _find_commit() -> str:
    if given := os.environ.get("NODECOPY_COMMIT"):
        return given
    git = ["git", "-C", str(Path(nodecopy.__file__).parent)]
    try:
        # The package may be installed inside the checkout of another project.
        for command in (
            ["ls-files", "--error-unmatch", "__init__.py"],
            ["describe", "--always", "--dirty", "--tags"],
        ):
            done = subprocess.run([*git, *command], capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return f"version {nodecopy.__version__}"


class FitCache:
    """The fits that were used last, at most ``max_fits``, which the methods of a process share."""

    def __init__(self, max_fits: int) -> None:
        self.max_fits = max_fits
        self.entries: OrderedDict[str, tuple[threading.Lock, list[Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def get_or_fit(self, fit: Callable[[], Any], cell: Cell, *others: Any) -> Any:
        parts = [cell.dataset, cell.seed, cell.task.protocol(cell), use_public_names(others)]
        name = json.dumps(parts, sort_keys=True, default=str)
        with self._lock:
            lock, fits = self.entries.setdefault(name, (threading.Lock(), []))
            self.entries.move_to_end(name)
            while len(self.entries) > self.max_fits:
                self.entries.popitem(last=False)
        with lock:
            if not fits:
                fits.append(fit())
        return fits[0]


FIT_CACHE = FitCache(max_fits=16)


class CachedGraphModel(GraphModel[Graph]):
    """A graph model that was fitted in ``seconds`` and ignores further calls of :meth:`fit`."""

    def __init__(self, model: GraphModel[Graph], seconds: float = 0.0) -> None:
        self.model, self.seconds = model, seconds

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def graph_(self) -> Graph:  # type: ignore[override]
        return self.model.graph_

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        return self.model.draw(seed)

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        return self.model.sample_many(n, rng=rng, workers=workers)

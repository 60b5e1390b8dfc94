"""Compute what the store does not hold yet, in one process or several; :mod:`.trials` has the randomness."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from nodecopy._core.lookup import import_class
from nodecopy._core.optional_imports import EXTRA_OF, import_optional
from nodecopy._core.validation import check_integer
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments.provenance import provenance
from nodecopy.experiments.spec import Cell, Experiment
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.generation import sampled
from nodecopy.experiments.tasks.node_classification import classified
from nodecopy.experiments.tasks.recommendation import recommended
from nodecopy.experiments.tasks.robustness import classified_under_attack
from nodecopy.experiments.trials import Solved


@dataclass(frozen=True)
class Batch:
    """Trials of one cell that are computed together."""

    cell: Cell
    trials: tuple[int, ...]


@dataclass(frozen=True)
class Finished:
    """What became of a batch: trials computed, seconds they took, trials another process has under way.

    Where a package is missing that the method needs, ``skipped`` says so.
    """

    batch: Batch
    n_computed: int
    seconds: float
    elsewhere: tuple[int, ...]
    skipped: str = ""

    @property
    def computed(self) -> list[int]:
        """Trials that the store holds now."""
        return [trial for trial in self.batch.trials if trial not in self.elsewhere]


Report = Callable[[Finished], object]
Perform = Callable[[Batch], Finished]
Performed = Callable[[Perform, list[Batch]], Iterator[Finished]]


def run(
    experiment: Experiment,
    store: Store,
    *,
    seed: int = 0,
    device: str = "cpu",
    batch: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    fresh: bool = False,
    report: Report = lambda finished: None,
) -> None:
    """Compute every trial of an experiment that the store does not hold.

    A method that needs a package that is not installed is skipped; that all are is an error.

    Parameters
    ----------
    experiment
        What to compute, perhaps narrowed.
    store
        Where results are kept; another process may be filling it too.
    seed
        Root of all randomness, see :mod:`.trials`.
    device
        Passed to every method.
    batch
        Trials trained together. By default all of a cell, shared evenly among the jobs: the larger a
        batch, the faster, and the more is lost by a kill. Recommenders and graph models gain nothing by
        it: one.
    jobs
        Processes. Each gets its share of the processor's threads.
    scheduler
        Address of a Dask cluster whose workers compute instead, all at once whatever ``jobs`` says. They
        need nodecopy, the datasets, and the store's folder under the same path. What a worker that is
        lost had under way is computed by another.
    fresh
        Whether all is computed anew: what the store holds of it is removed, once these parameters are
        checked and every class is found.
    report
        Called in this process after every batch.
    """
    check_integer(jobs, "jobs", low=1)
    check_integer(seed, "seed", low=0)
    if batch is not None:
        check_integer(batch, "batch", low=1)
    if device != "cpu" and scheduler is None:
        import_optional("torch", f"device {device}")
        from nodecopy.nn.devices import checked_device

        checked_device(device)
    with _workers(jobs, scheduler) as (performed, jobs):
        if fresh:
            _check_classes(experiment)
            for cell in experiment.cells(seed):
                store.forget(cell, range(experiment.protocol.trials))
        batches = _batches(experiment, store, seed, batch, jobs)
        _run(experiment, batches, performed, store, seed, device, report)


def _check_classes(experiment: Experiment) -> None:
    """See that every class is there; those that lack an optional package are skipped in their turn."""
    for method in (one for one in experiment.methods if one.path):
        try:
            import_class(method.path, f"[methods.{method.name}]")
        except InputError as error:
            if getattr(error.__cause__, "name", None) not in EXTRA_OF:
                raise


def _run(
    experiment: Experiment,
    batches: list[Batch],
    performed: Performed,
    store: Store,
    seed: int,
    device: str,
    report: Report,
) -> None:
    # What another process has under way is left to it; only at the end is it waited for.
    elsewhere, skipped = [], {}
    for finished in performed(partial(_perform, store=store, device=device, wait=False), batches):
        report(finished)
        if finished.skipped:
            skipped[finished.batch.cell.folders] = finished.skipped
        elif finished.n_computed and store.missing(finished.batch.cell, finished.computed):
            raise InputError(f"the store must be a folder that all workers see; {store.folder} is not.")
        if finished.elsewhere:
            elsewhere.append(Batch(finished.batch.cell, finished.elsewhere))
    for finished in performed(partial(_perform, store=store, device=device, wait=True), elsewhere):
        report(finished)
    if skipped and len(skipped) == len(experiment.cells(seed)):
        raise MissingExtraError(next(iter(skipped.values())))


def _batches(experiment: Experiment, store: Store, seed: int, batch: int | None, jobs: int) -> list[Batch]:
    """What is missing, cell by cell; of recommenders and graph models trial by trial, so that a network
    that was just trained serves the methods that are built on it.
    """
    batches = []
    for cell in experiment.cells(seed):
        missing = store.missing(cell, range(experiment.protocol.trials))
        size = batch or (math.ceil(len(missing) / jobs) if cell.labels else 1)
        for start in range(0, len(missing), size or 1):
            batches.append(Batch(cell, tuple(missing[start : start + size])))
    if not experiment.protocol.labels:
        place = experiment.protocol.datasets.index
        batches.sort(key=lambda one: (place(one.cell.dataset), one.trials))
    return batches


@contextmanager
def _workers(jobs: int, scheduler: str | None) -> Iterator[tuple[Performed, int]]:
    """What performs batches and yields them as they are finished, and how many it performs at once."""
    if scheduler is None:
        yield partial(_in_processes, jobs), jobs
        return
    joblib, distributed = (import_optional(name, "a Dask cluster") for name in ("joblib", "distributed"))
    try:
        client = distributed.Client(scheduler)
    except (OSError, ValueError) as error:
        raise InputError(f"scheduler must be the address of a Dask scheduler; got {scheduler!r}.") from error
    with client, joblib.parallel_config("dask", client=client):
        parallel = joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
        yield (
            lambda perform, batches: parallel(joblib.delayed(perform)(one) for one in batches),
            max(1, sum(client.nthreads().values())),
        )


def _in_processes(jobs: int, perform: Perform, batches: list[Batch]) -> Iterator[Finished]:
    """In this process or in several."""
    if jobs == 1 or len(batches) < 2:
        yield from map(perform, batches)
        return
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    with ProcessPoolExecutor(min(jobs, len(batches)), context, _settle, (jobs,)) as pool:
        try:
            for future in as_completed([pool.submit(perform, one) for one in batches]):
                yield future.result()
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):  # somebody wants an end: nobody waits for what is under way
                for worker in multiprocessing.active_children():
                    worker.terminate()
            raise


def _settle(jobs: int) -> None:
    """Prepare a worker: a fair share of the threads, and no life after the parent's, however that ends."""
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its workers
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _perform(batch: Batch, store: Store, device: str, wait: bool) -> Finished:
    with store.claim(batch.cell, batch.trials, wait=wait) as held:
        todo = store.missing(batch.cell, held)  # another process may have been faster
        try:
            seconds = _compute(batch.cell, todo, store, device) if todo else 0.0
        except MissingExtraError as error:
            return Finished(batch, 0, 0.0, (), str(error))
    elsewhere = tuple(trial for trial in batch.trials if trial not in held)
    return Finished(batch, len(todo), seconds, elsewhere)


def _compute(cell: Cell, trials: list[int], store: Store, device: str) -> float:
    """Solve trials and keep each as soon as it is finished; returns the seconds that it took."""
    start = time.perf_counter()
    for solved in _solver(cell)(cell, trials, store, device):
        store.write(cell, Record(*solved, provenance(device)))
    return time.perf_counter() - start


def _solver(cell: Cell) -> Callable[[Cell, list[int], Store, str], Iterator[Solved]]:
    if cell.kind == "classifiers":
        return classified if cell.attacker is None else classified_under_attack
    return recommended if cell.kind == "recommenders" else sampled

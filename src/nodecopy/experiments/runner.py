"""Compute what the store does not hold yet.

The rule of randomness: trial t of a dataset with L labels per class has the seed sequence with entropy
``seed`` and path (CRC-32 of the dataset's name, L, t). Its child 0 draws the split; its child 1 goes to
the method; what an attack needs is told in :mod:`.attacked`. Neither the method nor the experiment is
part of the path, so every method of a trial sees the same split and the same seed, in Table 3 as in
Table 2, and trial 7 is the same whether it runs alone, last or on another machine.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy import checks, datasets
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments.attacked import attacked, victims_of
from nodecopy.experiments.experiment import Cell, Experiment
from nodecopy.experiments.provenance import provenance
from nodecopy.experiments.store import Record, Store
from nodecopy.extras import optional
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.metrics.classification import accuracy, area_under_roc, scores
from nodecopy.registry import made
from nodecopy.rng import child, seed_sequence

if TYPE_CHECKING:
    from nodecopy.classify import Prediction, Trial

NodeSplit: TypeAlias = Split[NDArray[np.int64]]
Judged: TypeAlias = tuple[dict[str, float], dict[str, Any]]
"""The scores of a trial, and what the method tells of itself."""


@dataclass(frozen=True)
class Batch:
    """Trials of one cell that are computed together."""

    cell: Cell
    trials: tuple[int, ...]


@dataclass(frozen=True)
class Finished:
    """What became of a batch: trials computed, seconds they took, trials another process has under way."""

    batch: Batch
    n_computed: int
    seconds: float
    elsewhere: tuple[int, ...]


Report = Callable[[Finished], object]


def run(
    experiment: Experiment,
    store: Store,
    *,
    seed: int = 0,
    device: str = "cpu",
    batch: int | None = None,
    jobs: int = 1,
    report: Report = lambda finished: None,
) -> None:
    """Compute every trial of an experiment that the store does not hold.

    Parameters
    ----------
    experiment
        What to compute, perhaps narrowed.
    store
        Where results are kept; another process may be filling it too.
    seed
        Root of all randomness, see the head of this module.
    device
        Passed to every method.
    batch
        Trials trained together. By default all of a cell, shared evenly among the jobs: the larger a
        batch, the faster, and the more is lost by a kill.
    jobs
        Processes. Each gets its share of the processor's threads.
    report
        Called in this process after every batch.
    """
    checks.integer(jobs, "jobs", low=1)
    checks.integer(seed, "seed", low=0)
    if batch is not None:
        checks.integer(batch, "batch", low=1)
    batches = list(_batches(experiment, store, seed, batch, jobs))
    # What another process has under way is left to it; only at the end is it waited for.
    elsewhere = []
    for finished in _performed(batches, store, device, jobs, wait=False):
        report(finished)
        if finished.elsewhere:
            elsewhere.append(Batch(finished.batch.cell, finished.elsewhere))
    for finished in _performed(elsewhere, store, device, jobs, wait=True):
        report(finished)


def trial_seed(cell: Cell, trial: int) -> SeedSequence:
    """The seed sequence of a trial; its children 0 and 1 are for the split and for the method."""
    dataset = zlib.crc32(cell.dataset.encode())
    return child(child(child(seed_sequence(cell.seed), dataset), cell.labels), trial)


def trial_split(cell: Cell, trial: int) -> Split[NDArray[np.int64]]:
    """The nodes of a trial, the same for every method."""
    return datasets.label_split(
        _graph(cell.dataset, cell.largest_component).labels,
        cell.labels,
        cell.validation,
        cell.test,
        rng=child(trial_seed(cell, trial), 0),
    )


def _batches(
    experiment: Experiment, store: Store, seed: int, batch: int | None, jobs: int
) -> Iterator[Batch]:
    for cell in experiment.cells(seed):
        missing = store.missing(cell, range(experiment.protocol.trials))
        size = batch or math.ceil(len(missing) / jobs)
        for start in range(0, len(missing), size or 1):
            yield Batch(cell, tuple(missing[start : start + size]))


def _performed(
    batches: Iterable[Batch], store: Store, device: str, jobs: int, *, wait: bool
) -> Iterator[Finished]:
    """Batches as they are finished, in this process or in several."""
    perform = partial(_perform, store=store, device=device, wait=wait)
    batches = list(batches)
    if jobs == 1 or len(batches) < 2:
        yield from map(perform, batches)
        return
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    with ProcessPoolExecutor(min(jobs, len(batches)), context, _settle, (jobs,)) as pool:
        try:
            for future in as_completed([pool.submit(perform, one) for one in batches]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _settle(jobs: int) -> None:
    """Prepare a worker: a fair share of the threads, and no life after the parent's, however that ends."""
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, threads)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _perform(batch: Batch, store: Store, device: str, wait: bool) -> Finished:
    with store.claim(batch.cell, batch.trials, wait=wait) as held:
        todo = store.missing(batch.cell, held)  # another process may have been faster
        seconds = _compute(batch.cell, todo, store, device) if todo else 0.0
    elsewhere = tuple(trial for trial in batch.trials if trial not in held)
    return Finished(batch, len(todo), seconds, elsewhere)


def _compute(cell: Cell, trials: list[int], store: Store, device: str) -> float:
    """Train, judge, keep; returns the seconds of training and prediction."""
    optional("torch", "running an experiment")

    graph = _graph(cell.dataset, cell.largest_component)
    classifier = made(cell.method, cell.path, {**cell.settings, "device": device}, f"[methods.{cell.method}]")
    splits = [trial_split(cell, trial) for trial in trials]
    solve = _solved_plainly if cell.attacker is None else _solved_under_attack
    found, seconds = solve(cell, graph, classifier, trials, splits, store)
    origin = provenance(device)
    for trial, (judged, details) in zip(trials, found, strict=True):
        store.write(cell, Record(trial, judged, seconds / len(trials), details, origin))
    return seconds


def _solved_plainly(
    cell: Cell, graph: Graph, classifier: Any, trials: list[int], splits: list[NodeSplit], store: Store
) -> tuple[list[Judged], float]:
    """Predictions of the test nodes."""
    graphs = [
        datasets.without_test_edges(graph, split.test) if cell.without_test_edges else graph
        for split in splits
    ]
    start = time.perf_counter()
    predictions: list[Prediction] = classifier.fit_trials(_prepared(cell, trials, splits, graphs))
    seconds = time.perf_counter() - start
    labels = _codes(graph)
    return [
        (scores(prediction.probabilities, labels, split.test), dict(prediction.details))
        for prediction, split in zip(predictions, splits, strict=True)
    ], seconds


def _solved_under_attack(
    cell: Cell, graph: Graph, classifier: Any, trials: list[int], splits: list[NodeSplit], store: Store
) -> tuple[list[Judged], float]:
    """Predictions of the victims; untold who they are, of all test nodes."""
    from nodecopy.defend import corrected_trials

    seeds = [trial_seed(cell, trial) for trial in trials]
    victims = [victims_of(cell, graph, split, seed) for split, seed in zip(splits, seeds, strict=True)]
    graphs = [
        attacked(cell, graph, split, chosen, seed, store.flips(cell, trial))
        for trial, split, chosen, seed in zip(trials, splits, victims, seeds, strict=True)
    ]
    asked = victims if cell.told else [split.test for split in splits]
    start = time.perf_counter()
    predictions = corrected_trials(classifier, _prepared(cell, trials, splits, graphs), asked)
    seconds = time.perf_counter() - start
    labels = _codes(graph)
    found = []
    for prediction, nodes, chosen in zip(predictions, asked, victims, strict=True):
        hit = np.isin(nodes, chosen)
        judged = scores(prediction.probabilities, labels[nodes], np.flatnonzero(hit))
        details = dict(prediction.details)
        suspicion = details.pop("suspicion", None)
        if not cell.told:
            judged["others"] = accuracy(prediction.probabilities, labels[nodes], np.flatnonzero(~hit))
            if suspicion is not None:
                judged["auc"] = area_under_roc(suspicion, hit)
        found.append((judged, details))
    return found, seconds


def _prepared(cell: Cell, trials: list[int], splits: list[NodeSplit], graphs: list[Graph]) -> list[Trial]:
    from nodecopy.classify import Trial

    return [
        Trial(graph, split.train, split.validation, child(trial_seed(cell, trial), 1))
        for trial, split, graph in zip(trials, splits, graphs, strict=True)
    ]


def _codes(graph: Graph) -> NDArray[np.int64]:
    """The column of every node's class, -1 where unknown: columns are the distinct labels in order."""
    if graph.labels is None:
        raise InputError("the graph of an experiment must have labels; it has none.")
    classes = np.unique(graph.labels[graph.labels != UNLABELLED])
    codes = np.searchsorted(classes, graph.labels).astype(np.int64)
    return np.where(graph.labels == UNLABELLED, UNLABELLED, codes)


@lru_cache(maxsize=1)  # cells come dataset by dataset
def _graph(dataset: str, largest_component: bool) -> Graph:
    graph = datasets.load(dataset, largest_component=largest_component)
    if not isinstance(graph, Graph):
        raise InputError(f"the dataset of an experiment must be a graph; {dataset} holds interactions.")
    return graph

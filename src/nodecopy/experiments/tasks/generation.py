"""Trials of graph models: each fits a model to the observed graph once and samples from it.

Child 1 of a trial's seed goes to the fit, child 2 to the samples. Where a setting reads
``{ embedded = "module.Class", ... }``, it is the embeddings of such a model, fitted with child 1 as well:
the very model that the table shows of it alone. A model with a ``sampler`` is trained once for all of them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.random import Rng, child
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.store import Store
from nodecopy.experiments.trials import Solved, graph_of, trial_seed
from nodecopy.graph import Graph
from nodecopy.metrics.structure import Statistics, select_statistics

FIT, SAMPLE = 1, 2
TRAINED: dict[str, Any] = {}
N_KEPT = 4
"""Trained models stay in memory for the methods that are built on them: those of a trial come together."""


class Observed:
    """The graph model that has seen one graph and knows no other."""

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        return self

    def sample(self, *, rng: Rng) -> Graph:
        return self.graph_

    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]:
        yield from repeat(self.graph_, n)


def sampled(cell: Cell, trials: list[int], store: Store, device: str) -> Iterator[Solved]:
    """The statistics of the samples of a trial: their means, and among the details each.

    Seconds are those of fitting and sampling, without counting what the samples have, and without
    what an earlier method had trained.
    """
    for trial in trials:
        seed, graph = trial_seed(cell, trial), graph_of(cell)
        start = time.perf_counter()
        model = _fitted(cell, trial, device)
        seconds_to_fit = seconds = time.perf_counter() - start
        found: list[Statistics] = []
        samples = iter(model.sample_many(cell.samples, rng=child(seed, SAMPLE)))
        while True:
            start = time.perf_counter()
            sample = next(samples, None)
            seconds += time.perf_counter() - start
            if sample is None:
                break
            again = bool(found) and sample is graph
            found.append(found[-1] if again else select_statistics(sample, cell.statistics, observed=graph))
        each = {name: [one[name] for one in found] for name in cell.statistics}
        defined = {name: values for name, values in each.items() if not any(map(math.isnan, values))}
        means = {name: float(np.mean(values)) for name, values in defined.items()}
        yield Solved(trial, means, seconds, {"seconds_to_fit": seconds_to_fit, "samples": defined})


def _fitted(cell: Cell, trial: int, device: str) -> Any:
    graph, seed = graph_of(cell), child(trial_seed(cell, trial), FIT)

    def trained(path: str, settings: Mapping[str, Any]) -> Any:
        settings = {**settings, "sampler": "raw"} if "sampler" in settings else settings
        draw = [cell.dataset, cell.largest_component, cell.seed, trial]
        key = json.dumps([draw, device, path, settings], sort_keys=True)
        if key not in TRAINED:
            while len(TRAINED) >= N_KEPT:
                del TRAINED[next(iter(TRAINED))]
            TRAINED[key] = assembled(cell.method, path, settings, device).fit(graph, rng=seed)
        return TRAINED[key]

    def embedded(path: str, settings: Mapping[str, Any]) -> NDArray[Any]:
        found: NDArray[Any] = trained(path, settings).embeddings()
        return found

    if "sampler" in cell.settings:
        return trained(cell.path, cell.settings).with_sampler(cell.settings["sampler"])
    return assembled(cell.method, cell.path, cell.settings, device, embedded=embedded).fit(graph, rng=seed)

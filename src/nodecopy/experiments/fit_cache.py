"""A graph model that looks at edges alone and takes minutes to fit: one fit serves all trials of a process.

Where a setting of a classifier reads ``{ once = "module.Class", ... }``, it is such a model. It does not get
to see labels, and its randomness is that of the dataset, not of a trial.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any, Self

from numpy.random import SeedSequence

from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.trials import dataset_seed, graph_of
from nodecopy.graph import Graph
from nodecopy.models import GraphModel

FITTED: dict[str, FittedOnce] = {}


class FittedOnce(GraphModel[Graph]):
    """A graph model for one graph that takes every ``fit`` but the first as done."""

    def __init__(self, model: Any, graph: Graph, rng: Rng) -> None:
        self.model, self.graph, self.rng = model, graph, rng
        self.seconds = 0.0
        """How long its fit took, which every trial would have had to wait for."""
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """``graph`` and ``rng`` are not looked at: they are those that it was made with."""
        with self._lock:
            if not self.seconds:
                start = time.perf_counter()
                self.model.fit(self.graph.replace(labels=None), rng=self.rng)
                self.seconds = time.perf_counter() - start
        self.graph_ = self.graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        sample: Graph = self.model.draw(seed)
        return sample

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        samples: Iterator[Graph] = self.model.sample_many(n, rng=rng, workers=workers)
        return samples


def fitted_once(cell: Cell, path: str, settings: Mapping[str, Any], device: str) -> FittedOnce:
    """The model of that class and those settings for the graph of a cell, the same at every call."""
    where = f"once of [methods.{cell.method}]"
    if cell.attacker or cell.without_test_edges:
        raise InputError(f"{where} must stand in an experiment whose trials have the same edges.")
    parts = [cell.dataset, cell.largest_component, cell.seed, device, path, settings]
    key = json.dumps(parts, sort_keys=True, default=str)
    if key not in FITTED:
        model = assembled(cell.method, path, settings, device)
        if not hasattr(model, "sample_many"):
            raise InputError(f"{where} must be the class of a graph model; got {path}.")
        FITTED[key] = FittedOnce(model, graph_of(cell), dataset_seed(cell))
    return FITTED[key]

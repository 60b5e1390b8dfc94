"""A graph model that looks at edges alone and takes minutes to fit: one fit serves all trials of a process.

Where a setting of a classifier reads ``{ once = "module:Class", ... }``, it is such a model. It does not get
to see labels, and its randomness is that of the dataset, not of a trial.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Self

from nodecopy.errors import InputError
from nodecopy.experiments.experiment import Cell
from nodecopy.experiments.parts import assembled
from nodecopy.experiments.trials import dataset_seed, graph_of
from nodecopy.graph import Graph
from nodecopy.rng import Rng

FITTED: dict[str, FittedOnce] = {}


class FittedOnce:
    """A graph model that is fitted when first asked how long that takes, and takes every ``fit`` as done."""

    def __init__(self, model: Any, graph: Graph, rng: Rng) -> None:
        self.model, self.graph, self.rng = model, graph, rng

    @cached_property
    def seconds(self) -> float:
        """How long the fit took, which every trial would have had to wait for."""
        start = time.perf_counter()
        self.model.fit(self.graph.replace(labels=None), rng=self.rng)
        return time.perf_counter() - start

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        if graph.n_edges != self.graph.n_edges:
            raise InputError("once must not stand in an experiment whose trials take edges away.")
        return self

    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]:
        samples: Iterator[Graph] = self.model.sample_many(n, rng=rng, workers=workers)
        return samples


def fitted_once(cell: Cell, path: str, settings: Mapping[str, Any], device: str) -> FittedOnce:
    """The model of that class and those settings for the graph of a cell, the same at every call."""
    key = json.dumps(
        [cell.dataset, cell.largest_component, cell.seed, device, path, settings], sort_keys=True
    )
    if key not in FITTED:
        model = assembled(cell.method, path, settings, device)
        FITTED[key] = FittedOnce(model, graph_of(cell), dataset_seed(cell))
    return FITTED[key]

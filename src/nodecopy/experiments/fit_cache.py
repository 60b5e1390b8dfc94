"""Fitted models of this process that methods share, so that none is trained twice in a trial."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Self

from numpy.random import SeedSequence

from nodecopy._core.random import Rng
from nodecopy.experiments.spec import Cell
from nodecopy.graph import Graph
from nodecopy.models import GraphModel


class FitCache:
    """The last fits that were asked for, at most ``max_fits``."""

    def __init__(self, max_fits: int) -> None:
        self.max_fits = max_fits
        self._entries: OrderedDict[str, tuple[Lock, list[Any]]] = OrderedDict()
        self._lock = Lock()

    def get_or_fit(
        self,
        cell: Cell,
        trial: int | None,
        device: str,
        path: str,
        settings: Mapping[str, Any],
        fit: Callable[[], Any],
    ) -> Any:
        """Return the fit of a class with such settings to a trial's data; calls ``fit`` if it is not cached.

        Data are those of the cell's dataset, seed and protocol, and of the trial unless it is ``None``.
        Threads that ask for the same fit wait for the first of them.
        """
        parts = [cell.dataset, cell.seed, cell.task.protocol(cell), trial, device, path, settings]
        name = json.dumps(parts, sort_keys=True, default=str)
        with self._lock:
            lock, fits = self._entries.setdefault(name, (Lock(), []))
            self._entries.move_to_end(name)
            while len(self._entries) > self.max_fits:
                self._entries.popitem(last=False)
        with lock:
            if not fits:
                fits.append(fit())
        return fits[0]

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget all fits."""
        self._entries.clear()


FIT_CACHE = FitCache(max_fits=16)
"""A method of a recommendation table has at most six candidates, so 16 hold those of two methods."""


class CachedGraphModel(GraphModel[Graph]):
    """A fitted graph model that ignores further calls of :meth:`fit`.

    ``seconds`` is how long its only fit took.
    """

    def __init__(self, model: GraphModel[Graph], seconds: float = 0.0) -> None:
        self.model, self.seconds = model, seconds

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def graph_(self) -> Graph:  # type: ignore[override]
        """The graph that the model was fitted to."""
        return self.model.graph_

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Return the model as it is."""
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the sample of the model that belongs to a seed."""
        return self.model.draw(seed)

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        """Return the samples of the model."""
        return self.model.sample_many(n, rng=rng, workers=workers)

"""Stores with given results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Record, Store

Fill = Callable[[Experiment, Mapping[tuple[str, int], Sequence[float | None]]], Store]
ORIGIN = {
    "commit": "v1-2-gabc",
    "versions": {"python": "3.11", "numpy": "2.0"},
    "machine": {"processor": "abacus", "cores": 2, "device": "cpu"},
    "finished": "2024-05-06T07:08:09+00:00",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Return a function that stores accuracies (in percent, ``None``: missing) by method and labels."""

    def fill_store(table: Experiment, accuracies: Mapping[tuple[str, int], Sequence[float | None]]) -> Store:
        store = Store(tmp_path / "filled")
        for cell in table.cells(0):
            for trial, accuracy in enumerate(accuracies.get((cell.method, cell.conditions["labels"]), [])):
                if accuracy is not None:
                    scores = {"accuracy": accuracy / 100, "nll": 0.5, "brier": 0.25, "ece": 0.125}
                    store.write(cell, Record(trial, scores, 1.5, {}, ORIGIN))
        return store

    return fill_store

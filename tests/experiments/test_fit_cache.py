"""Graph models that are fitted once for all trials: one fit, its time in every trial, no labels seen."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest

pytest.importorskip("torch")

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.experiments import toml
from nodecopy.experiments.fit_cache import FITTED, FittedOnce
from nodecopy.experiments.store import Store
from nodecopy.experiments.tasks.node_classification import classified

HERE = "tests.experiments.test_fit_cache"
FITS: list[tuple[Graph, Any]] = []

TOML = f"""
title = "one fit"
[protocol]
datasets = ["digits"]
labels = [2, 3]
trials = 3
validation = 50
test = 100
[methods.slow]
title = "Slow"
class = "nodecopy.classify.bayesian.BayesianGCN"
[methods.slow.settings]
n_graphs = 2
base = {{ class = "nodecopy.classify.GCN", n_epochs = 3 }}
graph_model = {{ once = "{HERE}.Slow" }}
"""


class Slow:
    """Notes every fit, and returns the observed graph."""

    def __init__(self, depth: str = "1") -> None:
        self.depth = depth

    def fit(self, graph: Graph, *, rng: Any = None) -> Self:
        FITS.append((graph, rng))
        self.graph = graph
        return self

    def sample_many(self, n: int, *, rng: Any, workers: int = 1) -> Iterator[Graph]:
        return iter([self.graph] * n)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    FITTED.clear()
    FITS.clear()
    yield
    FITTED.clear()


def solved(text: str, tmp_path: Path) -> list[Any]:
    cells = toml.parse(text, "once").cells(0)
    return [one for cell in cells for one in classified(cell, [0, 2], Store(tmp_path), "cpu")]


def test_one_fit_without_labels_serves_all_trials(tmp_path: Path) -> None:
    found = solved(TOML, tmp_path)
    assert [one.trial for one in found] == [0, 2, 0, 2]
    ((graph, rng),) = FITS
    assert graph.labels is None
    assert len(rng.spawn_key) == 1  # the dataset; a trial has two more


def test_every_trial_counts_the_time_of_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved(TOML, tmp_path)
    (once,) = FITTED.values()
    monkeypatch.setattr(once, "seconds", 1000.0)
    seconds = [one.seconds for one in solved(TOML, tmp_path)]
    assert len(FITS) == 1
    assert all(1000 < one < 1100 for one in seconds)


def test_another_seed_is_another_fit(tmp_path: Path) -> None:
    solved(TOML, tmp_path)
    assert len(FITS) == 1
    cells = toml.parse(TOML, "once").cells(1)
    list(classified(cells[0], [0], Store(tmp_path), "cpu"))
    assert len(FITS) == 2


def test_other_settings_are_another_fit(tmp_path: Path) -> None:
    solved(TOML, tmp_path)
    solved(TOML.replace(".Slow", '.Slow", depth = "2'), tmp_path)
    assert len(FITS) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 3", "trials = 3\nwithout_test_edges = true", "whose trials have the same edges"),
        (
            f"{HERE}.Slow",
            "nodecopy.classify.GCN",
            "be the class of a graph model; got",
        ),
    ],
)
def test_what_cannot_be_fitted_once(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The error comes before the fit, which may take long."""
    with pytest.raises(InputError, match=rf"once of \[methods.slow\] must .*{message}"):
        solved(TOML.replace(old, new), tmp_path)
    assert not FITS


def test_threads_share_one_fit() -> None:
    graph = datasets.load("karate")
    once = FittedOnce(Slow(), graph, 0)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: once.fit(graph), range(8))) == {once}
    assert len(FITS) == 1
    assert copy.deepcopy(once) is once

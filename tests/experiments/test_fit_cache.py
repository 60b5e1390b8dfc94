from __future__ import annotations

import copy
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from nodecopy import datasets
from nodecopy.experiments.runner import CachedGraphModel, FitCache
from nodecopy.generators import ErdosRenyi
from tests.experiments.fakes import make_experiment

CELL, OTHER = make_experiment().cells(0)[:2]


def test_a_fit_is_made_once_for_the_same_data_and_settings() -> None:
    cache = FitCache(9)
    fits: list[Any] = []

    def fit() -> int:
        fits.append("fit")
        return len(fits)

    def get(cell: Any = CELL, trial: int | None = 0, device: str = "cpu", **settings: Any) -> Any:
        return cache.get_or_fit(cell, trial, device, "a.B", settings, fit)

    assert get(k=1, n=2) == get(n=2, k=1) == get(OTHER, k=1, n=2) == 1  # another method, the same data
    assert get(k=2) == 2
    assert get(trial=1, k=1, n=2) == 3
    assert get(device="cuda", k=1, n=2) == 4
    assert get(make_experiment().cells(1)[0], k=1, n=2) == 5
    assert get(trial=None, k=1, n=2) == 6
    assert len(fits) == len(cache) == 6


def test_the_fit_that_was_not_used_for_longest_goes_first() -> None:
    cache, fits = FitCache(2), []

    def get(number: int) -> None:
        cache.get_or_fit(CELL, number, "cpu", "a.B", {}, lambda: fits.append(number))

    for number in (0, 1, 0, 2, 0, 1):
        get(number)
    assert fits == [0, 1, 2, 1]
    cache.clear()
    assert len(cache) == 0


def test_threads_share_one_fit() -> None:
    cache, fits = FitCache(2), []

    def fit() -> str:
        time.sleep(0.01)
        fits.append(1)
        return "model"

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: cache.get_or_fit(CELL, 0, "cpu", "a.B", {}, fit), range(8)))
    assert (models, fits) == (["model"] * 8, [1])


def test_a_cached_graph_model_is_not_fitted_again() -> None:
    graph, other = datasets.load("karate"), datasets.load("karate").subgraph(range(20))
    model = CachedGraphModel(ErdosRenyi().fit(graph), seconds=3.0)
    assert model.fit(other) is copy.deepcopy(model) is model
    assert model.graph_ is graph
    expected = list(model.model.sample_many(2, rng=5))
    assert list(model.sample_many(2, rng=5)) == expected
    assert model.sample(rng=5) == expected[0]

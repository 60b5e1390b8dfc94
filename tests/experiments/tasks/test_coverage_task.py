"""Intervals through the runner, on networks of known models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import rendering, toml
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import summarise
from nodecopy.experiments.tasks import coverage_task
from nodecopy.experiments.tasks.coverage_task import list_statistics, pagerank_of_first, simulate_truth

TOML = """
title = "Coverage"
task = "coverage"
[protocol]
datasets = ["sbm", "bipartite"]
nodes = 40
samples = 30
trials = 6
reference = "truth"
scores = ["pagerank_of_first", "density", "triangles"]
TARGET
[methods.truth]
title = "True model"
class = "nodecopy.experiments.known_networks.KnownNetwork"
[methods.other]
title = "Other"
class = "CLASS"
"""
EDGES = TOML.replace("TARGET", "").replace("CLASS", "nodecopy.generators.SBM")
NODES = TOML.replace("TARGET", 'target = "nodes"').replace("CLASS", "nodecopy.inference.NodeBootstrap")


@pytest.fixture(autouse=True)
def few_true_networks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(coverage_task, "N_TRUE", 150)
    simulate_truth.cache_clear()
    yield
    simulate_truth.cache_clear()


def load(text: str, folder: Path) -> Any:
    path = folder / "own.toml"
    path.write_text(text)
    return toml.load(str(path))


@pytest.mark.parametrize("text", [EDGES, NODES], ids=["edges", "nodes"])
def test_scores_are_coverage_and_ratios(text: str, tmp_path: Path) -> None:
    experiment, store = load(text, tmp_path), Store(tmp_path / "store")
    run(experiment, store, seed=0, workers=1)
    for cell in experiment.cells(0):
        for trial in range(6):
            record = store.read(cell, trial)
            assert record is not None
            covered = {name: value for name, value in record.scores.items() if name.endswith(" covered")}
            ratios = {name: value for name, value in record.scores.items() if name.endswith(" ratio")}
            assert set(covered.values()) <= {0.0, 1.0}
            assert ("triangles covered" in covered) == (cell.dataset == "sbm")  # there are none otherwise
            assert all(0.2 < ratio < 5 for ratio in ratios.values())
    table = rendering.render_markdown(summarise(experiment, store, seed=0))
    assert "PageRank of a node" in table
    assert "True model" in table


def test_the_true_model_has_the_true_deviation(tmp_path: Path) -> None:
    experiment, store = load(EDGES, tmp_path), Store(tmp_path / "store")
    run(experiment, store, seed=0, workers=1)
    cell = next(cell for cell in experiment.cells(0) if (cell.dataset, cell.method) == ("sbm", "truth"))
    records = [store.read(cell, trial) for trial in range(6)]
    ratios = [record.scores["density ratio"] for record in records if record is not None]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)  # 180 samples against 150, four standard errors


def test_new_nodes_have_a_larger_variance() -> None:
    fixed, drawn = (
        simulate_truth("dc-sbm", 40, target, ("density",), 0)[1][0] for target in ("edges", "nodes")
    )
    assert drawn > fixed


def test_statistics_are_in_the_order_of_results() -> None:
    assert list_statistics(["pagerank_of_first", "density"]) == ["density", pagerank_of_first]


def test_unknown_networks_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets of \[protocol\] must be one of .*; got 'karate'"):
        load(EDGES.replace('"bipartite"', '"karate"'), tmp_path)

"""The tasks coverage and level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.tasks import coverage as coverage_task
from nodecopy.experiments.tasks.coverage import CoverageTask
from nodecopy.inference import spectral_communities
from nodecopy.inference.statistics import compute_modularity

TOML = """
title = "Coverage"
task = "coverage"
[protocol]
datasets = ["sbm", "bipartite"]
sizes = [[40, 8]]
networks = 2
samples = 30
trials = 6
reference = "truth"
scores = ["pagerank_of_first", "density", "triangles", "modularity"]
TARGET
[methods.truth]
title = "True model"
class = "nodecopy.experiments.data.KnownNetwork"
[methods.other]
title = "Other"
class = "CLASS"
"""
EDGES = TOML.replace("TARGET", "").replace("CLASS", "nodecopy.generators.SBM")
NODES = TOML.replace("TARGET", 'target = "nodes"').replace("CLASS", "nodecopy.inference.NodeBootstrap")


@pytest.fixture(autouse=True)
def few_true_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_task, "N_TRUE", 150)


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
            assert set(covered.values()) <= {0.0, 0.5, 1.0}  # means of two networks
            assert ("triangles covered" in covered) == (cell.dataset == "sbm")  # there are none otherwise
            assert all(0.2 < ratio < 5 for ratio in ratios.values())
    table = rendering.render_markdown(summarise(experiment, store, seed=0))
    assert "PageRank of a node" in table
    assert "True model" in table


def first_cell(experiment: Any, method: str) -> Any:
    return next(cell for cell in experiment.cells(0) if (cell.dataset, cell.method) == ("sbm", method))


def test_intervals_with_the_true_quantiles_cover_as_stated(tmp_path: Path) -> None:
    experiment, store = load(EDGES, tmp_path), Store(tmp_path / "store")
    task, cell = replace(experiment.task, networks=200), first_cell(experiment, "truth")
    (record,) = task.solve(cell, [0], store, "cpu")
    assert record.scores["density ratio"] == 1
    assert record.scores["density covered"] == pytest.approx(0.95, abs=0.08)  # five standard errors


def test_the_truth_is_simulated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, store = load(EDGES, tmp_path), Store(tmp_path / "store")
    task, cell = experiment.task, first_cell(experiment, "other")
    truths = task.load_truth(cell, store)
    monkeypatch.setattr(CoverageTask, "simulate_truth", None)
    assert task.load_truth(cell, store) == truths
    network = task.make_network(cell, SeedSequence(0))
    p = network.probabilities[np.triu_indices(40, 1)]
    error = np.sqrt((p * (1 - p)).sum()) / 780
    assert truths["density"].mean == pytest.approx(p.mean(), abs=5 * error / np.sqrt(150))
    assert truths["density"].deviation == pytest.approx(error, rel=5 / np.sqrt(2 * 150))


@pytest.mark.parametrize("text", ["[]", "{", '{"density": [1.0]}', '{"density": 3}', "[" * 10**5, None])
def test_a_damaged_truth_is_simulated_again(tmp_path: Path, text: str | None) -> None:
    experiment, store = load(EDGES, tmp_path), Store(tmp_path / "store")
    task, cell = experiment.task, first_cell(experiment, "other")
    truths = task.load_truth(cell, store)
    path = store.folder / task.truth_file(cell)
    damaged = path.read_text().replace("0.2", "0.3", 1) if text is None else text
    assert damaged != path.read_text()
    path.write_text(damaged)
    assert task.load_truth(cell, store) == truths
    assert path.read_text() != damaged


def test_new_nodes_have_a_larger_variance(tmp_path: Path) -> None:
    deviations = []
    for text in (EDGES, NODES):
        experiment = load(text.replace('"sbm", "bipartite"', '"dc-sbm"'), tmp_path)
        deviations.append(experiment.task.simulate_truth(experiment.cells(0)[0])["density"].deviation)
    assert deviations[1] > deviations[0]


def test_modularity_is_that_of_the_true_blocks_whatever_the_labels(tmp_path: Path) -> None:
    experiment = load(EDGES, tmp_path)
    cell = first_cell(experiment, "other")
    network = experiment.task.make_network(cell, SeedSequence(0))
    graph = network.draw(SeedSequence(0))
    modularity = next(
        statistic
        for statistic in experiment.task.list_statistics(cell, network)
        if getattr(statistic, "__name__", "") == "modularity"
    )
    assert modularity(graph.replace(labels=np.zeros(40, int))) == modularity(graph) > 0.1


def test_communities_are_found_again_by_chosen_methods(tmp_path: Path) -> None:
    text = EDGES.replace('"modularity"]', '"found_modularity"]\nfound_by = ["truth"]')
    experiment, store = load(text, tmp_path), Store(tmp_path / "store")
    task = experiment.task
    cells = {method: first_cell(experiment, method) for method in ("truth", "other")}
    for method, cell in cells.items():
        (record,) = task.solve(cell, [0], store, "cpu")
        assert ("found_modularity ratio" in record.scores) == (method == "truth")
    network = task.make_network(cells["truth"], SeedSequence(0))
    graph = network.draw(SeedSequence(0))
    *_, found_modularity = task.list_statistics(cells["truth"], network)
    assert found_modularity(graph) == compute_modularity(graph, spectral_communities(graph))
    assert "found_modularity" not in task.select_scores(1_000)


LEVELS = """
title = "Level"
task = "level"
[protocol]
datasets = ["configuration", "planted-communities"]
nodes = 60
degree = 20
samples = 39
networks = 10
trials = 4
scores = ["transitivity", "modularity"]
[methods.configuration]
title = "Configuration"
class = "nodecopy.generators.ConfigurationModel"
"""


def test_shares_of_rejections(tmp_path: Path) -> None:
    experiment, store = load(LEVELS, tmp_path), Store(tmp_path / "store")
    run(experiment, store, seed=0, workers=1)
    results = summarise(experiment, store, seed=0)
    shares = {(dataset, column.score): cell.mean for (dataset, column, _), cell in results.cells.items()}
    # 40 networks under a true null: at most 7 rejections with probability 0.998.
    for score in ("transitivity", "modularity"):
        assert (shares["configuration", f"{score} rejected"] or 0) <= 17.5
    assert "Level" in rendering.render_markdown(results)

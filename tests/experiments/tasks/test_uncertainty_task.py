"""Uncertainty on the digits: all scores are there, and a class is left out of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy.classify import GCN, Trial
from nodecopy.experiments import config as toml
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.uncertainty import LEFT_OUT, score_detection
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import scores, selective_accuracy

TOML = """
title = "doubts"
task = "uncertainty"
[protocol]
datasets = ["digits"]
labels = [3]
trials = 12
validation = 200
test = 400
[methods.gcn]
title = "GCN"
class = "nodecopy.classify.GCN"
settings = { n_epochs = 30 }
[methods.bayes]
title = "Bayes"
class = "nodecopy.classify.BayesianGCN"
settings = { n_graphs = 2, n_weight_samples = 2, base = { class = "nodecopy.classify.GCN", n_epochs = 30 } }
"""


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return toml.parse(TOML, "doubts").cells(0)


@pytest.fixture(scope="module")
def records(cells: list[Cell], tmp_path_factory: Any) -> list[list[Record]]:
    store = Store(tmp_path_factory.mktemp("store"))
    return [list(cell.task.solve(cell, [1, 11], store, "cpu")) for cell in cells]


def test_every_column_has_a_score(cells: list[Cell], records: list[list[Record]]) -> None:
    names = {column.score for column in cells[0].task.columns}
    assert len(names) == len(cells[0].task.columns) == 5 + 6 + 4
    for record in [*records[0], *records[1]]:
        assert names <= set(record.scores)
        assert all(0 <= record.scores[name] <= 1 for name in names - {"nll", "scaled nll"})
        assert record.scores["errors auc by total"] > 0.6
        assert record.details["left_out_class"] == 1  # of ten classes, in trials 1 and 11


def test_a_single_network_has_its_entropy_in_both_columns(records: list[list[Record]]) -> None:
    single, sampled = (of_method[0].scores for of_method in records)
    totals = [name for name in single if "total" in name]
    assert len(totals) == 5
    assert all(single[name.replace("total", "epistemic")] == single[name] for name in totals)
    assert sampled["errors auc by epistemic"] != sampled["errors auc by total"]


def test_scores_are_those_of_the_classifier(cells: list[Cell], records: list[list[Record]]) -> None:
    roc_auc_score = pytest.importorskip("sklearn.metrics").roc_auc_score
    cell, (record, _) = cells[0], records[0]
    task: Any = cell.task
    graph, split = task.load(cell), task.split(cell, 1)
    (trial,) = task.make_trials(cell, [1], [graph])
    (prediction,) = GCN(n_epochs=30).fit_trials([trial])
    truth, p = graph.labels[split.test], prediction.probabilities
    expected = scores(p[split.test], truth)
    assert {name: record.scores[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    scaling = TemperatureScaling.fit(p, graph.labels, split.validation)
    assert record.details["temperature"] == pytest.approx(scaling.temperature, rel=1e-3)
    assert record.scores["scaled nll"] == pytest.approx(scores(scaling.apply(p)[split.test], truth)["nll"])
    is_correct, total = p[split.test].argmax(axis=1) == truth, prediction.uncertainty().total[split.test]
    for share, accuracy in zip(LEFT_OUT, selective_accuracy(is_correct, total, LEFT_OUT), strict=True):
        assert record.scores[f"accuracy without {share} by total"] == pytest.approx(accuracy, abs=0.01)
    assert record.scores["errors auc by total"] == pytest.approx(roc_auc_score(~is_correct, total), abs=1e-4)
    labels = np.where(graph.labels == 1, -1, graph.labels)
    train = split.train[graph.labels[split.train] != 1]
    (partial,) = GCN(n_epochs=30).fit_trials([Trial(graph.replace(labels=labels), train, rng=trial.rng)])
    assert partial.probabilities.shape[1] == 9
    auc = roc_auc_score(truth == 1, partial.uncertainty().total[split.test])
    assert record.scores["left-out class auc by total"] == pytest.approx(auc, abs=1e-4)


def test_nothing_to_detect_is_no_score() -> None:
    doubts = np.array([0.1, 0.2], np.float32)
    assert score_detection("errors", "total", doubts, np.array([False, False])) == {}
    assert score_detection("errors", "total", doubts, np.array([False, True])) == {"errors auc by total": 1.0}

"""The tasks classify and uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, GraphModel
from nodecopy.classify import GCN, BayesianGCN, Trial
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import runner
from nodecopy.experiments.runner import FIT_CACHE
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.classify import LEFT_OUT
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import scores, selective_accuracy
from tests.experiments.fakes import TOML as FAKE
from tests.experiments.fakes import make_experiment

HERE = "tests.experiments.test_classification"
CALLS: list[tuple[Graph, Any]] = []
TOML = f"""
title = "one fit"
task = "classify"
[protocol]
datasets = ["digits"]
labels = [2, 3]
trials = 3
validation = 50
test = 100
[methods.slow]
title = "Slow"
class = "nodecopy.classify.BayesianGCN"
[methods.slow.settings]
n_graphs = 2
base = {{ class = "nodecopy.classify.GCN", n_epochs = 3 }}
graph_model = {{ class = "{HERE}.Slow", use = "fitted-once" }}
"""


class Slow(GraphModel[Graph]):
    """Notes every fit, and returns the observed graph."""

    def __init__(self, depth: str = "1") -> None:
        self.depth = depth

    def fit(self, graph: Graph, *, rng: Any = None) -> Self:
        CALLS.append((graph, rng))
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        return self.graph_


@pytest.fixture(autouse=True)
def forget_fits() -> Iterator[None]:
    FIT_CACHE.entries.clear()
    CALLS.clear()
    yield
    FIT_CACHE.entries.clear()


@pytest.fixture
def store(tmp_path: Any) -> Store:
    return Store(tmp_path)


def solve(text: str, store: Store, seed: int = 0) -> list[Record]:
    experiment = toml.parse(text, "once", trust=True)
    return [
        record
        for cell in experiment.cells(seed)
        for record in experiment.task.solve(cell, [0, 2], store, "cpu")
    ]


def test_one_fit_without_labels_serves_all_trials(store: Store) -> None:
    assert [record.trial for record in solve(TOML, store)] == [0, 2, 0, 2]
    ((graph, rng),) = CALLS
    assert graph.label_codes is None
    assert len(rng.spawn_key) == 1  # the dataset; a trial has two more


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 3", "trials = 3\nwithout_test_edges = true", "only if all trials have the same edges"),
        (f"{HERE}.Slow", "nodecopy.classify.GCN", "must be a graph model"),
    ],
)
def test_what_cannot_be_fitted_once(store: Store, old: str, new: str, message: str) -> None:
    """The error comes before the fit, which may take long."""
    with pytest.raises(InputError, match=rf"graph.model of \[methods.slow\] .*{message}"):
        solve(TOML.replace(old, new), store)
    assert not CALLS


def test_edges_of_test_nodes_are_removed_where_asked(store: Store) -> None:
    text = FAKE.replace("test = 16", "test = 16\nwithout_test_edges = true")
    experiment = make_experiment(text=text)
    cell = experiment.cells(0)[0]
    (record,) = experiment.task.solve(cell, [1], store, "cpu")
    test = cell.task.split(cell, 1).test
    adjacency = cell.task.load_with_features(cell).adjacency.toarray() != 0
    adjacency[test] = adjacency[:, test] = False
    assert int(record.details["seen"].split()[-1]) == adjacency.sum() // 2 < 78


def test_validation_nodes_are_hidden_where_asked(store: Store) -> None:
    plain = make_experiment()
    text = FAKE.replace("test = 16", "test = 16\nvisible_validation = [4, 1, 0]")
    experiment = make_experiment(text=text.partition("[published")[0])
    assert [column.heading for column in experiment.task.columns[::2]] == [
        "1 label, 4 validation",
        "1 label, 1 validation",
        "1 label, no validation",
    ]
    cells = [cell for cell in experiment.cells(0) if cell.method == "weak" and cell.conditions["labels"] == 3]
    (other,) = (cell for cell in plain.cells(0) if cell.method == "weak" and cell.conditions["labels"] == 3)
    assert [cell.folders for cell in cells] == [("karate", "3", n, "weak") for n in "410"]
    expected, splits = other.task.split(other, 2), [cell.task.split(cell, 2) for cell in cells]
    for split in splits:
        assert split.train.tolist() == expected.train.tolist()
        assert split.test.tolist() == expected.test.tolist()
    assert splits[0].validation.tolist() == expected.validation.tolist()
    assert len(splits[1].validation) == 1
    assert splits[1].validation[0] in expected.validation
    graph = other.task.load_with_features(other)
    (trial,) = cells[2].task.make_trials(cells[2], [2], [graph])
    assert trial.validation is None
    (narrow,) = experiment.narrow(visible_validation=["0"], labels=[3], methods=["weak"]).cells(0)
    assert narrow == cells[2]
    assert narrow.task.split(narrow, 2).test.tolist() == expected.test.tolist()
    assert narrow.fingerprint == other.fingerprint


def test_too_many_labels_are_named_as_in_the_file() -> None:
    text = FAKE.replace("labels = [1, 3]", "labels = [1, 500]")
    cell = next(cell for cell in make_experiment(text=text).cells(0) if cell.conditions["labels"] == 500)
    with pytest.raises(InputError, match=r"labels of \[protocol\] on karate must be at most 17, .*got 500"):
        cell.task.split(cell, 0)


COLUMNS = TOML.replace("test = 100", "test = 100\nvisible_validation = [50, 0]")


def test_trials_without_validation_are_computed_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []
    fit_trials = BayesianGCN.fit_trials

    def count(self: Any, trials: Any, **options: Any) -> Any:
        fitted.extend([len(trials)])
        return fit_trials(self, trials, **options)

    monkeypatch.setattr(BayesianGCN, "fit_trials", count)
    experiment = toml.parse(COLUMNS, "once", trust=True).narrow(labels=[3])
    runner.run(experiment, store)
    assert sum(fitted) == 3
    first, second = experiment.cells(0)
    for trial in range(3):
        original, copy = store.read(first, trial), store.read(second, trial)
        assert original is not None
        origin = {"copied_from": {"visible_validation": 50}}
        assert copy == replace(original, provenance=original.provenance | origin)


def test_trials_on_another_form_of_the_data_are_not_copied(store: Store) -> None:
    first, second = toml.parse(COLUMNS, "once", trust=True).narrow(labels=[3]).cells(0)
    (record,) = first.task.solve(first, [1], store, "cpu")
    digests = {"same": first.task.digest_data(first), "unknown": None, "other": "1f2e3d4c5b6a"}
    for name, digest in digests.items():
        store.write(first, replace(record, provenance={} if digest is None else {"data": digest}))
        (record,) = second.task.solve(second, [1], store, "cpu")
        assert ("copied_from" in record.provenance) == (name != "other")


UNCERTAINTY = """
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
    return toml.parse(UNCERTAINTY, "doubts").cells(0)


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
    truth, p = graph.label_codes[split.test], prediction.probabilities
    expected = scores(p[split.test], truth)
    assert {name: record.scores[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    scaling = TemperatureScaling.fit(p, graph.label_codes, split.validation)
    assert record.details["temperature"] == pytest.approx(scaling.temperature, rel=1e-3)
    assert record.scores["scaled nll"] == pytest.approx(scores(scaling.apply(p)[split.test], truth)["nll"])
    is_correct, total = p[split.test].argmax(axis=1) == truth, prediction.uncertainty().total[split.test]
    for share, accuracy in zip(LEFT_OUT, selective_accuracy(is_correct, total, LEFT_OUT), strict=True):
        assert record.scores[f"accuracy without {share} by total"] == pytest.approx(accuracy, abs=0.01)
    assert record.scores["errors auc by total"] == pytest.approx(roc_auc_score(~is_correct, total), abs=1e-4)
    labels = np.where(graph.label_codes == 1, -1, graph.label_codes)
    train = split.train[graph.label_codes[split.train] != 1]
    (partial,) = GCN(n_epochs=30).fit_trials([Trial(graph.replace(labels=labels), train, rng=trial.rng)])
    assert partial.probabilities.shape[1] == 9
    auc = roc_auc_score(truth == 1, partial.uncertainty().total[split.test])
    assert record.scores["left-out class auc by total"] == pytest.approx(auc, abs=1e-4)

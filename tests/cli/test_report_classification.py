from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy import Graph
from nodecopy.cli.report import Classification, classify_for_report
from nodecopy.datasets import Split
from nodecopy.graph import UNLABELLED
from nodecopy.metrics.classification import accuracy


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    classifiers = pytest.importorskip("nodecopy.classify.networks")
    monkeypatch.setitem(classifiers.GCN.presets, "kipf", replace(classifiers.KIPF, n_epochs=30))


def two_groups(n: int, *, n_labelled: int) -> Graph:
    """Two groups with random edges inside them and features that tell them apart."""
    draws = np.random.default_rng(0)
    labels = np.arange(n) % 2
    adjacency = np.triu(draws.random((n, n)) < 12 / n * (labels[:, None] == labels), 1)
    features = draws.normal(size=(n, 4)) + 2 * labels[:, None]
    labels = np.where(np.arange(n) < n_labelled, labels, UNLABELLED)
    return Graph((adjacency | adjacency.T).astype(float), labels=labels, features=features)


def classify(graph: Graph, train: NDArray[np.int64], test: NDArray[np.int64]) -> Classification:
    split = Split(train, np.zeros(0, np.int64), test)
    return classify_for_report(graph, split, SeedSequence(0), ("auto", "auto"), 1)


def test_few_labels_are_cross_validated() -> None:
    graph = two_groups(60, n_labelled=20)
    result = classify(graph, np.arange(16), np.arange(16, 20))
    assert result.n_folds == 5
    assert result.train.tolist() == list(range(20))
    assert sorted(result.tested.tolist()) == list(range(20))
    assert result.evaluations is not None
    assert list(result.evaluations) == ["GCN", "self-training"]
    ours = result.evaluations["self-training"]
    assert ours.splits is not None
    assert np.bincount(ours.splits).tolist() == [4] * 5
    # The prediction of a labelled node is that of the fold that held its label out.
    assert np.array_equal(result.prediction.probabilities[result.tested], ours.probabilities)
    assert accuracy(ours.probabilities, ours.codes) > 0.8
    assert result.nodes.tolist() == list(range(60))


def test_many_labels_are_held_out_once() -> None:
    result = classify(two_groups(80, n_labelled=80), np.arange(40), np.arange(40, 80))
    assert result.n_folds == 1
    assert result.train.tolist() == list(range(40))
    assert result.nodes.tolist() == list(range(40, 80))
    assert result.evaluations is not None
    assert {len(evaluation.codes) for evaluation in result.evaluations.values()} == {40}

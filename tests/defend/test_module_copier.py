"""Corrections of modules of users, whose pairs are evaluated on whole graphs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy.classify import ModuleClassifier
from nodecopy.defend import CopyingDefence, SuspectCorrection
from nodecopy.defend import copying as copiers
from nodecopy.defend.copying import evaluate_all
from nodecopy.errors import DataWarning

pyg = pytest.importorskip("torch_geometric.nn")


def ring(n_nodes: int = 40) -> Graph:
    draws, first = np.random.default_rng(0), np.arange(n_nodes)
    features, labels = draws.normal(size=(n_nodes, 5)), draws.integers(0, 3, n_nodes)
    return Graph.from_edges(first, (first + 1) % n_nodes, features=features, labels=labels)


def test_a_module_is_corrected_by_copied_features() -> None:
    torch.manual_seed(0)
    graph = ring()
    classifier = ModuleClassifier(pyg.GCN(5, 8, 2, out_channels=3)).fit(graph)
    defence: Any = CopyingDefence(n_donors=2).from_classifier(classifier, graph)
    expected = []
    for donor in defence.nearest_donors([7])[0]:
        features = np.array(
            graph.features.toarray() if hasattr(graph.features, "toarray") else graph.features
        )
        features[donor] = features[7]
        expected.append(classifier.predict_proba(graph.replace(features=features))[donor])
    np.testing.assert_allclose(defence.correct_proba([7])[0], np.mean(expected, axis=0), atol=1e-6)
    suspicious = SuspectCorrection(n_donors=2, share=0.1).from_classifier(classifier, graph)
    assert suspicious.score_suspicion().shape == (40,)
    assert defence.correct([]).shape == (0,)


def test_a_long_correction_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copiers, "MAX_SECONDS", 0.01)
    with pytest.warns(DataWarning, match="evaluate 9 graphs, which will take about 0 minutes"):
        evaluate_all(time.sleep, [0.002] + [0.0] * 8)
    assert evaluate_all(abs, [-1, 2]) == [1, 2]

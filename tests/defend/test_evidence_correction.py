"""Corrections by all evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy.classify import GCN
from nodecopy.defend import EvidenceDefence, evidence_correction
from tests.contracts.classifiers import planted_graph
from tests.defend.test_evidence_defence import QUICK, SOME, TRAIN, rewired


def test_neighbourhoods_are_predicted_as_graphs_are() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=True).fit(graph, TRAIN, rng=0)
    trial = fitted.check_retrainable(fitted.trial_)
    ((_, correction),) = fitted.train_corrections([trial], [np.array([40])])
    chosen: Any = correction
    options = [[1, 30], [50], []]
    limited, free = chosen.predict_neighbourhoods(40, [np.array(part, int) for part in options])
    for row, part in enumerate(options):
        expected = fitted.correct_proba([40], graph=rewired(graph, 40, part))[0]
        np.testing.assert_allclose(np.exp(limited[row]), expected, atol=1e-5)
    np.testing.assert_allclose(np.exp(free).sum(axis=1), 1)


def test_large_graphs_have_no_perceptron(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_correction, "MAX_NODES_WITH_MLP", 50)
    monkeypatch.setattr(evidence_correction, "distil_mlp", None)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4).fit(planted_graph(), TRAIN, rng=0)
    assert fitted.correct(SOME).shape == (4,)

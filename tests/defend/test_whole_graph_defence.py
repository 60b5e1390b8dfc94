"""The evidence of all nodes where the targets are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.attacks import DICE
from nodecopy.classify import GCN
from nodecopy.defend import Defence, WholeGraphDefence, whole_graph_defence
from nodecopy.errors import InputError
from nodecopy.metrics.classification import area_under_roc
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN = np.arange(9)
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestWholeGraphDefence(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return WholeGraphDefence(GCN(**QUICK), n_donors=4, share=0.2)


def test_share_of_nodes_is_corrected() -> None:
    for share in (0.0, 0.25, 1.0):
        fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4, share=share).fit(planted_graph(), TRAIN, rng=0)
        correction: Any = fitted.correction_
        assert correction.is_corrected.sum() == round(60 * share)
        order = np.argsort(-correction.suspicion, kind="stable")
        assert correction.is_corrected[order[: round(60 * share)]].all()


def test_attacked_nodes_are_more_suspicious() -> None:
    graph = planted_graph()
    nodes = np.arange(30, 36)
    attacked = DICE().attack(graph, nodes, budget=1.0, rng=0).apply(graph)
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4, retrain=True).fit(attacked, TRAIN, rng=0)
    details = fitted.correction_.details(np.arange(60))
    assert area_under_roc(details["suspicion"], np.isin(np.arange(60), nodes)) > 0.6


def test_suspicious_nodes_are_predicted_by_the_evidence() -> None:
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4, share=0.25).fit(planted_graph(), TRAIN, rng=0)
    correction: Any = fitted.correction_
    nodes, suspicious = np.arange(60), correction.is_corrected
    evidence = correction.evidence.predict_proba(nodes)
    np.testing.assert_allclose(correction.probabilities[suspicious], evidence[suspicious])
    own = np.sqrt(np.maximum(fitted.predict_proba(), 1e-3))
    expected = evidence * own / (evidence * own).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(correction.probabilities[~suspicious], expected[~suspicious], atol=1e-5)


def test_explanations_and_certificates() -> None:
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4, share=0.25).fit(planted_graph(), TRAIN, rng=0)
    nodes = np.arange(10, 60)
    explained = [report.corrected for report in fitted.explain(nodes)]
    assert explained == fitted.correct(nodes).tolist()
    assert not fitted.certify(nodes).any()


def test_large_graphs_have_no_donors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_graph_defence, "MAX_NODES_WITH_DONORS", 50)
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4).fit(planted_graph(), TRAIN, rng=0)
    correction: Any = fitted.correction_
    assert correction.evidence.finder is None


def test_error_names_a_wrong_share() -> None:
    with pytest.raises(InputError, match="share of WholeGraphDefence must be"):
        WholeGraphDefence(GCN(**QUICK), share=1.5).fit(planted_graph(), TRAIN)

"""Corrections by all evidence."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy.classify import GCN
from nodecopy.defend import EvidenceDefence
from nodecopy.defend import evidence as evidence_correction
from tests.contracts.classifiers import planted_graph
from tests.defend.test_evidence_defence import QUICK, SOME, TRAIN


def test_uncertain_nodes_are_ranked_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, nodes = planted_graph(), np.arange(60)
    defence = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=0.5)
    for n_ranked, fewest in ((60, 30), (20, 15)):
        monkeypatch.setattr(evidence_correction, "MAX_RANKED_NODES", n_ranked)
        assert fewest <= (~defence.fit(graph, TRAIN, rng=0).certify(nodes)).sum() <= 60 - fewest


def test_large_graphs_have_no_perceptron(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_correction, "MAX_NODES_WITH_MLP", 50)
    monkeypatch.setattr(evidence_correction, "distil_mlp", None)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4).fit(planted_graph(), TRAIN, rng=0)
    assert fitted.correct(SOME).shape == (4,)

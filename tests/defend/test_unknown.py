"""Defences for unknown targets: detection of attacked nodes, and the evidence of all nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.attacks import DICE
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, Defence, SuspectCorrection, WholeGraphDefence, unknown
from nodecopy.defend.edges import remove_edges_of
from nodecopy.defend.unknown import choose_n_corrected
from nodecopy.errors import DataWarning, InputError
from nodecopy.metrics.classification import area_under_roc
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, TRAIN, DefenceContract

DEFENCES: dict[str, Defence] = {
    "copying": SuspectCorrection(GCN(**QUICK), n_donors=4, share=0.2),
    "evidence": WholeGraphDefence(GCN(**QUICK), share=0.2),
}


class TestUnknownTargets(DefenceContract):
    classifiers = DEFENCES


def whole(graph: Graph | None = None, **parameters: Any) -> WholeGraphDefence:
    defence = WholeGraphDefence(GCN(**QUICK), **parameters)
    return defence.fit(planted_graph() if graph is None else graph, TRAIN, rng=0)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
def test_scores_without_a_suspicious_node_warn() -> None:
    defence = SuspectCorrection(GCN(preset="kipf", n_epochs=1, learning_rate=1e-6), n_donors=4, share=0.2)
    with pytest.warns(DataWarning, match=r"highest suspicion score is .*: no node looks attacked"):
        defence.fit(planted_graph(), [0, 1, 2], rng=0)


@pytest.fixture(scope="module")
def attacked() -> tuple[CopyingDefence, Graph, Any]:
    """The edges of thirty digits are replaced by random ones."""
    digits = datasets.load("digits").subgraph(np.arange(800))
    split = datasets.label_split(digits.labels, 10, validation=0, test=200, rng=0)
    targets = split.test[:30]
    draw = np.random.default_rng(0)
    adjacency = digits.adjacency.toarray()
    adjacency[targets] = adjacency[:, targets] = 0
    others = draw.integers(digits.n_nodes, size=(30, 8))
    adjacency[targets[:, None], others] = 1
    graph = digits.replace(adjacency=np.maximum(adjacency, adjacency.T))
    gcn = GCN(n_epochs=60).fit(graph, split.train, rng=0)
    return CopyingDefence().from_classifier(gcn, graph, rng=0), graph, targets


def correct_share(defence: CopyingDefence, graph: Graph, share: float) -> Any:
    """Return the predictions of all nodes if a share of them is corrected."""
    suspicious = SuspectCorrection(share=share).from_classifier(defence.classifier_, graph, rng=0)
    np.testing.assert_allclose(suspicious.score_suspicion(), defence.score_suspicion(), atol=1e-6)
    return suspicious.predict_proba()


def test_attacked_nodes_are_detected_and_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, targets = attacked
    chosen = np.argsort(-defence.score_suspicion())[:30]
    assert len(np.intersect1d(chosen, targets)) >= 24
    labels = np.array(graph.label_codes)
    before = defence.undefended_proba().argmax(axis=1) == labels
    after = correct_share(defence, graph, 0.07).argmax(axis=1) == labels
    assert after[targets].mean() > before[targets].mean() + 0.2
    assert after.mean() > before.mean() - 0.01


def test_share_of_nodes_is_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, _ = attacked
    np.testing.assert_allclose(correct_share(defence, graph, 1.0), defence.predict_proba(), atol=1e-6)
    changed = (correct_share(defence, graph, 0.0) != correct_share(defence, graph, 0.1)).any(axis=1)
    assert 0 < changed.sum() <= round(0.1 * graph.n_nodes)
    for share in (0.0, 0.25, 1.0):
        correction: Any = whole(share=share).correction_
        assert correction.is_corrected.sum() == round(60 * share)
        order = np.argsort(-correction.suspicion, kind="stable")
        assert correction.is_corrected[order[: round(60 * share)]].all()


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
@pytest.mark.filterwarnings("ignore:the highest suspicion score")  # after one epoch
def test_validation_nodes_decide_how_many_are_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four nodes the third correction makes a correct one wrong, so two are corrected."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4) + np.eye(4, k=1), labels=[0, 0, 1, 1])
    fitted = SuspectCorrection(GCN(n_epochs=1), n_donors=1).fit(graph, [0, 3], validation=[1, 2], rng=0)
    order = np.array([1, 0, 2, 3])
    zero, one = np.array([[1.0, 0.0]] * 4), np.array([[0.0, 1.0]] * 4)
    right = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    state = replace(fitted.state_, probabilities=right)
    assert choose_n_corrected(None, state, order, zero, right) == 2
    assert choose_n_corrected(None, state, order, one, right) == 0
    assert choose_n_corrected(None, state, order, right, zero) == 4
    without_trial = replace(state, trial=None)
    assert choose_n_corrected(None, without_trial, order, zero, right) == 0  # a small share of four
    monkeypatch.setattr(unknown, "MAX_ACCURACY_LOSS", 0.5)  # one of the two validation nodes
    assert choose_n_corrected(None, state, order, zero, right) == 4


def test_retraining_leaves_out_the_suspects(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    graph = attacked[1]
    split = datasets.label_split(graph.label_codes, 10, validation=0, test=200, rng=0)
    defence = SuspectCorrection(GCN(n_epochs=60), n_donors=5, share=0.2, retrain=True)
    defence.fit(graph, split.train, rng=0)
    suspects = np.argsort(-defence.score_suspicion(), kind="stable")[: round(0.2 * graph.n_nodes)]
    retrained = CopyingDefence(GCN(n_epochs=60), n_donors=5)
    retrained.fit(remove_edges_of(graph, suspects), split.train, targets=suspects, rng=0)
    expected = retrained.predict_proba()[suspects]
    np.testing.assert_allclose(defence.predict_proba()[suspects], expected, atol=1e-5)
    again = defence.predict_proba(graph.replace(labels=None))
    np.testing.assert_allclose(again, defence.predict_proba(), atol=1e-6)


def test_attacked_nodes_are_more_suspicious() -> None:
    nodes = np.arange(30, 36)
    attacked = DICE().attack(planted_graph(), nodes, budget=1.0, rng=0).apply(planted_graph())
    details = whole(attacked, retrain=True).correction_.details()
    assert area_under_roc(details["suspicion"], np.isin(np.arange(60), nodes)) > 0.6


@pytest.mark.parametrize("share", [None, 0.25])
def test_the_classifier_counts_where_no_attack_is_probable(share: float | None) -> None:
    fitted = whole(share=share)
    correction: Any = fitted.correction_
    nodes, suspicious, weights = np.arange(60), correction.is_corrected, 1 - correction.suspicion
    np.testing.assert_allclose(fitted.attack_probability(nodes), fitted.score_suspicion())
    if share is None:
        assert (suspicious == (correction.suspicion > correction.suspicion.mean())).all()
    else:
        weights[suspicious] = 0
    evidence = correction.source.predict_proba(nodes)
    expected = evidence * np.maximum(fitted.undefended_proba(), 1e-3) ** weights[:, None]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(correction.probabilities, expected, atol=1e-5)
    reports = fitted.explain(nodes)
    assert [report.corrected for report in reports] == fitted.predict().tolist()
    np.testing.assert_allclose([report.attacked for report in reports], correction.suspicion)
    assert not fitted.certify(nodes).any()


def test_suspicious_nodes_are_judged_again_without_their_edges() -> None:
    retrained: Any = whole(retrain=True).correction_
    first: Any = whole().correction_
    np.testing.assert_allclose(retrained.suspicion, first.suspicion)
    pruned = remove_edges_of(planted_graph(), np.flatnonzero(first.is_corrected))
    assert (retrained.source.state.graph.adjacency != pruned.adjacency).nnz == 0
    same = ~first.is_corrected
    np.testing.assert_allclose(retrained.probabilities[same], first.probabilities[same], atol=1e-6)


@pytest.mark.parametrize("retrain", [False, True])
def test_no_attack_costs_nothing(retrain: bool) -> None:
    """At 60 nodes of a planted graph, for four initialisations; seeds are fixed."""
    graph, gains = planted_graph(), []
    for seed in range(4):
        fitted = WholeGraphDefence(GCN(**QUICK), retrain=retrain).fit(graph, TRAIN, rng=seed)
        gains.append(fitted.score() - (fitted.undefended() == np.asarray(graph.labels)).mean())
    assert np.mean(gains) > -0.05


def test_wrong_shares() -> None:
    for kind in (SuspectCorrection, WholeGraphDefence):
        with pytest.raises(InputError, match=f"share of {kind.__name__} must be a number between 0 and 1"):
            kind(share=1.5).fit(planted_graph(), TRAIN)

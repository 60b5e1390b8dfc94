"""The evidence of all nodes where the targets are unknown."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy.attacks import DICE
from nodecopy.classify import GCN
from nodecopy.defend import Defence, WholeGraphDefence
from nodecopy.defend import unknown as whole_graph_defence
from nodecopy.defend.base import remove_edges_of
from nodecopy.defend.edges import score_suspicion
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


@pytest.mark.parametrize("directed", [False, True])
def test_suspicion_weighs_every_edge_by_its_doubt(directed: bool) -> None:
    graph = planted_graph()
    if directed:
        upper = sparse.csr_array(sparse.triu(graph.adjacency))
        graph = Graph(upper, graph.features, graph.labels, directed=True)
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=0).fit(graph, TRAIN, rng=0)
    correction: Any = fitted.correction_
    evidence, rows = correction.evidence, graph.rows
    doubt = np.empty(len(rows.indices))
    for edge, pair in enumerate(zip(rows.row_numbers, rows.indices, strict=True)):
        log_odds = evidence.credibility.log_odds(*np.array(pair)[:, None], is_edge=np.array([True]))
        doubt[edge] = 1 / (1 + np.exp(log_odds[0]))
    expected, embeddings = np.exp(evidence.without_edges(np.arange(60))), evidence.state.embeddings
    inputs = graph, embeddings.features, embeddings.expected, evidence.predictions, expected, expected
    np.testing.assert_allclose(correction.suspicion, score_suspicion(*inputs, doubt))
    assert not np.allclose(correction.suspicion, score_suspicion(*inputs))


def test_nodes_are_pruned_by_the_score_in_which_edges_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pruned: list[Any] = []

    def remove(graph: Graph, nodes: Any) -> Graph:
        pruned.append(nodes)
        return remove_edges_of(graph, nodes)

    monkeypatch.setattr(whole_graph_defence, "remove_edges_of", remove)
    fitted = WholeGraphDefence(GCN(**QUICK), n_donors=4, retrain=True).fit(planted_graph(), TRAIN, rng=0)
    first = WholeGraphDefence(GCN(**QUICK), n_donors=4).fit(planted_graph(), TRAIN, rng=0)
    (nodes,), correction = pruned, cast(Any, first.correction_)
    suspicion, without_doubt = whole_graph_defence.score_all(correction.evidence)
    assert nodes.tolist() == np.argsort(-without_doubt, kind="stable")[:4].tolist()
    np.testing.assert_allclose(cast(Any, fitted.correction_).suspicion, suspicion)


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

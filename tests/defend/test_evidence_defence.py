"""The evidence defence: its contract, its guarantee and its explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph, to_pyg
from nodecopy.attacks import DICE
from nodecopy.classify import APPNP, GCN, CustomNetwork, SelfTraining
from nodecopy.defend import Defence, EvidenceDefence, WholeGraphDefence
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestEvidenceDefence(DefenceContract):
    @pytest.fixture(scope="class", params=[4, 0])
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        return EvidenceDefence(GCN(**QUICK), n_donors=request.param)


def rewired(graph: Graph, node: int, neighbours: list[int]) -> Graph:
    adjacency = graph.adjacency.toarray()
    adjacency[node] = adjacency[:, node] = 0
    adjacency[node, neighbours] = adjacency[neighbours, node] = 1
    return graph.replace(adjacency=adjacency)


def test_no_edges_of_a_certified_node_change_its_class() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=0.5, retrain=True)
    fitted.fit(graph, TRAIN, rng=0)
    nodes = np.arange(20, 60)
    certified = [int(node) for node in nodes if fitted.certify([node])[0]][:3]
    assert certified
    draws = np.random.default_rng(0)
    for node in certified:
        expected = fitted.correct([node])
        others = np.delete(np.arange(60), node)
        for size in (0, 1, 5, 30):
            attacked = rewired(graph, node, draws.choice(others, size, replace=False).tolist())
            assert fitted.correct([node], graph=attacked).tolist() == expected.tolist()
            assert fitted.certify([node], graph=attacked).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_edges_of_the_uncertain_share_count(share: float) -> None:
    graph, nodes = planted_graph(), np.arange(60)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=share).fit(graph, TRAIN, rng=0)
    certified = fitted.certify(nodes)
    assert (~certified).sum() == round(60 * share)
    correction: Any = fitted.correction_
    without_edges = np.exp(correction.without_edges(nodes))
    is_changed = np.abs(fitted.correct_proba(nodes) - without_edges).max(axis=1) > 1e-5
    assert (is_changed == ~certified).mean() > 0.9  # a node without edges does not change
    highest = without_edges.max(axis=1)
    assert highest[~certified].max(initial=0) <= highest[certified].min(initial=1)


def test_explanation_agrees_with_the_correction() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=1.0).fit(graph, TRAIN, rng=0)
    (report,) = fitted.explain([40])
    np.testing.assert_allclose(list(report.probabilities.values()), fitted.correct_proba([40])[0], atol=1e-6)
    assert report.corrected == fitted.correct([40])[0]
    assert report.predicted == fitted.predict()[40]
    neighbours = graph.rows.indices[graph.rows.indptr[40] : graph.rows.indptr[41]]
    assert {edge.neighbour for edge in report.edges} == set(graph.node_ids[neighbours].tolist())
    credibilities = [edge.credibility for edge in report.edges]
    assert credibilities == sorted(credibilities)
    assert [edge.is_distrusted for edge in report.edges] == [value < 0.5 for value in credibilities]
    assert max(report.edge_evidence.values()) == 0
    assert min(report.edge_evidence.values()) < 0
    certain = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=0.0).fit(graph, TRAIN, rng=0)
    assert set(certain.explain([40])[0].edge_evidence.values()) == {0.0}
    assert EvidenceDefence(GCN(**QUICK), n_donors=0).fit(graph, TRAIN, rng=0).explain([40])[0].donors == {}


def test_explanation_is_that_of_the_retrained_classifier() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=True).fit(graph, TRAIN, rng=0)
    attacked = rewired(graph, 40, [1, 2, 50])
    for given in (None, attacked):
        reports = fitted.explain(SOME, graph=given)
        explained = [list(report.probabilities.values()) for report in reports]
        np.testing.assert_allclose(explained, fitted.correct_proba(SOME, graph=given), atol=1e-6)
    assert [edge.neighbour for edge in reports[0].distrusted] == [
        edge["neighbour"] for edge in reports[0].to_dict()["edges"] if edge["distrusted"]
    ]


@pytest.mark.parametrize("retrain", [False, True])
def test_explanations_take_the_graphs_that_corrections_take(retrain: bool) -> None:
    pytest.importorskip("torch_geometric")
    graph = planted_graph().replace(node_ids=np.arange(60))  # PyTorch Geometric has no others
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=retrain).fit(graph, TRAIN, rng=0)
    other = to_pyg(graph)
    assert fitted.explain(SOME, graph=other) == fitted.explain(SOME, graph=graph)
    assert fitted.certify(SOME, graph=other).tolist() == fitted.certify(SOME).tolist()
    for explain in (fitted.explain, fitted.certify, fitted.correct):
        with pytest.raises(InputError, match="graph of EvidenceDefence must be a Graph"):
            explain(SOME, graph=np.eye(60))  # type: ignore[arg-type]


class TinyNetwork(torch.nn.Module):
    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(n_features, n_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.layer(x)
        return hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]])


@pytest.mark.parametrize("defence", [EvidenceDefence, WholeGraphDefence])
def test_any_network_can_be_the_classifier(defence: type[EvidenceDefence]) -> None:
    graph = planted_graph()
    attacked = DICE().attack(graph, [40, 50], budget=1.0, rng=0).apply(graph)
    network = CustomNetwork(TinyNetwork, n_epochs=60, learning_rate=0.05)
    fitted = defence(network, n_donors=4, retrain=True).fit(attacked, TRAIN, rng=0)
    truth = np.asarray(graph.named_labels())
    assert (fitted.correct(np.arange(40, 52)) == truth[40:52]).mean() > 0.6  # by chance a third
    assert len(fitted.explain([40])[0].edges) == attacked.degrees[40]


def test_attacked_nodes_are_corrected() -> None:
    """Half of 20 nodes of a planted graph and their edges; the chance of no gain is far below 1 in 1000."""
    graph = planted_graph()
    nodes = np.arange(20, 40)
    attacked = DICE().attack(graph, nodes, budget=1.0, rng=0).apply(graph)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=True).fit(attacked, TRAIN, rng=0)
    truth = np.asarray(graph.named_labels())[nodes]
    own, corrected = fitted.predict()[nodes] == truth, fitted.correct(nodes) == truth
    assert corrected.mean() > own.mean() + 0.2


def test_default_classifier_is_self_trained() -> None:
    base = EvidenceDefence(device="cpu").build_classifier()
    assert isinstance(base, SelfTraining)
    assert isinstance(base.base, APPNP)


def test_error_names_wrong_parameters() -> None:
    for settings, message in (
        ({"n_donors": -1}, "n_donors of EvidenceDefence must be an integer between 0 and n_nodes - 1"),
        ({"uncertain_share": 1.1}, "uncertain_share of EvidenceDefence must be"),
    ):
        with pytest.raises(InputError, match=message):
            EvidenceDefence(GCN(**QUICK), **settings).fit(planted_graph(), TRAIN)


def test_changed_parameters_are_checked_again() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(n_epochs=10)).fit(graph, [0, 1, 2], rng=0)
    for wrong in (5.0, float("nan")):
        with pytest.raises(InputError, match="uncertain_share of EvidenceDefence must be"):
            fitted.set_params(uncertain_share=wrong).correct([5])


def test_reports_say_whether_edges_counted() -> None:
    graph = planted_graph()
    for share in (0.0, 1.0):
        fitted = EvidenceDefence(GCN(n_epochs=10), uncertain_share=share).fit(graph, [0, 1, 2], rng=0)
        (report,) = fitted.explain([5])
        assert report.uses_edges == report.to_dict()["uses_edges"] == bool(share)
        assert any(report.edge_evidence.values()) == bool(share)

"""The evidence defence: its model of edges, its contract, its guarantee and its explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph, to_pyg
from nodecopy.attacks import DICE
from nodecopy.classify import APPNP, GCN, CustomNetwork, SelfTraining
from nodecopy.defend import EdgeReport, EvidenceDefence, NodeReport, WholeGraphDefence, evidence
from nodecopy.defend.evidence import add_evidence, combine_evidence, compare_classes
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, SOME, TRAIN, DefenceContract

CLASS_EDGES = np.array([[40.0, 4, 6], [4, 30, 2], [6, 2, 50]])
CLASS_SHARES = CLASS_EDGES.sum(axis=0) / CLASS_EDGES.sum()


class TestEvidenceDefence(DefenceContract):
    classifiers = tuple(EvidenceDefence(GCN(**QUICK), n_donors=n) for n in (4, 0))


def direct_evidence(log_odds: Any, neighbours: Any) -> Any:
    """Return the likelihood of the edges of a node for each class, by loops over all hypotheses."""
    usual, remaining = compare_classes(CLASS_EDGES), compare_classes(CLASS_EDGES, evidence.REMAINING_SHARE)
    total = np.zeros(3)
    for y in range(3):
        clean = 1.0
        for odds, p in zip(log_odds, neighbours, strict=True):
            genuine = np.exp(evidence.CLEAN_ODDS_WEIGHT * odds)
            genuine *= (p @ usual[y]) ** evidence.CLEAN_CLASS_WEIGHT
            clean *= evidence.GENUINE_SHARE * genuine + 1 - evidence.GENUINE_SHARE
        total[y] += clean / 2
        for aim in (None, 0, 1, 2):
            for share in evidence.GRID if aim != y else []:
                product = share / evidence.GRID.sum() / 4 / (1 if aim is None else 2)
                for odds, p in zip(log_odds, neighbours, strict=True):
                    floor = evidence.MIN_OTHER
                    false = floor + (1 - floor) * (1 - p[y]) / (1 - CLASS_SHARES[y])
                    false = false if aim is None else p @ usual[aim]
                    genuine = np.exp(odds) * (p @ remaining[y]) ** evidence.CLASS_WEIGHT
                    product *= share * genuine + (1 - share) * false
                total[y] += product
    return np.log(total)


@pytest.mark.parametrize("max_terms", [2**23, 1])
def test_likelihood_is_the_sum_over_hypotheses(monkeypatch: pytest.MonkeyPatch, max_terms: int) -> None:
    monkeypatch.setattr(evidence, "MAX_TERMS", max_terms)
    draws = np.random.default_rng(0)
    owner = np.array([0, 0, 0, 2, 2])
    log_odds, neighbours = draws.normal(size=5), draws.dirichlet(np.ones(3), size=5)
    log_prior = np.log(draws.dirichlet(np.ones(3), size=3))
    log_evidence, credibility = combine_evidence(log_prior, owner, log_odds, neighbours, CLASS_EDGES)
    for row in range(3):
        expected = direct_evidence(log_odds[owner == row], neighbours[owner == row])
        np.testing.assert_allclose(log_evidence[row], expected, atol=1e-9)
    assert ((credibility > 0) & (credibility < 1)).all()


def test_many_edges_of_one_class_are_evidence_only_if_they_are_credible() -> None:
    neighbours, prior = np.tile([0.02, 0.96, 0.02], (20, 1)), np.log(np.full((1, 3), 1 / 3))
    owner = np.zeros(20, int)
    credible, incredible = (
        combine_evidence(prior, owner, np.full(20, odds), neighbours, CLASS_EDGES) for odds in (3.0, -3.0)
    )
    assert credible[0].argmax() == incredible[0].argmin() == 1
    assert credible[1].min() > 0.9
    assert incredible[1].max() < 0.1


def test_evidence_is_added_where_it_counts() -> None:
    log_prior = np.log(np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]))
    log_evidence = np.tile([-50.0, 0.0, -3.0], (2, 1))
    combined = np.exp(add_evidence(log_prior, log_evidence, np.array([False, True])))
    np.testing.assert_allclose(combined[0], [0.7, 0.2, 0.1])
    weights = np.array([0.0, 0.2, 0.1 * np.exp(-3)])
    np.testing.assert_allclose(combined[1], weights / weights.sum(), atol=1e-12)


def test_removed_edges_lower_the_ratio_within_classes() -> None:
    usual, remaining = compare_classes(CLASS_EDGES), compare_classes(CLASS_EDGES, 0.5)
    assert (np.diag(remaining) < np.diag(usual)).all()
    for ratios in (usual, remaining):
        np.testing.assert_allclose(ratios @ CLASS_SHARES, 1)


def rewired(graph: Graph, node: int, neighbours: list[int]) -> Graph:
    adjacency = graph.adjacency.toarray()
    adjacency[node] = adjacency[:, node] = 0
    adjacency[node, neighbours] = adjacency[neighbours, node] = 1
    return graph.replace(adjacency=adjacency)


def test_no_edges_of_a_certified_node_change_its_class() -> None:
    graph, draws, n_certified = planted_graph(), np.random.default_rng(0), 0
    for node in range(20, 60):
        fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=0.5, retrain=True)
        fitted.fit(graph, TRAIN, targets=[node], rng=0)
        if not fitted.certify([node])[0]:
            continue
        n_certified += 1
        for size in (0, 5, 30):
            others = draws.choice(np.delete(np.arange(60), node), size, replace=False)
            attacked = rewired(graph, node, others.tolist())
            assert fitted.predict(attacked)[node] == fitted.predict()[node]
            assert fitted.certify([node], graph=attacked).all()
        if n_certified == 3:
            return
    raise AssertionError(f"only {n_certified} nodes are certified")


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_edges_of_the_uncertain_share_count(share: float) -> None:
    graph, nodes = planted_graph(), np.arange(60)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=share).fit(graph, TRAIN, rng=0)
    certified = fitted.certify(nodes)
    assert (~certified).sum() == round(60 * share)
    correction: Any = fitted.correction_
    without_edges = np.exp(correction.without_edges(nodes))
    is_changed = np.abs(fitted.predict_proba() - without_edges).max(axis=1) > 1e-5
    assert (is_changed == ~certified).mean() > 0.9  # a node without edges does not change
    highest = without_edges.max(axis=1)
    assert highest[~certified].max(initial=0) <= highest[certified].min(initial=1)


def test_explanation_agrees_with_the_correction() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=1.0).fit(graph, TRAIN, rng=0)
    (report,) = fitted.explain([40])
    np.testing.assert_allclose(list(report.probabilities.values()), fitted.predict_proba()[40], atol=1e-6)
    assert (report.predicted, report.corrected) == (fitted.undefended()[40], fitted.predict()[40])
    neighbours = graph.rows.indices[graph.rows.indptr[40] : graph.rows.indptr[41]]
    assert {edge.neighbour for edge in report.edges} == set(graph.node_ids[neighbours].tolist())
    credibilities = [edge.credibility for edge in report.edges]
    assert credibilities == sorted(credibilities)
    assert [edge.is_distrusted for edge in report.edges] == [value < 0.5 for value in credibilities]
    assert min(report.edge_evidence.values()) < max(report.edge_evidence.values()) == 0
    assert report.uses_edges
    certain = EvidenceDefence(GCN(**QUICK), n_donors=0, uncertain_share=0.0).fit(graph, TRAIN, rng=0)
    (report,) = certain.explain([40])
    assert set(report.edge_evidence.values()) == {0.0}
    assert report.donors == {}
    assert not report.to_dict()["uses_edges"]
    for wrong in (5.0, float("nan")):
        with pytest.raises(InputError, match="uncertain_share of EvidenceDefence must be"):
            certain.set_params(uncertain_share=wrong).explain([5])


@pytest.mark.parametrize("retrain", [False, True])
def test_explanations_of_other_graphs(retrain: bool) -> None:
    graph = planted_graph().replace(node_ids=np.arange(60))  # PyTorch Geometric has no others
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=retrain)
    fitted.fit(graph, TRAIN, targets=SOME, rng=0)
    for given in (None, rewired(graph, 40, [1, 2, 50])):
        explained = [list(report.probabilities.values()) for report in fitted.explain(SOME, graph=given)]
        np.testing.assert_allclose(explained, fitted.predict_proba(given)[SOME], atol=1e-6)
    other: Any = to_pyg(graph)
    assert fitted.explain(SOME, graph=other) == fitted.explain(SOME, graph=graph)
    assert fitted.certify(SOME, graph=other).tolist() == fitted.certify(SOME).tolist()
    for explain in (fitted.explain, fitted.certify):
        with pytest.raises(InputError, match="graph of EvidenceDefence must be a Graph"):
            explain(SOME, graph=np.eye(60))  # type: ignore[arg-type]


def test_reasons_agree_with_the_numbers() -> None:
    reasons = {
        (odds, credibility): EdgeReport(1, "a", odds, credibility).reason
        for odds in (-1.0, 1.0)
        for credibility in (0.1, 0.9)
    }
    assert reasons[-1.0, 0.1] == "its ends do not resemble those of other edges"
    assert reasons[1.0, 0.9] == "its ends resemble those of other edges"
    assert reasons[1.0, 0.1].endswith("contradicts the other evidence")
    assert reasons[-1.0, 0.9].endswith("agrees with the other evidence")
    edges = EdgeReport("a", 1, -2.0, 0.2), EdgeReport("b", 0, 1.0, 0.7)
    report = NodeReport("c", 0, 1, {0: 0.1, 1: 0.9}, {0: 0.5, 1: 0.5}, {}, {0: -1.0, 1: 0.0}, edges)
    assert report.distrusted == edges[:1]
    assert [(edge["distrusted"], edge["reason"]) for edge in report.to_dict()["edges"]] == [
        (True, edges[0].reason),
        (False, edges[1].reason),
    ]


class TinyNetwork(torch.nn.Module):
    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(n_features, n_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.layer(x)
        return hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]])


@pytest.mark.parametrize("defence", [EvidenceDefence, WholeGraphDefence])
def test_any_network_can_be_the_classifier(defence: type[EvidenceDefence]) -> None:
    graph, nodes = planted_graph(), np.arange(40, 52)
    attacked = DICE().attack(graph, [40, 50], budget=1.0, rng=0).apply(graph)
    network = CustomNetwork(TinyNetwork, n_epochs=60, learning_rate=0.05)
    fitted = defence(network, n_donors=4, retrain=True).fit(attacked, TRAIN, targets=nodes, rng=0)
    assert (fitted.predict() == graph.labels)[nodes].mean() > 0.6  # by chance a third
    assert len(fitted.explain([40])[0].edges) == attacked.degrees[40]


def test_attacked_nodes_are_corrected() -> None:
    """Half of 20 nodes of a planted graph and their edges; the chance of no gain is far below 1 in 1000."""
    graph, nodes = planted_graph(), np.arange(20, 40)
    attacked = DICE().attack(graph, nodes, budget=1.0, rng=0).apply(graph)
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=True)
    fitted.fit(attacked, TRAIN, targets=nodes, rng=0)
    truth = np.asarray(graph.labels)
    before, after = ((p == truth)[nodes].mean() for p in (fitted.undefended(), fitted.predict()))
    assert after > before + 0.2


def test_limits_for_large_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, nodes = planted_graph(), np.arange(60)
    defence = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=0.5)
    monkeypatch.setattr(evidence, "MAX_RANKED_NODES", 20)
    assert 15 <= (~defence.fit(graph, TRAIN, rng=0).certify(nodes)).sum() <= 45
    monkeypatch.setattr(evidence, "MAX_NODES_WITH_MLP", 50)
    monkeypatch.setattr(evidence, "distil_mlp", None)
    assert defence.fit(graph, TRAIN, rng=0).predict().shape == (60,)


def test_default_classifier_and_wrong_parameters() -> None:
    base = EvidenceDefence(device="cpu").build_classifier()
    assert isinstance(base, SelfTraining)
    assert isinstance(base.base, APPNP)
    with pytest.raises(InputError, match="n_donors of EvidenceDefence must be an integer between 0"):
        EvidenceDefence(GCN(**QUICK), n_donors=-1).fit(planted_graph(), TRAIN)

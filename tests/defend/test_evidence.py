"""The evidence defence: its model of edges, its contract, its guarantee and its explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from nodecopy import Graph, to_pyg
from nodecopy.attacks import DICE
from nodecopy.classify import APPNP, GCN, CustomNetwork, SelfTraining
from nodecopy.defend import EdgeReport, EvidenceDefence, NodeReport, WholeGraphDefence, evidence
from nodecopy.defend.evidence import Edges, compare_classes, estimate_prior
from nodecopy.errors import InputError
from nodecopy.metrics.classification import area_under_roc
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, SOME, TRAIN, DefenceContract

CLASS_EDGES = np.array([[40.0, 4, 6], [4, 30, 2], [6, 2, 50]])
PRIOR = np.append(0.5, np.full(8, 1 / 16))


class TestEvidenceDefence(DefenceContract):
    classifiers = tuple(EvidenceDefence(GCN(**QUICK), uncertain_share=share) for share in (1.0, 0.3))


def direct_likelihoods(log_odds: Any, neighbours: Any) -> Any:
    """Return the likelihood of the edges of a node for each class and share, by loops over all hypotheses."""
    by_class, shares = compare_classes(CLASS_EDGES), evidence.GENUINE_SHARES
    total = np.zeros((3, 1 + len(shares)))
    for y in range(3):
        typical = atypical = 1.0
        for odds, p in zip(log_odds, neighbours, strict=True):
            typical *= np.exp(odds) * (p @ by_class[y])
            atypical *= p @ by_class[y]
        total[y, 0] = (1 - evidence.ATYPICAL_SHARE) * typical + evidence.ATYPICAL_SHARE * atypical
        for number, share in enumerate(shares, start=1):
            for aim in {0, 1, 2} - {y}:
                product = 1 / 2
                for odds, p in zip(log_odds, neighbours, strict=True):
                    genuine = np.exp(odds) * (p @ by_class[y])
                    product *= share * genuine + (1 - share) * (p @ by_class[aim])
                total[y, number] += product
    return np.log(total)


@pytest.mark.parametrize("max_terms", [2**23, 1])
def test_likelihood_is_the_sum_over_hypotheses(monkeypatch: pytest.MonkeyPatch, max_terms: int) -> None:
    monkeypatch.setattr(evidence, "MAX_TERMS", max_terms)
    draws = np.random.default_rng(0)
    owner = np.array([0, 0, 0, 2, 2])
    log_odds, neighbours = draws.normal(size=5), draws.dirichlet(np.ones(3), size=5)
    edges = Edges(3, owner, log_odds, neighbours, CLASS_EDGES)
    likelihoods = edges.log_likelihoods()
    for row in range(3):
        expected = direct_likelihoods(log_odds[owner == row], neighbours[owner == row])
        np.testing.assert_allclose(likelihoods[row], expected, atol=1e-9)
    rates = edges.rate(np.log(draws.dirichlet(np.ones(3), size=3)), PRIOR)
    assert ((rates > 0) & (rates < 1)).all()


def test_many_edges_to_one_class_are_credible_or_an_attack() -> None:
    neighbours, features = np.tile([0.02, 0.96, 0.02], (20, 1)), np.log([[0.8, 0.1, 0.1]])
    for odds, best, is_credible in ((3.0, 1, True), (-3.0, 0, False)):
        edges = Edges(1, np.zeros(20, int), np.full(20, odds), neighbours, CLASS_EDGES)
        joint = features[0] + logsumexp(edges.log_likelihoods()[0] + np.log(PRIOR), axis=1)
        assert joint.argmax() == best
        assert (edges.rate(features, PRIOR) > 0.5).all() == is_credible


def test_the_prior_is_the_share_of_attacked_nodes() -> None:
    """1,000 nodes of 12 edges, a tenth of them attacked; the standard error of the share is 1 point."""
    draws, n_nodes, n_edges = np.random.default_rng(0), 1_000, 12
    is_attacked = draws.random(n_nodes) < 0.1
    by_class = CLASS_EDGES / CLASS_EDGES.sum(axis=1, keepdims=True)
    classes = draws.integers(3, size=n_nodes)
    is_false = is_attacked[:, None] & (draws.random((n_nodes, n_edges)) < 0.6)
    own = np.where(is_false, (classes[:, None] + 1) % 3, classes[:, None])
    drawn = (draws.random((n_nodes, n_edges, 1)) > by_class.cumsum(axis=1)[own]).sum(axis=2)
    log_odds = draws.normal(
        np.where(is_false, -1.0, 1.0), np.sqrt(2.0)
    )  # normal log-odds calibrate themselves
    owner = np.repeat(np.arange(n_nodes), n_edges)
    edges = Edges(n_nodes, owner, log_odds.ravel(), np.eye(3)[drawn.ravel()], CLASS_EDGES)
    joint = edges.log_likelihoods() - np.log(3)
    prior = estimate_prior(logsumexp(joint, axis=1))
    assert prior.sum() == pytest.approx(1)
    assert abs(prior[0] - 0.9) < 0.04
    posterior = np.exp(logsumexp(joint, axis=1) + np.log(prior))
    attacked = 1 - posterior[:, 0] / posterior.sum(axis=1)
    assert area_under_roc(attacked, is_attacked) > 0.95
    for low, high in ((0, 0.3), (0.7, 1.01)):  # calibrated, within about three standard errors
        part = (attacked >= low) & (attacked < high)
        assert abs(attacked[part].mean() - is_attacked[part].mean()) < 0.12


@pytest.mark.parametrize("retrain", [False, True])
def test_the_classifier_counts_as_much_as_no_attack_is_probable(retrain: bool) -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), retrain=retrain).fit(graph, TRAIN, targets=SOME, rng=0)
    correction: Any = fitted.correction_
    attacked, unattacked = correction.judge(SOME)
    np.testing.assert_allclose((attacked + unattacked).sum(axis=1), 1)
    probability = fitted.attack_probability(SOME)
    expected = attacked + (1 - probability)[:, None] * fitted.undefended_proba()[SOME]
    np.testing.assert_allclose(fitted.predict_proba()[SOME], expected, atol=1e-5)
    assert (correction.state.targets is None) == (not retrain)


def rewired(graph: Graph, node: int, neighbours: list[int]) -> Graph:
    adjacency = graph.adjacency.toarray()
    adjacency[node] = adjacency[:, node] = 0
    adjacency[node, neighbours] = adjacency[neighbours, node] = 1
    return graph.replace(adjacency=adjacency)


def test_no_edges_of_a_certified_node_change_its_class() -> None:
    graph, draws, n_certified = planted_graph(), np.random.default_rng(0), 0
    for node in range(20, 60):
        fitted = EvidenceDefence(GCN(**QUICK), uncertain_share=0.5, retrain=True)
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
    fitted = EvidenceDefence(GCN(**QUICK), uncertain_share=share).fit(graph, TRAIN, rng=0)
    certified = fitted.certify(nodes)
    assert (~certified).sum() == round(60 * share)
    correction: Any = fitted.correction_
    without_edges = np.exp(correction.from_features[nodes])
    is_changed = np.abs(fitted.predict_proba() - without_edges).max(axis=1) > 1e-5
    assert (is_changed == ~certified).mean() > 0.9  # a node without edges does not change
    highest = without_edges.max(axis=1)
    assert highest[~certified].max(initial=0) <= highest[certified].min(initial=1)


def test_explanation_agrees_with_the_correction() -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), uncertain_share=1.0).fit(graph, TRAIN, rng=0)
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
    certain = EvidenceDefence(GCN(**QUICK), uncertain_share=0.0).fit(graph, TRAIN, rng=0)
    (report,) = certain.explain([40])
    assert set(report.edge_evidence.values()) == {0.0}
    assert report.attacked == certain.attack_probability([40])[0]
    assert not report.to_dict()["uses_edges"]
    for wrong in (5.0, float("nan")):
        with pytest.raises(InputError, match="uncertain_share of EvidenceDefence must be"):
            certain.set_params(uncertain_share=wrong).explain([5])


@pytest.mark.parametrize("retrain", [False, True])
def test_explanations_of_other_graphs(retrain: bool) -> None:
    graph = planted_graph().replace(node_ids=np.arange(60))  # PyTorch Geometric has no others
    fitted = EvidenceDefence(GCN(**QUICK), retrain=retrain)
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
    report = NodeReport("c", 0, 1, {0: 0.1, 1: 0.9}, 0.7, {0: 0.5, 1: 0.5}, {0: -1.0, 1: 0.0}, edges)
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
    fitted = defence(network, retrain=True).fit(attacked, TRAIN, targets=nodes, rng=0)
    assert (fitted.predict() == graph.labels)[nodes].mean() > 0.6  # by chance a third
    assert len(fitted.explain([40])[0].edges) == attacked.degrees[40]


def test_attacked_nodes_are_corrected() -> None:
    """Half of 20 nodes of a planted graph and their edges; the chance of no gain is far below 1 in 1000."""
    graph, nodes = planted_graph(), np.arange(20, 40)
    attacked = DICE().attack(graph, nodes, budget=1.0, rng=0).apply(graph)
    fitted = EvidenceDefence(GCN(**QUICK), retrain=True)
    fitted.fit(attacked, TRAIN, targets=nodes, rng=0)
    truth = np.asarray(graph.labels)
    before, after = ((p == truth)[nodes].mean() for p in (fitted.undefended(), fitted.predict()))
    assert after > before + 0.2


def test_default_classifier() -> None:
    base = EvidenceDefence(device="cpu").build_classifier()
    assert isinstance(base, SelfTraining)
    assert isinstance(base.base, APPNP)

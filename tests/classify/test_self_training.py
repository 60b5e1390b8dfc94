"""Self-training, its default base, and the vote of its voters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodecopy import Graph, KeepByDegree, NearestNeighbours, NodeCopying, SameLabel
from nodecopy.classify import (
    APPNP,
    DGI,
    GCN,
    MLP,
    SGC,
    BayesianGCN,
    Classifier,
    LabelPropagation,
    Prediction,
    SelfTraining,
    SoftVoting,
    Trial,
)
from nodecopy.classify import self_training as defaults
from nodecopy.classify.regressions import EmbeddingRegression
from nodecopy.classify.self_training import VotingNetworks, build_default_base
from nodecopy.datasets import label_split
from nodecopy.errors import InputError
from nodecopy.nn.engine import Ensemble
from tests.contracts.classifiers import ClassifierContract, planted_graph

GRAPH = planted_graph()
SPLIT = label_split(GRAPH.label_codes, 3, validation=15, test=30, rng=0)
SHORT = GCN(n_epochs=25, learning_rate=0.05)
COPYING = BayesianGCN(NodeCopying(SameLabel(), keep=0.5), n_graphs=2, n_weight_samples=2, base=SHORT)
CLASSIFIERS = {
    "gcn": SelfTraining(SHORT, 2),
    "soft": SelfTraining(SHORT, 1, pseudo_labels="soft", loss_weights="confidence"),
    "copying": SelfTraining(COPYING, 1),
    "mlp": SelfTraining(MLP(n_epochs=80), 1, share=0.4, loss_weights="equal", balance=0.0),
}


class TestSelfTraining(ClassifierContract):
    classifiers = CLASSIFIERS


class Scripted(Classifier):
    """A classifier that returns given probabilities, one array per round, and records its trials."""

    def __init__(self, rounds: list[NDArray[Any]]) -> None:
        self.rounds = rounds
        self.trials: list[Trial] = []

    def predict_trial(self, trial: Trial) -> NDArray[Any]:
        self.trials.append(trial)
        return self.rounds[len(self.trials) - 1]


def confident(codes: NDArray[np.int64], confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return class probabilities that are ``confidence`` for the code of each node."""
    n_classes = int(codes.max()) + 1
    rest = (1 - confidence) / (n_classes - 1)
    probabilities = np.repeat(rest[:, None], n_classes, axis=1)
    probabilities[np.arange(len(codes)), codes] = confidence
    return probabilities


@pytest.mark.parametrize(
    ("balance", "expected"),
    [
        (0.0, [range(12, 20), [22, 23]]),
        (1.0, [range(15, 20), [4, 20, 21, 22, 23]]),  # the least confident of class 0 fills up class 1
    ],
)
def test_the_most_confident_nodes_get_pseudo_labels(balance: float, expected: list[Sequence[int]]) -> None:
    graph = planted_graph().subgraph(np.arange(24)).replace(labels=np.arange(24) % 2)
    codes = np.array([0, 1] + [0] * 18 + [1] * 4)
    base = Scripted([confident(codes, np.linspace(0.6, 0.9, 24))] * 2)
    train, validation = np.array([0, 1]), np.array([2, 3])
    trial = Trial(graph, train, validation, 0)
    SelfTraining(base, 1, share=0.5, balance=balance).fit_trials([trial])
    after = base.trials[1]
    pseudo = after.train[2:]
    assert np.array_equal(after.train[:2], train)
    for code, nodes in enumerate(expected):
        assert sorted(pseudo[after.codes[pseudo] == code]) == list(nodes)
    assert np.array_equal(after.codes[train], trial.codes[train])
    assert after.weights is not None
    assert after.weights[2:].sum() == pytest.approx(len(train), rel=1e-5)


def test_classes_are_balanced_more_the_fewer_labels_there_are() -> None:
    graph = planted_graph()
    assert graph.label_codes is not None
    codes = np.zeros(graph.n_nodes, np.int64)
    codes[-10:], codes[-20:-10] = 1, 2
    n_zeros = []
    for per_class in (1, 4):
        train = label_split(graph.label_codes, per_class, validation=0, test=0, rng=0).train
        base = Scripted([confident(codes, np.full(len(codes), 0.9))] * 2)
        SelfTraining(base, 1).fit_trials([Trial(graph, train, rng=0)])
        pseudo = base.trials[1].train[len(train) :]
        n_zeros.append((codes[pseudo] == 0).sum())
    assert n_zeros[0] < n_zeros[1]


def test_the_base_alone_has_its_weight_in_the_prediction(caplog: pytest.LogCaptureFixture) -> None:
    assert GRAPH.label_codes is not None
    right = confident(GRAPH.label_codes, np.full(GRAPH.n_nodes, 0.9))
    rounds = [right, np.roll(right, 1, axis=1), np.roll(right, 2, axis=1)]
    fitted = SelfTraining(Scripted(rounds), 2, base_weight=0.25).fit(GRAPH, SPLIT.train, rng=0)
    assert np.allclose(fitted.predict_proba(), 0.25 * rounds[0] + 0.75 * rounds[2], atol=1e-6)
    assert "(weight 0.25) and that of round 2 of 2, the last one, since there are no" in caplog.text
    best_is_base = SelfTraining(Scripted(rounds), 2, base_weight=0.25)
    best_is_base.fit(GRAPH, SPLIT.train, validation=SPLIT.validation, rng=0)
    assert np.allclose(best_is_base.predict_proba(), right, atol=1e-6)
    assert best_is_base.prediction_.details["base_weight"] == 0
    assert "that without pseudo-labels, chosen by 15 validation nodes. Set n_rounds" in caplog.text


@pytest.mark.parametrize(
    ("n_labels", "validation", "weight"), [(5, 0, 0.0), (6, 0, 0.5), (6, 15, 0.0)], ids=str
)
def test_the_default_base_is_averaged_with_many_labels(n_labels: int, validation: int, weight: float) -> None:
    split = label_split(GRAPH.label_codes, n_labels, validation=validation, test=10, rng=0)
    trial = Trial(GRAPH, split.train, split.validation, 0)
    base, last, default = (
        SelfTraining(voters=["sgc"], **settings).fit_trials([trial], keep_networks=True)[0]
        for settings in ({"n_rounds": 0}, {"base_weight": 0.0}, {})
    )
    assert default.details["base_weight"] == weight
    mean = weight * base.probabilities + (1 - weight) * last.probabilities
    assert np.allclose(default.probabilities, mean, atol=1e-6)
    assert default.networks is not None
    assert np.allclose(default.networks.predict(GRAPH, "cpu")[0], mean, atol=1e-5)
    given = SelfTraining(SGC(), 1).fit_trials([trial])[0]
    assert given.details["base_weight"] == 0


def test_the_default_base_has_the_settings_that_are_given() -> None:
    given = SelfTraining(n_rounds=0, n_graphs=2, features="none", weights="binary")
    vote = given.fit(GRAPH, SPLIT.train, rng=0).prediction_.networks
    assert isinstance(vote, VotingNetworks)
    networks, *regressions = vote.networks
    assert isinstance(networks, Ensemble)
    assert len(networks.keys) == 2
    assert (networks.config.features, networks.config.weights) == ("none", "binary")
    for regression in regressions:
        assert isinstance(regression, EmbeddingRegression)
        embedding: Any = regression.embedding
        assert (embedding.feature_scaling.kind, embedding.weight_scaling.kind) == ("none", "binary")


def test_soft_labels_and_weights_reach_the_loss() -> None:
    """A pseudo-label of weight zero, or one with the probabilities of no class, changes nothing or little."""
    trial = Trial(GRAPH, SPLIT.train, rng=0)
    nodes, codes = SPLIT.test[:5], np.zeros(5, np.int64)
    weights = np.array([1.0] * len(trial.train) + [0.0] * 5, np.float32)
    predictions: list[Prediction] = []
    for changed in (
        trial,
        trial.with_pseudo_labels(nodes, codes, weights=weights, rng=0),
        trial.with_pseudo_labels(nodes, codes, rng=0),
        trial.with_pseudo_labels(nodes, codes, soft=np.full((5, 3), 1 / 3, np.float32), rng=0),
    ):
        predictions += SHORT.fit_trials([changed])
    plain, ignored, hard, soft = (prediction.probabilities for prediction in predictions)
    assert np.allclose(plain, ignored, atol=1e-5)
    assert hard[nodes, 0].mean() > plain[nodes, 0].mean() + 0.02
    assert soft[nodes].max(axis=1).mean() < plain[nodes].max(axis=1).mean()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"share": 0}, "share of SelfTraining must be above 0; got 0. n_rounds=0 is the base alone"),
        ({"base": lambda n, k: None, "n_graphs": 5}, r"KeepByDegree\(SameLabel\(\)\)\), 5, base=build"),
        ({"base": "ggcn"}, "base of SelfTraining must be one of .*; got 'ggcn'. Did you mean gcn"),
        ({"base": 3}, "base of SelfTraining must be a classifier"),
        ({"base": GCN(), "n_graphs": 5}, "n_graphs of SelfTraining must be left out if a base is given"),
        ({"base": GCN(), "voters": ["sgc"]}, "voters of SelfTraining must be left out if a base is given"),
        ({"voters": "sgc"}, "voters of SelfTraining must be a list of at least one"),
        ({"voters": ["sgc", "sgc"]}, "voters of SelfTraining .*, each once; got"),
        ({"voters": ["sgc"], "pseudo_degree": 1.0}, "must be left out unless networks vote"),
        ({"voters": ["sgc"], "network": "gcn"}, "must be left out unless networks vote"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SelfTraining(**parameters).fit(GRAPH, SPLIT.train, rng=0)


def test_a_single_unlabelled_node_is_predicted_as_by_the_base() -> None:
    """One node says nothing of the sizes of classes, and one pseudo-label must not outweigh all labels."""
    for node in range(0, 60, 7):
        train = np.setdiff1d(np.arange(60), [node])
        alone = SGC().fit(GRAPH, train).predict_proba()[node]
        trained = SelfTraining(SGC(), 2).fit(GRAPH, train, rng=0).predict_proba()[node]
        assert trained.argmax() == alone.argmax()


RING = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)


def build(graph: Graph, *, n_labels: int = 1, voters: Any = ("networks",), **settings: Any) -> Any:
    trial = Trial(graph.replace(labels=np.arange(40) % 2), np.arange(2 * n_labels), None, 0)
    return build_default_base(trial, SelfTraining(voters=voters, **settings))


def words(share: float) -> NDArray[np.float64]:
    """Return word counts with a share of zeros."""
    return (np.random.default_rng(0).random((40, 30)) >= share).astype(float)


@pytest.mark.parametrize(
    ("features", "network", "donors"),
    [
        (words(0.95), APPNP, NearestNeighbours),
        (None, GCN, SameLabel),
        (words(0.6), GCN, SameLabel),
        (-words(0.95), GCN, SameLabel),
        (np.random.default_rng(1).random((40, 5)), GCN, SameLabel),
    ],
    ids=["sparse words", "none", "dense words", "negative", "real"],
)
def test_features_decide_about_network_and_donors(
    features: Any, network: type, donors: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = RING.replace(features=features)
    base = build(graph)
    assert network is GCN or base.base.n_hidden == 16
    assert isinstance(base.base, network)
    assert isinstance(base.graph_model.donors.donors, donors)
    monkeypatch.setattr(defaults, "MAX_NODES_FOR_NEAREST", 39)
    assert isinstance(build(graph).graph_model.donors.donors, SameLabel)  # in large graphs


def test_fewer_labels_copy_more() -> None:
    rules = [build(RING, n_labels=n_labels).graph_model.donors for n_labels in (1, 4, 5, 20)]
    assert all(isinstance(rule, KeepByDegree) for rule in rules)
    degrees = [rule.pseudo_degree for rule in rules]
    assert degrees == pytest.approx([4, 2, 4 / 5**0.5, 4 / 20**0.5 / 4])


def test_a_pseudo_degree_of_zero_copies_nothing_not_even_for_nodes_without_neighbours() -> None:
    model = build(Graph(np.zeros((40, 40))), pseudo_degree=0.0).graph_model
    assert isinstance(model, NodeCopying)
    assert model.keep == 1.0


def test_networks_sgc_and_dgi_vote_with_equal_weights() -> None:
    base = build(RING, voters=None)
    assert isinstance(base, SoftVoting)
    assert [type(voter) for voter in base.classifiers] == [BayesianGCN, SGC, DGI]
    assert base.weights is None
    assert isinstance(build(RING, voters=["sgc"]), SGC)


def test_dgi_in_large_graphs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(defaults, "MAX_NODES_FOR_INFOMAX", 39)
    base = build(RING, voters=None)
    assert [type(voter) for voter in base.classifiers] == [BayesianGCN, SGC]
    assert "voters: networks and SGC, without DGI" in caplog.text
    assert isinstance(build(RING, voters=["dgi"]), DGI)


class TestSoftVoting(ClassifierContract):
    classifiers = (SoftVoting([GCN(n_epochs=30), SGC()]),)


@pytest.mark.parametrize("weights", [None, [1, 3], np.array([0.0, 2.0]), [1e308, 1e308]])
def test_probabilities_are_the_weighted_mean(weights: Any) -> None:
    graph, train = planted_graph(), [0, 1, 2]
    voters = [GCN(n_epochs=20), SGC()]
    shares = np.array([1, 1] if weights is None or weights[0] > 3 else weights, float)
    own = [voter.fit(graph, train, rng=0) for voter in voters]
    fitted = SoftVoting([GCN(n_epochs=20), SGC()], weights).fit(graph, train, rng=0)
    expected = np.average([voter.predict_proba() for voter in own], axis=0, weights=shares)
    np.testing.assert_allclose(fitted.predict_proba(), expected, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(graph), expected, atol=1e-5)


def test_a_voter_that_predicts_on_one_graph_only_makes_the_vote_do_so() -> None:
    graph = planted_graph()
    fitted = SoftVoting([SGC(), LabelPropagation()]).fit(graph, [0, 1, 2])
    with pytest.raises(InputError, match="predict on other graphs; got SGC, LabelPropagation"):
        fitted.predict(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([[]], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([SGC()], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([[SGC()], [1, 2]], "weights of SoftVoting must hold one entry per classifier"),
        ([[SGC(), SGC()], [1, -1]], "weights of SoftVoting must be at least 0, and one above 0"),
        ([[SGC()], [np.nan]], "weights of SoftVoting must hold finite numbers"),
    ],
)
def test_wrong_votes(arguments: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SoftVoting(*arguments).fit_trials([Trial(planted_graph(), [0, 1, 2])])


def test_damaged_networks_are_refused() -> None:
    trained = SGC().fit(GRAPH, [0, 1, 2]).prediction_.networks
    assert trained is not None
    with pytest.raises(InputError, match="weights of the vote must be at least 0 with a sum of 1"):
        VotingNetworks((trained,), np.array([0.5]))
    with pytest.raises(InputError, match="weights of the vote must hold one entry per classifier"):
        VotingNetworks((trained,), np.ones(2))

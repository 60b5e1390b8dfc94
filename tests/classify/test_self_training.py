"""Self-training, its default base, and the vote of its voters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodecopy import NodeCopying, SameLabel
from nodecopy.classify import GCN, MLP, SGC, BayesianGCN, Classifier, SelfTraining, Trial
from nodecopy.classify import self_training as votes
from nodecopy.classify.self_training import (
    Voters,
    assign_folds,
    choose_factors,
    fit_weights,
    mean_entropy,
    pool,
)
from nodecopy.datasets import label_split
from nodecopy.errors import DataWarning, InputError
from tests.contracts.classifiers import ClassifierContract, planted_graph

GRAPH = planted_graph()
SPLIT = label_split(GRAPH.label_codes, 3, validation=15, test=30, rng=0)
SHORT = GCN(n_epochs=25, learning_rate=0.05)
COPYING = BayesianGCN(NodeCopying(SameLabel(), keep=0.5), n_graphs=2, n_weight_samples=2, base=SHORT)
CLASSIFIERS = {
    "gcn": SelfTraining(SHORT, 2),
    "copying": SelfTraining(COPYING, 1),
    "mlp": SelfTraining(MLP(n_epochs=80), 1),
}


class TestSelfTraining(ClassifierContract):
    classifiers = CLASSIFIERS


class TestVote(ClassifierContract):
    is_random = needs_features = False
    classifiers = (SelfTraining(), SelfTraining(n_rounds=1, class_weight={"oak": 2.0}))


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


def test_the_most_confident_nodes_get_pseudo_labels() -> None:
    """With one label per class, 40 % of classes of similar size: unsure nodes of class 0 fill up class 1."""
    graph = planted_graph().subgraph(np.arange(24)).replace(labels=np.arange(24) % 2)
    codes = np.array([0, 1] + [0] * 18 + [1] * 4)
    base = Scripted([confident(codes, np.linspace(0.6, 0.9, 24))] * 2)
    train, validation = np.array([0, 1]), np.array([2, 3])
    trial = Trial(graph, train, validation, 0)
    SelfTraining(base, 1).fit_trials([trial])
    after = base.trials[1]
    pseudo = after.train[2:]
    assert np.array_equal(after.train[:2], train)
    for code, nodes in enumerate([range(16, 20), [20, 21, 22, 23]]):
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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"base": lambda n, k: None, "class_weight": "f1"},
            "class_weight of SelfTraining must be left out if",
        ),
        ({"base": "ggcn"}, "base of SelfTraining must be one of .*; got 'ggcn'. Did you mean gcn"),
        ({"base": 3}, "base of SelfTraining must be a classifier"),
        ({"base": GCN(), "features": "none"}, "features of SelfTraining must be left out if a base is given"),
        ({"class_weight": "f2"}, "class_weight of SelfTraining must be .f1., or a mapping"),
        ({"class_weight": {"ash": 0}}, "class_weight of SelfTraining must be"),
        ({"class_weight": {"elm": 2}}, "class_weight of SelfTraining must hold weights of classes, .*'elm'"),
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


def logs_of(*truths: Any, n_classes: int = 3, p: float = 0.8) -> NDArray[Any]:
    """Return log-probabilities, [voter, node, class], of voters that give ``p`` to these classes."""
    rest = (1 - p) / (n_classes - 1)
    return np.log([np.where(np.eye(n_classes)[np.array(codes)] > 0, p, rest) for codes in truths])


def test_a_voter_that_predicts_held_out_labels_gets_the_weight() -> None:
    truth = np.arange(30) % 3
    logs = logs_of(truth, np.roll(truth, 1))
    (right, wrong), _ = fit_weights(logs, truth, np.array([0.5, 0.5]), np.ones(3))
    assert right > 1
    assert wrong == 0
    assert (pool(logs, np.array([right, wrong])).argmax(axis=1) == truth).all()


def test_weights_have_the_highest_penalised_likelihood() -> None:
    """No weights near those that were found are better, up to rounding."""
    draw = np.random.default_rng(0)
    truth, prior, sizes = np.arange(24) % 3, np.array([1.0, 0.05]), np.array([0.5, 0.3, 0.2])
    logs = np.log(draw.dirichlet([1, 1, 1], (2, 24)) + 0.2 * np.eye(3)[truth])

    def loss(weights: NDArray[Any]) -> float:
        p = pool(logs - logs.mean(axis=2, keepdims=True), weights, sizes)
        likelihood = np.log(p[np.arange(24), truth]).sum()
        return float(0.5 * ((weights - prior) ** 2).sum() - likelihood)

    best, likelihood = fit_weights(logs, truth, prior, sizes)
    assert likelihood == pytest.approx(-loss(best) / 24, abs=1e-6)
    assert loss(best) < loss(prior) - 0.01
    for change in draw.normal(0, 0.05, (50, 2)):
        assert loss(best) <= loss(np.maximum(best + change, 0)) + 1e-6
    assert fit_weights(logs[:, :0], truth[:0], prior, sizes)[0] is prior


def test_folds_have_equal_classes_and_keep_single_labels() -> None:
    codes = np.array([0] * 7 + [1] * 5 + [2])
    folds = assign_folds(codes)
    assert folds[-1] == -1
    assert np.bincount(folds[:7]).tolist() == [2, 2, 1, 1, 1]
    assert np.bincount(folds[7:12]).tolist() == [1] * 5


def test_the_labels_of_a_fold_are_not_seen_by_its_voters() -> None:
    """A wrong label moves the predictions of all nodes but those that are held out with it."""
    trial = Trial(GRAPH, SPLIT.train, rng=0)
    vote = votes.Vote(trial, Voters(trial, {}, "cpu"))
    assert len(vote.chains) == 4  # all labels, and three folds
    for train, held_out in zip(vote.chains[1:], vote.held_out[1:], strict=True):
        assert not np.intersect1d(train, held_out).size
        assert sorted([*train, *held_out]) == sorted(trial.train)
    assert not np.intersect1d(vote.candidates, trial.labelled).size


def test_random_features_get_less_weight_than_informative_ones() -> None:
    assert GRAPH.features is not None
    train = label_split(GRAPH.label_codes, 8, validation=0, test=10, rng=0).train
    noise = np.random.default_rng(0).normal(size=(GRAPH.n_nodes, 12))
    weights = []
    for graph in (GRAPH, GRAPH.replace(features=noise)):
        details = SelfTraining(n_rounds=0).fit(graph, train, rng=0).prediction_.details
        weights.append(details["vote"])
    assert weights[1]["features"] < weights[0]["features"]
    assert weights[1]["propagated"] < weights[0]["propagated"]


def test_a_graph_without_features_is_classified_but_not_another_one() -> None:
    graph = GRAPH.replace(features=None)
    fitted = SelfTraining().fit(graph, SPLIT.train, rng=0)
    assert set(fitted.prediction_.details["vote"]) == {"connections", "labels"}
    assert fitted.score(SPLIT.test) > 0.6
    with pytest.raises(InputError, match="graph must be left out"):
        fitted.predict(graph)


def test_one_label_per_class_has_the_weights_of_the_prior() -> None:
    fitted = SelfTraining().fit(GRAPH, [0, 1, 2], rng=0)
    details = fitted.prediction_.details
    assert details["vote"] == dict.fromkeys(details["vote"], votes.PRIOR) | {"propagated": votes.MAIN_PRIOR}
    assert details["weight_without_pseudo_labels"] == 0
    assert details["held_out_recall"] == [None] * 3


def test_candidates_bound_the_pseudo_labels_of_large_graphs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(votes, "N_CANDIDATES", 20)
    monkeypatch.setattr(votes, "MAX_NODES_FOR_CONNECTIONS", 59)
    fitted = SelfTraining().fit(GRAPH, SPLIT.train, rng=0)
    assert sum(fitted.prediction_.details["pseudo_labels"]) <= 20
    assert "connections" not in fitted.prediction_.details["vote"]
    assert "the embedding of connections is left out" in caplog.text


def test_class_weights_find_a_rare_class() -> None:
    """Probabilities of the rare class are never the largest, but they rank its nodes."""
    p = np.full((100, 2), [0.95, 0.05])
    p[:8] = [0.6, 0.4]
    factors = choose_factors(p)
    assert ((p * factors).argmax(axis=1)[:8] == 1).all()
    assert (p * factors).argmax(axis=1).sum() == 8
    plain, weighted = (
        SelfTraining(n_rounds=0, class_weight=weight).fit(GRAPH, SPLIT.train, rng=0)
        for weight in (None, {"oak": 5.0})
    )
    expected = plain.predict_proba() * [1, 5, 1]
    np.testing.assert_allclose(
        weighted.predict_proba(), expected / expected.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_a_class_that_dies_out_is_reported() -> None:
    codes = np.zeros(GRAPH.n_nodes, np.int64)
    codes[::2] = 1
    dead = confident(codes, np.full(len(codes), 0.9))
    probabilities = np.column_stack([dead, np.zeros(len(codes))])
    with pytest.warns(DataWarning, match="no unlabelled node is predicted to be of class yew"):
        SelfTraining(Scripted([probabilities]), 0).fit(GRAPH, SPLIT.train, rng=0)


def test_voters_that_disagree_are_epistemic_uncertainty() -> None:
    logs = logs_of([0, 0], [0, 1])
    weights, factors = np.array([0.5, 0.5]), np.ones(3)
    total = -(pool(logs, weights) * np.log(pool(logs, weights))).sum(axis=1)
    agreed, disagreed = total - mean_entropy(logs, weights, factors)
    assert abs(agreed) < 1e-6
    assert disagreed > 0.1

"""The Bayesian GCN: what its graph model is given, its rounds, schedules and bases."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, GraphModel, NearestNeighbours, NodeCopying, SameLabel
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.classify import APPNP, GCN, MLP, SBMGCN, BayesianGCN, Prediction, Trial
from nodecopy.classify.networks import TrainingBatch
from nodecopy.datasets import label_split
from nodecopy.errors import InputError
from nodecopy.nn import engine
from nodecopy.nn.engine import Ensemble
from tests.contracts.classifiers import ClassifierContract, planted_graph

GRAPH = planted_graph()
SPLIT = label_split(GRAPH.label_codes, 3, validation=15, test=30, rng=0)
SHORT = GCN(n_epochs=15, learning_rate=0.05)
LONGER = GCN(n_epochs=25, learning_rate=0.05)
G3NN = GCN(preset="g3nn", n_hidden=16, n_epochs=30, patience=10, learning_rate=0.03)
TWO: dict[str, Any] = {"n_graphs": 2, "n_weight_samples": 2}
FEW = TWO | {"base": SHORT}
CLASSIFIERS = {
    "gcn": BayesianGCN(**TWO, base=LONGER),
    "appnp": BayesianGCN(**TWO, base=APPNP(n_epochs=25, learning_rate=0.05, n_steps=4)),
    "sbm-gcn": BayesianGCN(**TWO, base=SBMGCN(base=G3NN)),
    "validation": BayesianGCN(**TWO, n_rounds="validation", base=LONGER),
}


class TestBayesianGCN(ClassifierContract):
    classifiers = CLASSIFIERS


def fit(classifier: BayesianGCN, rng: int = 0) -> BayesianGCN:
    return classifier.fit(GRAPH, SPLIT.train, validation=SPLIT.validation, rng=rng)


class Recording(GraphModel[Graph]):
    """A graph model that samples the observed graph and records its calls."""

    calls: list[tuple[str, Any]] = []  # noqa: RUF012

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        self.calls.append(("fit", graph.label_codes))
        self.calls.append(("seed", seed_sequence(rng).spawn_key))
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        self.calls.append(("draw", seed.spawn_key))
        return self.graph_


@pytest.fixture(autouse=True)
def forget_calls() -> None:
    Recording.calls.clear()


def calls_of(kind: str) -> list[Any]:
    return [value for name, value in Recording.calls if name == kind]


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_algorithm_1() -> None:
    """The graph model is fitted to a GCN's labels, with the training labels; its samples train networks."""
    base = GCN(preset="kipf", n_epochs=2, learning_rate=0.05)
    fitted = fit(BayesianGCN(Recording(), n_graphs=2, n_weight_samples=3, base=base))
    expected = base.fit(GRAPH, SPLIT.train, rng=0).predict_proba().argmax(axis=1)
    assert (expected[SPLIT.train] != np.array(GRAPH.label_codes)[SPLIT.train]).any()
    expected[SPLIT.train] = np.array(GRAPH.label_codes)[SPLIT.train]
    (labels,) = calls_of("fit")
    assert np.array_equal(labels, expected)
    assert len(set(calls_of("draw"))) == 2
    networks = fitted.prediction_.networks
    assert isinstance(networks, Ensemble)
    assert len(networks.keys) == len(set(networks.keys.tolist())) == 2
    assert networks.n_weight_samples == 3


def test_each_round_takes_the_labels_of_the_round_before() -> None:
    single = fit(BayesianGCN(Recording(), **FEW))
    fit(BayesianGCN(Recording(), **FEW, n_rounds=2))
    first, again, second = calls_of("fit")
    assert np.array_equal(first, again)
    expected = single.predict_proba().argmax(axis=1)
    expected[SPLIT.train] = np.array(GRAPH.label_codes)[SPLIT.train]
    assert np.array_equal(second, expected)


def test_any_graph_model_stands_in() -> None:
    model = NodeCopying(NearestNeighbours(5))
    p = fit(BayesianGCN(model, **FEW)).predict_proba()
    assert not np.array_equal(p, fit(BayesianGCN(**FEW)).predict_proba())
    assert not hasattr(model, "graph_")  # a copy is fitted


@pytest.mark.parametrize("best", [0, 1, 2, 3])
def test_validation_decides_the_number_of_rounds(monkeypatch: pytest.MonkeyPatch, best: int) -> None:
    """Predictions are replaced such that one round, perhaps none, is right at the validation nodes."""
    truth = np.eye(3, dtype=np.float32)[np.array(GRAPH.label_codes)]
    predict = TrainingBatch.predict
    predictions: list[Prediction] = []

    def record(self: TrainingBatch, networks: Any, n: int = 0) -> list[Prediction]:
        (real,) = predict(self, networks, n)
        p = truth.copy() if len(predictions) == best else np.roll(truth, 1, axis=1)
        p[SPLIT.train], p[SPLIT.test] = np.roll(truth, 1, axis=1)[SPLIT.train], 1 / 3
        predictions.append(Prediction(p, real.mean_entropy, networks=real.networks))
        return [predictions[-1]]

    monkeypatch.setattr(TrainingBatch, "predict", record)
    fitted = fit(BayesianGCN(**FEW, n_rounds="validation"))
    assert len(predictions) == 4
    assert fitted.prediction_.details == {"rounds": best}
    assert np.array_equal(fitted.predict_proba(), predictions[best].probabilities)
    assert fitted.prediction_.networks is predictions[best].networks


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_many_networks_are_the_same_some_at_a_time(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    trials = [Trial(GRAPH, SPLIT.train, SPLIT.validation, seed) for seed in range(3)]
    classifier = BayesianGCN(**FEW)
    together = classifier.fit_trials(trials)
    monkeypatch.setattr(engine, "max_networks", lambda *_: at_once)
    for first, second in zip(together, classifier.fit_trials(trials), strict=True):
        np.testing.assert_allclose(first.probabilities, second.probabilities, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(first.mean_entropy, second.mean_entropy, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rounds": "many"}, "n_rounds of BayesianGCN must be an integer or 'validation'; got 'many'"),
        ({"graph_model": 3}, "graph_model of BayesianGCN must be a graph model such as NodeCopying.*got int"),
        ({"base": MLP()}, r"base of BayesianGCN must be GCN\(\), APPNP\(\), .* got MLP\(\)"),
    ],
)
def test_wrong_parameters(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(BayesianGCN(**settings))


def test_rounds_by_validation_need_validation_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainingBatch, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(InputError, match="decides the number of rounds"):
        BayesianGCN(n_rounds="validation").fit(GRAPH, SPLIT.train, rng=0)
    trials = [Trial(GRAPH, SPLIT.train, np.zeros(0, np.int64), 0)]
    with pytest.raises(InputError, match="decides the number of rounds"):
        BayesianGCN(n_rounds="validation").fit_trials(trials)


def test_the_default_graph_model_has_the_rule_of_the_paper() -> None:
    """The default rule of NodeCopying is another; stored results are of this one."""
    default = fit(BayesianGCN(**FEW)).predict_proba()
    explicit = BayesianGCN(NodeCopying(SameLabel(), symmetrise="maximum"), **FEW)
    assert np.array_equal(default, fit(explicit).predict_proba())
    other = BayesianGCN(NodeCopying(SameLabel(), symmetrise="one-endpoint"), **FEW)
    assert not np.array_equal(default, fit(other).predict_proba())

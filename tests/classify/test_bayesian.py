"""The Bayesian GCN: what its graph model is given, its rounds, schedules and bases."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import Graph, GraphModel, NearestNeighbours, NodeCopying, SameLabel
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.classify import APPNP, GCN, MLP, SBMGCN, BayesianGCN, Prediction, Trial
from nodecopy.classify.bayesian import GenerativeBatch, GenerativeObjective
from nodecopy.classify.networks import TrainingBatch
from nodecopy.datasets import label_split
from nodecopy.errors import InputError
from nodecopy.nn import engine
from nodecopy.nn.engine import Ensemble
from nodecopy.nn.networks import Networks, SparseStack
from nodecopy.nn.training import LabelledNodes, Targets
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


class TestSBMGCN(ClassifierContract):
    base = GCN(preset="g3nn", n_hidden=16, n_epochs=30, patience=10, learning_rate=0.03)
    classifiers = (SBMGCN(objective="paper", base=base), SBMGCN(objective="authors", base=base))


def test_wrong_base() -> None:
    base: Any = APPNP()
    with pytest.raises(InputError, match=r"base of SBMGCN must be GCN\(\); got APPNP\(\)"):
        SBMGCN(base=base).fit(planted_graph(), [0, 1, 2], validation=[3, 4])


@pytest.mark.parametrize(("share", "kind"), [(0.1, "rows"), (0.35, "unit"), (1.0, "standardise")])
def test_sparse_word_counts_are_scaled_to_sums_of_one(share: float, kind: str) -> None:
    """``share`` of the counts are not zero; with all of them, they are not word counts."""
    features = (np.random.default_rng(0).random((60, 40)) < share).astype(float)
    trial = Trial(planted_graph().replace(features=features), [0, 1, 2], [3, 4])
    assert SBMGCN().build_batch([trial]).feature_scaling.kind == kind
    assert GCN().build_batch([trial]).feature_scaling.kind == {"rows": "unit"}.get(kind, kind)


@pytest.mark.parametrize("objective", ["paper", "authors"])
def test_losses_against_loops_over_edges_and_pairs(objective: str) -> None:
    graph, classifier = planted_graph(), SBMGCN(objective=objective)
    train = np.array([0, 1, 2, 5])
    trial = Trial(graph, train, np.array([7]), 0)
    batch = GenerativeBatch(classifier, GCN(preset="g3nn", dropout=0.0), [trial])
    features, device = SparseStack([batch.engine.features], torch.device("cpu")), torch.device("cpu")
    posterior = Networks.initialise(batch.engine.config, features, 3, [seed_sequence(1)])
    codes = trial.codes[train]
    targets = Targets([LabelledNodes(train, codes)], device)
    goal = GenerativeObjective(batch, batch.observed, [seed_sequence(2)], posterior, targets)
    with torch.no_grad():
        loss = goal.losses(0).item()
        q, p = (
            logits[0].double().softmax(dim=1).numpy()
            for logits in (posterior.logits(goal.graphs, None, None), goal.prior.logits(None, None, None))
        )
    labels = dict(zip(train.tolist(), codes.tolist(), strict=True))
    source = q if objective == "paper" else p
    clamped = [np.eye(3)[labels[i]] if i in labels else source[i] for i in range(60)]
    first, second = graph.adjacency.nonzero()
    edges = np.mean([clamped[i] @ clamped[j] for i, j in zip(first, second, strict=True)])
    pairs = np.mean([clamped[i] @ clamped[j] for i in range(60) for j in range(60)])
    edge_loss = -edges * math.log(0.9 / 0.1) - pairs * math.log(0.1 / 0.9)
    unlabelled = [i for i in range(60) if i not in labels]
    cross_entropy = np.mean([-(q[i] @ np.log(p[i])) for i in unlabelled])
    entropy = np.mean([-(q[i] @ np.log(q[i])) for i in unlabelled])
    labelled_loss = np.mean([-np.log(p[i, k]) - np.log(q[i, k]) for i, k in labels.items()])
    if objective == "paper":
        unlabelled_loss = edge_loss + cross_entropy - entropy
    else:
        unlabelled_loss = (edge_loss + cross_entropy + entropy) / 3
    assert loss == pytest.approx(unlabelled_loss + labelled_loss, rel=1e-4)


def test_both_networks_are_trained() -> None:
    """The prior's weights are trained with the posterior's, all with weight decay."""
    trial, base = Trial(planted_graph(), [0, 1, 2], rng=0), GCN(preset="g3nn", n_epochs=2, patience=0)
    batch = GenerativeBatch(SBMGCN(), base, [trial])
    objectives: list[GenerativeObjective] = []
    before: list[torch.Tensor] = []

    def build_objective(posterior: Networks, targets: Targets) -> GenerativeObjective:
        seeds = [seed_sequence(1)]
        objectives.append(GenerativeObjective(batch, batch.observed, seeds, posterior, targets))
        before.extend(weight.detach().clone() for weight in objectives[0].prior.weights)
        return objectives[0]

    TrainingBatch.train(batch, batch.observed, [seed_sequence(0)], build_objective=build_objective)
    (objective,) = objectives
    assert not any(torch.equal(*pair) for pair in zip(objective.prior.weights, before, strict=True))
    decays = {group["weight_decay"] for group in objective.parameter_groups}
    assert decays == {batch.engine.config.weight_decay}


def test_networks_on_sampled_graphs() -> None:
    """Each network has the edges of its own graph, and a prior network with a seed of its own."""
    graph = planted_graph()
    base = GCN(preset="g3nn", n_epochs=5, patience=0)
    trials = [Trial(graph, [0, 1, 2], rng=0), Trial(graph, [3, 4, 5], rng=1)]
    batch = SBMGCN(base=base).build_batch(trials)
    empty = sparse.csr_array((60, 60), dtype=np.float32)
    graphs: list[Any] = [batch.observed[0], empty, empty, batch.observed[0]]
    seeds = [seed_sequence(number) for number in range(4)]
    together = batch.train(graphs, seeds).weights[0].detach()
    for number, trial in enumerate(trials):
        alone = SBMGCN(base=base).build_batch([trial])
        pair = slice(2 * number, 2 * number + 2)
        np.testing.assert_allclose(
            together[pair], alone.train(graphs[pair], seeds[pair]).weights[0].detach(), atol=1e-5
        )
    assert not torch.allclose(*(batch.train(graphs, [seeds[0]] * 4).weights[0].detach()[:2]))

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, NearestNeighbours, NodeCopying
from nodecopy._core.random import Rng, generator
from nodecopy.classify import GCN, BayesianGCN, Prediction, Trial
from nodecopy.classify.base import Problems
from nodecopy.datasets import label_split
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()
SPLIT = label_split(GRAPH.labels, 3, validation=15, test=30, rng=0)
FEW: dict[str, Any] = {"n_graphs": 2, "n_weight_samples": 2, "epochs": 15, "learning_rate": 0.05}


def fit(classifier: BayesianGCN, rng: int = 0) -> BayesianGCN:
    return classifier.fit(GRAPH, SPLIT.train, validation=SPLIT.validation, rng=rng)


class Watched:
    """A graph model that samples the observed graph and remembers what it was given."""

    seen: list[tuple[str, Any]] = []  # noqa: RUF012

    def fit(self, graph: Graph, *, rng: Rng = None) -> Watched:
        self.graph = graph
        self.seen.append(("fit", graph.labels))
        self.seen.append(("seed", generator(rng).integers(2**60)))
        return self

    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]:
        self.seen.append(("sample", n))
        return (self.graph for _ in range(n))


@pytest.fixture(autouse=True)
def forget() -> None:
    Watched.seen.clear()


def of_kind(kind: str) -> list[Any]:
    return [value for name, value in Watched.seen if name == kind]


def test_algorithm_1() -> None:
    """The graph model sees a GCN's labels with the training labels kept; its samples train networks."""
    few: dict[str, Any] = {"epochs": 2, "learning_rate": 0.05}
    fitted = fit(BayesianGCN(Watched(), n_graphs=2, n_weight_samples=3, **few))
    base = GCN(**few).fit(GRAPH, SPLIT.train, rng=0)
    expected = base.predict_proba().argmax(axis=1)
    assert (expected[SPLIT.train] != np.array(GRAPH.labels)[SPLIT.train]).any()
    expected[SPLIT.train] = np.array(GRAPH.labels)[SPLIT.train]
    (labels,) = of_kind("fit")
    assert np.array_equal(labels, expected)
    assert of_kind("sample") == [2]
    networks = fitted.prediction_.networks
    assert networks is not None
    assert len(networks.keys) == len(set(networks.keys.tolist())) == 2
    assert networks.n_weight_samples == 3


def test_each_round_takes_the_labels_of_the_round_before() -> None:
    one = fit(BayesianGCN(Watched(), **FEW))
    fit(BayesianGCN(Watched(), **FEW, rounds=2))
    first, again, second = of_kind("fit")
    assert np.array_equal(first, again)
    expected = one.predict_proba().argmax(axis=1)
    expected[SPLIT.train] = np.array(GRAPH.labels)[SPLIT.train]
    assert np.array_equal(second, expected)


def test_the_online_schedule_samples_every_epoch() -> None:
    fitted = fit(BayesianGCN(Watched(), n_graphs=62, schedule="online", epochs=5))
    assert of_kind("sample") == [1] * 62
    networks = fitted.prediction_.networks
    assert networks is not None
    assert len(networks.keys) == 60  # the last sixty are averaged
    assert networks.n_weight_samples == 0


def test_a_graph_model_that_draws_in_fit_is_seeded() -> None:
    fit(BayesianGCN(Watched(), **FEW), rng=4)
    fit(BayesianGCN(Watched(), **FEW), rng=4)
    fit(BayesianGCN(Watched(), **FEW), rng=5)
    first, again, other = of_kind("seed")
    assert first == again != other


def test_any_graph_model_stands_in() -> None:
    model = NodeCopying(NearestNeighbours(5))
    found = fit(BayesianGCN(model, **FEW)).predict_proba()
    assert not np.array_equal(found, fit(BayesianGCN(**FEW)).predict_proba())
    assert not hasattr(model, "graph_")  # the one given stays unfitted


def test_a_graph_model_must_keep_the_nodes() -> None:
    class Smaller(Watched):
        def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]:
            return (self.graph.subgraph([0, 1]) for _ in range(n))

    with pytest.raises(InputError, match="must sample graphs with the observed nodes"):
        fit(BayesianGCN(Smaller(), **FEW))


@pytest.mark.parametrize("liked", [0, 1, 2, 3])
def test_validation_decides_the_number_of_rounds(monkeypatch: pytest.MonkeyPatch, liked: int) -> None:
    """Predictions are replaced such that only one round, perhaps none, pleases the validation nodes."""
    truth = np.eye(3, dtype=np.float32)[np.array(GRAPH.labels)]
    original = Problems.predictions
    made: list[Prediction] = []

    def predictions(self: Problems, networks: Any, n: int) -> list[Prediction]:
        (found,) = original(self, networks, n)
        p = truth.copy() if len(made) == liked else np.roll(truth, 1, axis=1)
        p[SPLIT.train], p[SPLIT.test] = np.roll(truth, 1, axis=1)[SPLIT.train], 1 / 3
        made.append(Prediction(p, found.mean_entropy, networks=found.networks))
        return [made[-1]]

    monkeypatch.setattr(Problems, "predictions", predictions)
    fitted = fit(BayesianGCN(**FEW, rounds="validation"))
    assert len(made) == 4
    assert fitted.prediction_.details == {"rounds": liked}
    assert np.array_equal(fitted.predict_proba(), made[liked].probabilities)
    assert fitted.prediction_.networks is made[liked].networks


def test_rounds_chosen_on_validation_are_one_of_the_fixed_numbers() -> None:
    chosen = fit(BayesianGCN(**FEW, rounds="validation"))
    rounds = chosen.prediction_.details["rounds"]
    base = GCN(epochs=15, learning_rate=0.05)
    fixed = fit(BayesianGCN(**FEW, rounds=rounds)) if rounds else base.fit(GRAPH, SPLIT.train, rng=0)
    assert np.array_equal(chosen.predict_proba(), fixed.predict_proba())


def test_averaging_over_samples_leaves_disagreement() -> None:
    assert fit(BayesianGCN(**FEW)).uncertainty().epistemic.mean() > 1e-3
    single = GCN(epochs=15).fit(GRAPH, SPLIT.train, rng=0)
    assert single.uncertainty().epistemic.max() < 1e-5


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_many_networks_are_the_same_some_at_a_time(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    trials = [Trial(GRAPH, SPLIT.train, SPLIT.validation, seed) for seed in range(3)]
    classifier = BayesianGCN(**FEW)
    together = classifier.fit_trials(trials)
    monkeypatch.setattr("nodecopy.classify.base.models_at_once", lambda *_: at_once)
    monkeypatch.setattr("nodecopy.classify.ensemble.models_at_once", lambda *_: at_once)
    for one, other in zip(together, classifier.fit_trials(trials), strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one.mean_entropy, other.mean_entropy, rtol=1e-5, atol=1e-6)


def test_directed_and_weighted_graphs() -> None:
    draw = np.random.default_rng(0)
    adjacency = GRAPH.adjacency.toarray() * draw.integers(0, 4, (60, 60))
    for directed in (False, True):
        graph = Graph(adjacency, GRAPH.features, GRAPH.labels, directed=directed)
        fitted = BayesianGCN(**FEW).fit(graph, SPLIT.train, rng=0)
        assert np.isfinite(fitted.predict_proba()).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_graphs": 0}, "n_graphs of BayesianGCN must be an integer of at least 1; got 0"),
        ({"n_weight_samples": 0}, "n_weight_samples of BayesianGCN"),
        ({"schedule": "later"}, "schedule of BayesianGCN must be one of 'retrain', 'online'; got 'later'"),
        ({"rounds": 0}, "rounds of BayesianGCN must be an integer of at least 1; got 0"),
        ({"rounds": "many"}, "rounds of BayesianGCN must be an integer or 'validation'; got 'many'"),
        ({"rounds": 2, "schedule": "online"}, "rounds of BayesianGCN must be 1 in the online schedule"),
        ({"graph_model": 3}, "graph_model of BayesianGCN must be a graph model such as NodeCopying.*got 3"),
        ({"base": "gnc"}, "base of BayesianGCN must be one of appnp, gcn; got 'gnc'. Did you mean gcn"),
        ({"base": "mlp"}, "base of BayesianGCN must be one of appnp, gcn; got 'mlp'"),
    ],
)
def test_wrong_parameters(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(BayesianGCN(**settings))


def test_rounds_by_validation_need_validation_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Problems, "trained", lambda *_: pytest.fail("trained"))
    with pytest.raises(InputError, match="decides the number of rounds"):
        BayesianGCN(rounds="validation").fit(GRAPH, SPLIT.train, rng=0)
    trials = [Trial(GRAPH, SPLIT.train, np.zeros(0, np.int64), 0)]
    with pytest.raises(InputError, match="decides the number of rounds"):
        BayesianGCN(rounds="validation").fit_trials(trials)

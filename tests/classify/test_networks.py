"""MLP, GCN, APPNP and DFNet: the contract, presets, scalings, and networks of many trials at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence

import nodecopy
from nodecopy import Graph
from nodecopy.classify import (
    APPNP,
    GCN,
    MLP,
    SBMGCN,
    BayesianGCN,
    Classifier,
    DFNet,
    LabelPropagation,
    SelfTraining,
    Trial,
)
from nodecopy.classify.base import ClassifierSeeds
from nodecopy.classify.networks import NetworkClassifier
from nodecopy.errors import InputError
from nodecopy.nn import engine, training
from nodecopy.nn.engine import Ensemble
from nodecopy.nn.networks import Networks, normalise_adjacency
from tests.classify.test_bayesian import Recording
from tests.contracts.classifiers import N_NODES, ClassifierContract, planted_graph
from tests.measurements import measured_graph

GRAPH = planted_graph()
SHORT = GCN(n_epochs=12)
FEW: dict[str, Any] = {"n_epochs": 12, "widths": (4, 4), "dropout": 0.5, "learning_rate": 0.02}
FEW |= {"features": "none"}  # as the authors; rounding errors of larger inputs are magnified more
CLASSIFIERS = {
    "gcn": GCN(n_epochs=25, learning_rate=0.05),
    "patience": GCN(preset="gnn-benchmark", n_epochs=40, patience=5),
    "rank": GCN(rank=10, n_epochs=25, learning_rate=0.05),
    "mlp": MLP(n_epochs=30, learning_rate=0.05),
    "appnp": APPNP(n_epochs=25, n_steps=4, learning_rate=0.05),
    "dfnet": DFNet(**FEW, patience=5),
}


class TestNetworks(ClassifierContract):
    classifiers = CLASSIFIERS


@pytest.mark.parametrize("kind", [MLP, GCN, APPNP])
def test_presets_of_papers_state_their_scalings(kind: type[NetworkClassifier]) -> None:
    """The experiments name these presets, so that they do not depend on what is chosen for users."""
    stated = {name: (config.features, config.weights) for name, config in kind.presets.items()}
    published = {"kipf": ("rows", "raw"), "gnn-benchmark": ("binary", "raw")}
    published |= {"g3nn": ("rows", "raw")} if kind is GCN else {}
    assert stated == published | {"default": ("auto", "auto")}


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (GCN(preset="kip"), "preset of GCN must be one of .*; got 'kip'. Did"),
        (
            GCN(preset="gnn-benchmark"),
            "since training stops by the loss on its nodes. Networks with patience=0",
        ),
        (DFNet(patience=5), "validation must be given, since training stops by the loss"),
    ],
)
def test_wrong_parameters(classifier: Classifier, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classifier.fit(GRAPH, [0, 1, 2])


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([], "trials must hold at least one trial; got none"),
        ([GRAPH, GRAPH.replace(features=np.ones((N_NODES, 2)))], "share their features and labels"),
        ([GRAPH, GRAPH.replace(labels=np.arange(1, N_NODES + 1) % 3)], "share their features and labels"),
        ([GRAPH.replace(features=None)], r"this one has none\. LabelPropagation needs"),
    ],
)
def test_wrong_trials(trials: list[Graph], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GCN().fit_trials([Trial(graph, np.arange(3), np.arange(3, 9), 0) for graph in trials])


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
@pytest.mark.parametrize("seed", [0, 1])
def test_measurements_are_not_scaled_like_words(seed: int) -> None:
    """By rows of raw features, which was the default, GCN and APPNP did little better than chance (25 %)."""
    graph = measured_graph(seed=seed)
    train = np.concatenate([np.flatnonzero(graph.label_codes == code)[:10] for code in range(4)])

    def accuracy(classifier: Classifier) -> float:
        return classifier.fit(graph, train, rng=0).score()

    for kind in (GCN, APPNP):
        standardised = accuracy(kind(features="standardise", weights="raw"))
        by_rows, default = accuracy(kind(preset="kipf")), accuracy(kind())
        assert by_rows < 0.4 < 0.55 < standardised < default - 0.1
        assert default > 0.85
    assert accuracy(BayesianGCN(n_graphs=3)) > 0.85


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_the_default_of_word_counts_is_that_of_kipf_and_welling_but_for_scaling_and_decay() -> None:
    words = (np.random.default_rng(0).random((60, 30)) < 0.1).astype(float)
    graph = planted_graph().replace(features=words)
    changes: dict[str, Any] = {"preset": "kipf", "features": "unit", "weight_decay": 0.005}
    for classifier in (GCN, MLP, APPNP):
        default, changed = (
            built.fit(graph, [0, 1, 2], rng=0).predict_proba()
            for built in (classifier(n_epochs=5), classifier(n_epochs=5, bias=classifier is GCN, **changes))
        )
        np.testing.assert_array_equal(default, changed)


@pytest.mark.parametrize("classifier", [GCN(n_epochs=20), BayesianGCN(n_graphs=2, n_weight_samples=2)])
def test_other_graphs_are_scaled_as_the_observed_one(classifier: Classifier, tmp_path: Path) -> None:
    """Nodes that are more than two hops away from a changed one keep their predictions."""
    graph = measured_graph(120)
    classifier.fit(graph, np.arange(40), rng=0)
    np.testing.assert_allclose(classifier.predict_proba(graph), classifier.predict_proba(), atol=1e-6)
    classifier.save(tmp_path / "fitted.npz")
    loaded = nodecopy.load(tmp_path / "fitted.npz")
    features = np.array(graph.features)
    features[-1] = 1e9
    larger = graph.replace(features=features)
    np.testing.assert_array_equal(loaded.predict_proba(larger), classifier.predict_proba(larger))
    reached = graph.adjacency[[119]] + graph.adjacency[[119]] @ graph.adjacency
    far = np.setdiff1d(np.arange(119), reached.indices)
    np.testing.assert_allclose(loaded.predict_proba(larger)[far], classifier.predict_proba()[far], atol=1e-6)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_without_propagation_it_is_a_perceptron() -> None:
    graph = planted_graph()
    perceptron = MLP(n_hidden=64, weight_decay=5e-3, n_epochs=10).fit(graph, [0, 1, 2], rng=0)
    for parameters in ({"n_steps": 0}, {"teleport": 1.0}):
        fitted = APPNP(n_epochs=10).set_params(**parameters).fit(graph, [0, 1, 2], rng=0)
        np.testing.assert_allclose(fitted.predict_proba(), perceptron.predict_proba(), atol=1e-5)


def test_training_on_two_hops_is_training_on_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout, whose masks number other entries in the smaller graph."""
    classifier = GCN(n_epochs=20, dropout=0, bias=True)
    two_hops = classifier.fit(GRAPH, [0, 4, 8], rng=0).predict_proba()
    monkeypatch.setattr(engine, "cut_out_two_hops", lambda graph, _: (normalise_adjacency(graph), None))
    whole = classifier.fit(GRAPH, [0, 4, 8], rng=0).predict_proba()
    np.testing.assert_allclose(two_hops, whole, atol=1e-5)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    "classifier",
    [
        SHORT,
        MLP(n_epochs=12),
        APPNP(n_epochs=12),
        BayesianGCN(n_graphs=2, n_weight_samples=2, base=SHORT),
        SelfTraining(SHORT, 2),
        SBMGCN(base=SHORT),
        LabelPropagation(),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_digits_do_not_depend_on_the_other_trials(classifier: Classifier, n_threads: int) -> None:
    """On a CPU, where compiled code trains one network at a time."""
    trials = [Trial(GRAPH, np.arange(seed, seed + 6), np.arange(20, 30), seed) for seed in range(4)]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n_threads)
        (alone,) = classifier.fit_trials(trials[:1])
        for others in ([3, 0], [2, 0, 1], [0, 1, 2, 3]):
            together = classifier.fit_trials([trials[number] for number in others])
            assert np.array_equal(together[others.index(0)].probabilities, alone.probabilities)
    finally:
        torch.set_num_threads(before)


def test_many_trials_are_trained_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = DFNet(n_epochs=12, widths=(4, 4), dropout=0.5, learning_rate=0.02)
    trials = [Trial(GRAPH, np.arange(3), np.arange(3, 9), seed) for seed in range(5)]
    pairs = [prediction for k in (0, 2, 4) for prediction in classifier.fit_trials(trials[k : k + 2])]
    monkeypatch.setitem(engine.MAX_ACTIVATIONS, "cpu", 2 * 8 * 4 * (2 * 60 + 12))
    sizes: list[int] = []

    def count(networks: Networks, *arguments: Any) -> None:
        sizes.append(len(networks.weights[0]))
        train(networks, *arguments)

    train = training.train
    monkeypatch.setattr(engine, "train", count)
    together = classifier.fit_trials(trials)
    assert sorted(sizes) == [1, 2, 2]
    for prediction, expected in zip(together, pairs, strict=True):
        np.testing.assert_allclose(prediction.probabilities, expected.probabilities, atol=1e-3)


def test_an_ensemble_is_the_mean_of_its_networks() -> None:
    classifier = BayesianGCN(n_graphs=3, n_weight_samples=1, base=GCN(n_epochs=5))
    (prediction,) = classifier.fit_trials([Trial(GRAPH, [0, 1, 2], rng=0)], keep_networks=True)
    networks = prediction.networks
    assert isinstance(networks, Ensemble)
    singles = [
        replace(
            networks, weights=tuple(w[k : k + 1] for w in networks.weights), keys=networks.keys[k : k + 1]
        )
        for k in range(3)
    ]
    mean = np.mean([single.predict(GRAPH, "cpu")[0] for single in singles], axis=0)
    np.testing.assert_allclose(prediction.probabilities, mean, atol=1e-6)


def record(monkeypatch: pytest.MonkeyPatch, classifier: Classifier) -> list[tuple[str, tuple[int, ...]]]:
    """Fit a classifier and return the purpose and the key of every seed that it uses."""
    Recording.calls.clear()
    initialise = Networks.initialise.__func__  # type: ignore[attr-defined]

    def initialise_and_record(
        cls: type[Networks], config: Any, features: Any, n_classes: int, seeds: Sequence[SeedSequence]
    ) -> Any:
        Recording.calls.extend((f"network with {config.propagation}", seed.spawn_key) for seed in seeds)
        return initialise(cls, config, features, n_classes, seeds)

    monkeypatch.setattr(Networks, "initialise", classmethod(initialise_and_record))
    classifier.fit(planted_graph(), range(9), validation=range(9, 20), rng=0)
    return [(purpose, key) for purpose, key in Recording.calls if purpose != "fit"]


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
@pytest.mark.parametrize(
    ("classifier", "n_seeds"),
    [
        (MLP(n_epochs=1), 1),
        (GCN(n_epochs=1), 1),
        (APPNP(n_epochs=1), 1),
        (DFNet(widths=(2,), n_epochs=1), 1),
        (SBMGCN(base=GCN(preset="g3nn", n_epochs=1)), 2),
        (BayesianGCN(Recording(), 2, 1, n_rounds=12, base=GCN(n_epochs=1)), 1 + 12 * (2 + 1 + 2)),
    ],
    ids=["mlp", "gcn", "appnp", "dfnet", "sbm-gcn", "bayesian-rounds"],
)
def test_purposes_of_seeds(monkeypatch: pytest.MonkeyPatch, classifier: Classifier, n_seeds: int) -> None:
    used = record(monkeypatch, classifier)
    keys = [key for _, key in used]
    assert len(keys) == len(set(keys)) == n_seeds
    subtrees: dict[int, set[str]] = {}
    for purpose, key in used:
        subtrees.setdefault(key[0], set()).add(purpose)
    assert all(len(purposes) == 1 for purposes in subtrees.values())


def test_the_numbers_of_stored_results_stay() -> None:
    numbers = {seed.name: seed.value for seed in ClassifierSeeds}
    assert numbers == {
        "NETWORKS": 0,
        "LABEL_PRIOR": 1,
        "GRAPHS": 1000,
        "SELF_TRAINING": 3000,
        "GRAPH_MODEL": 10**6,
    }

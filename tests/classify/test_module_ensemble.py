"""Modules that are trained for trials, and predict again with their weights and dropout masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy._core.parallel import report_progress
from nodecopy.classify import Trial
from nodecopy.classify.base import ClassifierSeeds
from nodecopy.classify.own_networks import ModuleBatch, ModuleEnsemble, average_modules
from nodecopy.datasets import label_split
from nodecopy.nn.modules import ModuleNetwork
from nodecopy.nn.networks import TrainingConfig
from tests.contracts.classifiers import other_edges, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()
SPLIT = label_split(GRAPH.labels, 3, validation=15, test=30, rng=0)
RECIPE = TrainingConfig(n_epochs=10, learning_rate=0.05)


def build(n_features: int, n_classes: int) -> Any:
    return pyg.GCN(n_features, 8, 2, n_classes, dropout=0.5, norm="batch_norm")


def build_batch(n_trials: int = 2) -> ModuleBatch:
    trials = [Trial(GRAPH, SPLIT.train, SPLIT.validation, seed) for seed in range(n_trials)]
    return ModuleBatch(trials, RECIPE, "cpu", build, keep_networks=True)


def test_each_trial_has_its_own_modules_and_seeds() -> None:
    batch = build_batch()
    graphs = [GRAPH.adjacency, other_edges(GRAPH).adjacency] * 2
    trained = batch.train(graphs, batch.seeds(ClassifierSeeds.NETWORKS, 2))
    assert len({seed for _, seed in trained}) == 4
    predictions = batch.predict(trained, 3)
    edges = trained[0].network.edges(GRAPH)
    x = trained[0].network.dense_tensor(batch.features)
    second = average_modules(trained[2:], x, edges, 3)
    assert np.array_equal(predictions[1].probabilities, second.probabilities)
    (alone,) = (part := build_batch(1)).predict(
        part.train(graphs[:2], part.seeds(ClassifierSeeds.NETWORKS, 2)), 3
    )
    assert np.array_equal(alone.probabilities, predictions[0].probabilities)


def test_progress_is_reported() -> None:
    seen: list[str] = []
    batch = build_batch()
    with report_progress(lambda what, *_: seen.append(what)):
        batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS))
    assert seen[0] == "training network 1 of 2"


def test_kept_modules_predict_the_same_with_their_masks_and_running_statistics() -> None:
    batch = build_batch(1)
    (prediction,) = batch.predict(batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS)), 4)
    kept = prediction.networks
    assert isinstance(kept, ModuleEnsemble)
    assert any(name.endswith("running_mean") for name in kept.weights[0])
    again = kept.predict(GRAPH, "cpu")
    np.testing.assert_allclose(again.probabilities, prediction.probabilities, atol=1e-6)
    np.testing.assert_allclose(again.mean_entropy, prediction.mean_entropy, atol=1e-6)


def test_the_mean_entropy_is_that_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = torch.tensor([[[1.0, 0.0]], [[0.5, 0.5]]])
    monkeypatch.setattr(ModuleNetwork, "sample_probabilities", lambda *_: list(samples))
    batch = build_batch(1)
    trained = batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS))
    prediction = average_modules(trained, torch.zeros(1, 1), (torch.zeros(2, 0), None), 2)
    assert prediction.probabilities.tolist() == [[0.75, 0.25]]
    np.testing.assert_allclose(prediction.mean_entropy, np.log(2) / 2, rtol=1e-6)


def test_half_precision_is_kept_in_single_precision() -> None:
    def build_half(n_features: int, n_classes: int) -> Any:
        return pyg.GCNConv(n_features, n_classes).bfloat16()

    batch = ModuleBatch([Trial(GRAPH, SPLIT.train, rng=0)], RECIPE, "cpu", build_half, keep_networks=True)
    (prediction,) = batch.predict(batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS)))
    kept = prediction.networks
    assert isinstance(kept, ModuleEnsemble)
    assert {value.dtype for value in kept.weights[0].values()} == {np.dtype(np.float32)}
    assert np.array_equal(kept.predict(GRAPH, "cpu").probabilities, prediction.probabilities)

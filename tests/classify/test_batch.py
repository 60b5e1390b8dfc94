from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

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
    ensemble,
)
from nodecopy.classify.batch import TrainingBatch
from nodecopy.errors import InputError
from nodecopy.nn.networks import Networks
from nodecopy.nn.stack import normalise_adjacency
from tests.contracts.classifiers import N_NODES, planted_graph

GRAPH = planted_graph()
SHORT = GCN(n_epochs=12)


@pytest.mark.parametrize(
    "changes",
    [{"features": np.ones((N_NODES, 2))}, {"labels": np.arange(1, N_NODES + 1) % 3}],
    ids=["features", "labels"],
)
def test_trials_share_features_and_labels(changes: dict[str, Any]) -> None:
    trials = [Trial(graph, np.arange(3), np.arange(3, 9), 0) for graph in (GRAPH, GRAPH.replace(**changes))]
    with pytest.raises(InputError, match="trials that run together must share their features and labels"):
        GCN().fit_trials(trials)


def test_there_is_at_least_one_trial() -> None:
    with pytest.raises(InputError, match="trials must hold at least one trial; got none"):
        GCN().fit_trials([])


def test_training_on_two_hops_is_training_on_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout, whose masks number other entries in the smaller graph."""
    classifier = GCN(n_epochs=20, dropout=0, bias=True)
    two_hops = classifier.fit(GRAPH, [0, 4, 8], rng=0).predict_proba()

    def keep_all(self: TrainingBatch, graphs: Any, *_: Any) -> Any:
        return [*map(normalise_adjacency, graphs)], [self.features] * len(graphs)

    monkeypatch.setattr(TrainingBatch, "_cut_out", keep_all)
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
    monkeypatch.setitem(ensemble.MAX_ACTIVATIONS, "cpu", 2 * 8 * 4 * (2 * 60 + 12))
    sizes: list[int] = []
    train_part = TrainingBatch._train_part

    def count(self: TrainingBatch, adjacencies: Any, seeds: Any, models: range, **others: Any) -> Networks:
        sizes.append(len(models))
        return train_part(self, adjacencies, seeds, models, **others)

    monkeypatch.setattr(TrainingBatch, "_train_part", count)
    together = classifier.fit_trials(trials)
    assert sizes == [2, 2, 1]
    for prediction, expected in zip(together, pairs, strict=True):
        assert np.array_equal(prediction.probabilities, expected.probabilities)


def test_parts_of_a_stack_are_trained_on_threads_of_their_own() -> None:
    trials = [Trial(GRAPH, np.arange(3), rng=seed) for seed in range(5)]
    n_threads = torch.get_num_threads()
    predictions = []
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            predictions.append(GCN(n_epochs=12).fit_trials(trials))
    finally:
        torch.set_num_threads(n_threads)
    for one, several in zip(*predictions, strict=True):
        assert np.allclose(one.probabilities, several.probabilities, atol=1e-6)


def test_errors_have_a_way_out() -> None:
    with pytest.raises(InputError, match=r"by the loss on its nodes\. patience=0 trains for all"):
        GCN(patience=5).fit(GRAPH, [0, 1, 2])
    with pytest.raises(InputError, match=r"this one has none\. LabelPropagation needs"):
        GCN().fit(GRAPH.replace(features=None), [0, 1, 2])

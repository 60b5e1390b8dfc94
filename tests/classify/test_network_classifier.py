from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy.classify import APPNP, GCN, MLP, Classifier, NetworkClassifier
from nodecopy.errors import InputError
from nodecopy.nn.networks import Recipe
from tests.contracts.classifiers import ClassifierContract, other_edges, planted_graph


def test_parameters_are_the_fields_of_a_recipe() -> None:
    of_recipe = {field.name for field in fields(Recipe)} - {"propagation"}
    names = {name for kind in (MLP, GCN, APPNP) for name in kind.parameter_names()}
    assert names == of_recipe | {"preset", "device"}


@pytest.mark.parametrize("kind", [MLP, GCN, APPNP])
def test_parameters_replace_those_of_the_preset(kind: type[NetworkClassifier]) -> None:
    changed = kind(preset="gnn-benchmark", n_hidden=3, patience=0, dropout=0.0).build_recipe()
    assert (changed.n_hidden, changed.patience, changed.dropout) == (3, 0, 0.0)
    assert (changed.n_epochs, changed.features) == (2000, "binary")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "abacus"}, "device must be"),
        (
            {"preset": "kip"},
            "preset of GCN must be one of g3nn, gnn-benchmark, kipf; got 'kip'. Did",
        ),
        ({"n_hidden": 0}, "n_hidden must be an integer of at least 1; got 0"),
        ({"patience": -1}, "patience must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GCN(**parameters).fit(planted_graph(), [0, 1, 2])


def test_sparse_and_dense_features_give_the_same_prediction() -> None:
    graph = planted_graph()
    packed_features = sparse.csr_array(np.asarray(graph.features))
    dense = GCN(n_epochs=5).fit(graph, [0, 1, 2], rng=0)
    packed = GCN(n_epochs=5).fit(graph.replace(features=packed_features), [0, 1, 2], rng=0)
    assert np.array_equal(dense.predict_proba(), packed.predict_proba())


def test_a_perceptron_without_bias_cannot_classify_a_node_without_features() -> None:
    graph = planted_graph()
    assert not np.asarray(graph.features)[7].any()
    perceptron = MLP(n_epochs=5).fit(graph, [0, 1, 2], rng=0).predict_proba()
    np.testing.assert_allclose(perceptron[7], 1 / 3, atol=1e-6)
    convolution = GCN(n_epochs=5).fit(graph, [0, 1, 2], rng=0).predict_proba()
    assert convolution[7].max() > 0.334  # it sees its neighbours' features


def test_patience_needs_validation_nodes() -> None:
    nothing: list[Any] = [None, []]
    for validation in nothing:
        with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
            GCN(preset="gnn-benchmark").fit(planted_graph(), [0, 1, 2], validation=validation, rng=0)


def test_a_missing_gpu_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match="this machine has no CUDA devices"):
        GCN(device="cuda").fit(planted_graph(), [0, 1, 2], rng=0)


class TestMLP(ClassifierContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return MLP(n_epochs=30, learning_rate=0.05)


def test_edges_are_ignored() -> None:
    graph = planted_graph()
    first, second = (MLP(n_epochs=5).fit(g, [0, 1, 2], rng=0) for g in (graph, other_edges(graph)))
    assert np.array_equal(first.predict_proba(), second.predict_proba())


CLASSIFIERS = {
    "plain": GCN(n_epochs=25, learning_rate=0.05),
    "drop-edges": GCN(n_epochs=25, learning_rate=0.05, drop_edges=0.2),
    "patience": GCN(preset="gnn-benchmark", n_epochs=40, patience=5),
    "rank": GCN(rank=10, n_epochs=25, learning_rate=0.05),
}


class TestGCN(ClassifierContract):
    @pytest.fixture(scope="class", params=CLASSIFIERS)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return CLASSIFIERS[request.param]


def test_presets() -> None:
    kipf, benchmark, g3nn = (
        GCN(preset=preset).build_recipe() for preset in ("kipf", "gnn-benchmark", "g3nn")
    )
    assert (kipf.n_hidden, kipf.n_epochs, kipf.patience, kipf.features) == (16, 200, 0, "rows")
    assert (benchmark.n_hidden, benchmark.patience, benchmark.features) == (64, 50, "binary")
    assert (g3nn.patience, g3nn.drop_input, g3nn.decay_all) == (200, False, True)
    assert {recipe.propagation for recipe in (kipf, benchmark, g3nn)} == {"convolution"}


class TestAPPNP(ClassifierContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return APPNP(n_epochs=25, n_steps=4, learning_rate=0.05)


def test_without_propagation_it_is_a_perceptron() -> None:
    graph = planted_graph()
    perceptron = MLP(n_hidden=64, weight_decay=5e-3, n_epochs=10).fit(graph, [0, 1, 2], rng=0)
    for parameters in ({"n_steps": 0}, {"teleport": 1.0}):
        fitted = APPNP(n_epochs=10).set_params(**parameters).fit(graph, [0, 1, 2], rng=0)
        np.testing.assert_allclose(fitted.predict_proba(), perceptron.predict_proba(), atol=1e-5)

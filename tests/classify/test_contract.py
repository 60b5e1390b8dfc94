from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy import Graph
from nodecopy.classify import APPNP, GCN, MLP, BayesianGCN, Classifier
from nodecopy.errors import InputError
from tests.contracts.classifiers import CLASSES, ClassifierContract, planted_graph

FEW: dict[str, Any] = {"n_graphs": 2, "n_weight_samples": 2, "epochs": 25, "learning_rate": 0.05}
CLASSIFIERS: dict[str, Classifier] = {
    "mlp": MLP(epochs=30, learning_rate=0.05),
    "gcn": GCN(epochs=25, learning_rate=0.05),
    "gcn-drop-edges": GCN(epochs=25, learning_rate=0.05, drop_edges=0.2),
    "gcn-patience": GCN(preset="gnn-benchmark", epochs=40, patience=5),
    "appnp": APPNP(epochs=25, steps=4, learning_rate=0.05),
    "bayesian": BayesianGCN(**FEW),
    "bayesian-appnp": BayesianGCN(**FEW, base="appnp", steps=4),
    "bayesian-validation": BayesianGCN(**FEW, rounds="validation"),
    "bayesian-online": BayesianGCN(n_graphs=4, schedule="online", epochs=25, learning_rate=0.05),
}


class TestClassifiers(ClassifierContract):
    @pytest.fixture(scope="class", params=CLASSIFIERS)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return CLASSIFIERS[request.param]


def test_whole_numbers_as_labels_come_back() -> None:
    graph = planted_graph(strings=False)
    labels = np.array([4, 9, 2])[np.array(graph.labels)]
    fitted = GCN(epochs=5).fit(graph.replace(labels=labels), [0, 1, 2], rng=0)
    assert fitted.classes_.tolist() == [2, 4, 9]
    assert set(fitted.predict().tolist()) <= {2, 4, 9}


def test_names_do_not_change_the_result() -> None:
    named, plain = (planted_graph(strings=strings) for strings in (True, False))
    found = [GCN(epochs=5).fit(graph, [0, 1, 2], rng=0) for graph in (named, plain)]
    assert np.array_equal(found[0].predict_proba(), found[1].predict_proba())
    assert found[0].predict().tolist() == [CLASSES[code] for code in found[1].predict()]


def test_sparse_and_dense_features_are_one() -> None:
    graph = planted_graph()
    packed_features = sparse.csr_array(np.asarray(graph.features))
    dense = GCN(epochs=5).fit(graph, [0, 1, 2], rng=0)
    packed = GCN(epochs=5).fit(graph.replace(features=packed_features), [0, 1, 2], rng=0)
    assert np.array_equal(dense.predict_proba(), packed.predict_proba())


def test_a_node_without_features_is_predicted_all_the_same() -> None:
    graph = planted_graph()
    assert not np.asarray(graph.features)[7].any()
    for classifier in (MLP(epochs=5), GCN(epochs=5)):
        assert np.isfinite(classifier.fit(graph, [0, 1, 2], rng=0).predict_proba()[7]).all()


def test_features_that_are_no_numbers_make_no_graph() -> None:
    features = np.ones((2, 3))
    features[1, 1] = np.nan
    with pytest.raises(InputError, match="features must hold finite numbers; got nan"):
        Graph(np.zeros((2, 2)), features)


def test_patience_needs_validation_nodes() -> None:
    nothing: list[Any] = [None, []]
    for validation in nothing:
        with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
            GCN(preset="gnn-benchmark").fit(planted_graph(), [0, 1, 2], validation=validation, rng=0)


def test_no_gpu_no_silent_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match="this machine has no CUDA devices"):
        GCN(device="cuda").fit(planted_graph(), [0, 1, 2], rng=0)


def test_training_on_what_convolutions_reach_is_training_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout, whose masks number other entries in the smaller graph."""
    from nodecopy.classify.base import Problems
    from nodecopy.nn.stack import normalised

    graph = planted_graph()
    few = GCN(epochs=20, dropout=0, bias=True).fit(graph, [0, 4, 8], rng=0).predict_proba()
    uncut = lambda self, graphs, *_: ([*map(normalised, graphs)], [self.features] * len(graphs))  # noqa: E731
    monkeypatch.setattr(Problems, "_reached", uncut)
    whole = GCN(epochs=20, dropout=0, bias=True).fit(graph, [0, 4, 8], rng=0).predict_proba()
    np.testing.assert_allclose(few, whole, atol=1e-5)

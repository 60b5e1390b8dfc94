from __future__ import annotations

import numpy as np
import pytest

from nodecopy.classify import GCN, MLP, Classifier
from tests.contracts.classifiers import ClassifierContract, other_edges, planted_graph


class TestMLP(ClassifierContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return MLP(n_epochs=30, learning_rate=0.05)


def test_edges_are_ignored() -> None:
    graph = planted_graph()
    first, second = (MLP(n_epochs=5).fit(g, [0, 1, 2], rng=0) for g in (graph, other_edges(graph)))
    assert np.array_equal(first.predict_proba(), second.predict_proba())


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_a_perceptron_without_bias_cannot_classify_a_node_without_features() -> None:
    graph = planted_graph()
    assert not np.asarray(graph.features)[7].any()
    perceptron = MLP(n_epochs=5).fit(graph, [0, 1, 2], rng=0).predict_proba()
    np.testing.assert_allclose(perceptron[7], 1 / 3, atol=1e-6)
    convolution = GCN(n_epochs=5).fit(graph, [0, 1, 2], rng=0).predict_proba()
    assert convolution[7].max() > 0.334  # it sees its neighbours' features

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.classify import APPNP, MLP, Classifier
from tests.contracts.classifiers import ClassifierContract, planted_graph


class TestAPPNP(ClassifierContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return APPNP(n_epochs=25, n_steps=4, learning_rate=0.05)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_without_propagation_it_is_a_perceptron() -> None:
    graph = planted_graph()
    perceptron = MLP(n_hidden=64, weight_decay=5e-3, n_epochs=10).fit(graph, [0, 1, 2], rng=0)
    for parameters in ({"n_steps": 0}, {"teleport": 1.0}):
        fitted = APPNP(n_epochs=10).set_params(**parameters).fit(graph, [0, 1, 2], rng=0)
        np.testing.assert_allclose(fitted.predict_proba(), perceptron.predict_proba(), atol=1e-5)

"""The input and the result of corrections."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy.classify import GCN
from nodecopy.defend import AttackedState, Correction
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()


def _state(classifier: Any, networks: Any) -> AttackedState:
    probabilities = np.full((GRAPH.n_nodes, 3), 1 / 3, np.float32)
    return AttackedState(GRAPH, probabilities, classifier, networks, SeedSequence(0), GRAPH)


def test_a_correction_returns_the_rows_of_the_nodes_without_details() -> None:
    correction = Correction(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    assert correction.predict_proba(np.array([2, 0])).tolist() == [[0.5, 0.5], [0.9, 0.1]]
    assert correction.details(np.array([2, 0])) == {}


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_a_state_predicts_other_graphs_with_the_trained_networks() -> None:
    gcn = GCN(n_epochs=5).fit(GRAPH, range(9), rng=0)
    features: Any = GRAPH.features
    other = GRAPH.replace(features=2 * features)
    predictions = _state(GCN(), gcn.check_fitted().networks).predict(other)
    np.testing.assert_array_equal(predictions, gcn.prediction_on(other).probabilities)


def test_a_state_needs_a_classifier_that_predicts() -> None:
    with pytest.raises(InputError, match=r"classifier must have predict_proba\(graph\); got object"):
        _state(object(), None).predict(GRAPH)

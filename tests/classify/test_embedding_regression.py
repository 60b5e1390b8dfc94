from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy.classify import DGI, SGC, Classifier
from nodecopy.classify.regressions import EmbeddingRegression
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph


def train(classifier: Classifier) -> EmbeddingRegression:
    networks = classifier.fit(planted_graph(), [0, 1, 2]).prediction_.networks
    assert isinstance(networks, EmbeddingRegression)
    return networks


@pytest.mark.parametrize("classifier", [SGC(), SGC(rank=2), DGI(4, n_epochs=2)], ids=repr)
def test_it_predicts_again_what_was_predicted(classifier: Classifier) -> None:
    regression = train(classifier)
    regression.check(3)
    again = regression.predict(planted_graph(), "cpu").probabilities
    np.testing.assert_allclose(again, classifier.predict_proba(), atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coefficients": np.zeros((2, 3))}, "coefficients must be floats of shape"),
        ({"intercepts": np.zeros(3, int)}, "intercepts must be floats of shape"),
        ({"intercepts": np.full(3, np.inf)}, "intercepts must hold finite numbers"),
        ({"embedding": "none"}, "embedding of the regression must embed; got str"),
    ],
)
def test_damaged_parts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(train(SGC()), **changes).check(3)


def test_graphs_with_other_features_are_refused() -> None:
    graph = planted_graph()
    assert graph.features is not None
    wider = graph.replace(features=np.ones((graph.n_nodes, graph.features.shape[1] + 1)))
    with pytest.raises(InputError, match=r"features of the graph must have .* columns, as in fit"):
        train(SGC()).predict(wider, "cpu")

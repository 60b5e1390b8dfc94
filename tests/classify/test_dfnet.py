from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import Classifier, DFNet
from nodecopy.errors import InputError
from tests.contracts.classifiers import ClassifierContract, planted_graph

FEW: dict[str, Any] = {"n_epochs": 12, "widths": (4, 4), "dropout": 0.5, "learning_rate": 0.02}
FEW |= {"features": "none"}  # as the authors; rounding errors of larger inputs are magnified more


class TestDFNet(ClassifierContract):
    @pytest.fixture(scope="class", params=[True, False])
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        parameters = {**FEW, "n_heads": 2} if request.param else {**FEW, "patience": 5}
        return DFNet(request.param, **parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "abacus"}, "device must be"),
        ({"widths": (0,)}, "widths of DFNet must be an integer of at least 1; got 0"),
        ({"attention": True, "n_heads": 0}, "n_heads of DFNet must be an integer of at least 1; got 0"),
        ({"attention": False, "n_heads": 2}, "n_heads of DFNet must be left out without attention; got 2"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DFNet(**parameters).fit(planted_graph(), [0, 1, 2])


def test_early_stopping_needs_validation_nodes() -> None:
    with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
        DFNet(patience=5).fit(planted_graph(), [0, 1, 2], rng=0)


def test_without_edges_equal_features_have_equal_predictions() -> None:
    graph = planted_graph().replace(adjacency=np.zeros((60, 60)))
    features = np.array(graph.features)
    features[10] = features[11]
    p = DFNet(**FEW).fit(graph.replace(features=features), [0, 1, 2], rng=0).predict_proba()
    np.testing.assert_allclose(p[10], p[11], atol=1e-5)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.nn.networks import TrainingConfig, add_identity_features, fit_feature_scaling


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))], ids=["none", "no columns"])
def test_a_graph_without_features_gets_the_identity(features: Any) -> None:
    graph = Graph(np.eye(3, k=1), features, node_ids=["a", "b", "c"])
    identity: Any = add_identity_features(graph).features
    assert identity.toarray().tolist() == np.eye(3).tolist()
    assert add_identity_features(graph).replace(features=features) == graph


def test_features_are_kept() -> None:
    graph = Graph(np.eye(3, k=1), np.ones((3, 2)))
    assert add_identity_features(graph) is graph


def test_features_are_scaled_as_the_recipe_says() -> None:
    graph = Graph(np.eye(3, k=1), [[1, 3], [0, 0], [2, 2]])
    default, unscaled = (
        fit_feature_scaling(graph, recipe).apply(graph.features).toarray().tolist()
        for recipe in (TrainingConfig(), TrainingConfig(features="none"))
    )
    assert default == [[0.25, 0.75], [0, 0], [0.5, 0.5]]
    assert unscaled == [[1, 3], [0, 0], [2, 2]]


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))], ids=["none", "no columns"])
def test_features_are_needed(features: Any) -> None:
    with pytest.raises(InputError, match=r"must have .*feature"):
        fit_feature_scaling(Graph(np.eye(3, k=1), features), TrainingConfig())

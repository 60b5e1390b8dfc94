from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.nn.feature_matrices import add_identity_features, scale_features
from nodecopy.nn.networks import Recipe


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))], ids=["none", "no columns"])
def test_a_graph_without_features_gets_the_identity(features: Any) -> None:
    graph = Graph(np.eye(3, k=1), features, node_ids=["a", "b", "c"])
    identity: Any = add_identity_features(graph).features
    assert identity.toarray().tolist() == np.eye(3).tolist()
    assert add_identity_features(graph).replace(features=features) == graph


def test_features_are_kept() -> None:
    graph = Graph(np.eye(3, k=1), np.ones((3, 2)))
    assert add_identity_features(graph) is graph


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", [[1, 0, 3], [0, 0, 0], [-2, 2, 0]]),
        ("binary", [[1, 0, 1], [0, 0, 0], [1, 1, 0]]),
        ("rows", [[0.25, 0, 0.75], [0, 0, 0], [-0.5, 0.5, 0]]),
    ],
)
def test_scaled_features(kind: str, expected: Any) -> None:
    features = np.array([[1.0, 0, 3], [0, 0, 0], [-2, 2, 0]])
    scaled = scale_features(features, Recipe(features=kind))
    assert scaled.dtype == np.float32
    assert scaled.toarray().tolist() == expected

"""Features as networks take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.nn.features import add_identity_features


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))], ids=["none", "no columns"])
def test_a_graph_without_features_gets_the_identity(features: Any) -> None:
    graph = Graph(np.eye(3, k=1), features, node_ids=["a", "b", "c"])
    found: Any = add_identity_features(graph).features
    assert found.toarray().tolist() == np.eye(3).tolist()
    assert add_identity_features(graph).replace(features=features) == graph


def test_features_stay() -> None:
    graph = Graph(np.eye(3, k=1), np.ones((3, 2)))
    assert add_identity_features(graph) is graph

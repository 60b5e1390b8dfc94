from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Balanced, Graph, GraphModel, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
from tests.contracts.graph_models import GraphModelContract, community_graph

RULES: list[Any] = [
    SameLabel(),
    NearestNeighbours(4),
    Jaccard(include_self=False),
    Balanced(NearestNeighbours(3, groups="labels", max_degree_ratio=3.0)),
    Weighted(1 / (1 + np.abs(np.subtract.outer(np.arange(20), np.arange(20))))),
]


def name_model(model: NodeCopying[Graph]) -> str:
    return f"{type(model.donors).__name__}-{model.keep}-{model.symmetrise}"


class Undirected(GraphModelContract):
    @pytest.fixture(
        scope="class",
        params=[NodeCopying(rule, symmetrise=name) for rule in RULES for name in ("maximum", "one-endpoint")]
        + [NodeCopying(SameLabel(), keep=0.4)],
        ids=name_model,
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model


class TestBinary(Undirected):
    pass


class TestWeighted(Undirected):
    @pytest.fixture(scope="class")
    @classmethod
    def observed(cls) -> Graph:
        return community_graph(weighted=True)


class TestDirected(GraphModelContract):
    @pytest.fixture(scope="class", params=[NodeCopying(rule) for rule in RULES], ids=name_model)
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model

    @pytest.fixture(scope="class", params=[False, True], ids=["binary", "weighted"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        return community_graph(directed=True, weighted=request.param)

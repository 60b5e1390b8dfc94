"""The contract of graph models for the generators that need no torch; the others are in tests/generators."""

from __future__ import annotations

from typing import Any

import pytest

from nodecopy import Graph, GraphModel
from nodecopy.generators import (
    MMSBM,
    SBM,
    BarabasiAlbert,
    BlockConfigurationModel,
    ChungLu,
    ConfigurationModel,
    DegreeCorrectedSBM,
    ErdosRenyi,
    RandomDotProduct,
)
from tests.contracts.graph_models import GraphModelContract, community_graph

MODELS: list[Any] = [
    SBM(),
    DegreeCorrectedSBM(),
    MMSBM(n_steps=3),
    MMSBM(n_steps=3, assignment="hard"),
    RandomDotProduct(2),
    ErdosRenyi(),
    ErdosRenyi(fixed_edges=True),
    ChungLu(),
    ConfigurationModel(),
    BlockConfigurationModel(),
    BarabasiAlbert(),
]


class TestGenerators(GraphModelContract):
    @pytest.fixture(scope="class", params=MODELS, ids=lambda model: type(model).__name__)
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model

    @pytest.fixture(scope="class", params=["undirected", "directed", "weighted", "unlabelled"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        graph = community_graph(directed=request.param == "directed", weighted=request.param == "weighted")
        return graph.replace(labels=None) if request.param == "unlabelled" else graph

"""The contract of graph models for the generators that need no torch; the others are in tests/generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy import Balanced, Graph, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
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

GRAPHS = {
    "undirected": community_graph(),
    "directed": community_graph(directed=True),
    "weighted": community_graph(weighted=True),
    "unlabelled": community_graph().replace(labels=None),
}


class TestGenerators(GraphModelContract):
    models = (
        SBM(),
        DegreeCorrectedSBM(),
        MMSBM(n_steps=3),
        RandomDotProduct(2),
        ErdosRenyi(),
        ErdosRenyi(fixed_edges=True),
        ChungLu(),
        ConfigurationModel(),
        BlockConfigurationModel(),
        BarabasiAlbert(),
    )
    graphs = GRAPHS


RULES: list[Any] = [
    SameLabel(),
    NearestNeighbours(4),
    Jaccard(include_self=False),
    Balanced(NearestNeighbours(3, groups="labels", max_degree_ratio=3.0)),
    Weighted(1 / (1 + np.abs(np.subtract.outer(np.arange(20), np.arange(20))))),
]


def name_models(*models: NodeCopying[Graph]) -> dict[str, NodeCopying[Graph]]:
    return {f"{type(model.donors).__name__}-{model.keep}-{model.symmetrise}": model for model in models}


class TestUndirected(GraphModelContract):
    models = name_models(
        *(NodeCopying(rule, symmetrise=name) for rule in RULES for name in ("maximum", "one-endpoint")),
        NodeCopying(SameLabel(), keep=0.4),
    )
    graphs = tuple(community_graph(weighted=weighted) for weighted in (False, True))


class TestDirected(GraphModelContract):
    models = name_models(*(NodeCopying(rule) for rule in RULES))
    graphs = tuple(community_graph(directed=True, weighted=weighted) for weighted in (False, True))

"""The contract of graph models for the generators that need no torch; the others are in tests/generators."""

from __future__ import annotations

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

"""The controls against direct computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import GCN
from nodecopy.defend import Defence, DonorAverage, WithoutEdges
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
DEFENCES: dict[str, Defence] = {
    "donor-average": DonorAverage(GCN(**QUICK), n_donors=4),
    "without-edges": WithoutEdges(GCN(**QUICK)),
}


class TestControls(DefenceContract):
    @pytest.fixture(scope="class", params=DEFENCES)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        return DEFENCES[request.param]


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


def test_average_of_the_donors_predictions(gcn: GCN) -> None:
    graph = planted_graph()
    average = DonorAverage(n_donors=3).from_classifier(gcn, graph)
    expected = gcn.predict_proba()[average.nearest_donors(SOME)].mean(axis=1)
    np.testing.assert_allclose(average.correct_proba(SOME), expected, atol=1e-6)


def test_prediction_without_edges(gcn: GCN) -> None:
    graph = planted_graph()
    without = WithoutEdges().from_classifier(gcn, graph)
    for node in SOME:
        adjacency = graph.adjacency.toarray()
        adjacency[node] = adjacency[:, node] = 0
        alone = gcn.predict_proba(graph.replace(adjacency=adjacency))[node]
        np.testing.assert_allclose(without.correct_proba([node])[0], alone, atol=1e-6)


def test_draws_are_uniform_among_donors(gcn: GCN) -> None:
    """4000 draws of two donors; 0.04 is five standard errors of the share of each."""
    graph = planted_graph()
    line = np.arange(60.0)[:, None]
    defence = DonorAverage(donors=line, n_donors=2, n_graphs=4000).from_classifier(gcn, graph, rng=3)
    first, second = gcn.predict_proba()[defence.nearest_donors([30])[0]]
    share = ((defence.correct_proba([30])[0] - second) / (first - second)).mean()
    assert abs(share - 0.5) < 0.04
    other = DonorAverage(donors=line, n_donors=2, n_graphs=4000).from_classifier(gcn, graph, rng=4)
    assert not np.array_equal(other.correct_proba([30]), defence.correct_proba([30]))


def test_error_names_the_control() -> None:
    with pytest.raises(InputError, match="n_donors of DonorAverage must be an integer between 1"):
        DonorAverage(n_donors=0).fit(planted_graph(), [0, 1, 2], rng=0)

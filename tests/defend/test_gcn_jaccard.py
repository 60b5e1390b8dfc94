"""GCN-Jaccard on a graph whose similarities are known."""

from __future__ import annotations

from typing import Any

import pytest

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import Defence, GCNJaccard
from nodecopy.defend.controls import jaccard_similarities
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestGCNJaccard(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return GCNJaccard(0.1, classifier=GCN(**QUICK))


def test_similarities_and_kept_edges() -> None:
    """Nodes with features {0, 1}, {1}, {2}, {} and {}: shares 1/2, 0 and, where there is nothing, 1."""
    graph = Graph.from_edges(
        [0, 1, 3, 2],
        [1, 2, 4, 3],
        features=[[1.0, 1, 0], [0, 5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],
        labels=[0, 1, 0, 1, 0],
    )
    first, second = graph.rows.row_numbers, graph.rows.indices
    shares = dict(
        zip(
            zip(first.tolist(), second.tolist(), strict=True),
            jaccard_similarities(graph).tolist(),
            strict=True,
        )
    )
    assert shares[0, 1] == shares[1, 0] == 0.5
    assert shares[1, 2] == shares[2, 3] == 0.0
    assert shares[3, 4] == 1.0
    kept = GCNJaccard(0.3).preprocess(graph).edges()
    assert list(zip(*kept[:2], strict=True)) == [(0, 1), (3, 4)]
    assert graph.n_edges == 4


def test_error_names_a_wrong_threshold() -> None:
    with pytest.raises(
        InputError, match=r"threshold of GCNJaccard must be a number between 0 and 1; got 1.5"
    ):
        GCNJaccard(1.5).fit(planted_graph(), [0, 1, 2], rng=0)

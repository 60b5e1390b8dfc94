"""GCN-SVD against a GCN on a graph of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import GCN, MLP
from nodecopy.defend import GCNSVD, Defence
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN = np.arange(9)
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestGCNSVD(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return GCNSVD(8, classifier=GCN(**QUICK))


def test_approximation_of_the_full_rank_equals_a_gcn() -> None:
    """A star has rank two, so that the approximation is exact."""
    star = np.zeros((60, 60))
    star[0, 1:] = star[1:, 0] = 1
    graph = planted_graph().replace(adjacency=star)
    plain = GCN(**QUICK).fit(graph, TRAIN, rng=0).predict_proba()
    np.testing.assert_allclose(
        GCNSVD(2, classifier=GCN(**QUICK)).fit(graph, TRAIN, rng=0).predict_proba(), plain, atol=1e-3
    )


def test_error_names_a_wrong_parameter() -> None:
    graph = planted_graph()
    with pytest.raises(InputError, match="rank of GCNSVD must be an integer of at least 1; got 0"):
        GCNSVD(0).fit(graph, TRAIN, rng=0)
    with pytest.raises(InputError, match="classifier of GCNSVD must be a GCN"):
        GCNSVD(classifier=MLP()).fit(graph, TRAIN, rng=0)
    with pytest.raises(InputError, match="GCNSVD must be trained by fit"):
        GCNSVD().from_classifier(GCN(**QUICK).fit(graph, TRAIN, rng=0), graph)

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.classify import APPNP, GCN, BayesianGCN
from nodecopy.defend import (
    GCNSVD,
    CopyingDefence,
    Defence,
    DonorAverage,
    GCNJaccard,
    SuspectCorrection,
    WithoutEdges,
)
from nodecopy.errors import InputError
from tests.contracts.classifiers import ClassifierContract
from tests.contracts.defences import DefenceContract

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
NETWORKS: dict[str, Defence] = {
    "svd": GCNSVD(8, base=GCN(**QUICK)),
    "jaccard": GCNJaccard(0.1, base=GCN(**QUICK)),
}
CORRECTIONS: dict[str, Defence] = {
    "copying": CopyingDefence(GCN(**QUICK), n_donors=4),
    "copying-row": CopyingDefence(GCN(**QUICK), "features", 4, place="row"),
    "copying-draws": CopyingDefence(GCN(**QUICK), "vgae", 4, n_graphs=3),
    "copying-bayesian": CopyingDefence(
        BayesianGCN(n_graphs=2, n_weight_samples=1, base=GCN(**QUICK)), n_donors=3
    ),
    "copying-appnp": CopyingDefence(APPNP(n_steps=3, **QUICK), n_donors=2),
    "copying-jaccard": CopyingDefence(GCNJaccard(0.1, base=GCN(**QUICK)), n_donors=3),
    "suspects": SuspectCorrection(GCN(**QUICK), n_donors=4, share=0.2),
    "donor-average": DonorAverage(GCN(**QUICK), n_donors=4),
    "without-edges": WithoutEdges(GCN(**QUICK)),
}


class TestNetworks(DefenceContract):
    @pytest.fixture(scope="class", params=NETWORKS)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        return NETWORKS[request.param]


class TestCorrections(DefenceContract):
    @pytest.fixture(scope="class", params=CORRECTIONS)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        return CORRECTIONS[request.param]

    def test_wrong_settings(self, classifier: Any, observed: Graph, nodes: Any) -> None:
        """Those of the classifier inside are its own."""
        wrong = copy.deepcopy(classifier)
        (getattr(wrong.classifier, "base", None) or wrong.classifier).device = "abacus"
        with pytest.raises(InputError, match="device must be"):
            self.fit(wrong, observed, nodes)
        wrong.classifier = "gcn"
        with pytest.raises(InputError, match=r"classifier must be a classifier such as GCN\(\); got 'gcn'"):
            self.fit(wrong, observed, nodes)


def test_the_contract_is_that_of_classifiers() -> None:
    assert issubclass(DefenceContract, ClassifierContract)


@pytest.mark.parametrize(
    ("defence", "message"),
    [
        (CopyingDefence(n_donors=60), "n_donors of CopyingDefence .* 1 and n_nodes - 1 = 59; got 60"),
        (DonorAverage(n_donors=0), "n_donors of DonorAverage must be an integer between 1"),
        (CopyingDefence(n_graphs=0), "n_graphs of CopyingDefence must be an integer of at least 1; got 0"),
        (CopyingDefence(place="here"), "place of CopyingDefence must be one of 'donor', 'row'; got 'here'"),
        (CopyingDefence(donors="friends"), "donors of CopyingDefence must be one of .* got 'friends'"),
        (CopyingDefence(donors=np.ones((3, 2))), "donors of CopyingDefence must have 60 rows.* got 3"),
        (CopyingDefence(donors=np.full((60, 2), np.nan)), "embeddings of CopyingDefence must hold finite"),
        (CopyingDefence(donors=lambda graph: np.ones(60)), "embeddings of CopyingDefence must be a matrix"),
        (SuspectCorrection(share=1.5), "share of SuspectCorrection must be a number between 0 and 1"),
        (GCNSVD(0), "rank of GCNSVD must be an integer of at least 1; got 0"),
        (GCNJaccard(1.5), "threshold of GCNJaccard must be a number between 0 and 1; got 1.5"),
    ],
)
def test_wrong_parameters(defence: Defence, message: str) -> None:
    from tests.contracts.classifiers import planted_graph

    with pytest.raises(InputError, match=message):
        defence.fit(planted_graph(), [0, 1, 2], rng=0)

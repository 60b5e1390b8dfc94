"""The copying defence against direct computations."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import datasets
from nodecopy.attacks import AdaptiveCopyingAttack
from nodecopy.classify import APPNP, GCN, MLP, BayesianGCN
from nodecopy.classify.ensemble import Ensemble
from nodecopy.defend import CopyingDefence, Defence, GCNJaccard, SuspectCorrection, WithoutEdges
from nodecopy.defend import copying as copying_correction
from nodecopy.defend.base import DefenceSeeds
from nodecopy.defend.copying import WholeGraphCopier, build_donor_search
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
DEFENCES: dict[str, Defence] = {
    "copying": CopyingDefence(GCN(**QUICK), n_donors=4),
    "copy-row": CopyingDefence(GCN(**QUICK), "features", 4, mode="copy-row"),
    "draws": CopyingDefence(GCN(**QUICK), "vgae", 4, n_graphs=3),
    "bayesian": CopyingDefence(BayesianGCN(n_graphs=2, n_weight_samples=1, base=GCN(**QUICK)), n_donors=3),
    "appnp": CopyingDefence(APPNP(n_steps=3, **QUICK), n_donors=2),
    "jaccard": CopyingDefence(GCNJaccard(0.1, classifier=GCN(**QUICK)), n_donors=3),
}


class TestCopyingDefence(DefenceContract):
    @pytest.fixture(scope="class", params=DEFENCES)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        return DEFENCES[request.param]


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
def test_correction_is_the_mean_over_donors(gcn: GCN, mode: str) -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=3, mode=mode).from_classifier(gcn, graph)
    donors = defence.nearest_donors(SOME)
    assert donors.shape == (4, 3)
    whole = WholeGraphCopier(gcn.predict_proba, graph, mode)
    expected = whole.predict_pairs(np.repeat(SOME, 3), donors.ravel()).reshape(4, 3, 3).mean(axis=1)
    np.testing.assert_allclose(defence.correct_proba(SOME), expected, atol=1e-6)
    assert np.array_equal(defence.predict_proba(), gcn.predict_proba(graph))


def test_draws_from_one_donor_equal_its_prediction(gcn: GCN) -> None:
    """With a single donor every draw is the same."""
    graph = planted_graph()
    every = CopyingDefence(n_donors=1).from_classifier(gcn, graph).correct_proba(SOME)
    ten = CopyingDefence(n_donors=1, n_graphs=10).from_classifier(gcn, graph).correct_proba(SOME)
    np.testing.assert_allclose(every, ten, atol=1e-6)


def test_isolated_donors_give_the_prediction_without_edges(gcn: GCN) -> None:
    """The neighbourhood of an isolated donor is empty."""
    graph = planted_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[50:] = adjacency[:, 50:] = 0
    graph = graph.replace(adjacency=adjacency)
    embedding = np.where(np.arange(60) >= 50, 0.0, 9.0)[:, None]
    embedding[3] = 0.0
    for mode in ("swap-features", "copy-row"):
        copied = CopyingDefence(donors=embedding, n_donors=5, mode=mode).from_classifier(gcn, graph)
        assert (copied.nearest_donors([3]) >= 50).all()
        without_edges = WithoutEdges().from_classifier(gcn, graph).correct_proba([3])
        np.testing.assert_allclose(copied.correct_proba([3]), without_edges, atol=1e-6)


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
def test_bayesian_networks_are_evaluated_without_dropout(mode: str) -> None:
    graph = planted_graph()
    model = BayesianGCN(n_graphs=2, n_weight_samples=2, base=GCN(**QUICK)).fit(graph, TRAIN, rng=0)
    defence = CopyingDefence(n_donors=2, mode=mode).from_classifier(model, graph)
    assert isinstance(model.prediction_.networks, Ensemble)
    plain = replace(model.prediction_.networks, n_weight_samples=0)
    whole = WholeGraphCopier(lambda changed: plain.predict(changed, "cpu").probabilities, graph, mode)
    expected = (
        whole.predict_pairs(np.repeat(SOME, 2), defence.nearest_donors(SOME).ravel())
        .reshape(4, 2, 3)
        .mean(axis=1)
    )
    np.testing.assert_allclose(defence.correct_proba(SOME), expected, atol=1e-6)


def test_correction_of_an_mlp_is_its_own_prediction() -> None:
    defence = CopyingDefence(MLP(**QUICK), n_donors=2).fit(planted_graph(), TRAIN, rng=0)
    np.testing.assert_allclose(defence.correct_proba(SOME), defence.predict_proba()[SOME], atol=1e-7)


@pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)
def test_copying_corrects_nodes_of_cora_with_random_edges() -> None:
    """The edges of forty nodes are replaced by ten random ones each; most are then misclassified."""
    cora = datasets.load("cora")
    split = datasets.label_split(cora.labels, 20, rng=1)
    draw = np.random.default_rng(1)
    targets = draw.choice(split.test, 40, replace=False)
    adjacency = cora.adjacency.tolil(copy=True)
    for target in targets:
        adjacency[target] = adjacency[:, [target]] = 0
        others = draw.choice(np.setdiff1d(np.arange(cora.n_nodes), target), 10, replace=False)
        adjacency[target, others] = adjacency[others, target] = 1
    attacked = cora.replace(adjacency=adjacency.tocsr())
    defence = CopyingDefence().fit(attacked, split.train, rng=0)
    labels = np.array(cora.labels)[targets]
    before = (defence.predict_proba()[targets].argmax(axis=1) == labels).mean()
    after = (defence.correct_proba(targets).argmax(axis=1) == labels).mean()
    assert before < 0.5
    assert after > before + 0.2


def test_adaptive_attack_flips_edges_at_donors_and_lowers_the_corrected_probability() -> None:
    graph = planted_graph()
    defence = CopyingDefence(donors="features", n_donors=4).fit(graph, TRAIN, rng=0)
    flips = AdaptiveCopyingAttack("features", n_donors=4).attack(graph, SOME, budget=8, train=TRAIN, rng=0)
    donors = {int(target): defence.nearest_donors([target])[0] for target in SOME}
    for flip, owner in zip(flips.flips, flips.owners, strict=True):
        assert np.isin(flip, donors[int(owner)]).any()
    labels = np.array(graph.labels)
    before = defence.correct_proba(SOME)[np.arange(len(SOME)), labels[SOME]]
    after = defence.correct_proba(SOME, graph=flips.apply(graph))[np.arange(len(SOME)), labels[SOME]]
    assert after.mean() < before.mean() - 0.05


def test_seeds_of_donors_are_children_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedding and the draws have children of their own, which no classifier uses."""
    seeds = []

    def record(*arguments: Any, seed: SeedSequence, **others: Any) -> Any:
        seeds.append(seed.spawn_key)
        return build_donor_search(*arguments, seed=seed, **others)

    monkeypatch.setattr(copying_correction, "build_donor_search", record)
    CopyingDefence(GCN(**QUICK), n_donors=3).fit(planted_graph(), TRAIN, rng=0)
    assert seeds == [(DefenceSeeds.DONOR_EMBEDDING,)]
    assert len(set(DefenceSeeds)) == len(DefenceSeeds.__members__)


def test_donors_of_suspects_are_those_of_copying(gcn: GCN) -> None:
    graph = planted_graph()
    copying, suspects = (
        kind(n_donors=4).from_classifier(gcn, graph, rng=0) for kind in (CopyingDefence, SuspectCorrection)
    )
    assert np.array_equal(copying.nearest_donors([1, 2]), suspects.nearest_donors([1, 2]))


@pytest.mark.parametrize(
    ("defence", "message"),
    [
        (CopyingDefence(n_donors=60), "n_donors of CopyingDefence .* 1 and n_nodes - 1 = 59; got 60"),
        (CopyingDefence(n_graphs=0), "n_graphs of CopyingDefence must be an integer of at least 1; got 0"),
        (
            CopyingDefence(mode="here"),
            "mode of CopyingDefence must be one of 'swap-features', 'copy-row'; got 'here'",
        ),
        (CopyingDefence(donors="friends"), "donors of CopyingDefence must be one of .* got 'friends'"),
        (CopyingDefence(donors=np.ones((3, 2))), "donors of CopyingDefence must have 60 rows.* got 3"),
        (CopyingDefence(donors=np.full((60, 2), np.nan)), "embeddings of CopyingDefence must hold finite"),
        (CopyingDefence(donors=lambda graph: np.ones(60)), "embeddings of CopyingDefence must be a matrix"),
    ],
)
def test_error_names_a_wrong_parameter(defence: Defence, message: str) -> None:
    with pytest.raises(InputError, match=message):
        defence.fit(planted_graph(), [0, 1, 2], rng=0)

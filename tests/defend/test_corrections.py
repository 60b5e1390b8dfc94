"""What corrections say, beyond the contract."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.attacks import AdaptiveCopyingAttack
from nodecopy.classify import APPNP, GCN, MLP, BayesianGCN
from nodecopy.defend import GCNSVD, CopyingDefence, DonorAverage, GCNJaccard, SuspectCorrection, WithoutEdges
from nodecopy.defend.pruned_gcn import jaccard
from nodecopy.defend.two_hop import WholeCopying
from nodecopy.errors import InputError, NotFittedError
from tests.contracts.classifiers import planted_graph

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


@pytest.mark.parametrize("place", ["donor", "row"])
def test_a_correction_is_the_mean_over_donors(gcn: GCN, place: str) -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=3, place=place).around(gcn, graph)
    donors = defence.nearest_donors(SOME)
    assert donors.shape == (4, 3)
    whole = WholeCopying(gcn.predict_proba, graph, place)
    expected = whole(np.repeat(SOME, 3), donors.ravel()).reshape(4, 3, 3).mean(axis=1)
    np.testing.assert_allclose(defence.correct(SOME), expected, atol=1e-6)
    assert np.array_equal(defence.predict_proba(), gcn.predict_proba(graph))


def test_controls(gcn: GCN) -> None:
    graph = planted_graph()
    average = DonorAverage(n_donors=3).around(gcn, graph)
    expected = gcn.predict_proba()[average.nearest_donors(SOME)].mean(axis=1)
    np.testing.assert_allclose(average.correct(SOME), expected, atol=1e-6)

    without = WithoutEdges().around(gcn, graph)
    for node in SOME:
        adjacency = graph.adjacency.toarray()
        adjacency[node] = adjacency[:, node] = 0
        alone = gcn.predict_proba(graph.replace(adjacency=adjacency))[node]
        np.testing.assert_allclose(without.correct([node])[0], alone, atol=1e-6)


def test_draws_are_uniform_among_donors(gcn: GCN) -> None:
    """Of two donors each is drawn as often as the other: 4000 draws, five standard errors of 0.008."""
    graph = planted_graph()
    line = np.arange(60.0)[:, None]
    defence = DonorAverage(donors=line, n_donors=2, n_graphs=4000).around(gcn, graph, rng=3)
    first, second = gcn.predict_proba()[defence.nearest_donors([30])[0]]
    share = ((defence.correct([30])[0] - second) / (first - second)).mean()
    assert abs(share - 0.5) < 0.04
    other = DonorAverage(donors=line, n_donors=2, n_graphs=4000).around(gcn, graph, rng=4)
    assert not np.array_equal(other.correct([30]), defence.correct([30]))


def test_equal_donors_give_their_own_prediction(gcn: GCN) -> None:
    """With one donor alone, one draw or ten are the same."""
    graph = planted_graph()
    one = CopyingDefence(n_donors=1).around(gcn, graph).correct(SOME)
    ten = CopyingDefence(n_donors=1, n_graphs=10).around(gcn, graph).correct(SOME)
    np.testing.assert_allclose(one, ten, atol=1e-6)


def test_isolated_donors_leave_a_node_alone(gcn: GCN) -> None:
    """A donor without neighbours gives none: what is left is the node by itself."""
    graph = planted_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[50:] = adjacency[:, 50:] = 0
    graph = graph.replace(adjacency=adjacency)
    place_of = np.where(np.arange(60) >= 50, 0.0, 9.0)[:, None]
    place_of[3] = 0.0
    for place in ("donor", "row"):
        copied = CopyingDefence(donors=place_of, n_donors=5, place=place).around(gcn, graph)
        assert (copied.nearest_donors([3]) >= 50).all()
        alone = WithoutEdges().around(gcn, graph).correct([3])
        np.testing.assert_allclose(copied.correct([3]), alone, atol=1e-6)


@pytest.mark.parametrize("place", ["donor", "row"])
def test_bayesian_networks_are_evaluated_without_dropout(place: str) -> None:
    from dataclasses import replace

    graph = planted_graph()
    model = BayesianGCN(n_graphs=2, n_weight_samples=2, base=GCN(**QUICK)).fit(graph, TRAIN, rng=0)
    defence = CopyingDefence(n_donors=2, place=place).around(model, graph)
    assert model.prediction_.networks is not None
    plain = replace(model.prediction_.networks, n_weight_samples=0)
    whole = WholeCopying(lambda changed: plain.predict(changed, "cpu").probabilities, graph, place)
    expected = whole(np.repeat(SOME, 2), defence.nearest_donors(SOME).ravel()).reshape(4, 2, 3).mean(axis=1)
    np.testing.assert_allclose(defence.correct(SOME), expected, atol=1e-6)


def test_an_mlp_sees_no_neighbours() -> None:
    defence = CopyingDefence(MLP(**QUICK), n_donors=2).fit(planted_graph(), TRAIN, rng=0)
    np.testing.assert_allclose(defence.correct(SOME), defence.predict_proba()[SOME], atol=1e-7)


def test_around_equals_fit() -> None:
    graph = planted_graph()
    for inner in (GCN(**QUICK), APPNP(n_steps=3, **QUICK), GCNJaccard(0.2, base=GCN(**QUICK))):
        fitted = CopyingDefence(inner, n_donors=2).fit(graph, TRAIN, rng=0)
        trained = inner.fit(graph, TRAIN, rng=0)
        wrapped = CopyingDefence(n_donors=2).around(trained, graph, rng=0)
        np.testing.assert_allclose(wrapped.correct(SOME), fitted.correct(SOME), atol=1e-6)


class Elsewhere:
    """A classifier that owes nothing to this package: how much of the first features is near."""

    def predict_proba(self, graph: Graph) -> Any:
        features: Any = graph.features
        near = 1.0 + features[:, :3] + graph.adjacency @ features[:, :3]
        return near / near.sum(axis=1, keepdims=True)


def test_a_classifier_from_elsewhere(tmp_path: Any) -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=2, place="row").around(Elsewhere(), graph)
    whole = WholeCopying(Elsewhere().predict_proba, graph, "row")
    expected = whole(np.repeat(SOME, 2), defence.nearest_donors(SOME).ravel()).reshape(4, 2, 3).mean(axis=1)
    np.testing.assert_allclose(defence.correct(SOME), expected, atol=1e-6)
    np.testing.assert_allclose(defence.correct(SOME, graph=graph), expected, atol=1e-6)
    assert set(defence.predict().tolist()) <= {0, 1, 2}
    np.testing.assert_allclose(defence.predict_proba(graph), defence.predict_proba(), atol=1e-6)
    with pytest.raises(InputError, match="must be one of nodecopy's own to be saved"):
        defence.save(tmp_path / "model.npz")

    class Short(Elsewhere):
        def predict_proba(self, graph: Graph) -> Any:
            return super().predict_proba(graph)[1:]

    with pytest.raises(InputError, match="predict_proba of the classifier must have 60 rows"):
        CopyingDefence(n_donors=2).around(Short(), graph)


def test_around_and_fit_do_not_mix() -> None:
    graph = planted_graph()
    with pytest.raises(NotFittedError, match=r"this GCN is not fitted yet: call fit\(graph, train\) first"):
        CopyingDefence(n_donors=2).around(GCN(), graph)
    fresh = CopyingDefence(GCN(**QUICK), n_donors=2).fit(graph, TRAIN, rng=0)
    again = CopyingDefence(GCN(**QUICK), n_donors=2).around(Elsewhere(), graph).fit(graph, TRAIN, rng=0)
    assert np.array_equal(again.correct(SOME, graph=graph), fresh.correct(SOME, graph=graph))


def test_a_loaded_defence_needs_a_graph(gcn: GCN, tmp_path: Any) -> None:
    from nodecopy import load

    CopyingDefence(n_donors=2).around(gcn, planted_graph()).save(tmp_path / "model.npz")
    loaded: Any = load(tmp_path / "model.npz")
    with pytest.raises(InputError, match="graph must be given to a defence that was loaded"):
        loaded.correct(SOME)


def test_jaccard_by_hand() -> None:
    """Nodes with features {0, 1}, {1}, {2}, {} and {}: shares 1/2, 0 and, where there is nothing, 1."""
    graph = Graph.from_edges(
        [0, 1, 3, 2],
        [1, 2, 4, 3],
        features=[[1.0, 1, 0], [0, 5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],
        labels=[0, 1, 0, 1, 0],
    )
    first, second = graph.rows.row_numbers, graph.rows.indices
    shares = dict(
        zip(zip(first.tolist(), second.tolist(), strict=True), jaccard(graph).tolist(), strict=True)
    )
    assert shares[0, 1] == shares[1, 0] == 0.5
    assert shares[1, 2] == shares[2, 3] == 0.0
    assert shares[3, 4] == 1.0
    kept = GCNJaccard(0.3).seen(graph).edges()
    assert list(zip(*kept[:2], strict=True)) == [(0, 1), (3, 4)]
    assert graph.n_edges == 4


def test_svd_of_full_rank_is_a_gcn() -> None:
    """With two nodes' worth of rank missing at most, a graph of rank three loses nothing."""
    star = np.zeros((60, 60))
    star[0, 1:] = star[1:, 0] = 1
    graph = planted_graph().replace(adjacency=star)
    plain = GCN(**QUICK).fit(graph, TRAIN, rng=0).predict_proba()
    np.testing.assert_allclose(
        GCNSVD(2, base=GCN(**QUICK)).fit(graph, TRAIN, rng=0).predict_proba(), plain, atol=1e-3
    )


@pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)
def test_copying_repairs_cut_off_nodes_of_cora() -> None:
    """Forty nodes with ten random neighbours each in place of their own: most are predicted wrong."""
    cora = datasets.load("cora")
    split = datasets.label_split(cora.labels, 20, rng=1)
    draw = np.random.default_rng(1)
    victims = draw.choice(split.test, 40, replace=False)
    adjacency = cora.adjacency.tolil(copy=True)
    for victim in victims:
        adjacency[victim] = adjacency[:, [victim]] = 0
        others = draw.choice(np.setdiff1d(np.arange(cora.n_nodes), victim), 10, replace=False)
        adjacency[victim, others] = adjacency[others, victim] = 1
    attacked = cora.replace(adjacency=adjacency.tocsr())
    defence = CopyingDefence().fit(attacked, split.train, rng=0)
    labels = np.array(cora.labels)[victims]
    before = (defence.predict_proba()[victims].argmax(axis=1) == labels).mean()
    after = (defence.correct(victims).argmax(axis=1) == labels).mean()
    assert before < 0.5
    assert after > before + 0.2


def test_what_was_taken_before_is_forgotten(gcn: GCN) -> None:
    graph = planted_graph()

    class Foreign:
        def predict_proba(self, graph: Graph) -> Any:
            return [[1.0, 0.0, 0.0]] * graph.n_nodes

    defence = WithoutEdges().around(Foreign(), graph)
    assert defence.correct([3]).tolist() == [[1, 0, 0]]
    defence.around(gcn, graph)
    np.testing.assert_allclose(defence.predict_proba(graph), gcn.predict_proba(graph))
    with pytest.raises(InputError, match=r"classifier must have predict_proba\(graph\); got int"):
        defence.around(3, graph)


def test_suspects_have_donors_too(gcn: GCN) -> None:
    graph = planted_graph()
    both = [kind(n_donors=4).around(gcn, graph, rng=0) for kind in (CopyingDefence, SuspectCorrection)]
    first, second = (one.nearest_donors([1, 2]) for one in both)
    assert np.array_equal(first, second)


def test_adaptive_attack_flips_edges_at_donors_and_lowers_the_corrected_probability() -> None:
    graph = planted_graph()
    defence = CopyingDefence(donors="features", n_donors=4).fit(graph, TRAIN, rng=0)
    flips = AdaptiveCopyingAttack("features", n_donors=4).attack(graph, SOME, budget=8, train=TRAIN, rng=0)
    donors = {int(target): defence.nearest_donors([target])[0] for target in SOME}
    for flip, owner in zip(flips.flips, flips.owners, strict=True):
        assert np.isin(flip, donors[int(owner)]).any()
    labels = np.array(graph.labels)
    before = defence.correct(SOME)[np.arange(len(SOME)), labels[SOME]]
    after = defence.correct(SOME, graph=flips.apply(graph))[np.arange(len(SOME)), labels[SOME]]
    assert after.mean() < before.mean() - 0.05

"""Corrections of nodes that are known to be attacked: training without their edges, and caution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, load
from nodecopy.classify import GCN, Trial
from nodecopy.defend import CopyingDefence, DonorAverage, SuspectCorrection, WithoutEdges
from nodecopy.defend.base import Correction
from nodecopy.defend.pruning import with_entries, without_edges_of
from nodecopy.defend.trust import logistic, trusted_neighbourhoods
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import embed_features
from tests.contracts.classifiers import planted_graph

TRAIN, SOME = np.arange(9), np.array([40, 3, 20, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


CLEAN = planted_graph()


def attacked_graph() -> Graph:
    """All edges of some nodes are moved elsewhere."""
    adjacency = CLEAN.adjacency.toarray()
    adjacency[SOME] = adjacency[:, SOME] = 0
    others = np.random.default_rng(0).integers(60, size=(4, 9))
    adjacency[SOME[:, None], others] = adjacency[others, SOME[:, None]] = 1
    np.fill_diagonal(adjacency, 0)
    return CLEAN.replace(adjacency=adjacency)


def defences(**settings: Any) -> list[Correction]:
    inner = GCN(**QUICK)
    donors: Any = {"n_donors": 3, **settings}
    return [CopyingDefence(inner, **donors), DonorAverage(inner, **donors), WithoutEdges(inner, retrain=True)]


def test_without_edges_by_hand() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    assert list(zip(*without_edges_of(graph, np.array([0, 3])).edges()[:2], strict=True)) == [(1, 2)]
    assert graph.n_edges == 3
    first, second = graph.rows.row_numbers, graph.rows.indices
    kept = with_entries(graph, (first + second) == 3)
    assert list(zip(*kept.edges()[:2], strict=True)) == [(1, 2)]


@pytest.mark.parametrize("defence", defences(retrain=True), ids=lambda d: type(d).__name__)
def test_attacks_at_told_nodes_change_nothing(defence: Correction) -> None:
    """Neither training nor donors see the edges of these nodes, so nobody can do harm by them."""
    found = [defence.fit(g, TRAIN, rng=0).correct(SOME) for g in (CLEAN, attacked_graph())]
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)
    trials = [Trial(g, TRAIN, None, 0) for g in (CLEAN, attacked_graph())]
    for prediction in defence.correct_trials(trials, [SOME, SOME]):
        np.testing.assert_allclose(prediction.probabilities, found[0], atol=1e-5)
    again = defence.fit(CLEAN, TRAIN, rng=0).correct(SOME, graph=attacked_graph())
    np.testing.assert_allclose(again, found[0], atol=1e-7)


def test_retrained_is_trained_without_the_edges() -> None:
    graph = attacked_graph()
    pruned = without_edges_of(graph, SOME)
    retrained = CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True).fit(graph, TRAIN, rng=0)
    plain = CopyingDefence(GCN(**QUICK), n_donors=3).fit(pruned, TRAIN, rng=0)
    np.testing.assert_allclose(retrained.correct(SOME), plain.correct(SOME), atol=1e-7)
    whole = GCN(**QUICK).fit(graph, TRAIN, rng=0)
    assert np.array_equal(retrained.predict_proba(), whole.predict_proba())


def test_retraining_needs_fit(tmp_path: Any) -> None:
    graph = CLEAN
    defence = CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True)
    with pytest.raises(InputError, match="retrain must be False for a classifier that was trained elsewhere"):
        defence.around(GCN(**QUICK).fit(graph, TRAIN, rng=0), graph)
    defence.fit(graph, TRAIN, rng=0).save(tmp_path / "model.npz")
    loaded: Any = load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict_proba(), defence.predict_proba())
    with pytest.raises(InputError, match="retrain must be False for a defence that was not fitted here"):
        loaded.correct(SOME, graph=graph)
    loaded.retrain = False
    plain = CopyingDefence(GCN(**QUICK), n_donors=3).fit(graph, TRAIN, rng=0)
    np.testing.assert_allclose(loaded.correct(SOME, graph=graph), plain.correct(SOME), atol=1e-6)
    untold = SuspectCorrection(GCN(**QUICK), n_donors=3, retrain=True).fit(graph, TRAIN, rng=0)
    untold.save(tmp_path / "untold.npz")
    with pytest.raises(InputError, match="retrain must be False for a defence that was not fitted here"):
        load(tmp_path / "untold.npz").correct(SOME, graph=graph)


def test_another_graph_teaches_nothing_by_its_labels() -> None:
    """Labels of the graph to be corrected may be wrong, or missing: those of ``fit`` were learnt from."""
    other = CLEAN.replace(labels=np.roll(np.asarray(CLEAN.labels), 7))
    for defence in (
        CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True),
        SuspectCorrection(GCN(**QUICK), n_donors=3, retrain=True),
        SuspectCorrection(GCN(**QUICK), n_donors=3),
    ):
        defence.fit(CLEAN, TRAIN, validation=np.arange(9, 30), rng=0)
        expected = defence.correct(SOME, graph=attacked_graph())
        for changed in (other, CLEAN.replace(labels=None)):
            graph = changed.replace(adjacency=attacked_graph().adjacency)
            assert np.array_equal(defence.correct(SOME, graph=graph), expected)


def test_retraining_needs_the_nodes_of_fit() -> None:
    renamed = CLEAN.replace(node_ids=[f"n{number}" for number in range(60)])
    for kind in (CopyingDefence, SuspectCorrection):
        defence = kind(GCN(**QUICK), n_donors=3, retrain=True).fit(CLEAN, TRAIN, rng=0)
        with pytest.raises(InputError, match="graph must have the nodes of the one given to fit"):
            defence.correct(SOME, graph=renamed)


def test_logistic_by_hand() -> None:
    """Three of four: the logarithm of the odds is log 3. With a second input, of one half: 0."""
    answers = np.array([1.0, 1, 1, 0] * 100 + [1, 0] * 100)
    inputs = np.stack([np.repeat([1.0, 0.0], [400, 200]), np.repeat([0.0, 1.0], [400, 200])], axis=1)
    np.testing.assert_allclose(logistic(inputs, answers), [np.log(3), 0], atol=1e-4)


def two_kinds() -> Graph:
    """Two groups of thirty with features of their own; edges within groups, and node 0 has two across."""
    draw = np.random.default_rng(0)
    group = np.repeat([0, 1], 30)
    adjacency = np.triu((draw.random((60, 60)) < 0.3) & (group[:, None] == group), 1)
    adjacency[0, :] = False
    adjacency[0, [1, 2, 40, 50]] = True
    features = (draw.random((60, 20)) < np.where(group[:, None] == (np.arange(20) >= 10), 0.8, 0.1)) * 1.0
    return Graph(adjacency | adjacency.T, features, labels=group)


def test_edges_are_believed_between_nodes_that_tend_to_be_joined() -> None:
    graph = two_kinds()
    trust, kept = trusted_neighbourhoods(graph, embed_features(graph), np.array([0, 5]))
    assert trust.shape == (2, 1)
    assert 0.2 < trust[0, 0] < 0.6 < trust[1, 0] <= 1
    assert kept.adjacency[[0]].indices.tolist() == [1, 2]
    untouched = graph.adjacency.toarray()[1:, 1:]
    untouched[4] = untouched[:, 4] = 0
    found = kept.adjacency.toarray()[1:, 1:]
    found[4] = found[:, 4] = 0
    assert np.array_equal(found, untouched)


def test_caution_mixes_by_trust() -> None:
    graph = two_kinds()
    nodes = np.array([0, 5])
    gcn = GCN(**QUICK).fit(graph, [1, 2, 40, 41], rng=0)
    for kind in (CopyingDefence, DonorAverage):
        careless, cautious = (
            kind(n_donors=3, cautious=cautious).around(gcn, graph) for cautious in (False, True)
        )
        trust, kept = trusted_neighbourhoods(graph, embed_features(graph), nodes)
        expected = (1 - trust) * careless.correct(nodes) + trust * gcn.predict_proba(kept)[nodes]
        np.testing.assert_allclose(cautious.correct(nodes), expected, atol=1e-6)

"""Finding attacked nodes without being told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, SuspectCorrection
from nodecopy.defend.pruning import without_edges_of
from nodecopy.defend.suspicion import divergence, suspicion
from nodecopy.features.node_embeddings import embed_features


def test_divergence_by_hand() -> None:
    """Opposite certainties diverge by log 2, equal ones not at all."""
    p, q = np.array([[1.0, 0.0], [0.3, 0.7]]), np.array([[0.0, 1.0], [0.3, 0.7]])
    np.testing.assert_allclose(divergence(p, q), [np.log(2), 0], atol=1e-12)
    halves = divergence(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))[0]
    by_hand = (np.log(4 / 3) + 0.5 * np.log(2 / 3) + 0.5 * np.log(2)) / 2
    assert halves == pytest.approx(by_hand)


def test_suspicion_by_hand() -> None:
    """A path 0-1-2 and a single node; 0 and 1 are alike, 2 has other features and another class.

    Expected neighbourhoods of 1 and 2 have the cosine 1/2, so they are unlike by 1/2 and their edge looks
    wrong by log 2 / 2. Node 1: J = 0, F = 1/4, W = log 2 / 4, degree 2. Node 2: J = 2 log 2, F = 1/2,
    W = log 2 / 2, degree 1. They share the blame for their edge, twice. With copied neighbours node 2 would
    diverge by log 2 from what is predicted of its neighbour, as it is it does not: exp(-4 log 2) = 1/16.
    """
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=[0, 1, 2, 3], features=[[1, 0], [1, 0], [0, 1], [1, 1]])
    left, right = [1.0, 0.0], [0.0, 1.0]
    copied = np.array([left, left, right, left])
    plain = np.array([left, left, left, right])
    around = np.array([[1, 0], [1, 0], [1 / 2, np.sqrt(3) / 2], [1, 0]])
    one, two = np.log(2) / 4 * 2**0.4, 3 / 2 * np.log(2)
    expected = [0, one**3 / (one**2 + two**2), two**3 / (one**2 + two**2) / 16, 0]
    np.testing.assert_allclose(
        suspicion(graph, embed_features(graph), around, plain, copied, copied), expected, atol=1e-12
    )


@pytest.fixture(scope="module")
def attacked() -> tuple[CopyingDefence, Graph, Any]:
    """Thirty digits lose their neighbours to random others."""
    digits = datasets.load("digits").subgraph(np.arange(800))
    split = datasets.label_split(digits.labels, 10, validation=0, test=200, rng=0)
    victims = split.test[:30]
    draw = np.random.default_rng(0)
    adjacency = digits.adjacency.toarray()
    adjacency[victims] = adjacency[:, victims] = 0
    others = draw.integers(digits.n_nodes, size=(30, 8))
    adjacency[victims[:, None], others] = 1
    graph = digits.replace(adjacency=np.maximum(adjacency, adjacency.T))
    gcn = GCN(n_epochs=60).fit(graph, split.train, rng=0)
    return CopyingDefence().around(gcn, graph, rng=0), graph, victims


def test_victims_are_found_and_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, victims = attacked
    scores = defence.suspects()
    assert scores.shape == (graph.n_nodes,)
    chosen = np.argsort(-scores)[:30]
    assert len(np.intersect1d(chosen, victims)) >= 24
    labels = np.array(graph.labels)
    before = defence.predict_proba().argmax(axis=1) == labels
    after = untold(defence, graph, 0.07).argmax(axis=1) == labels
    assert after[victims].mean() > before[victims].mean() + 0.2
    assert after.mean() > before.mean() - 0.01


def untold(defence: CopyingDefence, graph: Graph, share: float) -> Any:
    """What is said of all nodes when only a share of them is corrected."""
    suspicious = SuspectCorrection(share=share).around(defence.classifier, graph, rng=0)
    np.testing.assert_allclose(suspicious.suspects(), defence.suspects(), atol=1e-6)
    return suspicious.correct(np.arange(graph.n_nodes))


def test_the_share_decides_who_is_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, _ = attacked
    everybody = defence.correct(np.arange(graph.n_nodes))
    np.testing.assert_allclose(untold(defence, graph, 1.0), everybody, atol=1e-6)
    changed = (untold(defence, graph, 0.0) != untold(defence, graph, 0.1)).any(axis=1)
    assert 0 < changed.sum() <= round(0.1 * graph.n_nodes)


def test_validation_nodes_decide_how_many_are_corrected() -> None:
    """The most that may be corrected: of four nodes, the third correction costs one that was right."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4) + np.eye(4, k=1), labels=[0, 0, 1, 1])
    defence = SuspectCorrection(GCN(n_epochs=1), n_donors=1)
    fitted = defence.fit(graph, [0, 3], validation=[1, 2], rng=0)
    order = np.array([1, 0, 2, 3])
    zero, one = np.array([[1.0, 0.0]] * 4), np.array([[0.0, 1.0]] * 4)
    right = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    case = replace(fitted.case_, probabilities=right)
    assert defence._n_corrected(case, order, zero, right) == 2
    assert defence._n_corrected(case, order, one, right) == 0
    assert defence._n_corrected(case, order, right, zero) == 4
    unwatched = replace(case, trial=None)
    assert defence._n_corrected(unwatched, order, zero, right) == 0  # a small share of four


def test_suspects_are_corrected_by_a_classifier_that_never_saw_their_edges(
    attacked: tuple[CopyingDefence, Graph, Any],
) -> None:
    graph = attacked[1]
    split = datasets.label_split(graph.labels, 10, validation=0, test=200, rng=0)
    settings: Any = {"share": 0.2, "n_donors": 5}
    defence = SuspectCorrection(GCN(n_epochs=60), retrain=True, **settings).fit(graph, split.train, rng=0)
    scores = defence.suspects()
    suspects = np.argsort(-scores, kind="stable")[: round(0.2 * graph.n_nodes)]
    pruned = without_edges_of(graph, suspects)
    unpoisoned = CopyingDefence(GCN(n_epochs=60), n_donors=5).fit(pruned, split.train, rng=0)
    np.testing.assert_allclose(defence.correct(suspects), unpoisoned.correct(suspects), atol=1e-5)
    again = defence.correct(suspects, graph=graph.replace(labels=None))
    np.testing.assert_allclose(again, defence.correct(suspects), atol=1e-6)

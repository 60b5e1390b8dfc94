"""The suspicion score by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.defend.edges import divergence, score_suspicion
from nodecopy.features.embeddings import NodeEmbeddings


def test_divergence_of_two_distributions() -> None:
    """Opposite certainties diverge by log 2, equal ones not at all."""
    p, q = np.array([[1.0, 0.0], [0.3, 0.7]]), np.array([[0.0, 1.0], [0.3, 0.7]])
    np.testing.assert_allclose(divergence(p, q), [np.log(2), 0], atol=1e-12)
    halves = divergence(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))[0]
    by_hand = (np.log(4 / 3) + 0.5 * np.log(2 / 3) + 0.5 * np.log(2)) / 2
    assert halves == pytest.approx(by_hand)


def test_suspicion_of_a_path() -> None:
    """A path 0-1-2 and an isolated node; 0 and 1 are similar, 2 has other features and another class.

    Expected neighbourhoods of 1 and 2 have the cosine 1/2, so that their dissimilarity is 1/2 and the
    implausibility of their edge log 2 / 2. Node 1: J = 0, F = 1/4, W = log 2 / 4, degree 2. Node 2:
    J = 2 log 2, F = 1/2, W = log 2 / 2, degree 1. The blame for their edge is divided twice. The copied
    prediction of node 2 diverges by log 2 from that of its neighbour, its plain one by 0, which gives
    the factor exp(-4 log 2) = 1/16.
    """
    words = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    graph = Graph.from_edges([0, 1], [1, 2], node_ids=[0, 1, 2, 3], features=words)
    left, right = [1.0, 0.0], [0.0, 1.0]
    copied = np.array([left, left, right, left])
    plain = np.array([left, left, left, right])
    expected_neighbourhoods = np.array([[1, 0], [1, 0], [1 / 2, np.sqrt(3) / 2], [1, 0]])
    first, second = np.log(2) / 4 * 2**0.4, 3 / 2 * np.log(2)
    expected = [0, first**3 / (first**2 + second**2), second**3 / (first**2 + second**2) / 16, 0]
    np.testing.assert_allclose(
        score_suspicion(
            graph, NodeEmbeddings(graph).features, expected_neighbourhoods, plain, copied, copied
        ),
        expected,
        atol=1e-12,
    )


def test_edges_without_doubt_are_not_suspicious() -> None:
    """A cycle of four nodes of alternating classes, in which the edges of node 0 are beyond doubt."""
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], features=np.eye(4))
    codes = np.arange(4) % 2
    copied, neighbourhoods = np.eye(2)[codes], np.eye(4)
    arguments = graph, np.eye(4), neighbourhoods, 1 - copied, copied, copied
    doubt = ((graph.rows.row_numbers != 0) & (graph.rows.indices != 0)).astype(float)
    alike, scores = score_suspicion(*arguments), score_suspicion(*arguments, doubt)
    assert np.ptp(alike) == pytest.approx(0.0)
    assert scores[0] == 0
    assert scores[2] > scores[1] == scores[3] > 0
    np.testing.assert_allclose(score_suspicion(*arguments, np.full(8, 1.0)), alike)

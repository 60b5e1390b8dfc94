"""Graphs without files, against the libraries that also carry them."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import datasets


def test_karate_is_zacharys() -> None:
    networkx = pytest.importorskip("networkx")
    club = datasets.load("karate")
    theirs = networkx.karate_club_graph()
    source, target, _ = club.edges()
    assert club.node_ids.tolist() == list(range(1, 35))
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {
        (a + 1, b + 1) for a, b in theirs.edges
    }
    named = club.named_labels()
    assert named is not None
    assert named.tolist() == [theirs.nodes[node]["club"] for node in theirs]


def test_digits() -> None:
    pytest.importorskip("sklearn")
    graph = datasets.load("digits")
    assert (graph.n_nodes, graph.n_edges) == (1797, 6309)
    assert graph.features is not None
    assert graph.features.shape == (1797, 64)
    assert graph.labels is not None
    assert np.unique(graph.labels).tolist() == list(range(10))
    source, target, _ = graph.edges()
    assert (graph.labels[source] == graph.labels[target]).mean() > 0.95
    assert graph.degrees.min() >= 5

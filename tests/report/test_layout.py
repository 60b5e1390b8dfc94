"""The layout of drawn graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph
from nodecopy._core.layout import _repel, compute_layout
from nodecopy.report.page import choose_nodes


def two_cliques(size: int) -> Graph:
    clique = [(i, j) for i in range(size) for j in range(i)]
    pairs = np.array([*clique, *((a + size, b + size) for a, b in clique), (0, size)])
    return Graph.from_edges(pairs[:, 0], pairs[:, 1])


def test_friends_stand_together() -> None:
    positions = compute_layout(two_cliques(8).adjacency, rng=1)
    assert positions.min() >= 0
    assert positions.max() <= 1 + 1e-6
    assert np.isclose(np.ptp(positions[:, 0]), 1, atol=1e-5)  # the long way is across
    centres = positions[:8].mean(axis=0), positions[8:].mean(axis=0)
    apart = np.linalg.norm(centres[0] - centres[1])
    for part, centre in zip((positions[:8], positions[8:]), centres, strict=True):
        assert np.linalg.norm(part - centre, axis=1).mean() < apart / 2
    distances = np.linalg.norm(positions[:, None] - positions, axis=2) + np.eye(16)
    assert distances.min() > 0.01  # nobody stands on another


def test_places_depend_on_the_seed_alone() -> None:
    graph = two_cliques(5).adjacency
    assert np.array_equal(compute_layout(graph, rng=3), compute_layout(graph, rng=3))
    assert not np.array_equal(compute_layout(graph, rng=3), compute_layout(graph, rng=4))


@pytest.mark.parametrize("n_nodes", [0, 1, 2, 5])
def test_graphs_without_edges_are_spread_out(n_nodes: int) -> None:
    positions = compute_layout(np.zeros((n_nodes, n_nodes)))
    assert len(np.unique(positions, axis=0)) == n_nodes
    assert positions.shape == (n_nodes, 2)
    assert ((positions > -1e-6) & (positions < 1 + 1e-6)).all()


@pytest.mark.parametrize("n", [7, 160], ids=["NumPy", "compiled"])
def test_pushes_are_those_of_the_formula(n: int) -> None:
    draws = np.random.default_rng(0)
    positions, mass = draws.normal(size=(n, 2)).astype(np.float32), draws.random(n).astype(np.float32)
    apart = positions[:, None].astype(float) - positions
    expected = (mass[:, None] * apart / ((apart**2).sum(axis=2, keepdims=True) + 1e-4)).sum(axis=1)
    assert np.allclose(_repel(positions, mass), expected, rtol=1e-3, atol=1e-3)


def test_a_small_graph_is_shown_whole() -> None:
    assert choose_nodes(two_cliques(4), max_nodes=8, max_edges=13).tolist() == list(range(8))


@given(st.integers(1, 60), st.integers(0, 120), st.integers(0, 5))
@settings(max_examples=25)
def test_a_part_has_at_most_so_many_nodes_and_edges(max_nodes: int, max_edges: int, seed: int) -> None:
    graph = power_law_graph(600, n_communities=2, rng=seed)
    for whole in (graph, Graph(graph.adjacency, directed=True)):
        shown = choose_nodes(whole, max_nodes=max_nodes, max_edges=max_edges, rng=seed)
        assert 1 <= len(shown) <= max_nodes
        assert whole.subgraph(shown).n_edges <= max_edges
        assert shown.tolist() == sorted(set(shown.tolist()))


def test_a_part_is_as_large_as_it_may_be_and_hangs_together() -> None:
    graph = power_law_graph(6000)
    shown = choose_nodes(graph, max_nodes=50, max_edges=10**6)
    assert len(shown) == 50
    assert graph.subgraph(shown).n_edges > 49  # a walk follows edges; 50 nodes at random would have about 20
    alone = Graph(np.zeros((30, 30)))
    assert len(choose_nodes(alone, max_nodes=7, max_edges=10)) == 7
    all_nodes = choose_nodes(two_cliques(20), max_nodes=40, max_edges=100)
    assert 10 <= len(all_nodes) < 40

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.inference import count_communities, spectral_communities
from nodecopy.inference.communities import MAX_DENSE_NODES
from tests.inference.known_graphs import draw_graph, heavy_tail, two_blocks


@pytest.mark.parametrize("n_nodes", [200, MAX_DENSE_NODES + 100])  # dense and iterative eigenvalues
def test_two_blocks_are_found(n_nodes: int) -> None:
    graph = draw_graph(two_blocks(n_nodes, 0.15, 0.02), np.random.default_rng(0))
    assert count_communities(graph) == 2
    found = spectral_communities(graph)
    agreement = (found == np.arange(n_nodes) % 2).mean()
    assert max(agreement, 1 - agreement) > 0.97


def test_degrees_do_not_decide() -> None:
    """A community by degree would agree with the block for half of the nodes."""
    graph = draw_graph(heavy_tail(400), np.random.default_rng(0))
    agreement = (spectral_communities(graph, 2) == np.arange(400) % 2).mean()
    assert max(agreement, 1 - agreement) > 0.85


def test_the_sides_of_a_bipartite_graph_are_found() -> None:
    graph = draw_graph(two_blocks(200, 0.0, 0.1), np.random.default_rng(0))
    assert count_communities(graph) == 2
    found = spectral_communities(graph)
    assert set(zip(found.tolist(), (np.arange(200) % 2).tolist(), strict=True)) in (
        {(0, 0), (1, 1)},
        {(0, 1), (1, 0)},
    )


def test_a_random_graph_is_one_community() -> None:
    graph = draw_graph(np.full((200, 200), 0.08), np.random.default_rng(0))
    assert count_communities(graph) == 1
    assert not spectral_communities(graph).any()


@pytest.mark.parametrize("n_nodes", [1, 3])
def test_a_graph_without_edges_is_one_community(n_nodes: int) -> None:
    empty = Graph(np.zeros((n_nodes, n_nodes)))
    assert spectral_communities(empty).tolist() == [0] * n_nodes


def test_directions_are_ignored_and_results_are_reproducible() -> None:
    graph = draw_graph(two_blocks(100, 0.3, 0.02), np.random.default_rng(0))
    one_way = Graph(np.triu(graph.adjacency.toarray()), directed=True)
    assert np.array_equal(spectral_communities(graph), spectral_communities(one_way))


def test_more_communities_than_nodes_are_an_error() -> None:
    with pytest.raises(InputError, match=r"n_communities must be an integer between 1 and n_nodes = 2"):
        spectral_communities(Graph([[0, 1], [1, 0]]), 3)

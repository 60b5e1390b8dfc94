from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.generators import RandomDotProduct


def draw_blocks(n_nodes: int, directed: bool = False) -> Graph:
    block = np.arange(n_nodes) % 2
    chance = np.where(block[:, None] == block, 0.3, 0.05)
    edges = np.random.default_rng(0).random((n_nodes, n_nodes)) < chance
    np.fill_diagonal(edges, False)
    return Graph(edges if directed else np.triu(edges), directed=directed)


@pytest.mark.parametrize("n_nodes", [25, 200])  # all singular values, and the leading ones
@pytest.mark.parametrize("directed", [False, True])
def test_probabilities_are_the_best_approximation_of_low_rank(n_nodes: int, directed: bool) -> None:
    graph = draw_blocks(n_nodes, directed)
    model = RandomDotProduct(3).fit(graph)
    u, s, vt = np.linalg.svd(graph.adjacency.toarray().astype(float))
    assert np.allclose(model.left_ @ model.right_.T, (u[:, :3] * s[:3]) @ vt[:3], atol=1e-6)


def test_the_number_of_dimensions_is_that_of_the_blocks() -> None:
    assert RandomDotProduct().fit(draw_blocks(200)).left_.shape == (200, 2)
    empty = RandomDotProduct().fit(Graph(np.zeros((3, 3))))
    assert empty.left_.shape == (3, 1)
    assert empty.sample(rng=0).n_edges == 0


@pytest.mark.parametrize("directed", [False, True])
def test_edges_occur_with_their_probabilities(directed: bool) -> None:
    """The number of edges of 200 samples; five standard errors of its mean."""
    graph = draw_blocks(60, directed)
    model = RandomDotProduct(2).fit(graph)
    p = np.clip(model.left_ @ model.right_.T, 0, 1)
    p = p[~np.eye(60, dtype=bool)] if directed else p[np.triu_indices(60, 1)]
    mean = np.mean([sample.n_edges for sample in model.sample_many(200, rng=0)])
    assert mean == pytest.approx(p.sum(), abs=5 * np.sqrt((p * (1 - p)).sum() / 200))


def test_more_dimensions_than_nodes_are_an_error() -> None:
    with pytest.raises(InputError, match="n_dimensions of RandomDotProduct must be an integer between 1 and"):
        RandomDotProduct(5).fit(Graph([[0, 1], [1, 0]]))

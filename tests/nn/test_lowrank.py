"""Convolutions through factors against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.nn.lowrank import LowRankStack, approximate_adjacency
from nodecopy.nn.networks import Recipe

CPU = torch.device("cpu")


def adjacency(n: int, density: float, seed: int = 0) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return sparse.csr_array((upper | upper.T).astype(np.float32))


def dense(matrix: sparse.csr_array, rank: int) -> np.ndarray:
    """The textbook way: SVD, identity, row sums."""
    u, s, vt = np.linalg.svd(matrix.toarray())
    approximation = u[:, :rank] * s[:rank] @ vt[:rank]
    scale = 1 / np.sqrt(1 + np.maximum(approximation.sum(axis=1), 0))
    return np.asarray(scale[:, None] * (approximation + np.eye(len(s))) * scale)


@pytest.mark.parametrize("rank", [1, 3, 10, 19])
def test_the_factors_are_the_dense_matrix(rank: int) -> None:
    matrix = adjacency(20, 0.3)
    found = approximate_adjacency(matrix, rank)
    whole = found.left @ found.right.T + np.diag(found.diagonal)
    np.testing.assert_allclose(whole, dense(matrix, rank), atol=1e-5)
    assert np.array_equal(found.left, approximate_adjacency(matrix, rank).left)


def test_one_edge_by_hand() -> None:
    """Singular values 1 and 1: with rank 1 of at most 1 only half of the edge's matrix is left."""
    pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    found = approximate_adjacency(pair, 5)
    assert found.left.shape == (2, 1)
    assert np.isfinite(found.left @ found.right.T).all()


def test_a_graph_without_edges_spreads_nothing() -> None:
    found = approximate_adjacency(adjacency(4, 0.0), 2)
    assert not found.left.any()
    assert (found.diagonal == 1).all()
    alone = approximate_adjacency(adjacency(1, 0.0), 2)
    assert alone.diagonal.tolist() == [1.0]


def test_a_stack_multiplies_each_model_by_its_own() -> None:
    matrices = [adjacency(12, 0.4, 1), adjacency(12, 0.0), adjacency(12, 0.4, 2)]
    stack = LowRankStack([approximate_adjacency(matrix, 4) for matrix in matrices], CPU)
    values = torch.randn(3, 12, 5, generator=torch.Generator().manual_seed(0))
    found = stack @ values
    for matrix, value, product in zip(matrices, values, found, strict=True):
        np.testing.assert_allclose(product, dense(matrix, 4) @ value.numpy(), atol=1e-4)


def test_no_edges_to_drop() -> None:
    with pytest.raises(InputError, match="drop_edges must be 0 with a rank"):
        Recipe(rank=3, drop_edges=0.1)
    with pytest.raises(InputError, match="rank must be an integer of at least 1; got 0"):
        Recipe(rank=0)

"""Blocks of rows, and values with given gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from nodecopy.generators.edges import attach_gradients, split_rows, split_triangle

SIZES = [(1, 1), (7, 1), (7, 14), (7, 20), (7, 100)]


@pytest.mark.parametrize(("n_nodes", "at_once"), SIZES)
def test_blocks_of_rows_cover_the_matrix(n_nodes: int, at_once: int) -> None:
    blocks = list(split_rows(n_nodes, at_once))
    assert np.concatenate([np.arange(n_nodes)[rows] for rows in blocks]).tolist() == list(range(n_nodes))
    assert all((rows.stop - rows.start) * n_nodes <= max(at_once, n_nodes) for rows in blocks)


@pytest.mark.parametrize(("n_nodes", "at_once"), SIZES)
def test_triangular_blocks_cover_each_unordered_pair(n_nodes: int, at_once: int) -> None:
    counts = np.zeros((n_nodes, n_nodes), int)
    for rows in split_triangle(n_nodes, at_once):
        assert (rows.stop - rows.start) * (n_nodes - rows.start) <= max(at_once, n_nodes)
        counts[rows, rows.start :] += 1
    assert (np.triu(counts) == np.triu(np.ones((n_nodes, n_nodes)))).all()


def test_gradients_are_those_of_the_function() -> None:
    def value_and_gradients(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (x * y**2).sum(), y**2, 2 * x * y

    x, y = (torch.arange(1.0, 4.0, dtype=torch.float64).requires_grad_() for _ in range(2))
    assert attach_gradients(value_and_gradients, x, y).item() == 1 + 8 + 27
    assert torch.autograd.gradcheck(lambda *tensors: attach_gradients(value_and_gradients, *tensors), (x, y))

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy.nn.filters import attend
from nodecopy.nn.stack import SparseStack, normalise_adjacency

CPU = torch.device("cpu")
N = 9


def matrix(seed: int, n: int = N) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.3, 1)
    return normalise_adjacency(sparse.csr_array((upper | upper.T).astype(np.float32)))


@pytest.mark.parametrize("dropped", [False, True])
def test_attention_is_a_masked_softmax(dropped: bool) -> None:
    graphs = SparseStack([matrix(0), matrix(1)], CPU)
    dense, own, other = (torch.randn(2, N, *rest, dtype=torch.float64) for rest in ((4,), (), ()))
    own, other = 3 * own, 3 * other
    factors = torch.rand(len(graphs.values), dtype=torch.float64) if dropped else None
    found = attend(graphs, dense, own, other, factors)
    place = 0
    for b, pattern in enumerate((matrix(0), matrix(1))):
        for i in range(N):
            neighbours = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].tolist()
            raw = [float(own[b, i] + other[b, j]) for j in neighbours]
            weights = np.exp([z if z > 0 else np.exp(z) - 1 for z in raw])
            weights /= weights.sum()
            if factors is not None:
                weights *= factors[place : place + len(neighbours)].numpy()
            place += len(neighbours)
            np.testing.assert_allclose(found[b, i], weights @ dense[b, neighbours].numpy(), rtol=1e-10)


@pytest.mark.parametrize("dropped", [False, True])
def test_gradient_of_attention(dropped: bool) -> None:
    graphs = SparseStack([matrix(0), matrix(1)], CPU, torch.float64)
    inputs = [torch.randn(2, N, *rest, dtype=torch.float64, requires_grad=True) for rest in ((2,), (), ())]
    factors = torch.rand(len(graphs.values), dtype=torch.float64) if dropped else None
    attend_graphs = lambda dense, own, other: attend(graphs, dense, own, other, factors)  # noqa: E731
    assert torch.autograd.gradcheck(attend_graphs, inputs)


def test_large_scores_do_not_overflow() -> None:
    graphs = SparseStack([matrix(0)], CPU)
    found = attend(graphs, torch.ones(1, N, 2), torch.full((1, N), 1e4), torch.full((1, N), 1e4), None)
    np.testing.assert_allclose(found, 1.0, rtol=1e-5)

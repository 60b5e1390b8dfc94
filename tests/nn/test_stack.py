"""Stacks of sparse and low-rank matrices against dense ones, and dropout masks against their distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.nn.networks import (
    LowRankStack,
    Masks,
    SparseStack,
    approximate_adjacency,
    draw_keys,
    normalise_adjacency,
)

CPU = torch.device("cpu")
SEEDS = [SeedSequence([5, number]) for number in range(6)]
KEYS = draw_keys(SEEDS, CPU)
N = 2**16
LIMIT = 5.0
"""Standard errors; under independence one of the 100 comparisons here fails with probability 6e-5."""


def matrices(*shapes: tuple[int, int]) -> list[sparse.csr_array]:
    draw = np.random.default_rng(0)
    return [
        sparse.csr_array(draw.normal(size=shape) * (draw.random(shape) < 0.3)).astype(np.float32)
        for shape in shapes
    ]


def dense_of(parts: list[sparse.csr_array], n_rows: int, n_columns: int) -> torch.Tensor:
    dense = torch.zeros(len(parts), n_rows, n_columns)
    for number, part in enumerate(parts):
        dense[number, : part.shape[0], : part.shape[1]] = torch.from_numpy(part.toarray())
    return dense


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shapes", [[(7, 5)] * 3, [(7, 5), (3, 2), (6, 5)]], ids=["equal", "ragged"])
def test_products_and_gradients_are_dense_ones(shapes: list[tuple[int, int]], masked: bool) -> None:
    parts = matrices(*shapes)
    stack = SparseStack(parts, CPU)
    factors, expected = None, dense_of(parts, 7, 5)
    if masked:
        factors = stack.draw_factors(
            Masks(draw_keys([SeedSequence(n) for n in range(3)], CPU), 0.5), step=1, place=0
        )
        flat, scaled = factors.reshape(-1).numpy(), []
        for part, end in zip(parts, np.cumsum(stack.entries), strict=True):
            values = part.data * flat[end - part.nnz : end]
            scaled.append(sparse.csr_array((values, part.indices, part.indptr), shape=part.shape))
        expected = dense_of(scaled, 7, 5)
        assert not torch.equal(expected, dense_of(parts, 7, 5))
    gradient = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(1))
    ours, theirs = (
        torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(2)).requires_grad_() for _ in range(2)
    )
    out, reference = stack.product(ours, factors), expected @ theirs
    torch.testing.assert_close(out, reference)
    out.backward(gradient)  # type: ignore[no-untyped-call]
    reference.backward(gradient)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("shapes", [[(7, 5)] * 3, [(7, 5), (3, 2), (6, 5)]], ids=["equal", "ragged"])
def test_a_transpose_sorted_on_the_device_is_the_same(shapes: list[tuple[int, int]]) -> None:
    stack = SparseStack(matrices(*shapes), CPU)
    (ours, expected) = stack._sort_transpose(), stack.transpose
    assert all(map(torch.equal, (*ours[0], ours[1]), (*expected[0], expected[1])))
    assert torch.equal(ours[2].values(), expected[2].values())


def test_the_same_matrix_for_all_is_a_stack_of_copies() -> None:
    (matrix,) = matrices((7, 5))
    dense = torch.randn(3, 5, 2)
    factors = torch.rand(3, matrix.nnz)
    one, other = SparseStack([matrix] * 3, CPU), SparseStack([matrix.copy() for _ in range(3)], CPU)
    assert torch.equal(one.product(dense, factors), other.product(dense, factors))
    gradients = [
        torch.autograd.grad(stack.product(x := dense.clone().requires_grad_(), factors).sum(), x)[0]
        for stack in (one, other)
    ]
    assert torch.equal(*gradients)


def test_normalised_by_hand() -> None:
    """A path 0-1-2: the degrees with loops are 2, 3 and 2."""
    path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32))
    a = 1 / np.sqrt(6)
    expected = [[1 / 2, a, 0], [a, 1 / 3, a], [0, a, 1 / 2]]
    np.testing.assert_allclose(normalise_adjacency(path).toarray(), expected, rtol=1e-6)
    alone = normalise_adjacency(sparse.csr_array(np.zeros((2, 2), np.float32)))
    np.testing.assert_array_equal(alone.toarray(), np.eye(2))


def adjacency(n: int, density: float, seed: int = 0) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return sparse.csr_array((upper | upper.T).astype(np.float32))


def dense_approximation(matrix: sparse.csr_array, rank: int) -> np.ndarray:
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
    np.testing.assert_allclose(whole, dense_approximation(matrix, rank), atol=1e-5)
    assert np.array_equal(found.left, approximate_adjacency(matrix, rank).left)


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
        np.testing.assert_allclose(product, dense_approximation(matrix, 4) @ value.numpy(), atol=1e-4)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.8])
def test_the_share_dropped_and_the_expectation(rate: float) -> None:
    factors = Masks(KEYS, rate).draw(N, step=3, place=1).numpy()
    exact = round(256 * rate) / 256
    assert set(np.unique(factors)) <= {0, np.float32(1 / (1 - exact))}
    error = np.sqrt(exact * (1 - exact) / N)
    assert (np.abs((factors == 0).mean(axis=1) - exact) <= LIMIT * error).all()
    assert np.abs(factors.mean(axis=1) - 1).max() <= LIMIT * error / (1 - exact)


def test_models_steps_places_and_neighbours_are_independent() -> None:
    masks = Masks(KEYS, 0.5)
    drawn = [masks.draw(N, step=step, place=place) for step in (0, 1, 200) for place in (0, 1)]
    signs = torch.cat(drawn).numpy() - 1  # -1 or 1
    correlation = signs @ signs.T / np.sqrt(N)
    assert np.abs(correlation[np.triu_indices(len(signs), 1)]).max() < LIMIT
    for lag in (1, 2, 3, 4, 16):
        assert np.abs((signs[:, lag:] * signs[:, :-lag]).sum(axis=1)).max() < LIMIT * np.sqrt(N)


def test_a_mask_is_a_pure_function_of_model_step_and_place() -> None:
    masks = Masks(KEYS, 0.4)
    first = masks.draw(1001, step=7, place=2)
    masks.draw(10, step=8, place=0)
    assert torch.equal(masks.draw(1001, step=7, place=2), first)
    assert torch.equal(masks.draw(17, step=7, place=2), first[:, :17])
    assert torch.equal(Masks(draw_keys(SEEDS[4:5], CPU), 0.4).draw(1001, step=7, place=2), first[4:5])


def test_entries_drawn_one_by_one_are_the_same() -> None:
    masks = Masks(KEYS, 0.4)
    model = torch.tensor([0, 3, 5, 3, 1])
    position = torch.tensor([0, 1, 1000, 2, 999], dtype=torch.int32)
    expected = masks.draw(1001, step=9, place=0)[model, position.long()]
    assert torch.equal(masks.draw_at(model, position, step=9, place=0), expected)

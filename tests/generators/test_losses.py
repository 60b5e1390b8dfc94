"""The loss in blocks against the N x N formula, and the sampled loss against a loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from nodecopy.generators.autoencoders import PairLoss, PresenceLoss, SampledPairLoss

CPU = torch.device("cpu")


def random_adjacency(n_nodes: int = 23) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(0).random((n_nodes, n_nodes)) < 0.2, 1)
    return sparse.csr_array((upper | upper.T).astype(np.float32))


def dense_loss(z: Tensor, adjacency: sparse.csr_array) -> Tensor:
    """Compute the loss as Kipf and Welling's code does."""
    matrix = torch.from_numpy(adjacency.toarray()).to(z.dtype)
    n, ones = len(z), float(adjacency.sum())
    entropy = binary_cross_entropy_with_logits(
        z @ z.T, matrix + torch.eye(n, dtype=z.dtype), pos_weight=torch.tensor((n * n - ones) / ones)
    )
    return n * n / (2 * (n * n - ones)) * entropy


@pytest.mark.parametrize("logits_at_once", [1, 7, 23, 100, 10**6, None])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_value_and_gradient_are_the_dense_ones(logits_at_once: int | None, spread: float) -> None:
    adjacency = random_adjacency()
    start = spread * torch.randn(23, 4, generator=torch.Generator().manual_seed(1))
    expected = start.double().requires_grad_()
    dense = dense_loss(expected, adjacency)
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    assert expected.grad is not None
    pairs = PairLoss(adjacency, CPU, logits_at_once)
    for with_value in (True, False):
        z = start.clone().requires_grad_()
        loss = pairs(z, with_value=with_value)
        (3 * loss).backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None
        assert loss.item() == pytest.approx(dense.item() if with_value else 0, rel=1e-5)
        torch.testing.assert_close(z.grad.double(), expected.grad, rtol=1e-4, atol=1e-6 * spread)


def test_the_gradient_is_the_slope_of_the_value() -> None:
    pairs = PairLoss(random_adjacency(), CPU, 50)
    z = torch.randn(23, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    pairs.positives.values = pairs.positives.values.double()
    assert torch.autograd.gradcheck(pairs, z.requires_grad_())


def test_no_n_by_n_matrix_is_held() -> None:
    """30,000 nodes would need 3.6 GB for one matrix of logits."""
    n_nodes = 30_000
    ring = sparse.eye_array(n_nodes, k=1, format="csr", dtype=np.float32)
    pairs = PairLoss(sparse.csr_array(ring + ring.T), CPU)
    z = torch.zeros(n_nodes, 1, requires_grad=True)
    largest = 0

    class RecordSizes(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, Tensor) and result.layout == torch.strided:
                largest = max(largest, result.numel())
            return result

    with RecordSizes():  # type: ignore[no-untyped-call]
        loss = pairs(z, with_value=False)
        loss.backward()  # type: ignore[no-untyped-call]
    assert 0 < largest <= max(pairs.logits_at_once, 3 * n_nodes)


def sampled(seed: int, adjacency: sparse.csr_array | None = None) -> SampledPairLoss:
    adjacency = random_adjacency() if adjacency is None else adjacency
    return SampledPairLoss(adjacency, CPU, np.random.default_rng(seed))


def test_permutations_and_their_inverses() -> None:
    adjacency = random_adjacency()
    permutations, inverses = sampled(0).draw_permutations()
    assert permutations.numel() >= adjacency.nnz > permutations.numel() - 23
    for number, order in enumerate(permutations):
        assert sorted(order.tolist()) == list(range(23))
        assert torch.equal(order[inverses[number] - 23 * number], torch.arange(23))
    assert not torch.equal(permutations[0], permutations[1])


def test_the_sampled_loss_is_that_of_its_pairs() -> None:
    """The reference is a loop over edges and sampled pairs."""
    adjacency = random_adjacency()
    z = torch.randn(23, 3, generator=torch.Generator().manual_seed(3), requires_grad=True)
    loss = sampled(1)(z)
    permutations, _ = sampled(1).draw_permutations()
    rows, columns = adjacency.nonzero()
    at_edges = [torch.log1p(torch.exp(-z[i] @ z[j])) for i, j in zip(rows, columns, strict=True)]
    at_others = [torch.log1p(torch.exp(z[i] @ z[j])) for order in permutations for i, j in enumerate(order)]
    expected = torch.stack(at_edges).mean() + torch.stack(at_others).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    losses = sampled(1)(z, with_value=False), expected
    actual, reference = (torch.autograd.grad(value, z)[0] for value in losses)
    torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-6)


def test_the_sampled_loss_of_a_graph_too_large_for_an_n_by_n_matrix() -> None:
    n_nodes = 200_000
    ring = sparse.eye_array(n_nodes, k=1, format="csr", dtype=np.float32)
    z = torch.zeros(n_nodes, 2, requires_grad=True)
    loss = sampled(0, sparse.csr_array(ring + ring.T))(z)
    assert loss.item() == pytest.approx(2 * np.log(2), rel=1e-5)


def test_pairs_are_drawn_again_in_every_call() -> None:
    pairs, z = sampled(0), torch.randn(23, 3, generator=torch.Generator().manual_seed(4))
    first, second = pairs(z).item(), pairs(z).item()
    assert first != second
    assert first == sampled(0)(z).item()


def test_the_sampled_gradient_of_a_complete_graph() -> None:
    """Random pairs are edges or self-pairs; with equal embeddings all logits are 2."""
    adjacency = sparse.csr_array(1 - np.eye(5, dtype=np.float32))
    z = torch.ones(5, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(sampled(0, adjacency)(z), z)
    expected = 2 / 5 * (torch.sigmoid(torch.tensor(2.0)) - torch.sigmoid(torch.tensor(-2.0)))
    torch.testing.assert_close(gradient, expected.expand(5, 2))


@pytest.mark.parametrize("logits_at_once", [1, 20, 37, None])
def test_presence_loss_is_the_dense_one(logits_at_once: int | None) -> None:
    rng = np.random.default_rng(0)
    features = sparse.csr_array(rng.normal(size=(11, 9)) * (rng.random((11, 9)) < 0.3))
    features.data[0] = 0.0  # a stored zero is not a feature
    present = torch.from_numpy((features.toarray() != 0).astype(float))
    tensors = [torch.from_numpy(rng.normal(size=shape)) for shape in ((11, 4), (4, 9), (9,))]
    z, weight, bias = (tensor.clone().requires_grad_() for tensor in tensors)
    zeros = (present == 0).sum() / present.sum()
    dense = binary_cross_entropy_with_logits(z @ weight + bias, present, pos_weight=zeros)
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    for with_value in (True, False):
        blocked = [tensor.clone().requires_grad_() for tensor in tensors]
        loss = PresenceLoss(features, torch.device("cpu"), logits_at_once)(*blocked, with_value=with_value)
        (3 * loss).backward()  # type: ignore[no-untyped-call]
        assert loss.item() == pytest.approx(dense.item() if with_value else 0)
        for actual, expected in zip(blocked, (z, weight, bias), strict=True):
            torch.testing.assert_close(actual.grad, expected.grad)

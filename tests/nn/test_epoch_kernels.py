from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.nn import kernels
from nodecopy.nn.compiled import FourArrayCSR
from nodecopy.nn.stack import Masks, draw_keys

rng = np.random.default_rng(0)
KEYS = draw_keys([SeedSequence(number) for number in range(3)], torch.device("cpu"))


@pytest.mark.parametrize("width", [1, 5, 16, 23, 48])
def test_products_are_those_of_scipy(width: int) -> None:
    matrix = sparse.csr_array(rng.normal(size=(7, 9)) * (rng.random((7, 9)) < 0.4)).astype(np.float32)
    rows = FourArrayCSR.from_csr(matrix)
    dense, other = (rng.normal(size=(n, width)).astype(np.float32) for n in (9, 7))
    product, transposed = (np.full((n, width), np.nan, np.float32) for n in (7, 9))
    kernels.multiply(*rows, dense, product)
    kernels.multiply_transpose(*rows, other, transposed)
    np.testing.assert_allclose(product, matrix @ dense, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(transposed, matrix.T @ other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", [0, 7, 2**20])
@pytest.mark.parametrize("place", [0, 1])
def test_masks_have_the_bits_of_torch(step: int, place: int) -> None:
    words, values = np.empty(251, np.uint32), np.ones(1001, np.float32)
    for key, expected in zip(KEYS.tolist(), Masks(KEYS, 0.4).draw(1001, step=step, place=place), strict=True):
        kernels.draw_words(key % 2**32, step, place, words)
        factors = np.empty_like(values)
        kernels.mask_values(values, words.view(np.uint8), round(256 * 0.4), factors)
        assert np.array_equal(factors, expected.numpy())


def test_the_gradient_of_the_cross_entropy() -> None:
    logits = torch.tensor(rng.normal(size=(4, 3)), dtype=torch.float32, requires_grad=True)
    targets = torch.tensor(rng.dirichlet(np.ones(3), size=4), dtype=torch.float32)
    weights = torch.tensor([0.5, 0.25, 0.25, 0.0])
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    (losses * weights).sum().backward()  # type: ignore[no-untyped-call]
    padded = np.zeros((4, 16), np.float32)
    padded[:, :3] = logits.detach() + 80  # would overflow without the shift
    kernels.shift_logits(padded, 3)
    padded = np.exp(padded)
    kernels.differentiate(padded, targets.numpy(), weights.numpy())
    assert logits.grad is not None
    np.testing.assert_allclose(padded[:, :3], logits.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_steps_of_adam_are_those_of_torch() -> None:
    ours = np.zeros(50, np.float32)
    theirs = torch.tensor(ours, requires_grad=True)
    optimiser = torch.optim.Adam([theirs], lr=0.01, weight_decay=0.1)
    mean, square = np.zeros((2, 50), np.float32)
    for number in range(1, 20):
        gradient = rng.normal(size=50).astype(np.float32)
        theirs.grad = torch.from_numpy(gradient.copy())
        optimiser.step()
        kernels.step_adam(ours, gradient, mean, square, 0.01, np.float32(0.1), number)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=0, atol=1e-7)

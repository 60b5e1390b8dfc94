"""Products by Triton: on a GPU where there is one, otherwise in Triton's interpreter."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy.nn.stack import MAX_ENTRIES, MAX_NARROW, SparseStack, build_csr_tensor

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported
pytest.importorskip("triton", reason="Triton comes with PyTorch for CUDA")

from nodecopy.nn.narrow_products import multiply_narrow  # noqa: E402


def compare(matrix: sparse.csr_array, width: int) -> None:
    """Check the product with a random matrix against one in double precision."""
    parts = (torch.from_numpy(part.astype(np.int32)).to(DEVICE) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data.astype(np.float32)).to(DEVICE)
    indptr, indices = parts
    dense = np.random.default_rng(1).normal(size=(matrix.shape[1], width)).astype(np.float32)
    tensor = build_csr_tensor((indptr, indices), values, matrix.shape)
    product = multiply_narrow(tensor, torch.from_numpy(dense).to(DEVICE)).cpu().numpy()
    np.testing.assert_allclose(product, matrix.astype(np.float64) @ dense, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(
    n_rows=st.integers(1, 60),
    n_columns=st.integers(1, 60),
    width=st.integers(1, MAX_NARROW),
    density=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_products_are_those_of_scipy(
    n_rows: int, n_columns: int, width: int, density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    present = rng.random((n_rows, n_columns)) < density
    compare(sparse.csr_array(rng.normal(size=present.shape) * present), width)


def test_rows_may_be_longer_than_what_is_read_at_once() -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 5 * MAX_ENTRIES + 3)) * (rng.random((40, 1)) < 0.2)
    dense[7] = 1.0  # a hub among empty rows
    compare(sparse.csr_array(dense), 3)


@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("width", [3, MAX_NARROW, MAX_NARROW + 1])
def test_stacks_on_a_gpu_have_the_products_and_gradients_of_the_cpu(width: int) -> None:
    rng = np.random.default_rng(0)
    matrices = [sparse.csr_array(rng.random((50, 30)) * (rng.random((50, 30)) < 0.2)) for _ in range(3)]
    dense = torch.from_numpy(rng.normal(size=(3, 30, width)).astype(np.float32))
    results = []
    for device in (torch.device("cpu"), DEVICE):
        inputs = dense.to(device).requires_grad_()
        product = SparseStack(matrices, device) @ inputs
        (gradient,) = torch.autograd.grad(product.square().sum(), inputs)
        results.append((product.detach().cpu(), gradient.cpu()))
    torch.testing.assert_close(results[0], results[1])

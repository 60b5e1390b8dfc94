"""Products of a sparse matrix with a dense one: by torch, or on a GPU by Triton if there are few columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodecopy._core.notices import log_decision

MAX_NARROW = 32
"""Columns of a dense matrix up to which Triton computes its product faster than cuSPARSE."""
MAX_ENTRIES, MAX_STEPS = 32, 1000
"""Entries of a row that Triton's kernel reads at once, and such steps up to which one row is no obstacle."""


def build_csr_tensor(index: tuple[Tensor, Tensor], values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a torch tensor of row pointers and columns, unchecked."""
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta; the tests here cover them
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(index[0], index[1], values, size=shape, check_invariants=False)


def multiply(matrix: Tensor, dense: Tensor, uses_triton: bool = False) -> Tensor:
    """Return the product of a CSR tensor with a matrix, by Triton if it may be used and columns are few."""
    if uses_triton and dense.shape[1] <= MAX_NARROW:
        product = load_narrow_product(dense.device)
        if product is not None:
            return product(matrix, dense.contiguous())
    return matrix @ dense


@cache
def load_narrow_product(device: torch.device) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Return Triton's product with few columns, or None where Triton is missing or cannot compile."""
    try:
        from nodecopy.nn.narrow_products import multiply_narrow  # not on a CPU: it takes a second

        index = torch.tensor([0, 1], device=device).int(), torch.tensor([0], device=device).int()
        one = torch.ones(1, device=device)
        multiply_narrow(build_csr_tensor(index, one, (1, 1)), one[:, None])
    except Exception as error:  # of many classes: without a C compiler, without Python.h, on an old GPU
        log_decision(f"products on the GPU: by cuSPARSE, since Triton fails ({type(error).__name__}).")
        return None
    return multiply_narrow


def has_short_rows(lengths: NDArray[np.integer]) -> bool:
    """Return whether a kernel that reads the mean of a row at once soon ends the longest row."""
    at_once = min(MAX_ENTRIES, max(1.0, float(lengths.mean())))
    return bool(lengths.max() <= MAX_STEPS * at_once)

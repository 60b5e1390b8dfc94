"""Dense matrices on the CPU: precision, blocks and bounds of memory."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.recommend import EASE
from nodecopy.recommend.algebra import NumpyAlgebra, row_blocks, solve_constrained
from nodecopy.recommend.torch_algebra import TorchAlgebra
from tests.contracts.recommenders import tastes


def test_overwriting_gives_the_same_bits() -> None:
    draws = np.random.default_rng(0)
    X, A = draws.random((40, 9)), draws.random((40, 9))
    M, C = X.T @ X, np.asfortranarray(X.T @ A)
    expected = solve_constrained(M, C, 2.0)
    assert np.array_equal(NumpyAlgebra().solve(M, C, 2.0, overwrite=True), expected)


def test_precision_by_condition() -> None:
    algebra, M = NumpyAlgebra(), 100 * np.eye(3)
    assert algebra.choose_precision(M, 1.0, "auto") == "single"
    assert algebra.choose_precision(M, 1e-4, "auto") == "double"
    assert algebra.choose_precision(M, 1e-4, "single") == "single"
    log = tastes()
    auto = EASE(regularisation=1e-4, precision="auto").fit(log).weights_
    assert np.array_equal(auto, EASE(regularisation=1e-4).fit(log).weights_)


def test_row_blocks() -> None:
    assert [*row_blocks(5, 2)] == [slice(0, 2), slice(2, 4), slice(4, 5)]


def test_memory_bounds_the_number_of_items() -> None:
    pytest.importorskip("torch")
    assert 10**3 < NumpyAlgebra().max_items() == TorchAlgebra("cpu").max_items() < 10**6

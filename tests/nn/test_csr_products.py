from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from nodecopy.nn.stack import (
    MAX_ENTRIES,
    MAX_STEPS,
    build_csr_tensor,
    has_short_rows,
    load_narrow_product,
    multiply,
)


@pytest.mark.parametrize(
    ("n_rows", "longest", "is_short"),
    [
        (10, 5, True),
        (100_000, MAX_STEPS, True),  # rows of one entry, and one of a thousand
        (100_000, 2 * MAX_STEPS, False),
        (10, MAX_ENTRIES * MAX_STEPS + 1, False),  # at most so many entries are read at once
    ],
)
def test_long_rows(n_rows: int, longest: int, is_short: bool) -> None:
    lengths = np.ones(n_rows, np.int64)
    lengths[3] = longest
    assert has_short_rows(lengths) is is_short


def test_products_without_triton(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "nodecopy.nn.narrow_products", None)  # its import fails
    load_narrow_product.cache_clear()
    index = torch.tensor([0, 2, 3]).int(), torch.tensor([0, 4, 1]).int()
    matrix = build_csr_tensor(index, torch.tensor([2.0, 3.0, 4.0]), (2, 5))
    with caplog.at_level("INFO", "nodecopy"):
        assert multiply(matrix, torch.ones(5, 1), True).tolist() == [[5.0], [4.0]]
    assert "by cuSPARSE, since Triton fails (ModuleNotFoundError)" in caplog.text
    load_narrow_product.cache_clear()

"""The compiled edge swaps against a plain implementation with a set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.generators.base import list_edges
from nodecopy.generators.kernels import swap_edges


def swap_plainly(edges: list[tuple[int, int]], directed: bool, left: Any, right: Any, flips: Any) -> None:
    for i, j, flip in zip(left.tolist(), right.tolist(), flips.tolist(), strict=True):
        (a, b), (c, d) = edges[i], edges[j]
        if not directed and flip:
            c, d = d, c
        new = [(a, d), (c, b)] if directed else [(min(a, d), max(a, d)), (min(c, b), max(c, b))]
        if len({a, b, c, d}) == 4 and not set(new) & set(edges):
            edges[i], edges[j] = new


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n_swaps", [1, 40, 2000])
def test_swaps_are_those_of_the_plain_implementation(directed: bool, n_swaps: int) -> None:
    """2000 swaps of about 50 edges rebuild the hash table many times."""
    rng = np.random.default_rng(n_swaps)
    first, second = list_edges(Graph(rng.random((15, 15)) < 0.25, directed=directed))
    left, right = rng.integers(0, len(first), (2, n_swaps))
    flips = rng.random(n_swaps) < 0.5
    expected = list(zip(first.tolist(), second.tolist(), strict=True))
    observed = list(expected)
    swap_plainly(expected, directed, left, right, flips)
    table = np.empty(1 << (4 * len(first)).bit_length(), np.int64)
    swap_edges(first, second, 15, directed, left, right, flips, table)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert n_swaps == 1 or expected != observed

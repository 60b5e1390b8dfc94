"""Numbering of node pairs in pairs of blocks, and the probability of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy.generators.blocks import count_pairs, draw_block_edges
from tests.generators.frequencies import assert_frequencies


def all_block_pairs(n_blocks: int, directed: bool) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    first, second = np.divmod(np.arange(n_blocks**2), n_blocks)
    selected = np.ones(len(first), bool) if directed else first <= second
    return np.stack([first, second])[:, selected]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.sampled_from([0.4, 1.0]))
def test_each_pair_of_nodes_occurs_at_most_once(sizes: list[int], directed: bool, probability: float) -> None:
    """If all probabilities are one, the graph is complete."""
    blocks = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    block_pairs, n_nodes = all_block_pairs(len(sizes), directed), sum(sizes)
    n_pairs = count_pairs(block_pairs, np.array(sizes), directed=directed)
    assert n_pairs.sum() == n_nodes * (n_nodes - 1) // (1 if directed else 2)
    probabilities = np.full(block_pairs.shape[1], probability)
    first, second = draw_block_edges(
        blocks, block_pairs, probabilities, np.random.default_rng(1), directed=directed
    )
    pairs = {(i, j) if directed else (min(i, j), max(i, j)) for i, j in zip(first, second, strict=True)}
    assert len(pairs) == len(first)
    assert all(i != j for i, j in pairs)
    if probability == 1:
        assert len(pairs) == n_pairs.sum()


@pytest.mark.parametrize("directed", [False, True])
def test_frequencies_are_the_probabilities(directed: bool) -> None:
    """Pairs of blocks below and above one half, which are drawn in two ways; some have no edges."""
    blocks = np.array([0, 1, 0, 2, 1, 0])
    block_pairs = all_block_pairs(3, directed)[:, :-1]
    probabilities = np.linspace(0.1, 0.9, block_pairs.shape[1])
    expected = np.zeros((6, 6))
    for (r, s), probability in zip(block_pairs.T, probabilities, strict=True):
        expected[np.ix_(blocks == r, blocks == s)] = probability
        if not directed:
            expected[np.ix_(blocks == s, blocks == r)] = probability
    np.fill_diagonal(expected, 0)
    rng, counts = np.random.default_rng(2), np.zeros((6, 6))
    for _ in range(1500):
        first, second = draw_block_edges(blocks, block_pairs, probabilities, rng, directed=directed)
        counts[first, second] += 1
    if not directed:
        counts, expected = np.triu(counts + counts.T), np.triu(expected)
    assert_frequencies(counts / 1500, expected, 1500)

"""Samples of independent edges whose probability depends on the blocks of the two nodes.

All pairs of nodes in the same pair of blocks have the same probability p. A Poisson number of node pairs is
drawn uniformly from each pair of blocks, with mean -log(1 - p) per node pair. Each node pair is then drawn at
least once with probability p, independently of the others, so the distinct pairs are exactly the edges.
Where p exceeds one half, all node pairs are enumerated instead: they are fewer than two per edge. Time and
memory grow with the number of edges.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nodecopy.generators.base import Edges, Nodes, sort_unique

Floats: TypeAlias = NDArray[np.float64]
MAX_POISSON_PROBABILITY = 0.5


def count_pairs(block_pairs: Nodes, sizes: Nodes, *, directed: bool) -> Nodes:
    """Return the number of pairs of different nodes in each pair of blocks, ``[2, n]``."""
    first, second = block_pairs
    within = sizes[first] * (sizes[first] - 1) // (1 if directed else 2)
    counts: Nodes = np.where(first == second, within, sizes[first] * sizes[second])
    return counts


def draw_block_edges(
    blocks: Nodes, block_pairs: Nodes, probabilities: Floats, rng: Generator, *, directed: bool
) -> Edges:
    """Draw edges between different nodes, each with the probability of its pair of blocks.

    Parameters
    ----------
    blocks
        The block of each node.
    block_pairs
        ``[2, n]``, each pair of blocks once, with ``first <= second`` unless ``directed``. Pairs that are not
        listed have no edges.
    probabilities
        The probability of an edge in each pair of blocks.
    rng
        Generator of the draws.
    directed
        Whether (i, j) and (j, i) are two pairs of nodes.
    """
    sizes = np.bincount(blocks, minlength=1)
    n_pairs = count_pairs(block_pairs, sizes, directed=directed)
    dense = probabilities > MAX_POISSON_PROBABILITY
    n_listed = n_pairs * dense
    listed = np.repeat(np.arange(len(n_pairs)), n_listed)
    numbers = np.arange(len(listed)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed)
    is_edge = rng.random(len(listed)) < probabilities[listed]
    listed, numbers = listed[is_edge], numbers[is_edge]
    n_draws = rng.poisson(-np.log1p(-np.where(dense, 0, probabilities)) * n_pairs)
    owners = np.repeat(np.arange(len(n_pairs)), n_draws)
    starts = np.cumsum(n_pairs) - n_pairs
    hits = sort_unique(starts[owners] + rng.integers(0, n_pairs[owners]))
    owners = np.searchsorted(starts, hits, side="right") - 1
    selected = np.concatenate([listed, owners])
    numbers = np.concatenate([numbers, hits - starts[owners]])
    first, second = block_pairs[:, selected]
    return _decode_pairs(blocks, sizes, first, second, numbers, directed)


def _decode_pairs(
    blocks: Nodes, sizes: Nodes, first: Nodes, second: Nodes, numbers: Nodes, directed: bool
) -> Edges:
    """Return the two nodes of the pairs with these numbers in the pairs of blocks (first, second)."""
    width = sizes[second]
    within = first == second
    if directed:  # a row for each node, without the node itself
        row, column = np.divmod(numbers, np.maximum(width - within, 1))
        column += within & (column >= row)
    else:  # within a block, whose nodes form a circle: pairs at distance 1, then 2, ... up to half of it
        row, column = np.divmod(numbers, width)
        row, column = np.where(within, column, row), np.where(within, (column + row + 1) % width, column)
    members, starts = np.argsort(blocks, kind="stable"), np.cumsum(sizes) - sizes
    return members[starts[first] + row], members[starts[second] + column]

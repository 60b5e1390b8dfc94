"""Independent edges whose probability depends on the blocks of the two nodes, at the cost of edges.

A *cell* is a pair of blocks: all its pairs of nodes are equally likely to be edges. A Poisson number of
pairs is thrown into each cell, uniformly; with a mean of -log(1 - p) for each pair, the chance that a
pair is hit at all is p, and hits of different pairs are independent. So the distinct pairs that are hit
are the edges, exactly. Where p is above a half, all pairs of the cell are listed instead, which are fewer
than two for each edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nodecopy.generators.base import Nodes, Pairs, ascending


class Cells(NamedTuple):
    """Pairs of blocks, each once (``first <= second`` where undirected), and what is known of them."""

    first: Nodes
    second: Nodes
    probability: NDArray[np.float64]


def n_pairs(first: Nodes, second: Nodes, sizes: Nodes, *, directed: bool) -> Nodes:
    """How many pairs of different nodes each cell has."""
    within = sizes[first] * (sizes[first] - 1) // (1 if directed else 2)
    return np.where(first == second, within, sizes[first] * sizes[second])


def draw_cells(blocks: Nodes, cells: Cells, draws: Generator, *, directed: bool) -> Pairs:
    """Pairs of different nodes, each with the probability of its cell; cells not listed have none."""
    sizes = np.bincount(blocks, minlength=1)
    space = n_pairs(cells.first, cells.second, sizes, directed=directed)
    dense = cells.probability > 0.5
    listed = np.repeat(np.arange(len(space)), space * dense)
    number = np.arange(len(listed)) - np.repeat(np.cumsum(space * dense) - space * dense, space * dense)
    kept = draws.random(len(listed)) < cells.probability[listed]
    listed, number = listed[kept], number[kept]
    hits = draws.poisson(-np.log1p(-np.where(dense, 0, cells.probability)) * space)
    thrown = np.repeat(np.arange(len(space)), hits)
    starts = np.cumsum(space) - space
    hit = ascending(starts[thrown] + draws.integers(0, space[thrown]))
    found = np.searchsorted(starts, hit, side="right") - 1
    cell, number = np.concatenate([listed, found]), np.concatenate([number, hit - starts[found]])
    return _nodes(blocks, sizes, cells.first[cell], cells.second[cell], number, directed)


def _nodes(blocks: Nodes, sizes: Nodes, one: Nodes, other: Nodes, number: Nodes, directed: bool) -> Pairs:
    """The two nodes of pair ``number`` of each cell (one, other)."""
    width = sizes[other]
    within = one == other
    if directed:  # a row for each node, which leaves out the node itself
        row, column = np.divmod(number, np.maximum(width - within, 1))
        column += within & (column >= row)
    else:  # within a block, seen as a circle: pairs at distance 1, then at distance 2, ... half way round
        row, column = np.divmod(number, width)
        row, column = np.where(within, column, row), np.where(within, (column + row + 1) % width, column)
    members, starts = np.argsort(blocks, kind="stable"), np.cumsum(sizes) - sizes
    return members[starts[one] + row], members[starts[other] + column]

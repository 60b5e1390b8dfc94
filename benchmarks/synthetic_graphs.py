"""Large synthetic graphs for the benchmarks, built by sorting so that 10^8 entries fit into a laptop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core import random as randomness
from nodecopy._core.arrays import Rows, index_dtype
from nodecopy._core.random import Rng
from nodecopy.graph import Graph

MEAN_DEGREE = 10
WITHIN_SHARE = 0.7
KEY_BITS = np.uint64(32)


def power_law_graph(
    n_entries: int, *, n_communities: int = 20, mean_degree: int = MEAN_DEGREE, rng: Rng = 0
) -> Graph:
    """Return a simple undirected graph with power-law degrees and planted communities.

    Edges are drawn in proportion to weights (Chung and Lu) with exponent 2.5, capped so that no expected
    degree exceeds ``sqrt(n_entries)``; 70 % of them are within a community. The graph has
    ``n_entries / mean_degree`` nodes in random order and, up to 1 %, ``n_entries`` stored entries.
    """
    random = randomness.generator(rng)
    n_nodes = max(n_entries // mean_degree, n_communities)
    names = random.permutation(n_nodes).astype(np.uint64)
    keys = np.zeros(0, np.uint64)
    while (missing := n_entries // 2 - len(keys)) > n_entries // 200:
        keys = np.concatenate([keys, _draw(missing, n_nodes, n_entries, n_communities, names, random)])
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    labels = np.empty(n_nodes, np.int64)
    labels[names] = np.arange(n_nodes) % n_communities
    return Graph(sparse.csr_array((n_nodes, n_nodes)), labels=labels).with_rows(_rows(keys, n_nodes))


def _draw(
    size: int,
    n_nodes: int,
    n_entries: int,
    n_communities: int,
    names: NDArray[np.uint64],
    rng: np.random.Generator,
) -> NDArray[np.uint64]:
    """Draw keys ``smaller << 32 | larger`` of about ``size`` edges, possibly with duplicates."""
    first = _ranks(rng.random(size), n_nodes, n_entries)
    second = _ranks(rng.random(size), n_nodes, n_entries)
    probability = (WITHIN_SHARE - 1 / n_communities) / (1 - 1 / n_communities) if n_communities > 1 else 0
    within = rng.random(size) < probability
    moved = second - second % n_communities + first % n_communities  # a close rank in the same community
    second = np.where(within, moved - np.where(moved < n_nodes, 0, n_communities), second)
    different = first != second
    a, b = names[first[different]], names[second[different]]
    keys: NDArray[np.uint64] = np.minimum(a, b) << KEY_BITS | np.maximum(a, b)
    return keys


def _ranks(uniforms: NDArray[np.float64], n_nodes: int, n_entries: int) -> NDArray[np.int64]:
    """Return ranks in proportion to (rank + shift)^(-2/3), by inverting the distribution function."""
    shift = (n_entries / (3 * np.cbrt(n_nodes) * np.sqrt(n_entries))) ** 1.5
    low, high = np.cbrt(shift), np.cbrt(n_nodes + shift)
    ranks = (low + uniforms * (high - low)) ** 3 - shift
    whole: NDArray[np.int64] = np.minimum(ranks, n_nodes - 1).astype(np.int64)
    return whole


def _rows(keys: NDArray[np.uint64], n_nodes: int) -> Rows:
    """Return both directions of every edge as canonical rows."""
    both = np.concatenate([keys, keys << KEY_BITS | keys >> KEY_BITS])
    both.sort()
    starts = np.searchsorted(both, np.arange(n_nodes + 1, dtype=np.uint64) << KEY_BITS)
    dtype = index_dtype(len(both), n_nodes)
    indices = both.astype(np.uint32).astype(dtype)
    return Rows(starts.astype(dtype), indices, None, n_nodes)

"""Graphs drawn from known models with given nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy import Graph

Floats = NDArray[np.float64]


def two_blocks(n_nodes: int, inside: float = 0.12, across: float = 0.03) -> Floats:
    """Return the probabilities of a block model with two blocks of equal size."""
    block = np.arange(n_nodes) % 2
    return np.where(block[:, None] == block, inside, across)


def heavy_tail(n_nodes: int, exponent: float = 3.0, seed: int = 0) -> Floats:
    """Return the probabilities of a degree-corrected block model with Pareto activities."""
    activity = (1 - np.random.default_rng(seed).random(n_nodes)) ** (-1 / exponent)
    scale = np.outer(activity, activity) / activity.mean() ** 2
    return np.asarray(np.minimum(two_blocks(n_nodes) * scale, 1))


def draw_graph(probabilities: Floats, rng: np.random.Generator, **settings: Any) -> Graph:
    """Return a graph with independent edges."""
    return Graph(np.triu(rng.random(probabilities.shape) < probabilities, 1), **settings)

"""A graph model: rewire one end of some edges."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.random import SeedSequence

from nodecopy import Graph, GraphModel
from nodecopy.errors import InputError


class Rewired(GraphModel[Graph]):
    """Move the target of every edge to a random node with probability ``share``."""

    def __init__(self, share: float = 0.1) -> None:
        self.share = share

    def fit(self, graph: Graph, *, rng: object = None) -> Self:
        if not 0 <= self.share <= 1:
            raise InputError(f"share of Rewired must be a number between 0 and 1; got {self.share!r}.")
        self.share_, self.graph_ = self.share, graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        rng, ids = np.random.default_rng(seed), self.graph_.node_ids
        source, target, weight = self.graph_.edges()
        is_moved = rng.random(len(target)) < self.share_
        target = np.where(is_moved, rng.choice(ids, len(target)), target)
        sample = Graph.from_edges(source, target, weight, node_ids=ids, directed=self.graph_.directed)
        return self.graph_.replace(adjacency=sample.adjacency)

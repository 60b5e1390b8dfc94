"""The reference row of tables of graph models."""

from __future__ import annotations

from typing import Self

from numpy.random import SeedSequence

from nodecopy._core.random import Rng
from nodecopy.graph import Graph
from nodecopy.models import GraphModel


class ObservedGraph(GraphModel[Graph]):
    """A graph model whose samples are the observed graph itself."""

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Store the graph."""
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the observed graph."""
        return self.check_fitted()

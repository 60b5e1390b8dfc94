"""Node copying of directed graphs in which either end of an edge may decide: the default for them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.csr import Rows
from nodecopy._core.random import Rng
from nodecopy._core.validation import check_type
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.inference.degree_classes import DegreeClasses
from nodecopy.models import GraphModel


class DirectedCopying(GraphModel[Graph]):
    """Copy out-neighbours or in-neighbours: a fair coin per ordered pair chooses the end that decides.

    It is one-endpoint node copying of the bipartite graph that has every node twice, as a source and as a
    target. Donors of a source are those of :class:`.DegreeClasses` by out-degree, donors of a target those by
    in-degree. :class:`.NodeCopying` of a directed graph copies rows alone: a node without other donors keeps
    its out-neighbours in all samples, and in-degrees vary more than those of independent edges. Samples have
    no self-loops.

    Parameters
    ----------
    communities, tolerance
        As in :class:`.DegreeClasses`.

    Attributes
    ----------
    graph_
        The observed graph.
    model_
        Node copying of the bipartite graph.

    Examples
    --------
    >>> from nodecopy import Graph
    >>> from nodecopy.inference import DirectedCopying
    >>> graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0], directed=True)
    >>> DirectedCopying().fit(graph).sample(rng=0).directed
    True
    """

    graph_: Graph
    model_: NodeCopying[Graph]

    def __init__(self, communities: ArrayLike | str | None = None, tolerance: float = 2.0) -> None:
        self.communities = communities
        self.tolerance = tolerance

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Estimate communities and classes of degrees; ``rng`` is not used."""
        graph = convert_graph(graph, "graph of DirectedCopying")
        if not graph.directed:
            raise InputError(
                f"graph of DirectedCopying must be directed; got {graph!r}. Use NodeCopying(DegreeClasses())."
            )
        law = DegreeClasses(self.communities, self.tolerance)
        codes = law.find_communities(graph)
        both: Any = np.concatenate([codes, codes + codes.max(initial=0) + 1])
        self.model_ = NodeCopying(DegreeClasses(both, self.tolerance)).fit(_bipartite_cover(graph))
        self.graph_ = graph
        return self

    def _check_state(self) -> None:
        check_type(self.graph_, Graph, "graph_", "a Graph")
        check_type(self.model_, NodeCopying, "model_", "node copying")
        if self.model_.check_fitted() != _bipartite_cover(self.graph_):
            raise InputError("model_ must be fitted to the sources and targets of graph_.")

    def draw(self, seed: SeedSequence) -> Graph:
        rows, n_nodes = self.model_.draw(seed).rows, self.graph_.n_nodes
        sources, targets = rows.row_numbers, rows.indices - n_nodes
        selected = (sources < n_nodes) & (sources != targets)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(sources[selected], minlength=n_nodes))])
        weights = None if rows.weights is None else rows.weights[selected]
        return self.graph_.with_rows(Rows.canonical(indptr, targets[selected], weights, n_nodes))


def _bipartite_cover(graph: Graph) -> Graph:
    """Return the graph that has every node twice, first as a source and then as a target."""
    return Graph(sparse.block_array([[None, graph.adjacency], [graph.adjacency.T, None]], format="csr"))

"""Networks drawn from known models, on which intervals and tests are measured, and changed graphs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.random import Rng, child
from nodecopy.generators import SBM, BlockConfigurationModel, ConfigurationModel
from nodecopy.generators.base import EdgeListModel, Edges, list_edges, remove_duplicates, replace_edges
from nodecopy.generators.classical import IndependentEdges
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.inference import DegreeClasses
from nodecopy.models import GraphModel

KNOWN_NETWORKS = {  # with the means of the probabilities that _draw_nodes returns
    "sbm": 0.625,  # two blocks, with four times as many edges inside as across
    "dc-sbm": 0.625,  # the same with Pareto(3) activities
    "dot-product": 0.141,  # Dirichlet positions; blocks are the nearest corners
    "graphon": 0.14,  # a smooth graphon; blocks are its halves
    "bipartite": 0.5,
    "directed": 0.625,  # a block model with Pareto(3) out-degrees
    "recurrent": 0.625,  # dc-sbm, where a few pairs have most of the contacts
    "absent": 0.506,  # dc-sbm, where each node is absent from every tenth network
    "busy": 0.5,  # dc-sbm, where networks have 60 to 100 % of the edges
}
ABSENCE, MIN_ACTIVITY, RECURRENCE = 0.1, 0.6, 0.2  # the last one is the shape of gamma rates of pairs
VARIANTS = ("observed", "edges", "features", "thin", "dense")  # of graphs, see :func:`change_graph`
HOMOPHILY, KEPT_FEATURES, KEPT_NODES, MIN_NODES = 0.4, 0.1, 0.05, 40
CORNERS = np.array([[0.5, 0.1, 0.1], [0.1, 0.45, 0.1], [0.1, 0.1, 0.4]])


def _draw_nodes(name: str, n_nodes: int, rng: Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    if name == "dot-product":
        weights = rng.dirichlet([1, 1, 1], n_nodes)
        positions = weights @ CORNERS
        return weights.argmax(axis=1), positions @ positions.T
    if name == "graphon":
        u = rng.random(n_nodes)
        probabilities = 0.25 * np.exp(-(u[:, None] + u)) + 0.08 * np.cos(np.pi * (u[:, None] - u)) ** 2
        return (u > 0.5).astype(np.int64), probabilities
    blocks = rng.integers(0, 2, n_nodes)
    is_same = blocks[:, None] == blocks
    if name == "bipartite":
        return blocks, (~is_same).astype(np.float64)
    probabilities = np.where(is_same, 1.0, 0.25)
    if name != "sbm":
        activity = (1 - rng.random(n_nodes)) ** (-1 / 3) / 1.5  # Pareto(3) with mean 1
        probabilities *= activity[:, None] if name == "directed" else np.outer(activity, activity)
    if name == "recurrent":
        rates = np.triu(rng.gamma(RECURRENCE, 1 / RECURRENCE, probabilities.shape))
        probabilities *= rates + rates.T
    return blocks, probabilities


class KnownNetwork(GraphModel[Graph]):
    """The true model of a network: the reference row of tables.

    Edges are independent, given the nodes that are absent and the share of edges that a busy network has.
    """

    def __init__(
        self, probabilities: Any = None, blocks: Any = None, directed: bool = False, variation: str = ""
    ) -> None:
        self.probabilities, self.blocks, self.directed = probabilities, blocks, directed
        self.variation = variation

    @classmethod
    def by_name(
        cls, name: str, n_nodes: int, degree: float, seed: SeedSequence, limit: float = 0.95
    ) -> KnownNetwork:
        blocks, probabilities = _draw_nodes(name, n_nodes, np.random.default_rng(seed))
        probabilities *= degree / (n_nodes * KNOWN_NETWORKS[name])
        return cls(np.minimum(probabilities, limit), blocks, name == "directed", name)

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        return self

    @cached_property
    def _parts(self) -> tuple[Graph, IndependentEdges]:
        empty = sparse.csr_array((len(self.blocks), len(self.blocks)))
        graph = Graph(empty, labels=self.blocks, directed=self.directed)
        return graph, IndependentEdges(self.probabilities, self.directed)

    def draw(self, seed: SeedSequence) -> Graph:
        (empty, edges), rng = self._parts, np.random.default_rng(seed)
        first, second = edges.draw(rng)
        is_kept = np.ones(len(first), bool)
        if self.variation == "absent":
            is_absent = rng.random(empty.n_nodes) < ABSENCE
            is_kept = ~(is_absent[first] | is_absent[second])
        elif self.variation == "busy":
            is_kept = rng.random(len(first)) < rng.uniform(MIN_ACTIVITY, 1)
        return replace_edges(empty, first[is_kept], second[is_kept])


class ClassBlocks(SBM):
    """The block model of the degree classes, a control of copying by them."""

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        return super().fit(graph.replace(labels=DegreeClasses().fit(graph).list_of), rng=rng)


STRUCTURED = ("bipartite", "directed", "weighted")  # uniform given degrees; weights are independent
NULL_NETWORKS = (
    *("erdos-renyi", "configuration", "sbm", "dc-sbm", "planted-triangles", "planted-communities"),
    *STRUCTURED,
    *(f"planted-{name}" for name in STRUCTURED),
)
N_SWAPS = 30  # attempted swaps per edge that randomise a network with given degrees
N_PLANTED = 100  # triangles that are planted
PLANTED_RATIO = 0.85  # probability of an edge across planted communities over that inside
WEIGHT_EXPONENT = 0.1  # of the product of degrees, to which planted weights are proportional


class StubMatching(EdgeListModel):
    """The configuration model as users of NetworkX draw it."""

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.stubs_ = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        if graph.directed:
            return remove_duplicates(self.stubs_[0], rng.permutation(self.stubs_[1]), graph.n_nodes, True)
        first, second = rng.permutation(self.stubs_[0]).reshape(2, -1)
        return remove_duplicates(first, second, graph.n_nodes, False)


def draw_null_network(name: str, n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    """Return a network on which tests are measured, with two blocks as labels."""
    first, second = child(seed, 0), child(seed, 1)
    if name == "sbm":
        return KnownNetwork.by_name("sbm", n_nodes, degree, first).draw(second)
    if name == "dc-sbm":
        return factored_odds(n_nodes, degree, first).draw(second)
    if name == "configuration":
        start = KnownNetwork.by_name("dc-sbm", n_nodes, degree, child(first, 0)).draw(child(first, 1))
        return ConfigurationModel(N_SWAPS).fit(start).draw(second)
    if name == "planted-triangles":
        graph, rng = draw_null_network("configuration", n_nodes, degree, first), np.random.default_rng(second)
        corners = np.stack([rng.choice(n_nodes, 3, replace=False) for _ in range(N_PLANTED)])
        sources, targets = list_edges(graph)
        sources = np.concatenate([sources, *corners.T])
        targets = np.concatenate([targets, *np.roll(corners, 1, axis=1).T])
        return replace_edges(graph, *remove_duplicates(sources, targets, n_nodes, False))
    if name.removeprefix("planted-") in STRUCTURED:
        return _draw_structured(name.removeprefix("planted-"), n_nodes, degree, first, "planted" in name)
    blocks = np.arange(n_nodes) % 2
    if name == "erdos-renyi":
        return KnownNetwork(np.full((n_nodes, n_nodes), degree / n_nodes), blocks).draw(seed)
    p = np.where(blocks[:, None] == blocks, 1.0, PLANTED_RATIO)
    return KnownNetwork(p * (degree / n_nodes / p.mean()), blocks).draw(seed)


def _draw_structured(kind: str, n_nodes: int, degree: int, seed: SeedSequence, is_planted: bool) -> Graph:
    """Return a network with Pareto(3) activities; planted are communities, or weights that follow degrees."""
    rng, nodes = np.random.default_rng(seed), np.arange(n_nodes)
    blocks, sides = nodes % 2, nodes * 2 // n_nodes
    p = np.outer(*((1 - rng.random(n_nodes)) ** (-1 / 3) for _ in range(2)))
    p = p if kind == "directed" else np.sqrt(p * p.T)
    if is_planted and kind != "weighted":
        p *= np.where(blocks[:, None] == blocks, 1.0, PLANTED_RATIO)
    if kind == "bipartite":
        p *= sides[:, None] != sides
    p *= degree / n_nodes / p.mean()
    graph = KnownNetwork(np.minimum(p, 0.95), blocks, kind == "directed").draw(child(seed, 0))
    if not is_planted or kind == "weighted":
        model = BlockConfigurationModel(N_SWAPS) if kind == "bipartite" else ConfigurationModel(N_SWAPS)
        labels: Any = sides if kind == "bipartite" else blocks
        graph = model.fit(graph.replace(labels=labels)).draw(child(seed, 1)).replace(labels=blocks)
    if kind != "weighted":
        return graph
    ends = list_edges(graph)
    weights = (1 - rng.random(len(ends[0]))) ** (-1 / 3)
    if is_planted:
        weights *= np.prod([graph.degrees[nodes] for nodes in ends], axis=0) ** WEIGHT_EXPONENT
    return replace_edges(graph, *ends, weights)


def factored_odds(n_nodes: int, degree: int, seed: SeedSequence) -> KnownNetwork:
    """Return a degree-corrected block model whose odds of edges factor."""
    odds = KnownNetwork.by_name("dc-sbm", n_nodes, degree, seed, np.inf)  # odds with a limit would not factor
    return KnownNetwork(odds.probabilities / (1 + odds.probabilities), odds.blocks)


def change_graph(graph: Graph, variant: str, seed: SeedSequence) -> Graph:
    """Return a graph that is harder to classify, or denser.

    ``"edges"``: random edges are added until 40 % of the edges connect nodes of the same class.
    ``"features"``: nine of ten columns are left out. ``"thin"``: every second class keeps 5 % of its nodes,
    but at least 40. ``"dense"``: as many edges again, between nodes of the same class as often as before.
    """
    rng, n = np.random.default_rng(child(seed, VARIANTS.index(variant))), graph.n_nodes
    classes, codes = class_codes(cast(Any, graph.label_codes))
    if variant == "features":
        features = sparse.csc_array(cast(Any, graph.features))
        n_kept = max(1, round(KEPT_FEATURES * features.shape[1]))
        kept = np.sort(rng.permutation(features.shape[1])[:n_kept])
        return graph.replace(features=sparse.csr_array(features[:, kept]))
    if variant == "thin":
        is_kept = np.ones(n, bool)
        for code in range(1, len(classes), 2):
            of_class = rng.permutation(np.flatnonzero(codes == code))
            is_kept[of_class[max(MIN_NODES, int(KEPT_NODES * len(of_class))) :]] = False
        return graph.subgraph(np.flatnonzero(is_kept))
    edges = sparse.triu(graph.adjacency, 1).tocoo()
    is_same = (codes[edges.row] == codes[edges.col]) & (codes[edges.row] != UNLABELLED)
    n_edges, n_same = edges.nnz, int(is_same.sum())
    if variant == "edges":
        chance = float(((np.bincount(codes[codes != UNLABELLED]) / n) ** 2).sum())
        n_added = max(0, round((n_same - HOMOPHILY * n_edges) / (HOMOPHILY - chance)))
        first, second = rng.integers(0, n, (2, n_added))
    else:
        first, second = rng.integers(0, n, (2, n_edges))
        is_same = rng.random(n_edges) < n_same / n_edges
        for code in range(len(classes)):
            chosen = is_same & (codes[first] == code)
            second[chosen] = rng.choice(np.flatnonzero(codes == code), chosen.sum())
    is_edge = first != second
    added = sparse.csr_array(
        (np.ones(is_edge.sum()), (first[is_edge], second[is_edge])), shape=graph.adjacency.shape
    )
    return graph.replace(adjacency=(graph.adjacency + added + added.T) != 0)

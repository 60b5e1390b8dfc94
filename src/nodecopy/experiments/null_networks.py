"""Networks on which tests are measured: of null models, and with planted triangles or communities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator, SeedSequence

from nodecopy._core.random import child
from nodecopy.experiments.known_networks import KnownNetwork
from nodecopy.generators import ConfigurationModel
from nodecopy.generators.base import EdgeListModel, Edges, list_edges, remove_duplicates, replace_edges
from nodecopy.graph import Graph

N_SWAPS = 30
"""Attempted swaps per edge that randomise a network with given degrees."""
N_PLANTED = 100
"""Triangles that are planted."""
PLANTED_RATIO = 0.85
"""Probability of an edge across planted communities over that inside."""


class StubMatching(EdgeListModel):
    """The configuration model as users of NetworkX draw it.

    Ends of edges are paired at random; repeated edges and self-loops are then removed, as by
    ``nx.Graph(nx.configuration_model(degrees))`` and ``remove_edges_from(nx.selfloop_edges(graph))``.
    """

    def _estimate(self, graph: Graph, rng: Generator) -> None:
        self.stubs_ = np.repeat(np.arange(graph.n_nodes), graph.degrees)

    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        first, second = rng.permutation(self.stubs_).reshape(2, -1)
        return remove_duplicates(first, second, graph.n_nodes, False)


def _known(name: str, n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    return KnownNetwork.by_name(name, n_nodes, degree, child(seed, 0)).draw(child(seed, 1))


def _erdos_renyi(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    p, blocks = np.full((n_nodes, n_nodes), degree / n_nodes), np.arange(n_nodes) % 2
    return KnownNetwork(p, blocks).draw(seed)


def _configuration(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    graph = _known("dc-sbm", n_nodes, degree, child(seed, 0))
    return ConfigurationModel(N_SWAPS).fit(graph).draw(child(seed, 1))


def _planted_triangles(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    graph, rng = _configuration(n_nodes, degree, child(seed, 0)), np.random.default_rng(child(seed, 1))
    corners = np.stack([rng.choice(n_nodes, 3, replace=False) for _ in range(N_PLANTED)])
    first, second = list_edges(graph)
    first = np.concatenate([first, *corners.T])
    second = np.concatenate([second, *np.roll(corners, 1, axis=1).T])
    return replace_edges(graph, *remove_duplicates(first, second, n_nodes, False))


def _planted_communities(n_nodes: int, degree: int, seed: SeedSequence) -> Graph:
    blocks = np.arange(n_nodes) % 2
    p = np.where(blocks[:, None] == blocks, 1.0, PLANTED_RATIO)
    return KnownNetwork(p * (degree / n_nodes / p.mean()), blocks).draw(seed)


def factored_odds(n_nodes: int, degree: int, seed: SeedSequence) -> KnownNetwork:
    """Return a degree-corrected block model whose odds of edges factor.

    Its networks are uniform given the number of edges from each node to each block.
    """
    odds = KnownNetwork.by_name("dc-sbm", n_nodes, degree, seed, np.inf)  # odds with a limit would not factor
    return KnownNetwork(odds.probabilities / (1 + odds.probabilities), odds.blocks)


NULL_NETWORKS: dict[str, Callable[[int, int, SeedSequence], Graph]] = {
    "erdos-renyi": _erdos_renyi,
    "configuration": _configuration,
    "sbm": lambda n_nodes, degree, seed: _known("sbm", n_nodes, degree, seed),
    "dc-sbm": lambda n_nodes, degree, seed: factored_odds(n_nodes, degree, child(seed, 0)).draw(
        child(seed, 1)
    ),
    "planted-triangles": _planted_triangles,
    "planted-communities": _planted_communities,
}
"""How networks are drawn, by name; all have two blocks as labels. Erdős-Rényi; uniform among the graphs with
the degrees of a network with Pareto(3) activities; the block models of :mod:`.known_networks`; the second
with planted triangles; and the first with somewhat more edges inside the blocks."""

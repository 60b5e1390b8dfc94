"""Node copying from NetworkX graphs to NetworkX graphs.

Nodes of any type keep their order and attributes. An edge has the attributes of the edge it was copied from.
Of parallel edges the heaviest one is kept.

>>> import networkx as nx
>>> from nodecopy.copying.networkx import sample
>>> club = nx.karate_club_graph()
>>> other = sample(club, label="club", rng=0)
>>> list(other) == list(club), other.nodes[33]["club"], len(other.edges) < 2 * len(club.edges)
(True, 'Officer', True)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nodecopy._core.checks import check_type
from nodecopy._core.imports import import_optional
from nodecopy._core.random import Rng
from nodecopy.copying.donors import DonorRule, SameLabel
from nodecopy.copying.model import EdgeTrackingSampler, NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import from_networkx


def sample(
    network: Any,
    *,
    label: str | None = None,
    donors: DonorRule | None = None,
    keep: float = 0.0,
    symmetrise: str = "one-endpoint",
    weight: str = "weight",
    rng: Rng = None,
) -> Any:
    """Return a sample of ``network`` by node copying.

    Parameters
    ----------
    network
        Any NetworkX graph; it is not changed.
    label
        Node attribute with classes; a node without it keeps its neighbours. Required unless ``donors`` is given.
    donors
        Donor rule; :class:`.SameLabel` of ``label`` by default.
    keep, symmetrise
        As in :class:`.NodeCopying`.
    weight
        Edge attribute with weights, ``"weight"`` by default; an edge without it has weight one.
    rng
        Seed or generator.

    Examples
    --------
    >>> import networkx as nx
    >>> sample(nx.karate_club_graph(), label="club", symmetrise="one-endpoint", rng=0).nodes[0]
    {'club': 'Mr. Hi'}
    """
    settings = {"label": label, "donors": donors, "keep": keep, "symmetrise": symmetrise, "weight": weight}
    return next(sample_many(network, 1, rng=rng, **settings))


def sample_many(network: Any, n: int, *, rng: Rng = None, **settings: Any) -> Iterator[Any]:
    """Yield ``n`` samples, the first of which is that of :func:`sample`, with the same parameters.

    >>> import networkx as nx
    >>> from nodecopy import Jaccard
    >>> [other.number_of_nodes() for other in sample_many(nx.path_graph(4), 2, donors=Jaccard(), rng=0)]
    [4, 4]
    """
    model = _fit(network, **settings)
    position_of = {node: number for number, node in enumerate(network)}
    edges = list(network.edges(data=True))
    first, second = (np.array([position_of[edge[end]] for edge in edges], np.int64) for end in (0, 1))
    weight = settings.get("weight", "weight")
    weights = np.array([edge[2].get(weight, 1.0) for edge in edges], np.float64)
    nodes = list(network)
    for *ends, origin in EdgeTrackingSampler(model, first, second, weights).sample_many(n, rng=rng):
        other = _without_edges(network)
        for source, target, edge in zip(*(end.tolist() for end in ends), origin.tolist(), strict=True):
            if other.is_directed() or source <= target:
                other.add_edge(nodes[source], nodes[target], **edges[edge][2])
        yield other


def expected(network: Any, **settings: Any) -> Any:
    """Return the exact expectation of :func:`sample`: all possible edges with their expected weights.

    The edge attribute ``weight`` holds the expectation, which is the probability of the edge if the graph has
    no weights. The parameters are those of :func:`sample`.

    >>> import networkx as nx
    >>> square = nx.cycle_graph(4)
    >>> nx.set_node_attributes(square, {0: "a", 1: "b", 2: "a", 3: "b"}, "side")
    >>> expected(square, label="side").edges(data="weight")
    EdgeDataView([(0, 1, 1.0), (0, 3, 1.0), (1, 2, 1.0), (2, 3, 1.0)])
    """
    matrix = _fit(network, **settings).expected_adjacency().tocsr().tocoo()
    other, nodes = _without_edges(network), list(network)
    for source, target, value in zip(*(part.tolist() for part in (*matrix.coords, matrix.data)), strict=True):
        if value > 0 and (other.is_directed() or source <= target):
            other.add_edge(nodes[source], nodes[target], weight=value)
    return other


def _fit(
    network: Any,
    *,
    label: str | None = None,
    donors: DonorRule | None = None,
    keep: float = 0.0,
    symmetrise: str = "one-endpoint",
    weight: str = "weight",
) -> NodeCopying[Graph]:
    networkx = import_optional("networkx", "nodecopy.copying.networkx")
    if label is None and donors is None:
        raise InputError("label or donors must be given, since donors depend on them; got neither.")
    check_type(network, networkx.Graph, "network", "a networkx.Graph")
    numbered = networkx.convert_node_labels_to_integers(network)
    graph = from_networkx(numbered, label=label or "label", weight=weight)
    if label is not None and graph.labels is None:
        raise InputError("label", f"must be a node attribute; no node has {label!r}.")
    return NodeCopying(SameLabel() if donors is None else donors, keep, symmetrise).fit(graph)


def _without_edges(network: Any) -> Any:
    """Return a graph with the nodes and attributes of ``network`` and no edges."""
    networkx = import_optional("networkx", "nodecopy.copying.networkx")
    other = networkx.DiGraph() if network.is_directed() else networkx.Graph()
    other.graph.update(network.graph)
    other.add_nodes_from((node, dict(attributes)) for node, attributes in network.nodes(data=True))
    return other

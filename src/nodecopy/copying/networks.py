"""Node copying from graphs of other libraries to graphs of the same library, and their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nodecopy._core.checks import check_integer, type_name
from nodecopy._core.imports import import_optional
from nodecopy._core.random import Rng
from nodecopy.copying.donors import DonorRule, SameLabel
from nodecopy.copying.model import EdgeTrackingSampler, NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io.edge_lists import find_library
from nodecopy.io.networks import convert_igraph, convert_networkx


def sample_like(
    network: Any,
    n: int | None = None,
    *,
    donors: DonorRule | str | None = None,
    label: str | None = None,
    weight: str = "weight",
    keep: float = 0.0,
    symmetrise: str = "one-endpoint",
    rng: Rng = None,
) -> Any:
    """Return samples of a graph by node copying, as objects of the same kind.

    Nodes and the graph keep their attributes. An edge has the attributes of the edge it was copied from. Of
    parallel edges the heaviest one is kept.

    Parameters
    ----------
    network
        A graph of NetworkX or igraph, a :class:`.Graph` or :class:`.Interactions`. For PyTorch Geometric use
        the transform ``NodeCopy``.
    n
        Number of samples, returned as an iterator; by default one sample is returned.
    donors
        Donor rule or its name. By default :class:`.SameLabel` if ``label`` is given, else the rule that
        :class:`.NodeCopying` chooses.
    label, weight
        Node attribute with labels, and edge attribute with weights; an edge without it has weight one.
    keep, symmetrise
        As in :class:`.NodeCopying`.
    rng
        Seed or generator.

    Examples
    --------
    >>> import networkx as nx
    >>> from nodecopy import sample_like
    >>> club = nx.karate_club_graph()
    >>> other = sample_like(club, label="club", rng=0)
    >>> list(other) == list(club), other.nodes[33]["club"], len(other.edges) < 2 * len(club.edges)
    (True, 'Officer', True)
    """
    number = 1 if n is None else check_integer(n, "n of sample_like", low=0)
    rule = SameLabel() if donors is None and label else donors
    model: NodeCopying[Any] = NodeCopying(rule, keep, symmetrise)
    library = find_library(network)
    if isinstance(network, (Graph, Interactions)):
        samples: Iterator[Any] = model.fit(network).sample_many(number, rng=rng)
        return next(samples) if n is None else samples
    if library == "networkx":
        # Nodes of any type are numbered by their order.
        numbered = import_optional("networkx", "sample_like").convert_node_labels_to_integers(network)
        converted, sample = convert_networkx(numbered, weight), _sample_networkx
    elif library == "igraph":
        converted, sample = convert_igraph(network, weight), _sample_igraph
    else:
        got = type_name(network)
        raise InputError("network", f"must be a graph of NetworkX or igraph, or a Graph; got {got}.")
    graph = converted.with_labels(label or "label")
    if label is not None and graph.label_codes is None:
        raise InputError("label", f"must be a node attribute; no node has {label!r}.")
    samples = sample(network, model.fit(graph), weight, number, rng)
    return next(samples) if n is None else samples


def _sample_networkx(network: Any, model: NodeCopying[Any], weight: str, n: int, rng: Rng) -> Iterator[Any]:
    networkx = import_optional("networkx", "sample_like")
    nodes, edges = list(network), list(network.edges(data=True))
    position_of = {node: number for number, node in enumerate(nodes)}
    first, second = (np.array([position_of[edge[end]] for edge in edges], np.int64) for end in (0, 1))
    weights = np.array([edge[2].get(weight, 1.0) for edge in edges], np.float64)
    for *ends, origin in EdgeTrackingSampler(model, first, second, weights).sample_many(n, rng=rng):
        other = networkx.DiGraph() if network.is_directed() else networkx.Graph()
        other.graph.update(network.graph)
        other.add_nodes_from((node, dict(attributes)) for node, attributes in network.nodes(data=True))
        for source, target, edge in zip(*(end.tolist() for end in ends), origin.tolist(), strict=True):
            if other.is_directed() or source <= target:
                other.add_edge(nodes[source], nodes[target], **edges[edge][2])
        yield other


def _sample_igraph(network: Any, model: NodeCopying[Any], weight: str, n: int, rng: Rng) -> Iterator[Any]:
    ends = np.array(network.get_edgelist(), np.int64).reshape(-1, 2)
    edges = {name: network.es[name] for name in network.es.attributes()}
    weights = np.array(edges.get(weight, np.ones(len(ends))), np.float64)
    sampler = EdgeTrackingSampler(model, ends[:, 0], ends[:, 1], weights)
    for source, target, origin in sampler.sample_many(n, rng=rng):
        is_listed = (source <= target) | model.graph_.directed
        chosen = origin[is_listed].tolist()
        yield type(network)(
            n=network.vcount(),
            edges=np.column_stack([source, target])[is_listed].tolist(),
            directed=model.graph_.directed,
            graph_attrs={name: network[name] for name in network.attributes()},
            vertex_attrs={name: network.vs[name] for name in network.vs.attributes()},
            edge_attrs={name: [values[edge] for edge in chosen] for name, values in edges.items()},
        )


def annotate(network: Any, attributes: Iterable[tuple[str, Any, Sequence[Any]]]) -> Any:
    """Return a copy of a NetworkX or igraph graph with attributes, given by name, numbers and their places.

    Places are positions of nodes, or pairs of them for edges; a number of the graph has no places.
    """
    library = find_library(network)
    if library not in ("networkx", "igraph"):
        raise InputError("network", f"must be a NetworkX or igraph graph; got {type_name(network)}.")
    other = network.copy()
    nodes, graph = (list(other), other.graph) if library == "networkx" else ([], other)
    for name, value, places in attributes:
        if not places:
            graph[name] = value
        for place, number in zip(places, value if places else (), strict=True):
            is_edge = isinstance(place, tuple)
            if library == "igraph":
                owner = other.es[other.get_eid(*place)] if is_edge else other.vs[place]
            else:
                owner = other.edges[*map(nodes.__getitem__, place)] if is_edge else other.nodes[nodes[place]]
            owner[name] = number
    return other

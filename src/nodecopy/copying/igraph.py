"""Graphs as igraph graphs, and node copying from igraph graphs to igraph graphs.

:func:`.from_igraph` reads them. Samples keep the attributes of the graph and of its vertices, and an edge has
the attributes of the edge it was copied from. Of parallel edges the heaviest one is kept.
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
from nodecopy.io import from_igraph


def to_igraph(graph: Graph) -> Any:
    """Return a graph as an igraph ``Graph``, without features.

    Ids other than 0, 1, 2, ... become the vertex attribute ``name``, labels the vertex attribute ``label``
    (``None`` for unlabelled nodes), weights the edge attribute ``weight``.

    >>> network = to_igraph(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], labels=[0, 1, 0]))
    >>> network.vs["name"], network.vs["label"], network.get_edgelist()
    (['ann', 'bob', 'cleo'], [0, 1, 0], [(0, 1), (1, 2)])
    """
    check_type(graph, Graph, "graph", "a Graph")
    igraph = import_optional("igraph", "to_igraph")
    source, target, weights = graph.replace(node_ids=None).edges()
    edges = list(zip(source.tolist(), target.tolist(), strict=True))
    network = igraph.Graph(n=graph.n_nodes, edges=edges, directed=graph.directed)
    if weights is not None:
        network.es["weight"] = weights.tolist()
    if not np.array_equal(graph.node_ids, np.arange(graph.n_nodes)):
        network.vs["name"] = graph.node_ids.tolist()
    labels = graph.named_labels()
    if labels is not None:
        network.vs["label"] = [None if label in ("", -1) else label for label in labels.tolist()]
    return network


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
    """Return a sample of an igraph graph by node copying.

    Parameters
    ----------
    network
        Any igraph graph; it is not changed.
    label
        Vertex attribute with classes. Required unless ``donors`` is given.
    donors
        Donor rule; :class:`.SameLabel` of ``label`` by default.
    keep, symmetrise
        As in :class:`.NodeCopying`.
    weight
        Edge attribute with weights, ``"weight"`` by default.
    rng
        Seed or generator.

    Examples
    --------
    >>> import igraph
    >>> ring = igraph.Graph.Ring(4)
    >>> ring.vs["side"] = ["a", "b", "a", "b"]
    >>> sample(ring, label="side", rng=0).vs["side"]
    ['a', 'b', 'a', 'b']
    """
    return next(
        sample_many(
            network, 1, label=label, donors=donors, keep=keep, symmetrise=symmetrise, weight=weight, rng=rng
        )
    )


def sample_many(
    network: Any,
    n: int,
    *,
    label: str | None = None,
    donors: DonorRule | None = None,
    keep: float = 0.0,
    symmetrise: str = "one-endpoint",
    weight: str = "weight",
    rng: Rng = None,
) -> Iterator[Any]:
    """Yield ``n`` samples, the first of which is that of :func:`sample`, with the same parameters.

    >>> import igraph
    >>> from nodecopy import Jaccard
    >>> [other.vcount() for other in sample_many(igraph.Graph.Famous("Zachary"), 2, donors=Jaccard(), rng=0)]
    [34, 34]
    """
    igraph = import_optional("igraph", "nodecopy.copying.igraph")
    if label is None and donors is None:
        raise InputError("label or donors must be given, since donors depend on them; got neither.")
    graph = from_igraph(network, label=label or "label", weight=weight)
    if label is not None and graph.labels is None:
        raise InputError("label", f"must be a vertex attribute; no vertex has {label!r}.")
    model = NodeCopying(SameLabel() if donors is None else donors, keep, symmetrise).fit(graph)
    ends = np.array(network.get_edgelist(), np.int64).reshape(-1, 2)
    is_weighted = weight in network.es.attributes()
    weights = np.array(network.es[weight] if is_weighted else np.ones(len(ends)), np.float64)
    vertices = {name: network.vs[name] for name in network.vs.attributes()}
    edges = {name: network.es[name] for name in network.es.attributes()}
    sampler = EdgeTrackingSampler(model, ends[:, 0], ends[:, 1], weights)
    for source, target, origin in sampler.sample_many(n, rng=rng):
        is_listed = (source <= target) | model.graph_.directed
        chosen = origin[is_listed].tolist()
        yield igraph.Graph(
            n=network.vcount(),
            edges=np.column_stack([source, target])[is_listed].tolist(),
            directed=model.graph_.directed,
            graph_attrs={name: network[name] for name in network.attributes()},
            vertex_attrs=vertices,
            edge_attrs={name: [values[edge] for edge in chosen] for name, values in edges.items()},
        )

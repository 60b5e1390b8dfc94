"""Values as attributes of NetworkX and igraph graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from nodecopy._core.checks import type_name
from nodecopy.errors import InputError


class Attribute(NamedTuple):
    """An attribute of a graph, of its nodes (by position) or of its edges (pairs of positions)."""

    name: str
    kind: Literal["graph", "node", "edge"]
    value: Any
    """A number; a list of them for nodes or edges."""
    places: Sequence[Any] = ()
    """The nodes or edges that the numbers belong to."""


def annotate(network: Any, attributes: Iterable[Attribute]) -> Any:
    """Return a copy of a NetworkX or igraph graph with attributes.

    >>> import networkx as nx
    >>> path = annotate(nx.path_graph(["a", "b", "c"]), [Attribute("x", "node", [1.0, 2.0], [0, 2])])
    >>> path.nodes(data="x")
    NodeDataView({'a': 1.0, 'b': None, 'c': 2.0}, data='x')
    """
    set_attribute = SETTERS.get(type_name(network).partition(".")[0])
    if set_attribute is None:
        raise InputError("network", f"must be a NetworkX or igraph graph; got {type_name(network)}.")
    other = network.copy()
    for attribute in attributes:
        set_attribute(other, attribute)
    return other


def _set_networkx(network: Any, attribute: Attribute) -> None:
    name, kind, value, places = attribute
    if kind == "graph":
        network.graph[name] = value
        return
    nodes = list(network)
    for place, number in zip(places, value, strict=True):
        if kind == "edge":
            network.edges[nodes[place[0]], nodes[place[1]]][name] = number
        else:
            network.nodes[nodes[place]][name] = number


def _set_igraph(network: Any, attribute: Attribute) -> None:
    name, kind, value, places = attribute
    if kind == "graph":
        network[name] = value
        return
    for place, number in zip(places, value, strict=True):
        if kind == "edge":
            network.es[network.get_eid(*place)][name] = number
        else:
            network.vs[place][name] = number


SETTERS = {"networkx": _set_networkx, "igraph": _set_igraph}
"""How an attribute is set, by library."""

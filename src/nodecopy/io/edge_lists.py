"""Graphs from edges that files and other libraries list: duplicates, both directions, self-loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Floats, Ints, deduplicate
from nodecopy._core.checks import as_integers, check_text, type_name
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.node_tables import label_array

Duplicates = Literal["max", "sum", "error"]  # how edges that are listed twice are merged
DUPLICATES: tuple[str, ...] = get_args(Duplicates)
LIBRARIES = {"networkx": "Graph", "igraph": "Graph", "torch_geometric": "Data"}  # their base classes


def build_graph(
    first: Ints,
    second: Ints,
    weights: Floats,
    node_ids: Array,
    *,
    directed: bool,
    duplicates: Duplicates,
    file: str,
    row_name: Callable[[int], str] = "entry {}".format,
) -> Graph:
    """Return the graph of a list of edges, and log how many are repeated, of weight 0 or self-loops.

    Both directions are no duplicates if an undirected list has all edges in both, with equal weights.
    """
    n = len(node_ids)
    matrix = deduplicate(first, second, weights, (n, n))
    n_repeated = len(first) - matrix.nnz
    if duplicates == "sum" and n_repeated:
        matrix = sparse.csr_array((weights, (first, second)), shape=(n, n))  # SciPy adds duplicates
    whole = Graph(matrix, None, None, node_ids, directed=True)
    n_reversed = 0 if directed else _count_reversed(whole, whole.replace(directed=False))
    if duplicates == "error" and n_repeated + n_reversed:
        pairs = np.column_stack([first, second])
        if n_reversed:
            pairs.sort(axis=1)
        is_repeated = np.ones(len(first), bool)
        is_repeated[np.unique(pairs, axis=0, return_index=True)[1]] = False
        row = int(is_repeated.argmax())
        edge = f"{node_ids[first[row]]} to {node_ids[second[row]]}"
        raise InputError(f"{row_name(row)} repeats the edge from {edge}. Merge such edges.", duplicates="max")
    if n_zero := int((weights == 0).sum()):
        log_decision(f"{file}: edges of weight 0: {n_zero}; they are left out.")
    return merge_directions(whole, directed, file=file, duplicates=duplicates, n_repeated=n_repeated)


def merge_directions(
    whole: Graph, directed: bool, *, file: str, duplicates: Duplicates = "max", n_repeated: int = 0
) -> Graph:
    """Return a directed graph as it is or without directions, and log what is merged or left out."""
    graph = whole if directed else whole.replace(directed=False)
    n_reversed = 0 if directed else _count_reversed(whole, graph)
    if n_reversed and duplicates == "sum":
        graph = graph.replace(adjacency=whole.adjacency + whole.adjacency.T)
    counts = {"repeated edges": n_repeated, "edges in both directions": n_reversed}
    if parts := [f"{name}: {count}" for name, count in counts.items() if count]:
        rule = "their weights are added" if duplicates == "sum" else "the largest weight counts"
        log_decision(f"{file}: {', '.join(parts)}; {rule}.", "duplicates")
        graph = graph.with_edge_settings(duplicates=duplicates)
    if n_loops := int(whole.adjacency.diagonal().astype(bool).sum()):
        treatment = "kept" if directed else "left out, as the graph is undirected"
        log_decision(f"{file}: self-loops: {n_loops}; they are {treatment}.")
    return graph


def _count_reversed(whole: Graph, graph: Graph) -> int:
    """Return how many undirected edges are listed in both directions; 0 if all are, with equal weights."""
    is_edge = whole.rows.row_numbers != whole.rows.indices
    n_reversed = int(is_edge.sum()) - graph.n_edges
    weights = whole.adjacency.data[is_edge]
    is_symmetric = n_reversed == graph.n_edges and np.array_equal(graph.adjacency.data, weights)
    return 0 if is_symmetric else n_reversed


@dataclass(frozen=True)
class ConvertedGraph:
    """A graph of another library, without labels and features, and its attributes."""

    graph: Graph
    attributes: dict[str, Any] = field(default_factory=dict)  # values of node attributes, in node order
    label_names: tuple[str, ...] = ("label", "class")
    feature_names: tuple[str, ...] = ("features", "x")  # attributes that are labels and features by default
    edge_names: list[str] = field(default_factory=list)  # attributes of edges
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ordered: bool = True  # whether the nodes are in the order of the object

    def find_attribute(self, names: Sequence[str], is_suitable: Callable[[Any], bool]) -> str | None:
        present = (name for name in names if name in self.attributes)
        return next((name for name in present if is_suitable(self.attributes[name])), None)

    def attribute(self, name: str, role: str) -> Any:
        if name not in self.attributes:
            names = ", ".join(self.attributes) or "none"
            raise InputError(role, f"must name node attributes; got {name!r}, where there are {names}.")
        return self.attributes[name]

    def with_labels(self, name: str) -> Graph:
        if check_text(name, "label") not in self.attributes:
            return self.graph
        return self.graph.replace(labels=label_array(self.attributes[name]))


def find_library(data: Any) -> str | None:
    """Return the supported library that an object's class comes from, without importing it."""
    for kind in type(data).__mro__:
        package = kind.__module__.partition(".")[0]
        if LIBRARIES.get(package) == kind.__name__:
            return package
    return None


def check_library(data: Any, library: str, name: str) -> None:
    """Raise an error unless an object is a graph of a library."""
    if find_library(data) != library:
        raise InputError(name, f"must be a {library}.{LIBRARIES[library]}; got {type_name(data)}.")


def name_nodes(nodes: list[Any]) -> tuple[Any, list[str]]:
    """Return integers or strings as ids, and a note where they are the texts of other objects."""
    if all(isinstance(node, (int, np.integer)) and not isinstance(node, bool) for node in nodes):
        return as_integers(nodes, "ids of nodes"), []
    texts = [str(node) for node in nodes]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError("nodes", f"must have different texts, their ids; got {twice!r} twice.")
    is_plain = all(isinstance(node, str) for node in nodes)
    return np.array(texts), [] if is_plain else [f"node ids are texts, such as {texts[0]!r}"]


def is_asymmetric(matrix: Any) -> bool:
    """Return whether a square sparse matrix differs from its transpose."""
    return bool((matrix != matrix.T).nnz)

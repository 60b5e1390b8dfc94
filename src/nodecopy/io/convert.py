"""Conversion of objects of other libraries to graphs and interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Floats, as_csr, check_matrix_shape
from nodecopy._core.checks import type_name
from nodecopy._core.files import is_frame
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io.columns import match_kind
from nodecopy.io.edge_lists import ConvertedGraph, find_library, merge_directions
from nodecopy.io.graphs import read_graph, read_interactions
from nodecopy.io.networks import convert_igraph, convert_networkx
from nodecopy.io.node_tables import NodeRows, label_array, plain_values
from nodecopy.io.pandas import frame_of_pairs, has_pairs, is_adjacency, read_node_frame
from nodecopy.io.pyg import convert_pyg, read_mask
from nodecopy.io.tables import read_names

GraphLike = Graph | Any  # a graph, or what :func:`as_graph` converts
InteractionsLike = Interactions | Any  # interactions, or what :func:`as_interactions` converts


def as_graph(
    data: GraphLike,
    *,
    labels: Any = None,
    features: Any = None,
    weight: str | None = None,
    directed: bool | None = None,
) -> Graph:
    """Return a graph from an object of another library; everything that takes a graph calls this.

    ========================  ===============================================================================
    NetworkX                  ids are integers or texts. Labels: node attribute ``label`` or ``class``;
                              features: ``features`` or ``x``; weights: edge attribute ``weight``.
    igraph                    the same; the vertex attribute ``name`` holds the ids.
    PyTorch Geometric         a ``Data`` with ``edge_index`` or ``adj_t``. Labels: ``y``; features: ``x``;
                              weights: ``edge_weight``.
    SciPy sparse              an adjacency matrix, undirected unless ``directed`` is given.
    pandas, polars, Arrow     a data frame of edges, as :func:`.read_graph` reads it. A pandas frame whose
                              index equals its columns is an adjacency matrix.
    pandas Series             edge weights with an index of two levels, sources and targets.
    ========================  ===============================================================================

    By default these are used if they can be labels (whole numbers or texts, not all different) or features (a
    vector of numbers for every node). What was used and ignored is logged.

    Parameters
    ----------
    data
        The object; a :class:`Graph` is returned as it is.
    labels
        Name of the node attribute with labels; labels in node order; or by node id, in a dictionary, a pandas
        Series, or a frame with ids as index or in a column ``id``.
    features
        The same for features; also a list of node attributes with numbers.
    weight
        Name of the edge attribute or column with weights; by default the usual one, if it exists.
    directed
        Whether the graph is directed; by default as in the object.

    Examples
    --------
    >>> import networkx as nx
    >>> from nodecopy import as_graph
    >>> as_graph(nx.karate_club_graph(), labels="club")
    Graph(34 nodes, 78 undirected edges, weighted, 2 classes)
    >>> import pandas
    >>> edges = pandas.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cleo"]})
    >>> as_graph(edges, labels=pandas.Series({"cleo": 1, "ann": 0})).labels.tolist()
    [0, -1, 1]
    """
    return convert_graph(data, "graph", labels, features, weight, directed)


def convert_graph(
    data: Any, name: str, labels: Any = None, features: Any = None, weight: Any = None, directed: Any = None
) -> Graph:
    """Return a graph as :func:`as_graph` does; errors and logs call the object ``name``."""
    if isinstance(data, Graph) and labels is None and features is None and directed is None:
        return data
    converted = _convert(data, weight, directed, name)
    graph, used = converted.graph, []
    if directed is not None and graph.directed != directed:
        graph = graph.replace(directed=directed)
    if labels is None:
        labels = converted.find_attribute(converted.label_names, _can_be_labels)
        unused = [name for name in converted.label_names if name in converted.attributes and labels is None]
        if unused and not all(isinstance(value, str) for value in converted.attributes[unused[0]]):
            allowed = "a whole number or a text for every node"
            warn_about_data(f"{name}: {unused[0]} is not used as labels, which are {allowed}.", "labels")
    if isinstance(labels, str):
        used.append(labels)
        graph = graph.replace(labels=label_array(converted.attribute(labels, "labels")))
    elif labels is not None:
        graph = _set_values(graph, labels, "labels", is_ordered=converted.is_ordered)
    if features is None:
        features = converted.find_attribute(converted.feature_names, _can_be_features)
    names = [features] if isinstance(features, str) else features
    if isinstance(names, list) and names and isinstance(names[0], str):
        used += names
        graph = graph.replace(features=_stack([converted.attribute(n, "features") for n in names]))
    elif features is not None:
        graph = _set_values(graph, features, "features", is_ordered=converted.is_ordered)
    if not isinstance(data, Graph):
        is_used = {*used, weight or "weight", "edge_weight", "edge_index", "adj_t"}
        attributes = [*converted.attributes, *converted.edge_names, *converted.ignored]
        ignored = [attribute for attribute in attributes if attribute not in is_used]
        details = [f"node attributes used: {', '.join(used)}"] * bool(used) + converted.notes
        details += [f"ignored: {', '.join(ignored)}"] * bool(ignored)
        if graph.node_ids.dtype.kind == "i" and not _is_numbered(graph):
            details.append("integers choose nodes by position, np.isin(graph.node_ids, ids) by id")
        _log_conversion(data, graph, details, name, "as_graph(..., labels=, features=, weight=, directed=)")
    return graph


def as_interactions(data: InteractionsLike) -> Interactions:
    """Return interactions from an object of another library; all that takes interactions calls this.

    A data frame of pandas, polars or Arrow is read by :func:`.read_interactions`; a pandas Series holds
    ratings, with users and items as index; a SciPy sparse matrix has a row per user and a column per item.
    The conversion is logged.

    Parameters
    ----------
    data
        The object; :class:`Interactions` are returned as they are.

    Examples
    --------
    >>> import pandas
    >>> from nodecopy import as_interactions
    >>> as_interactions(pandas.Series([5, 3], [["ann", "bob"], ["tea", "jam"]]))
    Interactions(2 users, 2 items, 2 interactions, weighted)
    """
    return convert_interactions(data, "interactions")


def convert_interactions(
    data: InteractionsLike, name: str, *, like: Interactions | None = None
) -> Interactions:
    """Return interactions as :func:`as_interactions` does, with ids of the types in ``like``."""
    if isinstance(data, Interactions):
        return data
    if _is_sparse(data):
        ids: tuple[Any, ...] = ()
        if like is not None and check_matrix_shape(data.shape, name) == like.matrix.shape:
            ids = like.user_ids, like.item_ids
        interactions = Interactions(data, *ids)
    elif has_pairs(data):
        frame = frame_of_pairs(data, ["user", "item", "rating"])
        interactions = read_interactions(frame, user="user", item="item", rating="rating")
    elif is_frame(data):
        interactions = read_interactions(data)
    else:
        allowed = "Interactions, a data frame, a pandas Series by user and item or a SciPy sparse matrix"
        way_out = "read_interactions reads a file, Interactions takes a dense matrix"
        raise InputError(name, f"must be {allowed}; got {type_name(data)}. {way_out}.")
    if like is not None and not _is_sparse(data):
        # Texts if the training ids are texts: a part of them may hold integers only.
        users, items, ratings = interactions.table()
        pairs = (users, like.user_ids), (items, like.item_ids)
        users, items = (part.astype(str) if ids.dtype.kind == "U" else part for part, ids in pairs)
        interactions = Interactions.from_table(users, items, ratings)
    _log_conversion(data, interactions, [], name, "as_interactions or read_interactions")
    return interactions


def convert_data(data: GraphLike, name: str) -> Graph | Interactions:
    """Return a graph, or interactions from users and items or a matrix that is not square."""
    if isinstance(data, (Graph, Interactions)):
        return data
    is_log = is_frame(data) and match_kind(read_names(data)) == "interactions"
    if is_log or (_is_sparse(data) and len(set(check_matrix_shape(data.shape, name))) > 1):
        return convert_interactions(data, name)
    return convert_graph(data, name)


def training_nodes(data: Any, train: ArrayLike | None) -> ArrayLike | None:
    """Return ``train``, by default the ``train_mask`` of a ``Data`` of PyTorch Geometric, if any."""
    if train is not None or isinstance(data, Graph) or find_library(data) != "torch_geometric":
        return train
    if getattr(data, "train_mask", None) is None:
        return None
    log_decision("train: the nodes in train_mask of the data.", "train")
    return read_mask(data, "train_mask")


def _convert(data: Any, weight: str | None, directed: bool | None, name: str) -> ConvertedGraph:
    if isinstance(data, Graph):
        return ConvertedGraph(data)
    if has_pairs(data):
        data, weight = frame_of_pairs(data, ["source", "target", "weight"]), "weight"
    if is_frame(data) and not is_adjacency(data):
        return ConvertedGraph(read_graph(data, directed=directed, weight=weight), is_ordered=False)
    library = find_library(data)
    if library == "networkx":
        converted = convert_networkx(data, weight or "weight")
    elif library == "igraph":
        converted = convert_igraph(data, weight or "weight")
    elif library == "torch_geometric":
        converted = convert_pyg(data, weight or "edge_weight", directed)
    elif is_frame(data):
        whole = Graph(data.to_numpy(), node_ids=data.index.to_numpy(), directed=True)
        notes = ["an adjacency matrix, since its index equals its columns"]
        converted = ConvertedGraph(merge_directions(whole, directed or False, file=name), notes=notes)
    elif _is_sparse(data):
        whole = Graph(data, directed=True)
        converted = ConvertedGraph(merge_directions(whole, directed or False, file=name))
    else:
        others = "of NetworkX, igraph or PyTorch Geometric, a SciPy sparse matrix or a data frame of edges"
        files = " read_graph reads files." if isinstance(data, str | PathLike) else ""
        raise InputError(name, f"must be a Graph, or a graph {others}; got {type_name(data)}.{files}")
    if weight is not None and weight not in converted.edge_names:
        names = ", ".join(converted.edge_names) or "none"
        raise InputError("weight", f"must name an edge attribute; got {weight!r}, where there are {names}.")
    return converted


def _set_values(graph: Graph, values: Any, role: str, *, is_ordered: bool) -> Graph:
    is_numbered = _is_numbered(graph)
    if sparse.issparse(values):  # one of SciPy's formats is a dictionary
        values = as_csr(values, role)
    if not isinstance(values, Mapping) and not is_frame(values) and not hasattr(values, "iloc"):
        if not is_ordered and not is_numbered:
            raise InputError(f"{role} of an edge list must be a dictionary, Series or DataFrame by node id.")
        return graph.replace(**{role: values})
    try:
        if isinstance(values, Mapping):
            keys = [key if isinstance(key, (int, np.integer)) else str(key) for key in values]
            cells = list(values.values())
            plain = plain_values(cells) if role == "labels" else np.asarray(cells).reshape(len(cells), -1)
            return NodeRows(role, keys, plain).attach(graph)
        n_numbered = graph.n_nodes * is_numbered
        return read_node_frame(values, role, graph.node_ids.tolist(), n_numbered=n_numbered).attach(graph)
    except InputError as error:
        error.place = f"{role}: {error.place}"
        raise


def _is_numbered(graph: Graph) -> bool:
    return np.array_equal(graph.node_ids, np.arange(graph.n_nodes))


def _can_be_labels(values: Sequence[Any]) -> bool:
    present = [value for value in plain_values(values) if value is not None]
    if all(isinstance(value, str) for value in present):
        return len(present) < 3 or len(set(present)) < len(present)
    return all(isinstance(value, int) for value in present)


def _can_be_features(values: Sequence[Any]) -> bool:
    try:
        return _as_floats(values).ndim == 2
    except (TypeError, ValueError):
        return False


def _stack(attributes: Sequence[Any]) -> Floats:
    try:
        return np.column_stack(list(map(_as_floats, attributes)))
    except (TypeError, ValueError):
        raise InputError("features", "must name attributes with numbers for every node.") from None


def _as_floats(values: Any) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError
    return array.astype(np.float64)


def _is_sparse(data: Any) -> bool:  # sparse.issparse narrows the type
    return sparse.issparse(data)


def _log_conversion(data: Any, result: Any, details: list[str], name: str, how: str) -> None:
    about = "; ".join([f"{name}: {type_name(data)} was converted to {result!r}", *details])
    log_decision(f"{about}. To convert it in another way, call {how} first.")

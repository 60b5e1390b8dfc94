"""Graphs in and out of files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.formats import TABLES, PathLike, TableLike, format_of, reading
from nodecopy._core.ids import check_ids, deduplicate
from nodecopy._core.validation import check_unique
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import networkx_graphs, npz, table_files

EDGES = {
    "source": (
        "source",
        "src",
        "from",
        "u",
        "source_id",
        "from_node",
        "fromnodeid",
        "node1",
        "node_1",
        "citing",
    ),
    "target": ("target", "dst", "to", "v", "target_id", "to_node", "tonodeid", "node2", "node_2", "cited"),
    "weight": ("weight", "w", "value"),
}
NODES = {"node": ("id", "node", "node_id", "name"), "label": ("label", "class", "y")}
FORMATS = (*TABLES, ".npz", ".graphml")


def read_graph(
    path: TableLike,
    *,
    labels: TableLike | None = None,
    features: TableLike | None = None,
    node_ids: ArrayLike | None = None,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
) -> Graph:
    """Read a graph from a file, or from data frames in place of tables.

    Parameters
    ----------
    path
        An edge list (``.csv``, ``.tsv``, ``.txt``, ``.parquet``), an ``.npz`` or a ``.graphml`` file; or a
        pandas data frame of edges.
    labels
        A table of node ids and labels. A node that is not in it has no label.
    features
        A table of node ids and numbers, with a row for every node; or an ``.npz`` or ``.npy`` matrix
        whose rows follow the node order.
    node_ids
        The nodes of an edge list in their order. By default they are the ids of all tables, ascending,
        so that a label or feature table may also declare isolated nodes.
    directed
        By default what the file says; an edge list, and a matrix in ``.npz``, are undirected.
    source, target, weight
        Names of columns of an edge list. By default those with known names (source, target, weight and
        their relatives), else the first two, and the third as weight if it starts with a number.

    Notes
    -----
    Ids are integers if every one is written like an integer (7, but not 007), else strings. An edge
    listed twice takes the largest weight. The first row is a header if it holds known names, if a name
    was given, or if some column holds numbers everywhere but there. A header alone is a graph without
    edges, as :func:`write_graph` writes it; its nodes are those of ``labels`` and ``features``, if any.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(Graph.from_edges(["ann", "bob"], ["bob", "cleo"]), f"{folder}/edges.csv")
    ...     read_graph(f"{folder}/edges.csv")
    Graph(3 nodes, 2 undirected edges, binary)
    >>> import pandas
    >>> read_graph(pandas.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cleo"], "weight": [1, 2]}))
    Graph(3 nodes, 2 undirected edges, weighted)
    """
    suffix = format_of(path, FORMATS)
    given = {"source": source, "target": target, "weight": weight}
    fixed = None if node_ids is None else check_ids(node_ids, "node_ids")
    if fixed is not None:
        check_unique(fixed, "node_ids")
    edges: _Edges | None = None
    with reading(path) as file:
        if suffix in TABLES:
            edges = _read_edges(file, given)
        elif fixed is not None or any(given.values()):
            raise InputError("node_ids and names of columns are for edge lists; this file holds its own.")
        else:
            graph = (npz.read_graph if suffix == ".npz" else networkx_graphs.read_graphml)(file, directed)
            fixed = graph.node_ids
    label_ids, label_values = ((), []) if labels is None else _read_labels(labels)
    feature_ids, matrix = (None, np.zeros(0)) if features is None else _read_features(features)

    ends = edges.ends if edges else ()
    own = [() if ids is None else ids for ids in (feature_ids, fixed)]
    *typed, order = table_files.same_type([*ends, label_ids, *own])
    if fixed is None:
        order = sorted({node for ids in typed for node in ids})
    place = {node: number for number, node in enumerate(order)}
    if edges:
        with reading(path):
            graph = edges.graph(typed[0], typed[1], place, bool(directed))
    if labels is not None:
        with reading(labels):
            graph = graph.replace(labels=_ordered_labels(typed[-2], label_values, place))
    if features is not None:
        with reading(features):
            rows = slice(None) if feature_ids is None else _ordered_rows(typed[-1], place)
            graph = graph.replace(features=matrix[rows])
    return graph


def read_matrix(path: PathLike) -> Any:
    """Read a matrix, dense or sparse, from ``.npy``, SciPy's ``.npz`` or an ``.npz`` with one array."""
    format_of(path, (".npz", ".npy"))
    with reading(path) as file:
        return npz.read_matrix(file)


def write_graph(graph: Graph, path: PathLike) -> None:
    """Write a graph; the suffix of ``path`` chooses the format, and the file is there whole or not at all.

    Tables hold the edges (``source``, ``target`` and, where there are weights, ``weight``; undirected
    edges once), so neither isolated nodes nor labels nor features. ``.graphml`` holds all but features,
    ``.npz`` everything.

    >>> from tempfile import TemporaryDirectory
    >>> graph = Graph.from_edges(["ann", "bob"], ["bob", "cleo"])
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(graph, f"{folder}/graph.npz")
    ...     read_graph(f"{folder}/graph.npz") == graph
    True
    """
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a Graph; got {type(graph).__name__}.")
    suffix = format_of(path, FORMATS)
    if suffix == ".npz":
        npz.write_graph(graph, path)
    elif suffix == ".graphml":
        networkx_graphs.write_graphml(graph, path)
    else:
        source, target, weight = graph.edges()
        table_files.write_table(path, {"source": source, "target": target, "weight": weight})


@dataclass(frozen=True)
class _Edges:
    table: table_files.Table
    ends: tuple[table_files.Column, table_files.Column]
    weights: NDArray[np.float64]

    def graph(self, source: list[Any], target: list[Any], place: dict[Any, int], directed: bool) -> Graph:
        """The graph of these edges, whose ends came into one type, on nodes with given places."""
        first, second = self._numbers("source", source, place), self._numbers("target", target, place)
        matrix = deduplicate(first, second, self.weights, (len(place), len(place)))
        return Graph(matrix, node_ids=np.array(list(place) or np.zeros(0, np.int64)), directed=directed)

    def _numbers(self, role: str, ids: list[Any], place: dict[Any, int]) -> NDArray[np.int64]:
        try:
            return np.array([place[node] for node in ids], np.int64)
        except KeyError as error:
            where = self.table.where(ids.index(error.args[0]))
            raise InputError(f"{where} has {role} {error.args[0]!r}, which is not in node_ids.") from None


def _read_edges(path: Path, given: dict[str, str | None]) -> _Edges:
    table, columns = table_files.columns_for(path, EDGES, given)
    source, target = (table_files.identifiers(table, columns[role], role) for role in ("source", "target"))
    weights = np.ones(len(source))
    if "weight" in columns:
        weights = table_files.numbers(table, columns["weight"], "weight", low=0)
    return _Edges(table, (source, target), weights)


def _read_labels(path: TableLike) -> tuple[table_files.Column, list[Any]]:
    """Ids and labels: integers where all are, else strings; ``None`` where the cell is empty."""
    format_of(path, TABLES)
    with reading(path) as file:
        table, columns = table_files.columns_for(file, NODES, {})
        column = columns["label"]
        if isinstance(column, np.ndarray):  # Parquet; a column of integers with gaps comes as floats
            known = [None if value is None or value != value else value for value in column.tolist()]
            values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in known]
        else:
            typed = iter(table_files.same_type([[label for label in column if label]])[0])
            values = [next(typed) if label else None for label in column]
        return table_files.identifiers(table, columns["node"], "node"), values


def _read_features(path: TableLike) -> tuple[table_files.Column | None, Any]:
    """Ids and rows of numbers from a table, whose first row is a header if its first cell names ids or its
    last cell is not a number; or a matrix without ids.
    """
    suffix = format_of(path, (*TABLES, ".npz", ".npy"))
    with reading(path) as file:
        if suffix not in TABLES:
            return None, npz.read_matrix(file)
        table = table_files.read_table(
            file, lambda first, _: first[0].lower() in NODES["node"] or not table_files.is_number(first[-1])
        )
        names = table.names or ["id", *(f"feature {number}" for number in range(1, len(table.columns)))]
        lower = [name.lower() for name in names]
        place = next((lower.index(name) for name in NODES["node"] if name in lower), 0)
        numbers = [
            table_files.numbers(table, column, name)
            for number, (name, column) in enumerate(zip(names, table.columns, strict=True))
            if number != place
        ]
        if not numbers:
            raise InputError("the table must have a column of ids and at least one of numbers.")
        return table_files.identifiers(table, table.columns[place], "node"), np.stack(numbers, axis=1)


def _ordered_labels(ids: list[Any], values: list[Any], place: dict[Any, int]) -> ArrayLike:
    """Labels in node order, unknown where the table has none."""
    ordered: list[Any] = [None] * len(place)
    for number, value in zip(_known(ids, place), values, strict=True):
        ordered[number] = value
    array = networkx_graphs.label_array(ordered)
    return np.full(len(place), UNLABELLED) if array is None else array


def _ordered_rows(ids: list[Any], place: dict[Any, int]) -> NDArray[np.int64]:
    """The row of every node in node order; every node needs one."""
    rows = np.argsort(_known(ids, place))
    if len(rows) < len(place):
        raise InputError(f"there is no row for node {min(set(place) - set(ids))!r}.")
    return rows


def _known(ids: list[Any], place: dict[Any, int]) -> list[int]:
    """The number of each id; ids that are unknown or come twice are errors."""
    for node, count in Counter(ids).items():
        if count > 1:
            raise InputError(f"node {node!r} comes more than once.")
        if node not in place:
            raise InputError(f"node {node!r} is not a node of the graph.")
    return [place[node] for node in ids]

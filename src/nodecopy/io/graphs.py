"""Reading and writing graphs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.formats import TABLES, PathLike, TableLike, format_of, reading
from nodecopy._core.ids import check_ids, deduplicate
from nodecopy._core.validation import check_unique, type_name
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import networkx_graphs, npz
from nodecopy.io.feature_tables import FeatureEncoder, encode_table
from nodecopy.io.table_columns import (
    EDGE_COLUMNS,
    NODE_COLUMNS,
    check_identifiers,
    is_number,
    parse_numbers,
    read_columns,
    unify_ids,
)
from nodecopy.io.table_files import Column, Table, read_table, write_table

FORMATS = (*TABLES, ".npz", ".graphml")


def read_graph(
    path: TableLike,
    *,
    labels: TableLike | None = None,
    features: TableLike | None = None,
    encoder: FeatureEncoder | None = None,
    node_ids: ArrayLike | None = None,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
) -> Graph:
    """Return the graph in a file, or in data frames instead of tables.

    Parameters
    ----------
    path
        An edge list (``.csv``, ``.tsv``, ``.txt``, ``.parquet``), an ``.npz`` or a ``.graphml`` file; or a
        pandas data frame of edges.
    labels
        A table of node ids and labels, none by default. A node that is not in it has no label.
    features
        A table of node ids and features with a row for every node, or an ``.npz`` or ``.npy`` matrix whose
        rows follow the node order; none by default. Columns of text and missing cells are encoded as
        numbers (:class:`~nodecopy.io.FeatureEncoder`).
    encoder
        How a table of features becomes numbers: a fitted encoder, such as ``feature_encoder_`` of a
        classifier, encodes it as there; one that is not fitted is fitted to it. By default a new one, which
        is ``feature_encoder`` of the graph.
    node_ids
        The nodes of an edge list in their order. By default the ids of all tables in ascending order, so
        that a table of labels or features can add isolated nodes.
    directed
        Whether the graph is directed. By default as stored in the file; edge lists and ``.npz`` matrices are
        undirected.
    source, target, weight
        Names of the columns of an edge list. By default columns with usual names (``source``, ``from``,
        ``u``, ``target``, ``weight``, ...); otherwise the first two columns, and the third one as weight if
        it holds numbers.

    Notes
    -----
    Ids are integers if all of them are integers in canonical form (7, but not 007), otherwise strings. An
    edge that is listed twice has the largest of its weights. The first row is a header if it has usual names,
    if the caller names a column, or if some column holds numbers everywhere but there. A file with nothing
    but a header is a graph without edges, as :func:`write_graph` writes it; its nodes are those of ``labels``
    and ``features``, if any.

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
    table: Table | None = None
    ends: list[Column] = []
    with reading(path) as file:
        if suffix in TABLES:
            table, ends, weights = _read_edges(file, given)
        elif fixed is not None or any(given.values()):
            raise InputError("node_ids and names of columns are for edge lists; this file has its own ids.")
        else:
            graph = (npz.read_graph if suffix == ".npz" else networkx_graphs.read_graphml)(file, directed)
            fixed = graph.node_ids
    label_ids, label_values = ((), []) if labels is None else _read_labels(labels)
    feature_ids, matrix = None, np.zeros(0)
    if features is not None:
        feature_ids, matrix, encoder = _read_features(features, encoder)

    own = [() if ids is None else ids for ids in (feature_ids, fixed)]
    *typed, order = unify_ids([*ends, label_ids, *own])
    if fixed is None:
        order = sorted({node for ids in typed for node in ids})
    position_of = {node: number for number, node in enumerate(order)}
    if table is not None:
        with reading(path):
            first = _end_positions(table, "source", typed[0], position_of)
            second = _end_positions(table, "target", typed[1], position_of)
            ids, n = np.array(order or np.zeros(0, np.int64)), len(order)
            graph = Graph(deduplicate(first, second, weights, (n, n)), None, None, ids, bool(directed))
    if labels is not None:
        with reading(labels):
            graph = graph.replace(labels=_ordered_labels(typed[-2], label_values, position_of))
    if features is not None:
        with reading(features):
            rows = slice(None) if feature_ids is None else _ordered_rows(typed[-1], position_of)
            graph = graph.replace(features=matrix[rows]).with_feature_encoder(encoder)
    return graph


def read_matrix(path: PathLike) -> Any:
    """Return the matrix in an ``.npy`` file, in SciPy's ``.npz`` format or in an ``.npz`` with one array."""
    format_of(path, (".npz", ".npy"))
    with reading(path) as file:
        return npz.read_matrix(file)


def write_graph(graph: Graph, path: PathLike) -> None:
    """Write a graph, whole or not at all, in the format of the suffix of ``path``.

    Tables hold the edges (``source``, ``target`` and, for weighted graphs, ``weight``; undirected edges once)
    and neither isolated nodes nor labels nor features. ``.graphml`` holds all but features, ``.npz``
    everything.

    >>> from tempfile import TemporaryDirectory
    >>> graph = Graph.from_edges(["ann", "bob"], ["bob", "cleo"])
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(graph, f"{folder}/graph.npz")
    ...     read_graph(f"{folder}/graph.npz") == graph
    True
    """
    if not isinstance(graph, Graph):
        raise InputError(f"graph must be a Graph; got {type_name(graph)}.")
    suffix = format_of(path, FORMATS)
    if suffix == ".npz":
        npz.write_graph(graph, path)
    elif suffix == ".graphml":
        networkx_graphs.write_graphml(graph, path)
    else:
        source, target, weight = graph.edges()
        write_table(path, {"source": source, "target": target, "weight": weight})


def _read_edges(path: Path, given: dict[str, str | None]) -> tuple[Table, list[Column], NDArray[np.float64]]:
    """Return the table, its columns of sources and targets, and the weights."""
    table, columns = read_columns(path, EDGE_COLUMNS, given)
    ends = [check_identifiers(table, columns[role], role) for role in ("source", "target")]
    if "weight" in columns:
        return table, ends, parse_numbers(table, columns["weight"], "weight", low=0)
    return table, ends, np.ones(len(ends[0]))


def _end_positions(table: Table, role: str, ids: list[Any], position_of: dict[Any, int]) -> NDArray[np.int64]:
    try:
        return np.array([position_of[node] for node in ids], np.int64)
    except KeyError as error:
        where = table.where(ids.index(error.args[0]))
        raise InputError(f"{where} has {role} {error.args[0]!r}, which is not in node_ids.") from None


def _read_labels(path: TableLike) -> tuple[Column, list[Any]]:
    """Return ids and labels: integers if all are, otherwise strings; ``None`` where the cell is empty."""
    format_of(path, TABLES)
    with reading(path) as file:
        table, columns = read_columns(file, NODE_COLUMNS, {})
        column = columns["label"]
        if isinstance(column, np.ndarray):  # Parquet; integers with missing values are floats there
            labels = [None if value is None or value != value else value for value in column.tolist()]
            values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]
        else:
            typed = iter(unify_ids([[label for label in column if label]])[0])
            values = [next(typed) if label else None for label in column]
        return check_identifiers(table, columns["node"], "node"), values


def _read_features(
    path: TableLike, encoder: FeatureEncoder | None
) -> tuple[Column | None, Any, FeatureEncoder | None]:
    """Return ids, rows of numbers and how a table was encoded, or a matrix without ids and encoder.

    The first row is a header if its first cell is a usual name of ids or its last cell is not a number.
    """
    suffix = format_of(path, (*TABLES, ".npz", ".npy"))
    with reading(path) as file:
        if suffix not in TABLES:
            return None, npz.read_matrix(file), None
        table = read_table(
            file, lambda first, _: first[0].lower() in NODE_COLUMNS["node"] or not is_number(first[-1])
        )
        names = table.names or ["id", *(f"feature {number}" for number in range(1, len(table.columns)))]
        lower = [name.lower() for name in names]
        id_column = next((lower.index(name) for name in NODE_COLUMNS["node"] if name in lower), 0)
        ids = check_identifiers(table, table.columns[id_column], "node")
        matrix, fitted = encode_table(table, names, id_column, encoder)
        return ids, matrix, fitted


def _ordered_labels(ids: list[Any], values: list[Any], position_of: dict[Any, int]) -> ArrayLike:
    """Return the labels in node order, unlabelled where the table has none."""
    ordered: list[Any] = [None] * len(position_of)
    for number, value in zip(_check_positions(ids, position_of), values, strict=True):
        ordered[number] = value
    array = networkx_graphs.label_array(ordered)
    return np.full(len(position_of), UNLABELLED) if array is None else array


def _ordered_rows(ids: list[Any], position_of: dict[Any, int]) -> NDArray[np.int64]:
    """Return the row of every node in node order; a node without a row is an error."""
    rows = np.argsort(_check_positions(ids, position_of))
    if len(rows) < len(position_of):
        raise InputError(f"there is no row for node {min(set(position_of) - set(ids))!r}.")
    return rows


def _check_positions(ids: list[Any], position_of: dict[Any, int]) -> list[int]:
    """Return the position of each id; ids that are unknown or repeated are errors."""
    for node, count in Counter(ids).items():
        if count > 1:
            raise InputError(f"node {node!r} is listed more than once.")
        if node not in position_of:
            raise InputError(f"node {node!r} is not a node of the graph.")
    return [position_of[node] for node in ids]

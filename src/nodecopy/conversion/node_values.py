"""Labels and features of nodes: choosing node attributes, and aligning values with the ids of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.formats import is_frame
from nodecopy._core.validation import check_unique, type_name
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.feature_tables import FeatureEncoder
from nodecopy.io.networkx_graphs import label_array
from nodecopy.io.table_columns import NODE_COLUMNS
from nodecopy.io.table_files import read_table

MAX_NAMED = 3
"""Unknown ids that an error lists."""


def set_labels(graph: Graph, values: Any, *, is_ordered: bool) -> Graph:
    """Return the graph with labels: values by node id, or in node order if that order is the caller's own."""
    ids, labels = _split_ids(values, "labels")
    if isinstance(labels, dict):
        names = [name for name in labels if name.lower() in NODE_COLUMNS["label"]] or list(labels)
        if len(names) != 1:
            raise InputError(f"labels must have one column of labels; got {', '.join(labels) or 'none'}.")
        labels = labels[names[0]]
    if ids is None:
        _check_order(graph, is_ordered, "labels")
        return graph.replace(labels=labels)
    ordered: list[Any] = [None] * graph.n_nodes
    for position, label in zip(_positions(ids, graph, "labels"), labels, strict=True):
        ordered[position] = label
    return graph.replace(labels=plain_labels(ordered))


def set_features(graph: Graph, values: Any, *, is_ordered: bool) -> Graph:
    """Return the graph with features; a frame is encoded by :class:`~nodecopy.io.FeatureEncoder`."""
    ids, features = _split_ids(values, "features")
    encoder = None
    if isinstance(features, dict):
        encoder = FeatureEncoder().fit(features)
        features = encoder.transform(features)
    if ids is None:
        _check_order(graph, is_ordered, "features")
    else:
        positions = _positions(ids, graph, "features")
        if len(positions) < graph.n_nodes:
            absent = np.delete(np.arange(graph.n_nodes), positions)
            raise InputError(f"features must have a row for node {graph.node_ids[absent].tolist()[0]!r}.")
        rows = np.asarray(features)[np.argsort(positions)]
        features = rows.reshape(len(rows), -1)
    return graph.replace(features=features).with_feature_encoder(encoder)


def is_class_attribute(values: Sequence[Any]) -> bool:
    """Return whether values of nodes can be classes: whole numbers or texts, not a name for every node."""
    present = [value for value in plain_values(values) if value is not None]
    if all(isinstance(value, str) for value in present):
        return len(present) < 3 or len(set(present)) < len(present)
    return all(isinstance(value, int) for value in present)


def is_feature_attribute(values: Sequence[Any]) -> bool:
    """Return whether every node has a vector of numbers, all of the same length."""
    try:
        matrix = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return False
    return matrix.ndim == 2


def plain_labels(values: Sequence[Any]) -> Any:
    """Return labels, some of them missing, as an array of integers or strings; all unlabelled if none is."""
    array = label_array(plain_values(values))
    return np.full(len(values), -1) if array is None else array


def plain_values(values: Sequence[Any]) -> list[Any]:
    """Return Python values: ``None`` where a value is missing, an integer for a whole float or a boolean."""
    return [_plain_value(value) for value in np.asarray(values, object).tolist()]


def _plain_value(value: Any) -> Any:
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, str) and not value)
    ):
        return None
    if isinstance(value, (bool, np.bool_, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return None if np.isnan(value) else int(value) if float(value).is_integer() else value
    return value


def _split_ids(values: Any, name: str) -> tuple[list[Any] | None, Any]:
    """Return the node ids of values and the values; a frame's are a dictionary of columns.

    Ids are those of a mapping, the column of a frame with a usual name of ids, otherwise the index of pandas.
    """
    if isinstance(values, Mapping):
        return list(values), list(values.values())
    if is_frame(values):
        table = read_table(values, lambda first, below: True)
        columns = dict(zip(table.names or [], table.columns, strict=True))
        id_column = next((name for name in columns if name.lower() in NODE_COLUMNS["id"]), None)
        if id_column is not None:
            return list(columns.pop(id_column)), columns
        if not hasattr(values, "index"):
            raise InputError(f"{name} must have a column of node ids, such as id; got {', '.join(columns)}.")
        return values.index.tolist(), columns
    if hasattr(values, "iloc"):  # a series
        return values.index.tolist(), plain_values(values.tolist())
    return None, values


def _check_order(graph: Graph, is_ordered: bool, name: str) -> None:
    if not is_ordered and not np.array_equal(graph.node_ids, np.arange(graph.n_nodes)):
        raise InputError(
            f"{name} of an edge list must come with node ids, since nodes are in the order of their ids; "
            "got values without ids. Pass a dictionary, or a pandas Series or DataFrame with ids as index."
        )


def _positions(ids: list[Any], graph: Graph, name: str) -> NDArray[np.int64]:
    """Return the positions of ids, each of which must be a node and may occur once."""
    node_ids = graph.node_ids.tolist()
    keys = [str(key) for key in ids] if graph.node_ids.dtype.kind == "U" else ids
    position_of = {node: number for number, node in enumerate(node_ids)}
    unknown = [key for key in keys if key not in position_of]
    if unknown:
        more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
        listed = ", ".join(map(repr, unknown[:MAX_NAMED]))
        raise InputError(
            f"{name} must have ids of nodes, such as {node_ids[:1]!r}; got {listed}{more} of "
            f"{type_name(ids[0])}, which are no nodes. Drop them, or add them to the graph."
        )
    positions = np.array([position_of[key] for key in keys], np.int64)
    check_unique(positions, f"ids of {name}")
    return positions

"""Tables of labels and features, and the nodes of a graph that their rows belong to."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.checks import as_array, as_integers, check_vector, is_missing, list_names, show
from nodecopy._core.files import TABLES, TableLike, format_of, reading
from nodecopy._core.imports import suggest
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import matrices
from nodecopy.io.columns import (
    MISSING_IDS,
    NODE_COLUMNS,
    check_identifiers,
    describe,
    drop_row_names,
    find_header,
    is_number,
    match_names,
    plain_id,
    read_columns,
    unify_ids,
    warn_about_spellings,
)
from nodecopy.io.encoder import FeatureEncoder, encode_table
from nodecopy.io.tables import Column, Table, read_table

MIN_LABELS, MAX_CLASS_SHARE = 20, 0.5  # from 20 labels on, at most half of them may be classes
ANSWERS = ("label", "class")  # columns that are no features of nodes whose labels are given
NO_LABELS = (list, set, frozenset, dict, np.ndarray, complex, float, np.floating)  # fractions are no class
MAX_COMPARED = 10_000  # nodes up to which close ids are looked for, since it takes time


@dataclass(frozen=True)
class NodeRows:
    """Rows of labels or features, and the node of each."""

    path: TableLike
    ids: Column
    values: Any  # a list of labels, or a matrix of features
    label: str | None = None  # the name of the column of labels
    encoder: FeatureEncoder | None = None
    is_numbered: bool = False  # whether the file has no ids, so that row i belongs to node i

    def number(self, node_ids: NDArray[Any] | None) -> NodeRows:
        if not self.is_numbered or node_ids is None or len(node_ids) != len(self.ids):
            return self
        return replace(self, ids=node_ids, is_numbered=False)

    def attach(self, graph: Graph) -> Graph:
        """Return the graph with the labels, or with features, of which every node needs a row."""
        positions = match_ids(self.ids, graph.node_ids)
        if not isinstance(self.values, list):
            features = self.values[order_rows(positions, graph.node_ids)]
            return graph.replace(features=features).with_feature_encoder(self.encoder)
        labels: list[Any] = [None] * graph.n_nodes
        for position, value in zip(positions, self.values, strict=True):
            labels[position] = value
        array = label_array(labels)
        return graph.replace(labels=np.full(graph.n_nodes, UNLABELLED) if array is None else array)


def read_node_tables(
    labels: TableLike | None,
    features: TableLike | None,
    nodes: Collection[str] = (),
    *,
    encoder: FeatureEncoder | None,
    header: bool | None,
    id: str | None,
    label: str | None,
) -> list[NodeRows]:
    """Return the rows of labels and of features; ``nodes`` are ids as text."""
    tables: list[NodeRows] = []
    if labels is not None:
        is_path = isinstance(labels, (str, os.PathLike))
        is_shared = labels is features or (is_path and str(labels) == str(features))
        tables.append(read_labels(labels, nodes, header=header, id=id, label=label, is_shared=is_shared))
        nodes = nodes or set(map(str, tables[0].ids))
    if features is not None:
        options: Any = {"id": id, "id_required": labels is None and id is not None}
        options["label"] = tables[0].label if tables else None
        tables.append(read_features(features, nodes, encoder=encoder, header=header, **options))
    return tables


def read_labels(
    path: TableLike,
    nodes: Collection[str],
    *,
    header: bool | None = None,
    id: str | None = None,
    label: str | None = None,
    is_shared: bool = False,
) -> NodeRows:
    """Return ids and labels: integers if all are, else strings; ``None`` where they are missing."""
    format_of(path, TABLES)
    with reading(path) as file:
        column_names = {"id": id, "label": label}
        options: Any = {"header": header, "nodes": nodes, "is_shared": is_shared}
        table, columns = read_columns(file, "labels", column_names, **options)
        _check_rows(table, nodes)
        column = columns["label"]
        words = MISSING_IDS.intersection(column)
        values = [None if value in words else value for value in plain_values(column)]
        if not isinstance(column, np.ndarray):
            typed = iter(unify_ids([[value for value in values if value is not None]])[0])
            values = [None if value is None else next(typed) for value in values]
            if all(str(value).lstrip("-").isdecimal() for value in values if value is not None):
                as_integers([int(value) for value in values if value is not None], "labels")
        if words:
            missing = f"{sum(cell in words for cell in column)} ({', '.join(sorted(words))})"
            log_decision(f"{describe(file)}: missing labels: {missing}. Rename them if it is a class.")
        classes = [value for value in values if value is not None]
        _check_classes(classes, is_named=bool(label))
        warn_about_spellings(f"{describe(file)}: labels", {name for name in classes if isinstance(name, str)})
        named = zip(table.names or [], table.columns, strict=False)
        name = next((name for name, other in named if other is column), None)
        return NodeRows(path, check_identifiers(table, columns["id"], "id"), values, name)


def _check_rows(table: Table, nodes: Collection[str]) -> None:
    if nodes and table.names and not len(table.columns[0]):
        raise InputError(f"there are no rows, only the header ({','.join(table.names[:6])}).")


def _check_classes(values: Sequence[Any], *, is_named: bool) -> None:
    fractions = [value for value in values if is_number(value) and not float(value).is_integer()]
    if fractions:
        got = f"{fractions[0]}, a measurement. Write ranges of it as text, or name another column"
        raise InputError("labels", f"must be integers or text; got {got}.")
    n_classes = len(set(values))
    if not is_named and len(values) >= MIN_LABELS and n_classes > MAX_CLASS_SHARE * len(values):
        got = f"{n_classes} in {len(values)} rows. Name the column to read it anyway"
        raise InputError(f"labels must be classes that occur repeatedly; there are {got}.", label="NAME")


def read_features(
    path: TableLike,
    nodes: Collection[str],
    *,
    encoder: FeatureEncoder | None = None,
    header: bool | None = None,
    id: str | None = None,
    id_required: bool = False,
    label: str | None = None,
) -> NodeRows:
    """Return ids and rows of numbers from a table, or from an ``.npz`` or ``.npy`` matrix."""
    suffix = format_of(path, (*TABLES, ".npz", ".npy"))
    with reading(path) as file:
        if suffix not in TABLES:
            stored, matrix = matrices.read_features(file)
            ids: Column = np.arange(matrix.shape[0]) if stored is None else stored
            return NodeRows(path, ids, matrix, is_numbered=stored is None)
        roles = {"id": NODE_COLUMNS["id"]}
        rule = partial(find_header, roles=roles, file=describe(file), nodes=nodes)
        table = read_table(
            file, lambda first, below: id in first or (rule(first, below) if header is None else header)
        )
        _check_rows(table, nodes)
        has_id = id in (table.names or ()) or bool(match_names(table.names or (), roles))
        table = drop_row_names(table, nodes, has_id=has_id)
        names = table.names or ["id", *(f"feature {number}" for number in range(1, len(table.columns)))]
        if id_required and id not in names:
            raise InputError("id", f"must be a column; got {id!r}, where there are {', '.join(names)}.")
        id_column = names.index(id) if id in names else match_names(names, roles).get("id", 0)
        answers = [name for name in names if name == label or name.lower() in ANSWERS]
        if label is not None and answers and names[id_column] not in answers:
            reason = "is not a feature, since it holds labels; rename it to use it as one"
            log_decision(f"{describe(file)}: column {list_names(answers, 2)} {reason}.")
            others = [number for number, name in enumerate(names) if name not in answers]
            table = table.select(others)
            id_column, names = others.index(id_column), [names[number] for number in others]
        ids = check_identifiers(table, table.columns[id_column], "id")
        matrix, fitted = encode_table(table, names, id_column, encoder)
        return NodeRows(path, ids, matrix, encoder=fitted)


def check_numbers(nodes: Sequence[Any], n_rows: int) -> None:
    """Raise an error unless the nodes are 0 to ``n_rows - 1``."""
    numbers = set(map(str, range(n_rows)))
    if (other := next((node for node in nodes if str(node) not in numbers), None)) is not None:
        got = f"holds the rows of nodes 0 to {n_rows - 1}, but the graph has node {other!r}"
        raise InputError(f"a matrix without ids {got}. Write ids: np.savez('x.npz', ids=ids, x=matrix).")


def check_known(ids: Sequence[Any], nodes: Collection[Any], *, allow_isolated: bool | None) -> None:
    """Raise an error if some ids are not nodes; ``allow_isolated`` is None if nodes are fixed."""
    unknown = [node for node in dict.fromkeys(ids) if node not in nodes]
    if not unknown:
        return
    numerals = [node for node in unknown if str(node).removesuffix(".0").isdecimal()]
    by_number = {plain_id(node): node for node in nodes} if numerals else {}
    for node in numerals:
        if (other := by_number.get(plain_id(node))) is not None:
            got = f"id {str(node)!r} is not a node of the graph, but {str(other)!r} is"
            raise InputError(f"{got}. Write ids the same way (in pandas, read them with dtype=str).")
    listed = list_names(map(repr, unknown))
    if allow_isolated:
        log_decision(f"ids without edges are isolated nodes ({len(unknown)}): {listed}.")
        return
    # A node with a row of its own is no correction of another id, which is rather isolated.
    others = {*nodes} - {*ids} if len(nodes) <= MAX_COMPARED else ()
    hint = suggest(unknown[0], sorted(map(str, others)))
    subject = f"{len(unknown)} of {len(set(ids))} ids are not nodes of the graph: {listed}"
    if len(unknown) == 1:
        subject = f"id {listed} is not a node of the graph"
    if allow_isolated is None:
        raise InputError(f"{subject}.{hint} Correct the ids.")
    raise InputError(f"{subject}.{hint} Correct the ids, or add isolated nodes.", allow_isolated=True)


def label_array(labels: Sequence[Any] | NDArray[Any]) -> ArrayLike | None:
    """Return labels as integers or strings; ``None`` if all are missing."""
    if isinstance(labels, np.ndarray) and (labels.ndim != 1 or labels.dtype.kind in "iuf"):
        return check_vector(labels, "labels")
    values = plain_values(labels)
    present = [value for value in values if value is not None]
    if wrong := [value for value in present if isinstance(value, NO_LABELS)]:
        raise InputError("labels", f"must hold one class for every node; got {show(wrong[0])}.")
    if not present:
        return None
    if all(isinstance(value, (int, np.integer)) for value in present):
        return as_integers([UNLABELLED if value is None else value for value in values], "labels")
    return as_array(["" if value is None else str(value) for value in values], "labels")


def plain_values(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return Python values: ``None`` for a missing or empty one, an integer for a whole float."""
    return list(map(_plain_value, values.tolist() if isinstance(values, np.ndarray) else values))


def _plain_value(value: Any) -> Any:
    if is_missing(value) or value == "":
        return None
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return int(value) if is_whole or isinstance(value, (bool, np.bool_)) else value


def match_ids(ids: Column, nodes: Column) -> list[int]:
    """Return the position of each id among the nodes; ids must be known and unique."""
    nodes, ids = unify_ids([nodes, ids])
    check_known(ids, set(nodes), allow_isolated=None)
    if len(set(ids)) < len(ids):
        node = next(node for node, count in Counter(ids).items() if count > 1)
        raise InputError(f"node {node!r} is listed more than once. Leave one row for each node.")
    position_of = {node: number for number, node in enumerate(nodes)}
    return [position_of[node] for node in ids]


def order_rows(positions: list[int], nodes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the row of every node, in node order; none may be missing."""
    if len(positions) < len(nodes):
        missing = sorted(np.delete(nodes, positions).tolist())
        which = f"{len(missing)} nodes" if len(missing) > 1 else "a node"
        listed = f"{which} of the graph: {list_names(map(repr, missing))}"
        raise InputError(f"there is no row for {listed}. Add a row for each, with empty cells.")
    return np.argsort(positions)

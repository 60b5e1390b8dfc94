"""Graphs and interactions as pandas data frames, and values of nodes in pandas objects."""

from __future__ import annotations

from typing import Any

from nodecopy._core.arrays import check_row_data
from nodecopy._core.files import is_frame
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io.columns import EDGE_COLUMNS, NODE_COLUMNS, match_names
from nodecopy.io.node_tables import NodeRows, read_features, read_labels


def to_pandas(data: Graph | Interactions) -> Any:
    """Return a data frame with external ids and a row per edge (undirected ones once) or interaction.

    >>> print(to_pandas(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], [1, 2])))
      source target  weight
    0    ann    bob     1.0
    1    bob   cleo     2.0
    """
    check_row_data(data)
    if isinstance(data, Graph):
        names, columns = ("source", "target", "weight"), data.edges()
    else:
        names, columns = ("user", "item", "rating"), data.table()
    present = {name: part for name, part in zip(names, columns, strict=True) if part is not None}
    return import_optional("pandas", "to_pandas").DataFrame(present)


def has_pairs(data: Any) -> bool:
    """Return whether an object is a pandas Series with an index of two levels."""
    return hasattr(data, "iloc") and not is_frame(data) and getattr(data.index, "nlevels", 1) == 2


def frame_of_pairs(data: Any, names: list[str]) -> Any:
    """Return the index and the values of such a Series as named columns."""
    return data.reset_index().set_axis(names, axis=1)


def is_adjacency(frame: Any) -> bool:
    """Return whether the index of a pandas frame equals its columns, other than 0, 1, 2."""
    if not hasattr(frame, "iloc") or frame.shape[0] != frame.shape[1]:
        return False
    ids = frame.index.tolist()
    is_default = ids == list(range(len(ids))) and len(ids) <= len(EDGE_COLUMNS)
    return ids == list(frame.columns) and not is_default


def read_node_frame(values: Any, role: str, nodes: list[Any], *, n_numbered: int) -> NodeRows:
    """Return the labels or features in a Series or data frame, and the node of each row."""
    texts, id = set(map(str, nodes)), None
    if hasattr(values, "iloc"):
        frame = values if is_frame(values) else values.to_frame("value")
        position = _find_id_column(frame, texts) if frame is values else None
        if position is None:
            index = frame.index
            is_default = type(index).__name__ == "RangeIndex" and index.name is None and index.start == 0
            if is_default and len(frame) != n_numbered:
                raise InputError("node ids must be in a column id or in the index (use set_index).")
            frame, position = frame.reset_index(names="id", allow_duplicates=True), 0
        order = [position, *(number for number in range(frame.shape[1]) if number != position)]
        values = frame.iloc[:, order]
        id = str(values.columns[0])
    return (read_labels if role == "labels" else read_features)(values, texts, id=id)


def _find_id_column(frame: Any, nodes: set[str]) -> int | None:
    is_set = frame.index.name is not None or frame.index.dtype.kind not in "iu"
    position = match_names(list(map(str, frame.columns)), {"id": NODE_COLUMNS["id"]}).get("id")
    if position is None and not is_set and frame.shape[1] > 1:
        first = frame.iloc[:, 0]
        if first.is_unique and first.dtype.kind not in "fMm":
            position = 0
            log_decision(f"column {frame.columns[0]} holds the node ids; set the index to use other ids.")
    if is_set and position is not None and any(str(id) not in nodes for id in frame.iloc[:, position]):
        return None
    return position

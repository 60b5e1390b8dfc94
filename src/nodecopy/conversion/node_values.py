"""Labels and features of nodes: choosing node attributes, and aligning values with the ids of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.formats import is_frame
from nodecopy._core.notices import log_decision
from nodecopy._core.sparse_matrices import as_csr
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.headers import match_names
from nodecopy.io.node_tables import NodeRows, plain_values, read_features, read_labels
from nodecopy.io.table_kinds import NODE_COLUMNS


def set_values(graph: Graph, values: Any, role: str, *, is_ordered: bool) -> Graph:
    """Return the graph with labels or features.

    Parameters
    ----------
    graph
        The graph.
    values
        Values by node id: a dictionary, a pandas Series or a data frame, which is read as
        :func:`.read_graph` reads tables; or values in node order.
    role
        ``"labels"`` or ``"features"``.
    is_ordered
        Whether the caller knows the order of the nodes, so that values may come without ids.
    """
    is_numbered = np.array_equal(graph.node_ids, np.arange(graph.n_nodes))
    if sparse.issparse(values):  # one of SciPy's formats is a dictionary
        values = as_csr(values, role)
    if not isinstance(values, Mapping) and not is_frame(values) and not hasattr(values, "iloc"):
        if not is_ordered and not is_numbered:
            raise InputError(
                f"{role} of an edge list must come with node ids, since nodes are in the order of their ids; "
                "got values without ids. Pass a dictionary, or a pandas Series or DataFrame by id."
            )
        return graph.replace(**{role: values})
    try:
        if isinstance(values, Mapping):
            keys = [key if isinstance(key, (int, np.integer)) else str(key) for key in values]
            cells = list(values.values())
            rows = NodeRows(
                role,
                keys,
                plain_values(cells) if role == "labels" else np.asarray(cells).reshape(len(cells), -1),
            )
        else:
            rows = _read_frame(values, role, graph.node_ids.tolist(), n_rows=graph.n_nodes * is_numbered)
        return rows.attach(graph)
    except InputError as error:
        raise InputError(f"{role}: {error.message}", *error.hints) from error


def _read_frame(values: Any, role: str, nodes: list[Any], *, n_rows: int) -> NodeRows:
    """Return the rows of a Series or data frame; ``n_rows`` is the size of a default index that is ids."""
    texts, id = set(map(str, nodes)), None
    if hasattr(values, "iloc"):
        frame = values if is_frame(values) else values.to_frame("value")
        position = _find_id_column(frame, texts) if frame is values else None
        if position is None:
            if _is_default(frame.index) and len(frame) != n_rows:
                raise InputError(
                    "node ids must be in a column, such as id, or in the index; the index is the default one "
                    "of pandas. Name the column id, or use set_index."
                )
            frame, position = frame.reset_index(names="id", allow_duplicates=True), 0
        order = [position, *(number for number in range(frame.shape[1]) if number != position)]
        values = frame.iloc[:, order]
        id = str(values.columns[0])
    return (read_labels if role == "labels" else read_features)(values, texts, id=id)


def _find_id_column(frame: Any, nodes: set[str]) -> int | None:
    """Return the position of the column with node ids, ``None`` for the index.

    It is the column that is named as ids; otherwise the first of several columns, if its values can be ids
    and the index is the default one. An index that was set is preferred to a column whose values are not
    nodes.
    """
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


def _is_default(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.name is None and index.start == 0


def is_class_attribute(values: Sequence[Any]) -> bool:
    """Return whether values of nodes can be classes: whole numbers or texts, not a name for every node."""
    present = [value for value in plain_values(values) if value is not None]
    if all(isinstance(value, str) for value in present):
        return len(present) < 3 or len(set(present)) < len(present)
    return all(isinstance(value, int) for value in present)


def is_feature_attribute(values: Sequence[Any]) -> bool:
    """Return whether every node has a vector of numbers, all of the same length."""
    try:
        return _as_floats(values).ndim == 2
    except (TypeError, ValueError):
        return False


def _as_floats(values: Any) -> NDArray[np.float64]:
    """Return numbers in double precision; complex ones, of which NumPy would drop a part, are an error."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError
    return array.astype(np.float64)


def stack_features(attributes: Sequence[Any]) -> NDArray[np.float64]:
    """Return attributes, numbers or vectors of every node, side by side."""
    try:
        parts = list(map(_as_floats, attributes))
    except (TypeError, ValueError):
        raise InputError("features must name attributes with numbers for every node.") from None
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

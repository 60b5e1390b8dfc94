"""Graphs: an adjacency with features, labels and external node ids."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    Ints,
    RowData,
    Rows,
    as_matrix,
    check_ids,
    check_spellings,
    check_weights,
    deduplicate,
    find_positions,
    freeze,
    keep_entries,
)
from nodecopy._core.checks import (
    as_array,
    as_integers,
    check_characters,
    check_finite,
    check_indices,
    check_type,
    check_unique,
    check_vector,
    is_missing,
    list_names,
)
from nodecopy._core.messages import warn_about_data
from nodecopy.errors import InputError

UNLABELLED = -1
MAX_DRAWN = 150  # nodes of a graph that notebooks show as a picture


class Graph(RowData):
    """An immutable graph; the constructor checks its arguments.

    Parameters
    ----------
    adjacency
        Square matrix, dense or SciPy sparse; entry (i, j) is the weight of the edge from i to j, finite and
        not negative; zero means no edge. A graph whose weights are all one is binary.
    features
        Matrix with one row per node, dense or SciPy sparse, finite; none by default.
    labels
        One label per node: integers (-1 for unlabelled nodes) or strings (empty for unlabelled nodes); none
        by default.
    node_ids
        One unique integer or string per node; 0, 1, 2, ... by default.
    directed
        Whether edges are directed; not by default.

    Notes
    -----
    - *Self-loops* are dropped from undirected graphs and kept in directed ones.
    - *Asymmetric undirected input*: each pair has the larger of its two weights.
    - *Duplicates* of a sparse matrix are added, as in SciPy.

    Examples
    --------
    >>> from nodecopy import Graph
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], node_ids=["a", "b", "c"])
    >>> path
    Graph(3 nodes, 2 undirected edges, binary)
    >>> path.adjacency.toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """

    how_to_change = "graph.replace({}=...) returns a changed copy"
    features: FloatArray | sparse.csr_array | None
    label_codes: Ints | None
    label_names: tuple[str, ...] | None
    directed: bool
    feature_encoder: Any = None
    """How the features were encoded, if they were read from a table."""
    edge_settings: dict[str, Any] | None = None
    """How the edges were merged (``duplicates``) or built, if they come from a table."""

    def __init__(
        self,
        adjacency: Any,
        features: Any = None,
        labels: ArrayLike | None = None,
        node_ids: ArrayLike | None = None,
        directed: bool = False,
    ) -> None:
        directed = bool(check_type(directed, (bool, np.bool_), "directed", "True or False"))
        rows = Rows.from_matrix(adjacency, "adjacency")
        if rows.n_rows != rows.n_columns:
            raise InputError("adjacency", f"must be square; got shape {(rows.n_rows, rows.n_columns)}.")
        if not directed:
            rows = _undirected(rows)
        label_codes, label_names = encode_labels(labels, rows.n_rows)
        self.__dict__.update(
            rows=rows,
            features=_features(features, rows.n_rows),
            label_codes=label_codes,
            label_names=label_names,
            _node_ids=None if node_ids is None else check_ids(node_ids, "node_ids", rows.n_rows),
            directed=directed,
        )

    @classmethod
    def from_edges(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        node_ids: ArrayLike | None = None,
        features: Any = None,
        labels: ArrayLike | None = None,
        directed: bool = False,
    ) -> Graph:
        """Return a graph from arrays of node ids (integers or strings), one pair per edge.

        By default the nodes are the distinct ids in ascending order; ``node_ids`` may hold isolated nodes.
        An edge that is listed twice, or in both directions of an undirected graph, has its largest weight.

        >>> Graph.from_edges(["ann", "bob", "ann"], ["bob", "cleo", "bob"])
        Graph(3 nodes, 2 undirected edges, binary)
        """
        given: list[Any] = [source, target]
        source, target = check_ids(source, "source"), check_ids(target, "target")
        if source.dtype.kind == target.dtype.kind == "U":
            lists = (ends for ends in given if getattr(ends, "dtype", None) in (None, np.dtype(object)))
            check_spellings([*chain.from_iterable(lists)], "source and target")
        check_vector(target, "target", length=len(source), per="edge")
        if source.size and target.size and (source.dtype.kind == "U") != (target.dtype.kind == "U"):
            raise InputError("source and target must both hold integers or both hold strings.")
        if node_ids is None:
            ids = np.unique(np.concatenate([source, target]))
        else:
            ids = check_ids(node_ids, "node_ids")
            check_unique(ids, "node_ids")
        first, second = find_positions(source, ids, "source"), find_positions(target, ids, "target")
        values = np.ones(len(first)) if weight is None else check_weights(weight, len(first))
        matrix = deduplicate(first, second, values, (len(ids), len(ids)))
        return cls(matrix, features, labels, ids, directed)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.rows.n_rows

    @property
    def n_edges(self) -> int:
        """Number of edges; an undirected edge counts once."""
        return self.rows.n_entries if self.directed else self.rows.n_entries // 2

    @property
    def adjacency(self) -> sparse.csr_array:
        """The adjacency as a canonical CSR matrix with read-only arrays."""
        return self.rows.csr

    @property
    def degrees(self) -> IntArray:
        """Number of neighbours (out-neighbours of a directed graph) of each node."""
        return self.rows.degrees

    @property
    def node_ids(self) -> Array:
        """The external node ids."""
        ids: Array | None = self.__dict__["_node_ids"]
        return np.arange(self.n_nodes) if ids is None else ids

    @property
    def labels(self) -> Array | None:
        """The labels as they were given: integers (-1 if unlabelled) or strings (empty if unlabelled)."""
        if self.label_codes is None or self.label_names is None:
            return self.label_codes
        return freeze(np.array([*self.label_names, ""])[self.label_codes])

    def edges(self) -> tuple[Array, Array, FloatArray | None]:
        """Return ids of sources and targets, and weights (``None`` if binary), undirected edges once."""
        first, second, weights = self.rows.row_numbers, self.rows.indices, self.rows.weights
        if not self.directed:
            is_upper = first < second
            first, second = first[is_upper], second[is_upper]
            weights = None if weights is None else weights[is_upper]
        return self.node_ids[first], self.node_ids[second], weights

    def replace(self, **changes: Any) -> Graph:
        """Return a copy with some of ``adjacency, features, labels, node_ids, directed`` changed."""
        if unknown := changes.keys() - {"adjacency", "features", "labels", "node_ids", "directed"}:
            raise InputError(f"replace has no parameter {', '.join(sorted(unknown))}.")
        state = dict(self.__dict__)
        if changes.keys() & (names := {"adjacency", "directed"}):
            other = Graph(**{name: changes.get(name, getattr(self, name)) for name in names})
            state |= {"rows": other.rows, "directed": other.directed}
            if "adjacency" in changes:
                state["edge_settings"] = None
        n_nodes = state["rows"].n_rows
        if "features" in changes:
            state["features"], state["feature_encoder"] = _features(changes["features"], n_nodes), None
        if "labels" in changes:
            state["label_codes"], state["label_names"] = encode_labels(changes["labels"], n_nodes)
        if "node_ids" in changes:
            ids = changes["node_ids"]
            state["_node_ids"] = None if ids is None else check_ids(ids, "node_ids", n_nodes)
        kept = {"features", "labels", "node_ids"} - changes.keys()
        if n_nodes != self.n_nodes and any(self.to_parts()[name] is not None for name in kept):
            raise InputError("adjacency", f"must have {self.n_nodes} rows, one per node; got {n_nodes}.")
        return self._with(**state)

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Return the induced subgraph on some nodes (see :meth:`positions`), in the given order."""
        chosen = self.positions(nodes)
        check_unique(chosen, "nodes")
        return Graph(
            self.adjacency[chosen][:, chosen],
            None if self.features is None else self.features[chosen],
            None if self.label_codes is None else self.label_codes[chosen],
            self.node_ids[chosen],
            self.directed,
        )._with(
            label_names=self.label_names,
            feature_encoder=self.feature_encoder,
            edge_settings=self.edge_settings,
        )

    def with_label_names(self, names: Sequence[str]) -> Graph:
        """Return a copy with a name for every label code, used or not."""
        given = check_vector(names, "names")
        texts = check_ids([str(name) for name in given.tolist()], "names", len(given)).tolist()
        if self.label_codes is None or self.label_codes.max(initial=UNLABELLED) >= len(texts) or "" in texts:
            raise InputError("names", f"must hold a non-empty name for every label; got {len(texts)}.")
        return self._with(label_names=tuple(texts))

    def with_feature_encoder(self, encoder: Any) -> Graph:
        """Return a copy with the encoder of its features."""
        return self._with(feature_encoder=encoder)

    def with_edge_settings(self, **settings: Any) -> Graph:
        """Return a copy with the settings by which its edges were read or built."""
        return self._with(edge_settings=settings)

    def largest_component(self) -> Graph:
        """Return the subgraph on the largest (weakly) connected component; ties go to the first one."""
        if self.n_nodes == 0:
            return self
        _, component = sparse.csgraph.connected_components(self.adjacency, directed=self.directed)
        return self.subgraph(np.flatnonzero(component == np.bincount(component).argmax()))

    def undirected(self) -> Graph:
        """Return the graph without directions."""
        return self if not self.directed else self.replace(directed=False)

    def binary(self) -> Graph:
        """Return the graph without weights."""
        return self._with(rows=replace(self.rows, weights=None))

    def to_parts(self) -> dict[str, Any]:
        """Return what :meth:`from_parts` takes."""
        names = ("adjacency", "features", "label_names", "directed")
        others = {"labels": self.label_codes, "node_ids": self.__dict__["_node_ids"]}
        return {name: getattr(self, name) for name in names} | others

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Graph:
        """Rebuild a graph with every check."""
        names = parts.pop("label_names")
        graph = cls(**parts)
        return graph if names is None else graph.with_label_names(names)

    def positions(self, nodes: ArrayLike, name: str = "nodes") -> Ints:
        """Return the positions of nodes that are given by position, by a boolean mask or by id.

        Integers are positions, booleans (one per node) a mask, strings node ids. To choose nodes by integer
        ids, pass ``np.isin(graph.node_ids, ids)``. Errors call the nodes ``name``.

        >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], node_ids=["a", "b", "c"])
        >>> path.positions(["c", "a"]).tolist(), path.positions([True, False, True]).tolist()
        ([2, 0], [0, 2])
        """
        array = as_array(nodes, name)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "biuUO"):
            got = repr(nodes) if array.ndim == 0 else f"{array.dtype} of shape {array.shape}"
            raise InputError(name, f"must be positions, a boolean mask or node ids; got {got}.")
        if array.dtype.kind == "b":
            return np.flatnonzero(check_vector(array, name, length=self.n_nodes))
        if array.dtype.kind in "UO" and array.size:
            return find_positions(check_ids(array, name), self.node_ids.astype(str), name)
        return check_indices(array, name, size=self.n_nodes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self.directed == other.directed
            and self.rows == other.rows
            and np.array_equal(self.node_ids, other.node_ids)
            and _same(self.labels, other.labels)
            and _same(self.features, other.features)
        )

    def _repr_html_(self) -> str:
        """Return a picture if the graph is small, and what :meth:`__repr__` does, for notebooks."""
        from nodecopy._core.layout import draw_svg  # here, since it imports numba

        text = f"<div>{html.escape(repr(self))}</div>"
        if not 0 < self.n_nodes <= MAX_DRAWN:
            return text
        codes = None if self.label_codes is None else class_codes(self.label_codes)[1]
        return draw_svg(self.undirected().adjacency, codes) + text

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        parts = [f"{self.n_nodes} nodes", f"{self.n_edges} {kind} edges"]
        parts.append("weighted" if self.is_weighted else "binary")
        if self.features is not None:
            parts.append(f"{self.features.shape[1]} features")
        if self.label_codes is not None:
            parts.append(f"{len(class_codes(self.label_codes)[0])} classes")
        return f"Graph({', '.join(parts)})"


def _undirected(rows: Rows) -> Rows:
    matrix = rows.csr
    loops = rows.row_numbers == rows.indices
    if loops.any():
        matrix = keep_entries(matrix, ~loops)
    elif _same(matrix, matrix.T):
        return rows
    larger = matrix.maximum(matrix.T)
    larger.sum_duplicates()  # sorts the columns of each row
    return Rows.canonical(larger.indptr, larger.indices, larger.data, rows.n_columns)


def _features(values: Any, n_nodes: int) -> Any:
    if values is None:
        return None
    matrix = as_matrix(values, "features")
    is_sparse = bool(sparse.issparse(matrix))
    if matrix.ndim != 2 or matrix.shape[0] != n_nodes:
        allowed = f"a matrix with {n_nodes} rows, one per node"
        raise InputError("features", f"must be {allowed}; got shape {matrix.shape}.")
    if matrix.dtype.kind not in "biuf":
        raise InputError("features", f"must hold numbers; got {matrix.dtype}.")
    dtype = matrix.dtype if matrix.dtype.kind == "f" else np.float32
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float64 if dtype == np.longdouble else dtype)
    if is_sparse:
        matrix.sum_duplicates()
    check_finite(matrix.data if is_sparse else matrix, "features")
    return freeze(matrix)


def encode_labels(
    values: ArrayLike | None, n_nodes: int | None = None
) -> tuple[Ints | None, tuple[str, ...] | None]:
    """Return integer codes, -1 if unlabelled, and their names if labels are strings."""
    if values is None:
        return None, None
    array = check_vector(values, "labels", length=n_nodes)
    if array.dtype.kind == "O" and all(isinstance(value, (int, np.integer)) for value in array):
        array = as_integers(array.tolist(), "labels")
    if array.dtype.kind == "f":
        whole = np.where(np.isnan(array), UNLABELLED, array)
        if not np.array_equal(whole, np.floor(whole)):
            raise InputError("labels", "must be whole numbers or strings; got fractions.")
        if (largest := abs(whole).max(initial=0)) >= 2.0**63:
            raise InputError("labels", f"must be whole numbers of at most 64 bits; got {largest:g}.")
        array = whole.astype(np.int64)
    if array.dtype.kind in "biu":
        if array.size and (array.min() < UNLABELLED or array.max() > np.iinfo(np.int64).max):
            wrong = array.min() if array.min() < UNLABELLED else array.max()
            raise InputError("labels", f"must be -1 (unlabelled) or larger, in 64 bits; got {wrong}.")
        return freeze(array.astype(np.int64)), None
    if array.dtype.kind not in "OU":
        raise InputError("labels", f"must be whole numbers or strings; got {array.dtype}.")
    check_characters(array if isinstance(values, np.ndarray) else values, "labels")  # type: ignore[arg-type]
    texts = ["" if is_missing(value) else str(value) for value in array]
    names = sorted(set(texts) - {""})
    code_of = {"": UNLABELLED} | {name: code for code, name in enumerate(names)}
    return freeze(np.array([code_of[text] for text in texts], np.int64)), tuple(names)


def class_codes(labels: Ints, nodes: IntArray | None = None) -> tuple[Ints, Ints]:
    """Return the distinct labels (of ``nodes``), and every node's position among them, or -1."""
    classes = np.unique(labels if nodes is None else labels[nodes])
    classes = classes[classes != UNLABELLED]
    codes = np.where(np.isin(labels, classes), np.searchsorted(classes, labels), UNLABELLED)
    return classes, codes.astype(np.int64)


def training_classes(graph: Graph, train: IntArray) -> tuple[Ints, Ints]:
    """Return :func:`class_codes` of the training nodes; warn about classes that none of them has."""
    assert graph.label_codes is not None
    classes, codes = class_codes(graph.label_codes, train)
    left_out = (codes == UNLABELLED) & (graph.label_codes != UNLABELLED)
    if left_out.any():
        missing, counts = np.unique(graph.label_codes[left_out], return_counts=True)
        names = missing if graph.label_names is None else np.array(graph.label_names)[missing]
        pairs = zip(names.tolist(), counts.tolist(), strict=True)
        listed = list_names([f"{name} ({count} node{'s' * (count > 1)})" for name, count in pairs])
        warn_about_data(
            f"no training node has class {listed}. It is left out: its nodes count as unlabelled in training "
            "and as wrong in an evaluation. To predict it, add a node of the class to the training nodes."
        )
    return classes, codes


def _same(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    both = [sparse.issparse(first), sparse.issparse(second)]
    if all(both):
        return bool(first.shape == second.shape and (first != second).nnz == 0)
    return not any(both) and np.array_equal(first, second)

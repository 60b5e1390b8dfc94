"""Graphs from lists of edges, some of which may be repeated, listed in both directions, or loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.io import mmread

from nodecopy._core.arrays import as_csr, deduplicate
from nodecopy._core.checks import check_shape
from nodecopy._core.messages import Hint, log_decision
from nodecopy.errors import InputError
from nodecopy.graph import Graph

Duplicates: TypeAlias = Literal["max", "sum", "error"]
"""What becomes of an edge that is listed more than once."""
DUPLICATES: tuple[str, ...] = get_args(Duplicates)


def build_graph(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    weights: NDArray[np.float64],
    node_ids: NDArray[Any],
    *,
    directed: bool,
    duplicates: Duplicates,
    file: str,
    row_name: Callable[[int], str] = "entry {}".format,
) -> Graph:
    """Return the graph of a list of edges, and log how many are repeated, of weight 0 or self-loops.

    An undirected list that has every edge in both directions, with equal weights, lists each edge once in
    each direction: the two are no duplicates. In any other undirected list they are.

    Parameters
    ----------
    first, second, weights
        The positions of sources and targets, and the weights.
    node_ids
        The ids of the nodes.
    directed
        Whether edges are directed.
    duplicates
        An edge that is listed more than once has the largest of its weights (``"max"``), their sum
        (``"sum"``) or is an error (``"error"``).
    file
        What the list is called in decisions.
    row_name
        What errors call the entry at a position.
    """
    n = len(node_ids)
    matrix = deduplicate(first, second, weights, (n, n))
    n_repeated, n_reversed = len(first) - matrix.nnz, 0
    if duplicates == "sum" and n_repeated:
        matrix = sparse.csr_array((weights, (first, second)), shape=(n, n))  # SciPy adds duplicates
    graph = Graph(matrix, None, None, node_ids, directed)
    if not directed:
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        is_edge = (rows != matrix.indices) & (matrix.data != 0)
        n_reversed = int(is_edge.sum()) - graph.n_edges
        if n_reversed == graph.n_edges and np.array_equal(graph.adjacency.data, matrix.data[is_edge]):
            n_reversed = 0  # a symmetric list
    if duplicates == "error" and (n_repeated or n_reversed):
        row = _find_repeated(first, second, n, directed=not n_reversed)
        edge = f"{node_ids[first[row]]} to {node_ids[second[row]]}"
        raise InputError(
            f"{row_name(row)} repeats the edge from {edge}. Merge them with duplicates='max' or 'sum'.",
        )
    if duplicates == "sum" and n_reversed:
        graph = Graph(matrix + matrix.T, None, None, node_ids)
    if n_zero := int((weights == 0).sum()):
        log_decision(f"{file}: edges of weight 0: {n_zero}; they are left out.")
    _log_counts(file, n_repeated, n_reversed, int((first == second).sum()), directed, duplicates)
    return graph


def _find_repeated(first: NDArray[np.int64], second: NDArray[np.int64], n: int, *, directed: bool) -> int:
    """Return the first row whose edge is in a row above."""
    low, high = (first, second) if directed else (np.minimum(first, second), np.maximum(first, second))
    is_repeated = np.ones(len(first), bool)
    is_repeated[np.unique(low * n + high, return_index=True)[1]] = False
    return int(is_repeated.argmax())


def _log_counts(
    file: str, n_repeated: int, n_reversed: int, n_loops: int, directed: bool, duplicates: Duplicates
) -> None:
    parts = [f"repeated edges: {n_repeated}"] if n_repeated else []
    parts += [f"edges in both directions: {n_reversed}"] if n_reversed else []
    if parts:
        rule, hint = "the largest weight counts", Hint("{} adds the weights.", duplicates="sum")
        if duplicates == "sum":
            rule, hint = "their weights are added", Hint("{} takes the largest.", duplicates="max")
        log_decision(f"{file}: {', '.join(parts)}; {rule}.", hint)
    if n_loops:
        treatment = "kept, as the graph is directed" if directed else "left out, as the graph is undirected"
        log_decision(f"{file}: self-loops: {n_loops}; they are {treatment}.")


# Matrix Market files; their text is checked first, since SciPy's compiled reader does not survive damage.


NUMBERS = b"0123456789eE+-. \t\r\n"


def read_matrix_market(path: Path) -> sparse.csr_array:
    """Return the matrix of a ``.mtx`` file."""
    _check_text(path)
    entries = sparse.coo_array(mmread(path))
    check_shape(entries.shape, entries.nnz)
    return as_csr(entries, "the matrix of the file")


def _check_text(path: Path) -> None:
    """Raise an error unless the file holds numbers, with a line for every entry."""
    first, _, content = path.read_bytes().partition(b"\n")
    while content.lstrip().startswith(b"%"):
        content = content.partition(b"\n")[2]
    line, _, body = content.lstrip().partition(b"\n")
    sizes = list(map(int, line.split()))
    if b"coordinate" not in first.lower():  # a dense matrix
        if math.prod(sizes) > 2 * len(body) + sizes[0]:  # of a symmetric one, half
            raise InputError(f"the file must have an entry for each place; there are {math.prod(sizes)}.")
        return
    n_entries = sizes[2]
    if strange := (line + body).translate(None, NUMBERS):
        raise InputError(f"a Matrix Market file must hold numbers; got {strange[:20]!r}.")
    n_lines = body.strip().count(b"\n") + bool(body.strip())
    if n_lines != n_entries and sum(bool(line.strip()) for line in body.splitlines()) != n_entries:
        raise InputError(f"the file must have {n_entries} lines of entries; it has {n_lines}.")

"""Exact nearest neighbours among a few thousand to a few hundred thousand rows, and the graph they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import as_array, check_choice, check_finite, check_integer
from nodecopy.errors import InputError

BLOCK = 2**21  # numbers held at once: 16 MB for each of a handful of arrays


def nearest(
    embeddings: Any, k: int, *, include_self: bool = True, ties: str = "first", owner: str = "nearest"
) -> tuple[IntArray, IntArray]:
    """The ``k`` nearest rows of every row by Euclidean distance, exact and the same on every machine.

    Parameters
    ----------
    embeddings
        One row per node, dense or SciPy sparse, finite.
    k
        How many; between 1 and the number of nodes, less one where a node does not count itself.
    include_self
        Whether a node counts as its own first neighbour; it then stands before its duplicates.
    ties
        ``"first"``: exactly ``k`` per node, and of nodes equally far the lower number wins.
        ``"all"``: every node that is no farther than the k-th nearest, perhaps more than ``k``.
    owner
        Who asks; error messages name it.

    Returns
    -------
    indptr, indices
        The neighbours of node ``i`` are ``indices[indptr[i]:indptr[i + 1]]``, nearest first, nodes
        equally far in ascending order.

    Notes
    -----
    One matrix product gives all distances up to rounding. Whatever could be among the nearest, given a
    bound on that rounding, is measured again by differences, so the answer depends neither on the
    linear algebra library nor on its threads. Two distances tie where those measurements are equal.

    Examples
    --------
    >>> indptr, indices = nearest([[0.0], [1.0], [3.0]], 2)
    >>> indices.reshape(3, 2).tolist()
    [[0, 1], [1, 0], [2, 1]]
    >>> indptr, indices = nearest([[0.0], [1.0], [2.0]], 1, include_self=False, ties="all")
    >>> indices[indptr[1]:indptr[2]].tolist()
    [0, 2]
    """
    return Search(embeddings, owner=owner).nearest(k, include_self=include_self, ties=ties)


class Search:
    """What is computed once for many searches: the rows, a centred copy and its squared norms.

    Parameters
    ----------
    embeddings
        One row per node, dense or SciPy sparse, finite.
    queries
        Where each node looks from, if not from its own row; of the same shape. Meant for searches
        with ``include_self=False``: a node is taken to be no distance from itself.
    owner
        Who asks; error messages name it.
    """

    def __init__(self, embeddings: Any, *, queries: Any = None, owner: str = "nearest") -> None:
        matrix = number_matrix(embeddings, f"embeddings of {owner}")
        asking = matrix if queries is None else number_matrix(queries, f"queries of {owner}")
        if asking.shape != matrix.shape:
            raise InputError(f"queries of {owner} must have shape {matrix.shape}; got {asking.shape}.")
        self.owner = owner
        values = [_stored(matrix)] if asking is matrix else [_stored(matrix), _stored(asking)]
        top = max(float(np.abs(part).max(initial=0.0)) for part in values)
        # With small whole numbers every product and sum is exact, so nothing is measured twice.
        self.exact = top**2 * matrix.shape[1] < 2**50 if top < 2**25 else False
        self.exact = self.exact and all(bool((part == np.floor(part)).all()) for part in values)
        # A power of two scales without rounding and keeps squares from overflowing.
        scale = 2.0 ** -np.clip(float(np.frexp(top)[1]), -1000, 1000)
        self.matrix = matrix * scale
        self.asking = self.matrix if asking is matrix else asking * scale
        centre = None if self.exact or sparse.issparse(matrix) else self.matrix.mean(axis=0)
        self.centred = self.matrix if centre is None else self.matrix - centre
        self.centred_asking = (
            self.centred if asking is matrix else self.asking if centre is None else self.asking - centre
        )
        self.norms = _squared_norms(self.centred)
        self.asking_norms = self.norms if asking is matrix else _squared_norms(self.centred_asking)
        self.rounding = 0.0 if self.exact else 16 * (matrix.shape[1] + 8) * np.finfo(float).eps

    def nearest(
        self, k: int, *, of: IntArray | None = None, include_self: bool = True, ties: str = "first"
    ) -> tuple[IntArray, IntArray]:
        """What :func:`nearest` answers, for the nodes ``of`` alone where they are given."""
        n = self.matrix.shape[0]
        limit, limit_name = (n, "n_nodes") if include_self else (n - 1, "n_nodes - 1")
        k = check_integer(k, f"k of {self.owner}", low=1, high=limit, high_name=limit_name)
        check_choice(ties, f"ties of {self.owner}", ["first", "all"])
        asked = np.arange(n) if of is None else of
        counts: list[IntArray] = [np.zeros(1, np.int64)]
        found: list[IntArray] = [np.zeros(0, np.int64)]
        step = max(1, BLOCK // max(1, n))
        for start in range(0, len(asked), step):
            rows = asked[start : start + step]
            place, node, distance = self.candidates(rows, k, include_self)
            order = np.lexsort((node, node != rows[place], distance, place))
            place, node, distance = place[order], node[order], distance[order]
            first = np.searchsorted(place, np.arange(len(rows)))
            if ties == "first":
                keep = np.arange(len(place)) - first[place] < k
            else:
                keep = distance <= distance[first + k - 1][place]
            counts.append(np.bincount(place[keep], minlength=len(rows)))
            found.append(node[keep])
        return np.cumsum(np.concatenate(counts)), np.concatenate(found)

    def candidates(
        self, rows: IntArray, k: int, include_self: bool
    ) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
        """All that may be among the ``k`` nearest of some rows: place in them, node and squared distance."""
        distance = _dense(self.centred_asking[rows] @ self.centred.T)
        distance *= -2.0
        distance += self.norms
        distance += self.asking_norms[rows, None]
        np.maximum(distance, 0.0, out=distance)
        distance[np.arange(len(rows)), rows] = 0.0 if include_self else np.inf
        threshold = np.partition(distance, k - 1, axis=1)[:, k - 1]
        threshold += self.rounding * (self.asking_norms[rows] + self.norms.max())
        place, node = np.nonzero(distance <= threshold[:, None])
        return place, node, distance[place, node] if self.exact else self.measure(rows[place], node)

    def measure(self, first: IntArray, second: IntArray) -> NDArray[np.float64]:
        """Squared distances by differences, always summed in the same order."""
        squared = np.empty(len(first))
        step = max(1, BLOCK // max(1, self.matrix.shape[1]))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            difference = _dense(self.asking[first[part]] - self.matrix[second[part]])
            squared[part] = np.square(difference).sum(axis=1)
        return squared


def _squared_norms(matrix: Any) -> NDArray[np.float64]:
    return np.asarray((matrix * matrix).sum(axis=1))


def number_matrix(embeddings: Any, name: str) -> Any:
    """Doubles, dense or CSR, finite."""
    is_sparse = sparse.issparse(embeddings)
    matrix = embeddings if is_sparse else as_array(embeddings, name)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be a matrix of numbers, one row per node; "
            f"got shape {matrix.shape} of {matrix.dtype}."
        )
    matrix = sparse.csr_array(matrix, dtype=np.float64) if is_sparse else matrix.astype(np.float64)
    check_finite(_stored(matrix), name)
    return matrix


def _stored(matrix: Any) -> NDArray[np.float64]:
    """The numbers a matrix holds."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.data)


def _dense(matrix: Any) -> NDArray[np.float64]:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())

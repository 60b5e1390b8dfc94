"""Donor laws: ways to say which nodes are alike, each fitted to a :class:`.DonorDistribution`.

A law stores its settings; ``fit`` checks them against the data. Any object with such a ``fit`` is a
law, so a new notion of similarity needs no change elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy import checks
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions
from nodecopy.neighbours import nearest
from nodecopy.rows import Rows, index_dtype, largest_entries

BLOCK = 2**22
"""Similarities held at once while Jaccard's law is built."""


class DonorLaw(Protocol):
    """Whatever turns a graph into the distribution of its nodes' donors."""

    def fit(self, data: Graph | Interactions) -> DonorDistribution: ...


@dataclass(frozen=True, eq=False)
class SameLabel:
    """A donor is any node with the same label, all equally likely (the paper's eq. 4, ``eq:nc_zeta``).

    Parameters
    ----------
    labels
        One integer per node, given or predicted; the graph's own labels by default. A node without a
        label (-1) is like nobody: it keeps its own neighbours.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> model = NodeCopying(SameLabel([0, 1, 0])).fit(path)
    >>> model.distribution_.probabilities().toarray().tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    """

    labels: ArrayLike | None = None

    def fit(self, data: Graph | Interactions) -> DonorLists:
        labels = self.labels
        if labels is None:
            labels = getattr(data, "labels", None)
            if labels is None:
                raise InputError("labels of SameLabel must be given, since the graph has none.")
        codes = checks.vector(labels, "labels of SameLabel", length=data.rows.n_rows)
        if codes.dtype.kind not in "biu":
            raise InputError(f"labels of SameLabel must be integers; got {codes.dtype}.")
        codes = codes.astype(np.int64)
        unknown = codes <= UNLABELLED
        codes[unknown] = codes.max(initial=0) + 1 + np.arange(unknown.sum())
        _, group_of = np.unique(codes, return_inverse=True)
        return DonorLists.from_groups(group_of)


@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """A donor is one of the K nearest nodes by Euclidean distance, all equally likely.

    Parameters
    ----------
    k
        How many nodes.
    embeddings
        One row per node; the graph's features by default.
    include_self
        Whether the node counts as its own nearest, as in the paper's Table 1.
    ties
        ``"first"`` takes exactly ``k``, lower node numbers first; ``"all"`` every node no farther
        than the k-th order statistic of the distances (``eq:app:zeta_dist``).

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, NearestNeighbours
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> law = NearestNeighbours(2, embeddings=[[0.0], [1.0], [5.0]])
    >>> NodeCopying(law).fit(path).distribution_.probabilities().toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """

    k: int = 10
    embeddings: Any = None
    include_self: bool = True
    ties: str = "first"

    def fit(self, data: Graph | Interactions) -> DonorLists:
        embeddings = self.embeddings
        if embeddings is None:
            embeddings = getattr(data, "features", None)
            if embeddings is None:
                raise InputError(
                    "embeddings of NearestNeighbours must be given, since the graph has no features."
                )
        if not sparse.issparse(embeddings):
            embeddings = checks.as_array(embeddings, "embeddings of NearestNeighbours")
        if embeddings.ndim != 2 or embeddings.shape[0] != data.rows.n_rows:
            raise InputError(
                f"embeddings of NearestNeighbours must be a matrix with {data.rows.n_rows} rows, "
                f"one per node; got shape {embeddings.shape}."
            )
        indptr, indices = nearest(
            embeddings, self.k, include_self=self.include_self, ties=self.ties, owner="NearestNeighbours"
        )
        dtype = index_dtype(len(indices))
        return DonorLists(
            np.arange(len(indptr) - 1, dtype=dtype), indptr.astype(dtype), indices.astype(dtype)
        )


@dataclass(frozen=True, eq=False)
class Jaccard:
    """A donor is a user (or node) who shares items, in proportion to the Jaccard index (``eq:zeta_rec``).

    Parameters
    ----------
    include_self
        Whether a user may be the own donor, as the paper's sum over all users has it.
    exponent
        Power of the index; larger values favour the most similar users.
    top
        How many of the most similar users may be donors (all by default); of equals the first ones.

    Notes
    -----
    Weights do not count, only who has which items. A user without a possible donor keeps the own row.

    Examples
    --------
    >>> from nodecopy import Interactions, Jaccard, NodeCopying
    >>> log = Interactions([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> NodeCopying(Jaccard(include_self=False)).fit(log).distribution_.probabilities().toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    include_self: bool = True
    exponent: float = 1.0
    top: int | None = None

    def fit(self, data: Graph | Interactions) -> DonorRows:
        checks.real(self.exponent, "exponent of Jaccard", low=0.0)
        if self.top is not None:
            checks.integer(self.top, "top of Jaccard", low=1)
        rows = data.rows
        pattern = Rows(rows.indptr, rows.indices, None, rows.n_columns).csr
        transpose, degrees = sparse.csr_array(pattern.T), rows.degrees.astype(np.float64)
        step = max(1, BLOCK // max(1, rows.n_rows))
        blocks = [
            self._similarities(np.arange(start, min(start + step, rows.n_rows)), pattern, transpose, degrees)
            for start in range(0, rows.n_rows, step)
        ]
        empty = sparse.csr_array((0, rows.n_rows))
        return DonorRows.from_similarity(sparse.csr_array(sparse.vstack([empty, *blocks], format="csr")))

    def _similarities(self, users: Any, pattern: Any, transpose: Any, degrees: Any) -> sparse.csr_array:
        shared = sparse.csr_array(pattern[users] @ transpose)
        user = np.repeat(users, np.diff(shared.indptr))
        index = shared.data / (degrees[user] + degrees[shared.indices] - shared.data)
        if not self.include_self:
            index[user == shared.indices] = 0.0
        similarity = sparse.csr_array((index, shared.indices, shared.indptr), shape=shared.shape)
        if self.top is not None:
            similarity = largest_entries(similarity, self.top)
        similarity.sort_indices()
        # Relative to the user's best, or a large exponent would take every index to zero.
        user = np.repeat(np.arange(len(users)), np.diff(similarity.indptr))
        best = np.full(len(users), np.finfo(float).tiny)
        np.maximum.at(best, user, similarity.data)
        similarity.data = (similarity.data / best[user]) ** self.exponent * (similarity.data > 0)
        return similarity


@dataclass(frozen=True, eq=False)
class Weighted:
    """A donor is drawn in proportion to any similarity you have.

    Parameters
    ----------
    similarity
        Square matrix, dense or sparse, finite and not negative; entry (i, m) says how readily node i
        takes the neighbours of node m. A node whose row is empty keeps its own neighbours.
    """

    similarity: Any

    def fit(self, data: Graph | Interactions) -> DonorRows:
        similarity = Rows.from_matrix(self.similarity, "similarity of Weighted")
        shape, n_rows = (similarity.n_rows, similarity.n_columns), data.rows.n_rows
        if shape != (n_rows, n_rows):
            raise InputError(f"similarity of Weighted must have shape {(n_rows, n_rows)}; got {shape}.")
        return DonorRows.from_similarity(similarity.csr)

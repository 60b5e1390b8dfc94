"""Donor laws: ways to say which nodes are alike, each fitted to a :class:`.DonorDistribution`.

A law stores its settings; ``fit`` checks them against the data. Any object with such a ``fit`` is a
law, so a new notion of similarity needs no change elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows, index_dtype, is_dense_product_faster, largest_entries
from nodecopy._core.params import Configurable
from nodecopy._core.validation import as_array, check_integer, check_real, check_vector
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.errors import InputError
from nodecopy.features.neighbours import Search, nearest
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions

BLOCK = 2**22
"""Similarities held at once while Jaccard's law is built."""
BALANCE, MOST_SCALINGS = 1e-9, 10_000
"""How far from one the sums of a balanced law may be, and after how many steps it is given up."""


class DonorLaw(Protocol):
    """Whatever turns a graph into the distribution of its nodes' donors."""

    def fit(self, data: Graph | Interactions) -> DonorDistribution: ...


@dataclass(frozen=True, eq=False)
class SameLabel(Configurable):
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
        codes = _codes(self.labels, data, "labels of SameLabel")
        _, group_of = np.unique(codes, return_inverse=True)
        return DonorLists.from_groups(group_of)


@dataclass(frozen=True, eq=False)
class NearestNeighbours(Configurable):
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
    groups
        One integer per node, or ``"labels"`` for the graph's own: donors are of the same group. A node
        without a group (-1) is like nobody.
    band
        How many times the smaller of two degrees the larger may be, if one node is to be the other's
        donor; no limit by default.

    Notes
    -----
    Where groups and band leave fewer than ``k`` nodes, all of them are possible donors; a node that they
    leave alone keeps its own neighbours.

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
    groups: ArrayLike | None = None
    band: float | None = None

    def fit(self, data: Graph | Interactions) -> DonorLists:
        embeddings = self.embeddings
        if embeddings is None:
            embeddings = getattr(data, "features", None)
            if embeddings is None:
                raise InputError(
                    "embeddings of NearestNeighbours must be given, since the graph has no features."
                )
        if not sparse.issparse(embeddings):
            embeddings = as_array(embeddings, "embeddings of NearestNeighbours")
        if embeddings.ndim != 2 or embeddings.shape[0] != data.rows.n_rows:
            raise InputError(
                f"embeddings of NearestNeighbours must be a matrix with {data.rows.n_rows} rows, "
                f"one per node; got shape {embeddings.shape}."
            )
        if self.groups is None and self.band is None:
            indptr, indices = nearest(
                embeddings, self.k, include_self=self.include_self, ties=self.ties, owner="NearestNeighbours"
            )
        else:
            indptr, indices = self._among_peers(embeddings, data)
        dtype = index_dtype(len(indices))
        return DonorLists(
            np.arange(len(indptr) - 1, dtype=dtype), indptr.astype(dtype), indices.astype(dtype)
        )

    def _among_peers(self, embeddings: Any, data: Graph | Interactions) -> tuple[IntArray, IntArray]:
        """What :func:`nearest` answers, where donors are of the same group and of about the same degree."""
        check_integer(self.k, "k of NearestNeighbours", low=1)
        groups, degrees, band = np.zeros(data.rows.n_rows, np.int64), data.rows.degrees, 1.0
        if self.groups is not None:
            own = isinstance(self.groups, str) and self.groups == "labels"
            groups = _codes(None if own else self.groups, data, "groups of NearestNeighbours")
        if self.band is None:
            degrees = np.ones_like(degrees)
        else:
            band = check_real(self.band, "band of NearestNeighbours", low=1.0)
        donors: list[IntArray] = [np.zeros(0, np.int64)] * data.rows.n_rows
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            for degree in np.unique(degrees[members]):
                is_peer = (degrees[members] <= band * degree) & (degree <= band * degrees[members])
                nodes = members[is_peer]
                asking = np.flatnonzero(degrees[nodes] == degree)
                k = min(self.k, len(nodes) - (not self.include_self))
                if k == 0:
                    donors[nodes[0]] = nodes
                    continue
                search = Search(embeddings[nodes], owner="NearestNeighbours")
                start, found = search.nearest(k, of=asking, include_self=self.include_self, ties=self.ties)
                for node, own_part in zip(nodes[asking], pairwise(start), strict=True):
                    donors[node] = nodes[found[slice(*own_part)]]
        sizes = [len(one) for one in donors]
        return np.cumsum([0, *sizes]), np.concatenate([np.zeros(0, np.int64), *donors])


@dataclass(frozen=True, eq=False)
class Jaccard(Configurable):
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
        check_real(self.exponent, "exponent of Jaccard", low=0.0)
        if self.top is not None:
            check_integer(self.top, "top of Jaccard", low=1)
        rows = data.rows
        pattern = Rows(rows.indptr, rows.indices, None, rows.n_columns).csr
        factors: tuple[Any, Any] = pattern, sparse.csr_array(pattern.T)
        if is_dense_product_faster(pattern):
            dense = pattern.toarray()
            factors = dense, dense.T
        degrees = rows.degrees.astype(np.float64)
        step = max(1, BLOCK // max(1, rows.n_rows))
        blocks = [
            self._similarities(slice(start, min(start + step, rows.n_rows)), *factors, degrees)
            for start in range(0, rows.n_rows, step)
        ]
        empty = sparse.csr_array((0, rows.n_rows))
        return DonorRows.from_similarity(sparse.csr_array(sparse.vstack([empty, *blocks], format="csr")))

    def _similarities(self, some: slice, pattern: Any, transpose: Any, degrees: Any) -> sparse.csr_array:
        users = np.arange(some.start, some.stop)
        similarity = self._index(users, pattern[some] @ transpose, degrees)
        if self.top is not None:
            similarity = largest_entries(similarity, self.top)
        similarity.sort_indices()
        # Relative to the user's best, or a large exponent would take every index to zero.
        user = np.repeat(np.arange(len(users)), np.diff(similarity.indptr))
        best = np.full(len(users), np.finfo(float).tiny)
        np.maximum.at(best, user, similarity.data)
        similarity.data = (similarity.data / best[user]) ** self.exponent * (similarity.data > 0)
        return similarity

    def _index(self, users: Any, shared: Any, degrees: Any) -> sparse.csr_array:
        """The Jaccard index of some users with all, from how many items they share; of a dense matrix
        only what may be among the ``top``.
        """
        if isinstance(shared, np.ndarray):
            either = degrees[users, None] + degrees
            either -= shared
            index = np.divide(shared, np.maximum(either, 1.0, out=either), out=either)
            if not self.include_self:
                index[np.arange(len(users)), users] = 0.0
            return _at_least(index, _borders(index, self.top))
        user = np.repeat(users, np.diff(shared.indptr))
        index = shared.data / (degrees[user] + degrees[shared.indices] - shared.data)
        if not self.include_self:
            index[user == shared.indices] = 0.0
        return sparse.csr_array((index, shared.indices, shared.indptr), shape=shared.shape)


@dataclass(frozen=True, eq=False)
class Weighted(Configurable):
    """A donor is drawn in proportion to any similarity you have.

    Parameters
    ----------
    similarity
        Square matrix, dense or sparse, finite and not negative; entry (i, m) says how readily node i
        takes the neighbours of node m. A node whose row is empty keeps its own neighbours.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, Weighted
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> model = NodeCopying(Weighted([[1, 0, 3], [0, 0, 0], [1, 1, 0]])).fit(path)
    >>> model.distribution_.probabilities().toarray()
    array([[0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ],
           [0.5 , 0.5 , 0.  ]])
    """

    similarity: Any

    def fit(self, data: Graph | Interactions) -> DonorRows:
        similarity = Rows.from_matrix(self.similarity, "similarity of Weighted")
        shape, n_rows = (similarity.n_rows, similarity.n_columns), data.rows.n_rows
        if shape != (n_rows, n_rows):
            raise InputError(f"similarity of Weighted must have shape {(n_rows, n_rows)}; got {shape}.")
        return DonorRows.from_similarity(similarity.csr)


@dataclass(frozen=True, eq=False)
class Balanced:
    """Another law, changed so that every node is a donor as often as any other: once, in expectation.

    Then the degrees of the copied rows are expected to be distributed as the observed ones are: a node of
    degree d is expected to give its row to one node, so the expected number of rows with d entries is the
    observed one, and so are mean degree and number of claws. Unbalanced laws lose hubs, which are few
    nodes' nearest.

    Parameters
    ----------
    law
        The other law. Donors become mutual, P = max(P, P^T), and P is scaled to D P D, whose rows and
        columns all add up to one (Sinkhorn). This exists where every node may be its own donor.

    Examples
    --------
    >>> from nodecopy import Balanced, Graph, NearestNeighbours, NodeCopying
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> law = Balanced(NearestNeighbours(2, embeddings=[[0.0], [1.0], [5.0]]))
    >>> P = NodeCopying(law).fit(path).distribution_.probabilities().toarray()
    >>> P.sum(axis=0).round(6).tolist()
    [1.0, 1.0, 1.0]
    """

    law: DonorLaw

    def fit(self, data: Graph | Interactions) -> DonorRows:
        P = self.law.fit(data).probabilities()
        mutual = sparse.csr_array(P.maximum(P.T))
        scale = np.ones(mutual.shape[0])
        for _ in range(MOST_SCALINGS):
            sums = scale * (mutual @ scale)
            if np.abs(sums - 1).max(initial=0.0) < BALANCE:
                break
            scale /= np.sqrt(sums)
        else:
            raise InputError("law of Balanced must let every node be its own donor; it cannot be balanced.")
        mutual.data *= np.repeat(scale, np.diff(mutual.indptr)) * scale[mutual.indices]
        return DonorRows.from_similarity(mutual)


def _borders(index: NDArray[np.float64], top: int | None) -> NDArray[np.float64]:
    """The ``top``-th largest entry of each row, or the least positive number."""
    least = np.full(len(index), np.finfo(float).tiny)
    if top is None or top >= index.shape[1]:
        return least
    return np.maximum(np.partition(index, -top, axis=1)[:, -top], least)


def _at_least(index: NDArray[np.float64], borders: NDArray[np.float64]) -> sparse.csr_array:
    """The entries of each row from its border on."""
    kept = index >= borders[:, None]
    indptr = np.append(0, np.cumsum(np.count_nonzero(kept, axis=1)))
    place = np.flatnonzero(kept)
    return sparse.csr_array((index.ravel()[place], place % index.shape[1], indptr), shape=index.shape)


def _codes(labels: ArrayLike | None, data: Graph | Interactions, name: str) -> NDArray[np.int64]:
    """Codes that are equal where labels are, the graph's own by default; each unlabelled node has its own."""
    if labels is None:
        labels = getattr(data, "labels", None)
        if labels is None:
            raise InputError(f"{name} must be given, since the graph has no labels.")
    codes = check_vector(labels, name, length=data.rows.n_rows)
    if codes.dtype.kind not in "biu":
        raise InputError(f"{name} must be integers; got {codes.dtype}.")
    codes = codes.astype(np.int64)
    unknown = codes <= UNLABELLED
    codes[unknown] = codes.max(initial=0) + 1 + np.arange(unknown.sum())
    return codes

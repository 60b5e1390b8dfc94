"""Donor rules: which nodes may be the donors of a node, and with which probabilities.

A rule is any object whose ``fit`` returns a :class:`.DonorDistribution`; see :class:`DonorRule`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import (
    IntArray,
    Ints,
    Rows,
    as_csr,
    as_matrix,
    check_row_data,
    index_dtype,
    largest_entries,
)
from nodecopy._core.checks import check_choice, check_integer, check_real, check_vector, show, type_name
from nodecopy._core.estimator import Configurable
from nodecopy._core.imports import from_name
from nodecopy._core.messages import log_decision
from nodecopy._core.parallel import map_on_cores
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows, KeepingDistribution
from nodecopy.errors import InputError
from nodecopy.features.embeddings import shared_nearest, shared_neighbourhoods
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.scaling import scale_features
from nodecopy.graph import UNLABELLED, Graph, encode_labels
from nodecopy.interactions import Interactions

BALANCE_TOLERANCE, MAX_SCALINGS = 1e-9, 10_000  # of the row sums of Balanced, and of its iterations
N_CANDIDATES = 4  # per wanted neighbour in searches within groups
MAX_BLOCK_ENTRIES = 2**20  # similarities that a thread of Jaccard holds in memory at once
MIN_COMPILED_PRODUCTS = 2**25  # multiplications from which Jaccard uses compiled code


@runtime_checkable
class DonorRule(Protocol):
    """An object whose ``fit`` returns the distribution of every node's donor.

    ``group_labels(data)``, which is optional, returns the labels that a node and its donor share, or -1.
    """

    def fit(self, data: Graph | Interactions) -> DonorDistribution:
        """Return the donor distribution of the nodes of a graph, or of the users of interactions."""


def fit_rule(donors: Any, data: Graph | Interactions, name: str) -> DonorDistribution:
    """Return the distribution of a donor rule, or of the one that a name stands for, after checking both."""
    donors = from_name(donors, RULES, name)
    if isinstance(donors, type) or not hasattr(donors, "fit"):
        raise InputError(name, f"must be a donor rule such as SameLabel(); got {show(donors)}.")
    return check_distribution(donors.fit(data), data, name)


def check_distribution(distribution: Any, data: Graph | Interactions, name: str) -> DonorDistribution:
    """Return the result of ``fit`` of a donor rule after a check."""
    n_rows = data.rows.n_rows
    if not isinstance(distribution, DonorDistribution):
        raise InputError(name, f"must return a DonorDistribution from fit; got {type_name(distribution)}.")
    if distribution.n_nodes != n_rows:
        raise InputError(name, f"must return donors of {n_rows} nodes from fit; got {distribution.n_nodes}.")
    return distribution


def group_labels(donors: Any, data: Graph | Interactions) -> Any:
    """Return the labels that a node and its donor share, or ``None`` if there are none."""
    donors = from_name(donors, RULES, "donors")
    return donors.group_labels(data) if hasattr(donors, "group_labels") else None


def select_nodes(values: Any, nodes: slice, n_nodes: int) -> Any:
    """Return the values of some nodes; anything but a value for each node is unchanged."""
    if values is None or isinstance(values, str):
        return values
    array = as_matrix(values, "values of the nodes")
    return array[nodes] if array.shape[0] == n_nodes else values


class _OtherRule(Configurable):
    """A donor rule that changes the distribution of another one, ``donors``."""

    donors: DonorRule | str

    def group_labels(self, data: Graph | Interactions) -> Any:
        return group_labels(self.donors, data)


@dataclass(eq=False)
class SameLabel(Configurable):
    """Draw donors uniformly from the nodes with the same label (equation 4 of the paper).

    Undirected samples by one endpoint lack on average a share 1 / n of the edges inside a class of n nodes,
    since self-loops are dropped.

    Parameters
    ----------
    labels
        One label per node, observed or predicted; by default the labels of the graph. A node without a
        label (-1 or empty) keeps its own neighbours.

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
        codes = _label_codes(self.labels, check_row_data(data), "labels of SameLabel")
        _, group_of = np.unique(codes, return_inverse=True)
        return DonorLists.from_groups(group_of)

    def group_labels(self, data: Graph | Interactions) -> Any:
        return getattr(data, "label_codes", None) if self.labels is None else self.labels


@dataclass(eq=False)
class NearestNeighbours(Configurable):
    """Draw donors uniformly from the nearest nodes by Euclidean distance.

    Parameters
    ----------
    n_neighbours
        Number of nearest nodes, all nodes if there are fewer; with more, samples differ more from the
        observed graph. Ties go to the lowest index.
    embeddings
        Matrix with one row per node, dense or SciPy sparse; by default the features of the graph.
        ``"neighbourhoods"``: :attr:`~nodecopy.features.embeddings.NodeEmbeddings.neighbourhoods`.
    include_self
        Whether a node is its own first neighbour, as in the paper's Table 1.
    groups
        One label per node, or ``"labels"`` of the graph: donors come from the same group. A node without a
        group (-1) keeps its own neighbours.
    max_degree_ratio
        Largest ratio of the degrees of a node and its donor; no limit by default. A node without a candidate
        keeps its own neighbours.
    scale
        How the features of the graph are scaled: ``"auto"`` (word counts are used as they are, anything else
        is standardised), ``"none"``, ``"standardise"``, ``"unit"``, ``"rows"`` or ``"binary"``. Embeddings
        are not scaled.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, NearestNeighbours
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> donors = NearestNeighbours(2, embeddings=[[0.0], [1.0], [5.0]])
    >>> NodeCopying(donors).fit(path).distribution_.probabilities().toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """

    n_neighbours: int = 10
    embeddings: Any = None
    include_self: bool = True
    groups: ArrayLike | None = None
    max_degree_ratio: float | None = None
    scale: str = "auto"

    def fit(self, data: Graph | Interactions) -> DonorLists:
        check_row_data(data)
        name = "embeddings of NearestNeighbours"
        embeddings = as_matrix(self._find_embeddings(data, name), name)
        if embeddings.ndim != 2 or embeddings.shape[0] != data.rows.n_rows:
            allowed = f"a matrix with {data.rows.n_rows} rows, one per node"
            raise InputError(name, f"must be {allowed}; got shape {embeddings.shape}.")
        n_neighbours = check_integer(self.n_neighbours, "n_neighbours of NearestNeighbours", low=1)
        n_others = embeddings.shape[0] - (not self.include_self)
        if n_neighbours > n_others:
            log_decision(f"donors: all {n_others} nodes, fewer than n_neighbours = {n_neighbours}.")
        if self.groups is None and self.max_degree_ratio is None and n_others:
            search = NeighbourSearch(embeddings, owner="NearestNeighbours")
            n_nearest = min(n_neighbours, n_others)
            lists = search.nearest(n_nearest, include_self=self.include_self)
        else:
            lists = self._among_peers(embeddings, data)
        dtype = index_dtype(len(lists[1]))
        offsets, members = (part.astype(dtype) for part in lists)
        return DonorLists(np.arange(len(offsets) - 1, dtype=dtype), offsets, members)

    def _find_embeddings(self, data: Graph | Interactions, name: str) -> Any:
        if isinstance(self.embeddings, str):
            check_choice(self.embeddings, f"{name}, if a name,", ["neighbourhoods"])
            if not isinstance(data, Graph):
                raise InputError(name, "must be a matrix for interactions.")
            return shared_neighbourhoods(data)
        if self.embeddings is not None:
            return self.embeddings
        if not isinstance(data, Graph) or data.features is None:
            raise InputError(name, "must be given, since the graph has no features.")
        return scale_features(data, self.scale, name="scale", purpose="to find donors")

    def _among_peers(self, embeddings: Any, data: Graph | Interactions) -> tuple[IntArray, IntArray]:
        groups, degrees, ratio = np.zeros(data.rows.n_rows, np.int64), data.rows.degrees, 1.0
        if self.groups is not None:
            use_labels = isinstance(self.groups, str) and self.groups == "labels"
            groups = _label_codes(None if use_labels else self.groups, data, "groups of NearestNeighbours")
        if self.max_degree_ratio is None:
            degrees = np.ones_like(degrees)
        else:
            ratio = check_real(self.max_degree_ratio, "max_degree_ratio of NearestNeighbours", low=1.0)
        donors: list[IntArray] = [np.zeros(0, np.int64)] * data.rows.n_rows
        nearest = None  # nodes near each node, of all groups, where they save searches and change no donors
        is_plain = self.include_self and self.max_degree_ratio is None
        if is_plain and isinstance(self.embeddings, str) and isinstance(data, Graph):
            nearest = shared_nearest(data, min(N_CANDIDATES * self.n_neighbours, data.n_nodes))
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            for degree in np.unique(degrees[members]):
                is_peer = (degrees[members] <= ratio * degree) & (degree <= ratio * degrees[members])
                peers = members[is_peer]
                queries = np.flatnonzero(degrees[peers] == degree)
                n_donors = min(self.n_neighbours, len(peers) - (not self.include_self))
                if n_donors == 0:
                    donors[peers[0]] = peers
                    continue
                if nearest is not None:
                    near = nearest[peers]
                    for node, of_node, is_member in zip(peers, near, groups[near] == group, strict=True):
                        donors[node] = of_node[is_member][:n_donors]
                    queries = np.flatnonzero([len(donors[node]) < n_donors for node in peers])
                search = NeighbourSearch(embeddings[peers], owner="NearestNeighbours")
                indptr, indices = search.nearest(n_donors, of=queries, include_self=self.include_self)
                for node, bounds in zip(peers[queries], pairwise(indptr), strict=True):
                    donors[node] = peers[indices[slice(*bounds)]]
        return np.cumsum([0, *map(len, donors)]), np.concatenate([np.zeros(0, np.int64), *donors])

    def group_labels(self, data: Graph | Interactions) -> Any:
        return getattr(data, "label_codes", None) if isinstance(self.groups, str) else self.groups


@dataclass(eq=False)
class Weighted(Configurable):
    """Draw donors in proportion to a given similarity matrix.

    Parameters
    ----------
    similarity
        Square matrix, dense or SciPy sparse, finite and not negative; the donor of node i is m with
        probability proportional to entry (i, m). A node whose row is empty keeps its own neighbours.

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
        shape, n_rows = (similarity.n_rows, similarity.n_columns), check_row_data(data).rows.n_rows
        if shape != (n_rows, n_rows):
            raise InputError("similarity of Weighted", f"must have shape {(n_rows, n_rows)}; got {shape}.")
        return DonorRows.from_similarity(similarity.csr)


@dataclass(eq=False)
class Balanced(_OtherRule):
    """Rescale the probabilities of another donor rule so that every node is expected to be a donor once.

    The expected degree distribution of the copied rows is then the observed one. Other rules lose hubs.

    Parameters
    ----------
    donors
        The other rule, with probabilities P. They are made mutual, P = max(P, P^T), and scaled to D P D,
        whose rows and columns add up to one (Sinkhorn). This exists where every node may be its own donor.

    Examples
    --------
    >>> from nodecopy import Balanced, Graph, NearestNeighbours, NodeCopying
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> donors = Balanced(NearestNeighbours(2, embeddings=[[0.0], [1.0], [5.0]]))
    >>> P = NodeCopying(donors).fit(path).distribution_.probabilities().toarray()
    >>> P.sum(axis=0).round(6).tolist()
    [1.0, 1.0, 1.0]
    """

    donors: DonorRule | str

    def fit(self, data: Graph | Interactions) -> DonorRows:
        distribution = fit_rule(self.donors, data, "donors of Balanced")
        P = as_csr(distribution.probabilities(), "probabilities of the donor rule of Balanced")
        mutual = sparse.csr_array(P.maximum(P.T))
        scale = np.ones(mutual.shape[0])
        for _ in range(MAX_SCALINGS):
            sums = scale * (mutual @ scale)
            if np.abs(sums - 1).max(initial=0.0) < BALANCE_TOLERANCE:
                break
            scale /= np.sqrt(sums)
        else:
            raise InputError("donors of Balanced", "must let every node be its own donor.")
        mutual.data *= np.repeat(scale, np.diff(mutual.indptr)) * scale[mutual.indices]
        return DonorRows.from_similarity(mutual)


def _label_codes(labels: ArrayLike | None, data: Graph | Interactions, name: str) -> Ints:
    """Return codes of labels, by default the graph's; every unlabelled node has its own code."""
    if labels is None:
        labels = getattr(data, "label_codes", None)
        if labels is None:
            raise InputError(name, "must be given, since the graph has no labels.")
    codes = check_vector(labels, name, length=data.rows.n_rows)
    if codes.dtype.kind in "OU":
        codes = np.asarray(encode_labels(codes)[0])
    if codes.dtype.kind not in "biu":
        raise InputError(name, f"must be integers or strings; got {codes.dtype}.")
    codes = codes.astype(np.int64)
    is_unlabelled = codes <= UNLABELLED
    codes[is_unlabelled] = codes.max(initial=0) + 1 + np.arange(is_unlabelled.sum())
    return codes


@dataclass(eq=False)
class Jaccard(Configurable):
    """Draw donors in proportion to the Jaccard index of their items or neighbours.

    The index ignores weights. A user without a possible donor keeps its own row.

    Parameters
    ----------
    include_self
        Whether a user (or node) may be its own donor, as in the paper's sum over all users.
    exponent
        Power of the index; larger values favour the most similar users.
    max_donors
        Number of most similar users that may be donors, ties go to the lowest index; all by default.

    Examples
    --------
    >>> from nodecopy import Interactions, Jaccard, NodeCopying
    >>> log = Interactions([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> NodeCopying(Jaccard(include_self=False)).fit(log).distribution_.probabilities().toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    include_self: bool = True
    exponent: float = 1.0
    max_donors: int | None = None

    def fit(self, data: Graph | Interactions) -> DonorRows:
        check_real(self.exponent, "exponent of Jaccard", low=0.0)
        if self.max_donors is not None:
            check_integer(self.max_donors, "max_donors of Jaccard", low=1, high=math.inf)
        rows = check_row_data(data).rows
        pattern = replace(rows, weights=None).csr
        transpose = sparse.csr_array(pattern.T)
        # A row of the product has at most as many entries as multiplications.
        n_entries: Any = pattern @ np.diff(transpose.indptr).astype(np.float64)
        if self.max_donors is not None and n_entries.sum() >= MIN_COMPILED_PRODUCTS:
            from nodecopy.copying.kernels import most_similar_rows  # imports numba, which is slow

            index = most_similar_rows(pattern, transpose, self.max_donors, self.include_self)
            return DonorRows.from_similarity(self._sharpen(index))
        block_of = np.cumsum(n_entries) // MAX_BLOCK_ENTRIES
        bounds = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), rows.n_rows]

        def compare(bound: tuple[int, int]) -> sparse.csr_array:
            return self._similarities(slice(*bound), pattern, transpose)

        blocks = map_on_cores(compare, pairwise(bounds))
        empty = sparse.csr_array((0, rows.n_rows))
        return DonorRows.from_similarity(sparse.csr_array(sparse.vstack([empty, *blocks], format="csr")))

    def _similarities(self, some: slice, pattern: Any, transpose: Any) -> sparse.csr_array:
        shared, degrees = pattern[some] @ transpose, np.diff(pattern.indptr).astype(np.float64)
        users = np.repeat(np.arange(some.start, some.stop), np.diff(shared.indptr))
        index = shared.data / (degrees[users] + degrees[shared.indices] - shared.data)
        if not self.include_self:
            index[users == shared.indices] = 0.0
        similarity = sparse.csr_array((index, shared.indices, shared.indptr), shape=shared.shape)
        if self.max_donors is not None:
            similarity = largest_entries(similarity, min(self.max_donors, similarity.shape[1]))
        similarity.sort_indices()
        return self._sharpen(similarity)

    def _sharpen(self, similarity: sparse.csr_array) -> sparse.csr_array:
        """Raise similarities to the exponent, divided by the user's largest so that none underflows."""
        lengths, is_positive = np.diff(similarity.indptr), similarity.data > 0
        largest = np.maximum.reduceat(similarity.data, similarity.indptr[:-1][lengths > 0])
        largest = np.maximum(largest, np.finfo(float).tiny)
        similarity.data = (similarity.data / np.repeat(largest, lengths[lengths > 0])) ** self.exponent
        similarity.data *= is_positive
        return similarity


@dataclass(eq=False)
class KeepByDegree(_OtherRule):
    """Let a node of degree d keep its own neighbours with probability d / (d + pseudo_degree).

    Otherwise another donor rule draws its donor.

    Parameters
    ----------
    donors
        The other donor rule.
    pseudo_degree
        The degree at which a node keeps its neighbours half of the time, 2 by default.

    Examples
    --------
    >>> from nodecopy import Graph, KeepByDegree, NodeCopying, SameLabel
    >>> star = Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> model = NodeCopying(KeepByDegree(SameLabel([0, 0, 0, 0]), pseudo_degree=1)).fit(star)
    >>> model.distribution_.probabilities().diagonal().tolist()
    [0.8125, 0.625, 0.625, 0.625]
    """

    donors: DonorRule | str
    pseudo_degree: float = 2.0

    def fit(self, data: Graph | Interactions) -> KeepingDistribution:
        pseudo_degree = check_real(self.pseudo_degree, "pseudo_degree of KeepByDegree", low=0.0)
        degrees = check_row_data(data).rows.degrees.astype(np.float64)
        # A node without neighbours draws a donor, also with a pseudo-degree of 0.
        keep = np.divide(degrees, degrees + pseudo_degree, out=np.zeros_like(degrees), where=degrees > 0)
        return KeepingDistribution(fit_rule(self.donors, data, "donors of KeepByDegree"), keep)


RULES = {"same-label": SameLabel, "nearest-neighbours": NearestNeighbours, "jaccard": Jaccard}  # by name

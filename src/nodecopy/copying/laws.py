"""Donor laws: which nodes may be whose donors, and with which probabilities.

A law is configured by its constructor and fitted to a graph or interactions by ``fit``, which returns a
:class:`.DonorDistribution`. Any object with such a ``fit`` is a law, so a new similarity needs no change
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows, check_row_data, index_dtype
from nodecopy._core.params import Configurable
from nodecopy._core.sparse_matrices import as_csr, as_matrix
from nodecopy._core.validation import check_choice, check_integer, check_real, check_vector
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.copying.donor_law import (
    DonorLaw,
    crosses_components,
    fit_law,
    group_labels,
    reads_edges,
    select_nodes,
)
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.node_embeddings import shared_nearest, shared_neighbourhoods
from nodecopy.features.scaling import scale_features
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions

BALANCE_TOLERANCE, MAX_SCALINGS = 1e-9, 10_000
"""Allowed deviation of the row sums of :class:`Balanced` from one, and the limit on its iterations."""
N_CANDIDATES = 4
"""Nodes near each node that are kept for later searches within groups, per neighbour that is wanted: nine of
ten nodes then need no search."""


@dataclass(eq=False)
class SameLabel(Configurable):
    """Draw donors uniformly from the nodes with the same label (equation 4 of the paper).

    On average, undirected samples by one endpoint lack a share 1 / n of the edges inside a class of n nodes:
    a node that copies a neighbour of its class gets itself, and self-loops are dropped.

    Parameters
    ----------
    labels
        One integer per node, observed or predicted; by default the labels of the graph. A node without a
        label (-1) keeps its own neighbours; where fewer than half of the nodes have a label, a warning says
        that samples are nearly the observed graph.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> model = NodeCopying(SameLabel([0, 1, 0])).fit(path)
    >>> model.distribution_.probabilities().toarray().tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    """

    labels: ArrayLike | None = None
    reads_edges: ClassVar[bool] = False

    def fit(self, data: Graph | Interactions) -> DonorLists:
        codes = _label_codes(self.labels, check_row_data(data), "labels of SameLabel")
        _, group_of = np.unique(codes, return_inverse=True)
        return DonorLists.from_groups(group_of)

    def restrict(self, nodes: slice, n_nodes: int) -> SameLabel:
        """Return the law of some of ``n_nodes`` nodes."""
        return replace(self, labels=select_nodes(self.labels, nodes, n_nodes))

    def group_labels(self, data: Graph | Interactions) -> Any:
        """Return the labels that donors share."""
        return getattr(data, "labels", None) if self.labels is None else self.labels


@dataclass(eq=False)
class NearestNeighbours(Configurable):
    """Draw donors uniformly from the nearest nodes by Euclidean distance.

    Parameters
    ----------
    n_neighbours
        Number of nearest nodes, 10 by default. More donors give samples that differ more from the
        observed graph.
    embeddings
        Matrix with one row per node, dense or SciPy sparse; by default the features of the graph.
        ``"neighbourhoods"``: the features of the nodes within two hops, or those nodes themselves in a graph
        without features, as by :attr:`~nodecopy.features.node_embeddings.NodeEmbeddings.neighbourhoods`.
    scale
        How the features of the graph are scaled. ``"auto"`` (default): word counts are used as they are,
        anything else is standardised, and the choice is logged. ``"none"``, ``"standardise"``, ``"unit"``,
        ``"rows"`` and ``"binary"``: as by :class:`~nodecopy.features.scaling.FeatureScaling`.
        Embeddings are not scaled.
    include_self
        Whether a node is its own first neighbour (default), as in the paper's Table 1.
    ties
        ``"first"`` (default): exactly ``n_neighbours`` donors, ties go to the lowest index. ``"all"``: every
        node that is no farther than the last of them.
    groups
        One integer per node, or ``"labels"`` for the labels of the graph: donors come from the same
        group. A node without a group (-1) keeps its own neighbours. By default there are no groups.
    max_degree_ratio
        Largest allowed ratio of the degrees of a node and its donor, at least 1; no limit by default.

    Notes
    -----
    Where ``groups`` and ``max_degree_ratio`` leave fewer than ``n_neighbours`` candidates, all of them are
    possible donors; a node without a candidate keeps its own neighbours.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, NearestNeighbours
    >>> path = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> law = NearestNeighbours(2, embeddings=[[0.0], [1.0], [5.0]])
    >>> NodeCopying(law).fit(path).distribution_.probabilities().toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """

    n_neighbours: int = 10
    embeddings: Any = None
    include_self: bool = True
    ties: str = "first"
    groups: ArrayLike | None = None
    max_degree_ratio: float | None = None
    scale: str = "auto"

    @property
    def reads_edges(self) -> bool:
        """Whether donors depend on edges, by their degrees or neighbourhoods."""
        return self.max_degree_ratio is not None or isinstance(self.embeddings, str)

    def fit(self, data: Graph | Interactions) -> DonorLists:
        check_row_data(data)
        embeddings = as_matrix(self._find_embeddings(data), "embeddings of NearestNeighbours")
        if embeddings.ndim != 2 or embeddings.shape[0] != data.rows.n_rows:
            raise InputError(
                f"embeddings of NearestNeighbours must be a matrix with {data.rows.n_rows} rows, "
                f"one per node; got shape {embeddings.shape}."
            )
        if self.groups is None and self.max_degree_ratio is None:
            search = NeighbourSearch(embeddings, owner="NearestNeighbours")
            indptr, indices = search.nearest(
                self.n_neighbours, include_self=self.include_self, ties=self.ties
            )
        else:
            indptr, indices = self._among_peers(embeddings, data)
        dtype = index_dtype(len(indices))
        return DonorLists(
            np.arange(len(indptr) - 1, dtype=dtype), indptr.astype(dtype), indices.astype(dtype)
        )

    def _find_embeddings(self, data: Graph | Interactions) -> Any:
        """Return the embeddings that were given, named, or are the features of the graph."""
        if isinstance(self.embeddings, str):
            check_choice(self.embeddings, "embeddings of NearestNeighbours, if a name,", ["neighbourhoods"])
            if not isinstance(data, Graph):
                raise InputError("embeddings of NearestNeighbours must be a matrix for interactions.")
            return shared_neighbourhoods(data)
        if self.embeddings is not None:
            return self.embeddings
        if not isinstance(data, Graph) or data.features is None:
            raise InputError(
                "embeddings of NearestNeighbours must be given, since the graph has no features."
            )
        return scale_features(data, self.scale, name="scale", purpose="to find donors")

    def _among_peers(self, embeddings: Any, data: Graph | Interactions) -> tuple[IntArray, IntArray]:
        """Search for neighbours among the nodes of the same group and of similar degree."""
        check_integer(self.n_neighbours, "n_neighbours of NearestNeighbours", low=1)
        groups, degrees, ratio = np.zeros(data.rows.n_rows, np.int64), data.rows.degrees, 1.0
        if self.groups is not None:
            use_labels = isinstance(self.groups, str) and self.groups == "labels"
            groups = _label_codes(None if use_labels else self.groups, data, "groups of NearestNeighbours")
        if self.max_degree_ratio is None:
            degrees = np.ones_like(degrees)
        else:
            ratio = check_real(self.max_degree_ratio, "max_degree_ratio of NearestNeighbours", low=1.0)
        donors: list[IntArray] = [np.zeros(0, np.int64)] * data.rows.n_rows
        nearest = self._find_nearest(data)
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
                    is_found, found = _take_first(near, groups[near] == group, n_donors)
                    for node, of_node in zip(peers[is_found], found, strict=True):
                        donors[node] = of_node
                    queries = np.flatnonzero(~is_found)
                search = NeighbourSearch(embeddings[peers], owner="NearestNeighbours")
                indptr, indices = search.nearest(
                    n_donors, of=queries, include_self=self.include_self, ties=self.ties
                )
                for node, bounds in zip(peers[queries], pairwise(indptr), strict=True):
                    donors[node] = peers[indices[slice(*bounds)]]
        return np.cumsum([0, *map(len, donors)]), np.concatenate([np.zeros(0, np.int64), *donors])

    def _find_nearest(self, data: Graph | Interactions) -> IntArray | None:
        """Return nodes near each node, of all groups, if they save searches and change no donors."""
        is_plain = self.include_self and self.ties == "first" and self.max_degree_ratio is None
        if not (is_plain and isinstance(self.embeddings, str) and isinstance(data, Graph)):
            return None
        return shared_nearest(data, min(N_CANDIDATES * self.n_neighbours, data.n_nodes))

    def restrict(self, nodes: slice, n_nodes: int) -> NearestNeighbours:
        """Return the law of some of ``n_nodes`` nodes; if they are too few, all of them are donors."""
        groups, size = select_nodes(self.groups, nodes, n_nodes), nodes.stop - nodes.start
        if groups is None and size <= self.n_neighbours:
            groups = np.zeros(size, np.int64)  # among groups, fewer candidates are no error
        return replace(self, embeddings=select_nodes(self.embeddings, nodes, n_nodes), groups=groups)

    def group_labels(self, data: Graph | Interactions) -> Any:
        """Return the groups of the nodes, if there are any."""
        return getattr(data, "labels", None) if isinstance(self.groups, str) else self.groups


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
    reads_edges: ClassVar[bool] = False

    def fit(self, data: Graph | Interactions) -> DonorRows:
        similarity = Rows.from_matrix(self.similarity, "similarity of Weighted")
        shape, n_rows = (similarity.n_rows, similarity.n_columns), check_row_data(data).rows.n_rows
        if shape != (n_rows, n_rows):
            raise InputError(f"similarity of Weighted must have shape {(n_rows, n_rows)}; got {shape}.")
        return DonorRows.from_similarity(similarity.csr)

    def restrict(self, nodes: slice, n_nodes: int) -> Weighted:
        """Return the law of some of ``n_nodes`` nodes."""
        rows = select_nodes(self.similarity, nodes, n_nodes)
        return self if rows is self.similarity else Weighted(rows[:, nodes])


@dataclass(eq=False)
class Balanced(Configurable):
    """Rescale the probabilities of another law so that every node is expected to be a donor once.

    The expected degree distribution of the copied rows is then the observed one: a node of degree d is
    expected to give its row to one node. The expected mean degree and the expected number of claws are
    the observed ones, too. Other laws lose hubs, which are among the nearest neighbours of few nodes.

    Parameters
    ----------
    law
        The other law, with probabilities P. They are made mutual, P = max(P, P^T), and scaled to D P D,
        whose rows and columns add up to one (Sinkhorn). This exists where every node may be its own donor.

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

    @property
    def reads_edges(self) -> bool:
        """Whether the donors of the other law depend on edges."""
        return reads_edges(self.law)

    @property
    def crosses_components(self) -> bool:
        """Whether the donors of the other law may be in another component."""
        return crosses_components(self.law)

    def fit(self, data: Graph | Interactions) -> DonorRows:
        return self.rescale(fit_law(self.law, data, "law of Balanced"))

    def group_labels(self, data: Graph | Interactions) -> Any:
        """Return the labels that the donors of the other law share."""
        return group_labels(self.law, data)

    def rescale(self, distribution: DonorDistribution) -> DonorRows:
        """Return the balanced form of the distribution of the other law."""
        P = as_csr(distribution.probabilities(), "probabilities of the law of Balanced")
        mutual = sparse.csr_array(P.maximum(P.T))
        scale = np.ones(mutual.shape[0])
        for _ in range(MAX_SCALINGS):
            sums = scale * (mutual @ scale)
            if np.abs(sums - 1).max(initial=0.0) < BALANCE_TOLERANCE:
                break
            scale /= np.sqrt(sums)
        else:
            raise InputError("law of Balanced must let every node be its own donor; it cannot be balanced.")
        mutual.data *= np.repeat(scale, np.diff(mutual.indptr)) * scale[mutual.indices]
        return DonorRows.from_similarity(mutual)


def _take_first(
    near: IntArray, is_member: NDArray[np.bool_], n_wanted: int
) -> tuple[NDArray[np.bool_], IntArray]:
    """Return which rows of ``near`` have enough members, and the first ones of each of these rows."""
    rank = is_member.cumsum(axis=1)
    is_found: NDArray[np.bool_] = rank[:, -1] >= n_wanted
    is_first = is_member[is_found] & (rank[is_found] <= n_wanted)
    return is_found, near[is_found][is_first].reshape(-1, n_wanted)


def _label_codes(labels: ArrayLike | None, data: Graph | Interactions, name: str) -> NDArray[np.int64]:
    """Return integer codes of labels, by default the graph's; every unlabelled node has a code of its own."""
    if labels is None:
        labels = getattr(data, "labels", None)
        if labels is None:
            raise InputError(f"{name} must be given, since the graph has no labels.")
    codes = check_vector(labels, name, length=data.rows.n_rows)
    if codes.dtype.kind not in "biu":
        raise InputError(f"{name} must be integers; got {codes.dtype}.")
    codes = codes.astype(np.int64)
    is_unlabelled = codes <= UNLABELLED
    codes[is_unlabelled] = codes.max(initial=0) + 1 + np.arange(is_unlabelled.sum())
    return codes

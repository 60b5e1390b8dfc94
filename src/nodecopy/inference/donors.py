"""The default donors of inference: nodes of one community whose degrees differ by chance only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import FloatArray, IntArray, Rows
from nodecopy._core.checks import check_real, check_type, check_vector
from nodecopy._core.estimator import Configurable
from nodecopy._core.random import Rng
from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.copying.donors import select_nodes
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency
from nodecopy.generators.classical import join_sides
from nodecopy.graph import Graph
from nodecopy.inference.statistics import spectral_communities
from nodecopy.io import GraphLike, convert_graph
from nodecopy.models import GraphModel


@dataclass(eq=False)
class DegreeClasses(Configurable):
    """Draw donors uniformly from the nodes of the same community and degree class.

    Nodes of a community are sorted by degree and divided into classes, starting from the smallest degree. A
    class is as large as possible while the variance of its degrees is no more than chance explains: the mean
    over its nodes of sum_j p_ij (1 - p_ij), estimated from the numbers of edges to each community. Under
    one-endpoint copying the number of edges then has the variance of independent edges. See
    :class:`.ClassCopying` for samples by this rule.

    Parameters
    ----------
    communities
        One integer per node, or ``"labels"`` for the labels of the graph. By default they are estimated by
        :func:`.spectral_communities`.
    tolerance
        Standard errors by which the variance of a class may exceed that of chance, 2 by default.

    Examples
    --------
    >>> from nodecopy import NodeCopying, datasets
    >>> from nodecopy.inference import DegreeClasses
    >>> club = datasets.load("karate")
    >>> model = NodeCopying(DegreeClasses("labels")).fit(club)
    >>> classes = model.distribution_.list_of
    >>> int(classes[0]) == int(classes[33]), int(classes.max()) + 1  # the hubs lead different factions
    (False, 4)
    """

    communities: ArrayLike | str | None = None
    tolerance: float = 2.0

    def fit(self, data: Any) -> DonorLists:
        check_type(data, Graph, "graph of DegreeClasses", "a graph")
        tolerance = check_real(self.tolerance, "tolerance of DegreeClasses", low=0.0)
        communities = self.find_communities(data)
        degrees, variances = data.degrees.astype(np.float64), _chance_variances(data, communities)
        class_of, n_classes = np.zeros(data.n_nodes, np.int64), 0
        for community in range(communities.max(initial=-1) + 1):
            members = np.flatnonzero(communities == community)
            members = members[np.argsort(degrees[members], kind="stable")]
            while len(members):
                size = _class_size(degrees[members], variances[members], tolerance)
                class_of[members[:size]] = n_classes
                members, n_classes = members[size:], n_classes + 1
        return DonorLists.from_groups(class_of)

    def find_communities(self, graph: Graph) -> IntArray:
        """Return the community of each node, numbered from 0."""
        values, name = self.communities, "communities of DegreeClasses"
        if values is None:
            return spectral_communities(graph)
        if isinstance(values, str):
            if values != "labels" or graph.label_codes is None:
                allowed = "must be integers, 'labels' of a graph that has them, or None"
                raise InputError(name, f"{allowed}; got {values!r}.")
            values = graph.label_codes
        codes = check_vector(values, name, length=graph.n_nodes)
        if codes.dtype.kind not in "biuU":
            raise InputError(name, f"must be integers or strings; got {codes.dtype}.")
        return np.unique(codes, return_inverse=True)[1].astype(np.int64)

    def restrict(self, nodes: slice, n_nodes: int) -> DegreeClasses:
        return replace(self, communities=select_nodes(self.communities, nodes, n_nodes))


def _chance_variances(graph: Graph, communities: IntArray) -> FloatArray:
    """Return d_i - sum_b e_ib^2 / n_b, with e_ib edges from node i to the n_b nodes of community b."""
    n_nodes, sizes = graph.n_nodes, np.bincount(communities)
    member = sparse.csr_array((np.ones(n_nodes), (np.arange(n_nodes), communities)))
    edges = sparse.csr_array(binary_adjacency(graph).astype(np.float64) @ member)
    return np.asarray(graph.rows.degrees - edges.multiply(edges) @ (1 / sizes), np.float64)


def _class_size(degrees: FloatArray, variances: FloatArray, tolerance: float) -> int:
    """Return how many of the smallest degrees form a class."""
    sizes = np.arange(1, len(degrees) + 1)
    excess = degrees - degrees[0]
    freedom = np.maximum(sizes - 1, 1)
    spread = (np.cumsum(excess**2) - np.cumsum(excess) ** 2 / sizes) / freedom
    limit = np.cumsum(variances) / sizes * (1 + tolerance * np.sqrt(2 / freedom))
    return int(np.flatnonzero((spread <= limit + 1e-9) | (sizes == 1))[-1]) + 1


class ClassCopying(GraphModel[Graph]):
    """Copy how many neighbours of each class a node of the same class has, and choose them at random.

    This is one-endpoint node copying with :class:`.DegreeClasses`, in which the nodes of a copied row are
    exchanged within their classes (:meth:`.NodeCopying.draw_exchanged`). The probability of an edge is the
    density between two classes, so that samples do not remember by how much a degree deviates by chance. A
    directed graph is copied as the bipartite graph that has every node twice, as a source with a class by
    out-degree and as a target with one by in-degree; its samples have no self-loops. This is the default of
    :func:`.bootstrap`.

    Parameters
    ----------
    communities, tolerance
        As in :class:`.DegreeClasses`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import ClassCopying
    >>> ClassCopying("labels").fit(datasets.load("karate")).sample(rng=0).n_nodes
    34
    """

    graph_: Graph
    model_: NodeCopying[Graph]

    def __init__(self, communities: ArrayLike | str | None = None, tolerance: float = 2.0) -> None:
        self.communities = communities
        self.tolerance = tolerance

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Estimate communities and classes of degrees; ``rng`` is not used."""
        graph = convert_graph(graph, "graph of ClassCopying")
        rule = DegreeClasses(self.communities, self.tolerance)
        if graph.directed:
            codes = rule.find_communities(graph)
            rule = replace(rule, communities=np.concatenate([codes, codes + codes.max(initial=0) + 1]))
        self.model_, self.graph_ = NodeCopying(rule).fit(_join_ends(graph)), graph
        return self

    def _check_state(self) -> None:
        if self.model_.check_fitted() != _join_ends(self.graph_):
            raise InputError("model_", "must be fitted to graph_, or to its sources and targets.")

    def draw(self, seed: SeedSequence) -> Graph:
        sample, n_nodes = self.model_.draw_exchanged(seed), self.graph_.n_nodes
        if not self.graph_.directed:
            return sample
        links: Any = sample.adjacency[:n_nodes, n_nodes:]
        weights = links.data if sample.is_weighted else None
        rows = Rows.canonical(links.indptr, links.indices, weights, n_nodes)
        return self.graph_.with_rows(rows.keep_entries(rows.row_numbers != rows.indices))


def _join_ends(graph: Graph) -> Graph:
    return join_sides(graph.adjacency) if graph.directed else graph


class EdgeCountVariance(NamedTuple):
    """The variance of the number of edges in samples of node copying, by its two sources."""

    donors: float
    """Due to the donors, whose degrees differ."""
    coins: float
    """Due to the coins that choose the endpoint whose row counts."""

    @property
    def total(self) -> float:
        """Return the variance."""
        return self.donors + self.coins


def edge_count_variance(model: NodeCopying[Any]) -> EdgeCountVariance:
    """Return the exact variance of the number of edges in samples of a fitted model.

    It is (1/4) sum_i Var(d_z - A_zi), z the donor of i, plus (1/4) sum_{i<j} E (B_ij - B_ji)^2 with the
    copied rows B; the page on the theory of inference derives it.

    Parameters
    ----------
    model
        Node copying, fitted to an undirected graph without weights, with ``symmetrise="one-endpoint"``.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> from nodecopy.inference import edge_count_variance
    >>> path = Graph.from_edges([0, 1], [1, 2], labels=[0, 0, 0])
    >>> variance = edge_count_variance(NodeCopying(SameLabel()).fit(path))
    >>> round(variance.donors, 3), round(variance.coins, 3)
    (0.222, 0.389)
    """
    check_type(model, NodeCopying, "model of edge_count_variance", "a fitted NodeCopying")
    graph = model.check_fitted()
    is_plain = isinstance(graph, Graph) and not graph.directed and not graph.is_weighted
    if not is_plain or model.symmetrise_ != "one-endpoint":
        raise InputError(
            "model of edge_count_variance",
            "must copy an undirected graph without weights by symmetrise='one-endpoint'; "
            f"got {model!r} fitted to {graph!r}.",
        )
    if isinstance(model.distribution_, DonorLists) and not model.keep_:
        return _variance_of_lists(graph, model.distribution_)
    n_nodes = graph.n_nodes
    own = sparse.eye_array(n_nodes, format="csr")
    Q = sparse.csr_array((1 - model.keep_) * model.distribution_.probabilities() + model.keep_ * own)
    A, degrees = graph.adjacency.astype(np.float64), graph.degrees.astype(np.float64)
    # Moments of x_z = d_z - A_zi over the donor z of node i.
    linked = sparse.csr_array(Q.multiply(A))
    mean = Q @ degrees - linked.sum(axis=1)
    square = Q @ degrees**2 - linked @ (2 * degrees) + linked.sum(axis=1)
    p = sparse.csr_array(Q @ A)
    p = sparse.csr_array(p - sparse.diags_array(p.diagonal()))
    coins = (p.sum() - p.multiply(p.T).sum()) / 4
    return EdgeCountVariance(float((square - mean**2).sum() / 4), float(coins))


def _variance_of_lists(graph: Graph, donors: DonorLists) -> EdgeCountVariance:
    """Return the variance for donors from shared lists, in time and memory proportional to the edges.

    With the share c_kj of the donors in list k that are linked to j, the sum of p_ij p_ji over all pairs is
    the sum of G_kl G_lk over lists, where G_kl is the sum of c_kj over nodes j of l.
    """
    A, degrees = graph.adjacency.astype(np.float64), graph.degrees.astype(np.float64)
    shares, list_of = donors.mean_rows(A)
    weighted, _ = donors.mean_rows(sparse.diags_array(degrees) @ A)
    moments, _ = donors.mean_rows(sparse.csr_array(np.stack([degrees, degrees**2], 1)))
    n_nodes, n_lists = graph.n_nodes, shares.shape[0]
    has_list: Any = sparse.csr_array((np.ones(n_nodes), (np.arange(n_nodes), list_of)), (n_nodes, n_lists))
    own = has_list.T.multiply(shares).sum(axis=0)  # p_ii
    mean, square = moments.toarray()[list_of].T
    mean = mean - own
    square = square - 2 * has_list.T.multiply(weighted).sum(axis=0) + own
    G = sparse.csr_array(shares @ has_list)
    total = float(np.bincount(list_of, minlength=n_lists) @ shares.sum(axis=1)) - own.sum()
    coins = total - float(G.multiply(G.T).sum()) + float((own**2).sum())
    return EdgeCountVariance(float((square - mean**2).sum() / 4), float(coins / 4))

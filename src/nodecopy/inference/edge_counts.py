"""The exact variance of the number of edges of a sample under node copying."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nodecopy._core.validation import check_type
from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph


class EdgeCountVariance(NamedTuple):
    """The variance of the number of edges, by its two sources.

    Examples
    --------
    >>> from nodecopy.inference import EdgeCountVariance
    >>> EdgeCountVariance(donors=2.0, coins=1.5).total
    3.5
    """

    donors: float
    """From the donors: their degrees differ."""
    coins: float
    """From the coins that choose the endpoint whose row decides."""

    @property
    def total(self) -> float:
        """Return the variance."""
        return self.donors + self.coins


def edge_count_variance(model: NodeCopying[Any]) -> EdgeCountVariance:
    """Return the exact variance of the number of edges in samples of a fitted model.

    It is (1/4) sum_i Var(d_z - A_zi), z the donor of i, plus (1/4) sum_{i<j} E (B_ij - B_ji)^2 with the
    copied rows B. See the page on the theory of inference for the derivation.

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
    if (
        not isinstance(graph, Graph)
        or graph.directed
        or graph.is_weighted
        or model.symmetrise != "one-endpoint"
    ):
        raise InputError(
            "model of edge_count_variance must copy an undirected graph without weights by "
            f"symmetrise='one-endpoint'; got {model!r} fitted to {graph!r}."
        )
    if isinstance(model.distribution_, DonorLists) and not model.keep:
        return _variance_of_lists(graph, model.distribution_)
    n_nodes = graph.n_nodes
    own = sparse.eye_array(n_nodes, format="csr")
    Q = sparse.csr_array((1 - model.keep) * model.distribution_.probabilities() + model.keep * own)
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
    """Return the variance for donors from shared lists, in time and memory of the edges.

    With c_kj the share of the donors in list k that are linked to j, p_ij is c_kj for the list k of i. So the
    sum of p_ij p_ji over all pairs is that of G_kl G_lk over lists, G_kl the sum of c_kj over the nodes j
    with list l.
    """
    n_nodes, lists = graph.n_nodes, donors.list_of
    degrees, sizes = graph.degrees.astype(np.float64), np.diff(donors.offsets)
    is_donor: Any = sparse.csr_array(
        (np.repeat(1 / np.maximum(sizes, 1), sizes), donors.members, donors.offsets), (len(sizes), n_nodes)
    )
    A = graph.adjacency.astype(np.float64)
    shares = sparse.csr_array(is_donor @ A)
    has_list: Any = sparse.csr_array((np.ones(n_nodes), (np.arange(n_nodes), lists)), (n_nodes, len(sizes)))
    own = has_list.T.multiply(shares).sum(axis=0)  # p_ii
    weighted = is_donor @ (sparse.diags_array(degrees) @ A)
    mean = (is_donor @ degrees)[lists] - own
    square = (is_donor @ degrees**2)[lists] - 2 * has_list.T.multiply(weighted).sum(axis=0) + own
    G = sparse.csr_array(shares @ has_list)
    list_sizes = np.bincount(lists, minlength=len(sizes))
    total = float(list_sizes @ shares.sum(axis=1)) - own.sum()
    coins = total - float(G.multiply(G.T).sum()) + float((own**2).sum())
    return EdgeCountVariance(float((square - mean**2).sum() / 4), float(coins / 4))

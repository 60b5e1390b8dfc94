"""The exact variance of the number of edges of a sample under node copying."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nodecopy._core.validation import check_type
from nodecopy.copying import NodeCopying
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
    copied rows B. See the page on inference for the derivation.

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

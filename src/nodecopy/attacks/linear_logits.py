"""Exact logits of a linear graph network after any one flip, in closed form.

The surrogate's logits at node u are the row u of Â²XW. With Y = XW, degrees d of A + I, and
S = (A + I) d^-1/2 Y, they are d_u^-1/2 times the sum of S_k / d_k over u and its neighbours k. Flipping
the pair (m, n) changes two degrees, two rows of S by one neighbour more or less, and all rows of S that
hold m or n by the new scale of those; all of it can be written down for every n at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.attacks.edits import Edits
from nodecopy.graph import Graph


class LinearLogits(Edits):
    """Edits of a graph that update the sums from which the logits of a linear network are computed.

    Parameters
    ----------
    graph
        The clean graph.
    features
        Its features, as the network takes them.
    weights
        The weights W of the network, ``[n_features, n_classes]``.
    """

    def __init__(self, graph: Graph, features: sparse.csr_array, weights: NDArray[np.float64]) -> None:
        super().__init__(graph)
        self.features, self.weights = features, weights
        self.Y = np.asarray(features @ weights)
        self.d = self.degrees + 1.0
        scaled = self.Y / np.sqrt(self.d)[:, None]
        self.S = graph.adjacency.astype(np.float64) @ scaled + scaled

    def flip(self, first: int, second: int) -> None:
        # A node contributes to its own row and its neighbours' rows of S: subtract its contribution,
        # flip, and add it again with its new scale. This also adds or removes the edge itself.
        for node in (first, second):
            self._add_contribution(node, -1)
        super().flip(first, second)
        self.d[[first, second]] = self.degrees[[first, second]] + 1.0
        for node in (first, second):
            self._add_contribution(node, 1)

    def flip_feature(self, node: int, feature: int) -> None:
        sign = -1 if self.has_feature(node)[feature] else 1
        super().flip_feature(node, feature)
        self._add_contribution(node, -1)
        self.Y[node] += sign * self.weights[feature]
        self._add_contribution(node, 1)

    def has_feature(self, node: int) -> NDArray[np.bool_]:
        """Return a mask of the features that a node has after the flips."""
        has = np.zeros(self.features.shape[1], bool)
        own = slice(self.features.indptr[node], self.features.indptr[node + 1])
        has[self.features.indices[own][self.features.data[own] != 0]] = True
        for changed, feature in self.feature_flips:
            if changed == node:
                has[feature] ^= True
        return has

    def logits(self, u: int) -> NDArray[np.float64]:
        """Return the logits at a node."""
        inside = self._closed_neighbourhood(u)
        total = (self.S[inside] / self.d[inside, None]).sum(axis=0)
        return np.asarray(total / np.sqrt(self.d[u]))

    def after_flips(self, u: int, m: int) -> NDArray[np.float64]:
        """Return the logits at ``u`` after a flip of (m, n), for every n, ``[n_nodes, n_classes]``.

        Row m has no meaning; where m is not u, row u has none either.
        """
        d, Y, S = self.d, self.Y, self.S
        scale = 1 / np.sqrt(d)
        inside = self._closed_neighbourhood(u)
        member = np.zeros(len(d))  # of u's closed neighbourhood
        member[inside] = 1
        has = np.zeros(len(d))  # the edge (m, n) before the flip
        has[self.neighbours(m)] = 1
        change = 1 - 2 * has
        d_m, d_n = d[m] + change, d + change
        scale_m, scale_n = 1 / np.sqrt(d_m), 1 / np.sqrt(d_n)
        common = self.common(u)
        # Rows of S to which m or n contributes, except the rows of m and n, which follow below.
        others_m = (scale_m - scale[m]) * (common[m] - member[m] / d[m] - has * member / d)
        others_n = (scale_n - scale) * (common - member / d - has * member[m] / d[m])
        # m and n themselves; a flip at u itself decides whether n is a neighbour of u.
        member_after = 1 - has if m == u else member
        keep_n = member_after / d_n
        keep_m = member[m] / d_m
        edge_n = (1 - has) * scale_n - has * scale
        edge_m = (1 - has) * scale_m - has * scale[m]
        of_Y_m = others_m + keep_m * (scale_m - scale[m]) + keep_n * edge_m
        of_Y_n = others_n + keep_n * (scale_n - scale) + keep_m * edge_n
        total = (S[inside] / d[inside, None]).sum(axis=0) + np.outer(of_Y_m, Y[m])
        total += np.outer(keep_m - member[m] / d[m], S[m])
        total += of_Y_n[:, None] * Y + (keep_n - member / d)[:, None] * S
        u_scale = scale_m if m == u else scale[u]
        return np.asarray(total * np.broadcast_to(u_scale, len(d))[:, None])

    def common(self, u: int) -> NDArray[np.float64]:
        """Return for every node x the sum of 1 / d_k over nodes k at most one step from both u and x."""
        inside = self._closed_neighbourhood(u)
        reached = [self._closed_neighbourhood(k) for k in inside.tolist()]
        weights = np.repeat(1 / self.d[inside], [len(nodes) for nodes in reached])
        return np.bincount(np.concatenate(reached), weights, len(self.d)).astype(np.float64, copy=False)

    def _add_contribution(self, node: int, sign: int) -> None:
        """Add a node's contribution to the rows of S, or subtract it."""
        self.S[self._closed_neighbourhood(node)] += sign * self.Y[node] / np.sqrt(self.d[node])

    def _closed_neighbourhood(self, node: int) -> NDArray[np.int64]:
        """Return a node and its neighbours."""
        return np.append(self.neighbours(node), node)

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
    """Edits of a graph that keep what the logits of a linear network need.

    Parameters
    ----------
    graph
        With features.
    features
        As the network takes them.
    weights
        ``[n_features, n_classes]``.
    """

    def __init__(self, graph: Graph, features: sparse.csr_array, weights: NDArray[np.float64]) -> None:
        super().__init__(graph)
        self.features, self.weights = features, weights
        self.Y = np.asarray(features @ weights)
        self.d = self.degrees + 1.0
        scaled = self.Y / np.sqrt(self.d)[:, None]
        self.S = graph.adjacency.astype(np.float64) @ scaled + scaled

    def flip(self, first: int, second: int) -> None:
        # The rows that hold a node are its own and its neighbours': take the node out of them, flip,
        # and put it back with its new scale. An edge between the two is thereby put in or left out.
        for node in (first, second):
            self._add(node, -1)
        super().flip(first, second)
        self.d[[first, second]] = self.degrees[[first, second]] + 1.0
        for node in (first, second):
            self._add(node, 1)

    def flip_feature(self, node: int, feature: int) -> None:
        sign = -1 if self.has_feature(node)[feature] else 1
        super().flip_feature(node, feature)
        self._add(node, -1)
        self.Y[node] += sign * self.weights[feature]
        self._add(node, 1)

    def has_feature(self, node: int) -> NDArray[np.bool_]:
        """Which features a node has now."""
        has = np.zeros(self.features.shape[1], bool)
        own = slice(self.features.indptr[node], self.features.indptr[node + 1])
        has[self.features.indices[own][self.features.data[own] != 0]] = True
        for changed, feature in self.feature_flips:
            if changed == node:
                has[feature] ^= True
        return has

    def logits(self, u: int) -> NDArray[np.float64]:
        """Logits at a node."""
        inside = self._inside(u)
        total = (self.S[inside] / self.d[inside, None]).sum(axis=0)
        return np.asarray(total / np.sqrt(self.d[u]))

    def after_flips(self, u: int, m: int) -> NDArray[np.float64]:
        """``[n_nodes, n_classes]``: the logits at ``u`` after a flip of (m, n), for every n.

        Row m means nothing; where m is not u, nor does row u.
        """
        d, Y, S = self.d, self.Y, self.S
        scale = 1 / np.sqrt(d)
        inside = self._inside(u)
        member = np.zeros(len(d))  # of u's closed neighbourhood
        member[inside] = 1
        has = np.zeros(len(d))  # the edge (m, n) before the flip
        has[self.neighbours(m)] = 1
        change = 1 - 2 * has
        d_m, d_n = d[m] + change, d + change
        scale_m, scale_n = 1 / np.sqrt(d_m), 1 / np.sqrt(d_n)
        common = self.common(u)
        # Rows of S that hold m or n, m's and n's own aside, which follow below.
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
        """For every node x the sum of 1 / d_k over nodes k that u and x reach in at most one step."""
        inside = self._inside(u)
        reached = [self._inside(k) for k in inside.tolist()]
        weights = np.repeat(1 / self.d[inside], [len(nodes) for nodes in reached])
        return np.bincount(np.concatenate(reached), weights, len(self.d)).astype(np.float64, copy=False)

    def _add(self, node: int, sign: int) -> None:
        """Put a node's part into the rows of S that hold it, or take it out."""
        self.S[self._inside(node)] += sign * self.Y[node] / np.sqrt(self.d[node])

    def _inside(self, node: int) -> NDArray[np.int64]:
        """A node and its neighbours."""
        return np.append(self.neighbours(node), node)

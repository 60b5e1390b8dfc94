"""Compiled: how neighbours pull at a node's memberships in blocks."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def pulls(indptr, indices, counts, pi, above, delta, least, result):
    """For each node the sum of its neighbours' memberships, each over the chance of the edge.

    That is delta + sum_k above_k pi_ik pi_jk, and never below ``least``. Fills ``result``.
    """
    mine = np.empty(pi.shape[1])
    for node in range(len(indptr) - 1):
        mine[:] = above * pi[node]
        result[node] = 0
        for entry in range(indptr[node], indptr[node + 1]):
            other = indices[entry]
            chance = delta
            for k in range(pi.shape[1]):
                chance += mine[k] * pi[other, k]
            weight = counts[entry] / max(chance, least)
            for k in range(pi.shape[1]):
                result[node, k] += weight * pi[other, k]

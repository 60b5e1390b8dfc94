"""Compiled sum over neighbours for the mixed-membership block model."""

from __future__ import annotations

import numpy as np

from nodecopy._core.compilation import njit


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def sum_neighbour_memberships(indptr, indices, counts, pi, excess, delta, min_probability, result):
    """Sum the memberships of each node's neighbours, each divided by the probability of the edge.

    That probability is delta + sum_k excess_k pi_ik pi_jk, and at least ``min_probability``. Fills
    ``result``.
    """
    scaled = np.empty(pi.shape[1])
    for node in range(len(indptr) - 1):
        scaled[:] = excess * pi[node]
        result[node] = 0
        for entry in range(indptr[node], indptr[node + 1]):
            other = indices[entry]
            probability = delta
            for k in range(pi.shape[1]):
                probability += scaled[k] * pi[other, k]
            weight = counts[entry] / max(probability, min_probability)
            for k in range(pi.shape[1]):
                result[node, k] += weight * pi[other, k]

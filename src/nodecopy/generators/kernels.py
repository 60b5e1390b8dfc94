"""Compiled edge swaps with a hash table of edges, and sums over neighbours for MMSBM."""

from __future__ import annotations

import numpy as np
from numba import uint64

from nodecopy._core.kernels import compiled, njit

EMPTY, REMOVED = -1, -2
HASH_MULTIPLIER = 0x9E3779B97F4A7C15  # 2^64 / golden ratio (Fibonacci hashing)


@compiled
def _find_slot(table, key):
    """Return the slot of the key, or else the first slot that was never used."""
    slot = (uint64(key) * uint64(HASH_MULTIPLIER)) >> uint64(32)
    while True:
        slot = slot & uint64(len(table) - 1)
        if table[slot] == key or table[slot] == EMPTY:
            return slot
        slot += uint64(1)


@compiled
def _fill(table, first, second, n_nodes):
    """Fill the table with the given edges; return the number of slots that hold a removed edge, 0."""
    table[:] = EMPTY
    for edge in range(len(first)):
        key = first[edge] * n_nodes + second[edge]
        table[_find_slot(table, key)] = key
    return 0


@compiled
def swap_edges(first, second, n_nodes, directed, left, right, flips, table):
    """Try to turn edges (a, b) and (c, d) into (a, d) and (c, b), in place, for pairs (left, right) of edges.

    An undirected edge has the smaller node first, and ``flips`` chooses which end is c. ``table`` has a power
    of two slots, at least four for each edge.
    """
    n_removed = _fill(table, first, second, n_nodes)
    for number in range(len(left)):
        i, j = left[number], right[number]
        a, b, c, d = first[i], second[i], first[j], second[j]
        if not directed and flips[number]:
            c, d = d, c
        if a in (c, d) or b in (c, d):
            continue
        e, f, g, h = a, d, c, b
        if not directed:
            e, f, g, h = min(a, d), max(a, d), min(c, b), max(c, b)
        new_i, new_j = e * n_nodes + f, g * n_nodes + h
        if table[_find_slot(table, new_i)] == new_i or table[_find_slot(table, new_j)] == new_j:
            continue
        table[_find_slot(table, first[i] * n_nodes + second[i])] = REMOVED
        table[_find_slot(table, first[j] * n_nodes + second[j])] = REMOVED
        first[i], second[i], first[j], second[j] = e, f, g, h
        table[_find_slot(table, new_i)] = new_i
        table[_find_slot(table, new_j)] = new_j
        n_removed += 2
        if n_removed > len(first):  # removed slots slow down lookups, so the table is rebuilt
            n_removed = _fill(table, first, second, n_nodes)


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def sum_neighbour_memberships(indptr, indices, counts, pi, excess, delta, min_probability, result):
    """Sum the memberships of each node's neighbours, divided by the probability of the edge."""
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

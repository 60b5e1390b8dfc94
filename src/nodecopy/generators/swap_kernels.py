"""Compiled: swap ends of edges and keep the graph simple. Edges are looked up in a table of hashes."""

from __future__ import annotations

from numba import njit, uint64

compiled = njit(cache=True, nogil=True)

EMPTY, REMOVED = -1, -2
SPREAD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, whose multiples spread evenly


@compiled
def _slot(table, key):
    """Where the key stands, or else the first place that was never taken."""
    place = (uint64(key) * uint64(SPREAD)) >> uint64(32)
    while True:
        place = place & uint64(len(table) - 1)
        if table[place] == key or table[place] == EMPTY:
            return place
        place += uint64(1)


@compiled
def _filled(table, first, second, n_nodes):
    table[:] = EMPTY
    for edge in range(len(first)):
        key = first[edge] * n_nodes + second[edge]
        table[_slot(table, key)] = key
    return 0


@compiled
def swap(first, second, n_nodes, directed, ones, others, coins, table):
    """Try to turn edges (a, b) and (c, d) into (a, d) and (c, b), for each pair of edge numbers given.

    An undirected edge is stored the smaller node first, and a coin says which of its ends is c. A try
    that would make a self-loop or an edge twice changes nothing. ``table`` is a power of two long, at
    least four times as long as there are edges. Changes ``first`` and ``second``.
    """
    used = _filled(table, first, second, n_nodes)
    for number in range(len(ones)):
        one, other = ones[number], others[number]
        a, b, c, d = first[one], second[one], first[other], second[other]
        if not directed and coins[number]:
            c, d = d, c
        if a in (c, d) or b in (c, d):
            continue
        e, f, g, h = a, d, c, b
        if not directed:
            e, f, g, h = min(a, d), max(a, d), min(c, b), max(c, b)
        new_one, new_other = e * n_nodes + f, g * n_nodes + h
        if table[_slot(table, new_one)] == new_one or table[_slot(table, new_other)] == new_other:
            continue
        table[_slot(table, first[one] * n_nodes + second[one])] = REMOVED
        table[_slot(table, first[other] * n_nodes + second[other])] = REMOVED
        first[one], second[one], first[other], second[other] = e, f, g, h
        table[_slot(table, new_one)] = new_one
        table[_slot(table, new_other)] = new_other
        used += 2
        if used > len(first):  # each swap leaves two places that were taken; too many make searches slow
            used = _filled(table, first, second, n_nodes)

"""Random draws inside an engine: Threefry as integer arithmetic on columns, with the bits of its NumPy twin.

The twin in :mod:`nodecopy._core.random` documents which counter and key belong to which draw.
"""

from __future__ import annotations

from typing import Any

from nodecopy._core.random import N_ROUNDS, PARITY, ROTATIONS, Key
from nodecopy.edge_tables.engines import ibis

WORD_MASK = 2**32 - 1


def threefry(table: Any, key: Key, first: Any, second: Any) -> Any:
    """Return the table with 32 random bits in columns ``x`` and ``y`` for the counters (first, second)."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    table = table.mutate(x=(first + schedule[0]) & WORD_MASK, y=(second + schedule[1]) & WORD_MASK)
    for number in range(N_ROUNDS):
        # The alias makes each round a query of its own. In one query the expressions would double in size
        # from round to round.
        table = table.alias(f"round_{number}")
        rotation = ROTATIONS[number % 8]
        x = (table.x + table.y) & WORD_MASK
        y = (((table.y << rotation) | (table.y >> (32 - rotation))) & WORD_MASK) ^ x
        if number % 4 == 3:
            injection = number // 4 + 1
            x = (x + schedule[injection % 3]) & WORD_MASK
            y = (y + (schedule[(injection + 1) % 3] + injection)) & WORD_MASK
        table = table.mutate(x=x, y=y)
    return table.alias(f"round_{N_ROUNDS}")


def uniforms(table: Any, key: Key) -> Any:
    """Return the table with the uniform number of the node in column ``number`` in column ``u``."""
    table = threefry(table, key, table.number, table.number)
    bits = (table.x >> 5) * 2**26 + (table.y >> 6)
    return table.mutate(u=bits.cast("float64") / exact_literal(2.0**53)).drop("x", "y")


def flip_coins(table: Any, key: Key, first: Any, second: Any) -> Any:
    """Return the table with the coin of each pair of node numbers in the boolean column ``to_larger``."""
    table = threefry(table, key, ibis.least(first, second), ibis.greatest(first, second))
    return table.mutate(to_larger=(table.x >> 31) == 1).drop("x", "y")


def exact_literal(value: float) -> Any:
    """Return a double as a quotient of integers, since engines parse decimal fractions differently."""
    numerator, denominator = value.as_integer_ratio()
    result = ibis.literal(numerator, "int64").cast("float64")
    while denominator > 1:  # a power of two, so that every step is exact
        step = min(denominator, 2**30)
        result, denominator = result / ibis.literal(step, "int64").cast("float64"), denominator // step
    return result

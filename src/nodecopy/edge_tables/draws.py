"""Random draws inside an engine: Threefry as integer arithmetic on columns, bit for bit that of NumPy.

The plain twin is in :mod:`nodecopy._core.random`; it says which counter and key belong to which draw.
"""

from __future__ import annotations

from typing import Any

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import N_ROUNDS, PARITY, ROTATIONS, Key

WORD = 2**32 - 1


def threefry(table: Any, key: Key, first: Any, second: Any) -> Any:
    """The table with columns ``x`` and ``y``: 32 random bits each for the counters (first, second)."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    table = table.mutate(x=(first + schedule[0]) & WORD, y=(second + schedule[1]) & WORD)
    for number in range(N_ROUNDS):
        # A name keeps each round a query of its own: merged into one, their expressions would double
        # in size from round to round.
        table = table.alias(f"round_{number}")
        rotation = ROTATIONS[number % 8]
        x = (table.x + table.y) & WORD
        y = (((table.y << rotation) | (table.y >> (32 - rotation))) & WORD) ^ x
        if number % 4 == 3:
            injection = number // 4 + 1
            x = (x + schedule[injection % 3]) & WORD
            y = (y + (schedule[(injection + 1) % 3] + injection)) & WORD
        table = table.mutate(x=x, y=y)
    return table.alias(f"round_{N_ROUNDS}")


def uniforms(table: Any, key: Key) -> Any:
    """The table with a column ``u``: the uniform number of the node in its column ``number``."""
    drawn = threefry(table, key, table.number, table.number)
    bits = (drawn.x >> 5) * 2**26 + (drawn.y >> 6)
    return drawn.mutate(u=bits.cast("float64") / exactly(2.0**53)).drop("x", "y")


def fall_to_larger(table: Any, key: Key, first: Any, second: Any) -> Any:
    """The table with a column ``to_larger``: the coin of the pair of node numbers (first, second)."""
    ibis = import_optional("ibis", "an engine of tables")
    drawn = threefry(table, key, ibis.least(first, second), ibis.greatest(first, second))
    return drawn.mutate(to_larger=(drawn.x >> 31) == 1).drop("x", "y")


def exactly(value: float) -> Any:
    """A double as a quotient of whole numbers: engines differ in how they read decimal fractions."""
    ibis = import_optional("ibis", "an engine of tables")
    numerator, denominator = value.as_integer_ratio()
    result = ibis.literal(numerator, "int64").cast("float64")
    while denominator > 1:  # a power of two, so that every step is exact
        step = min(denominator, 2**30)
        result, denominator = result / ibis.literal(step, "int64").cast("float64"), denominator // step
    return result

"""Random numbers: the ``rng`` keyword, named child seeds, and draws that are pure functions of a counter.

``rng`` is an integer, a NumPy ``SeedSequence`` or ``Generator``, or ``None`` (fresh entropy). A generator is
advanced, so two calls with it differ.

Each random part of a computation has a child of its seed, such as
``child(seed, ClassifierSeeds.GRAPHS, round_number)``. The numbers of the children are the members of one
``IntEnum`` per family and never change, since stored results depend on them.

Graph samples use Threefry-2x32-20 (Salmon et al., 2011), so that NumPy, compiled code and a database make the
same draw. The key belongs to (seed, sample number). The counter is (i, i) for the draw of node i and (i, j),
i < j, for the coin of a pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from nodecopy._core.arrays import Array, Bools, Floats
from nodecopy._core.checks import show
from nodecopy.errors import InputError

Rng = int | np.integer[Any] | SeedSequence | Generator | None
Key = tuple[int, int]

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
N_ROUNDS = 20


def seed_sequence(rng: Rng) -> SeedSequence:
    """Return the seed sequence of any accepted ``rng``."""
    if rng is None:
        return SeedSequence()
    if isinstance(rng, SeedSequence):
        return rng
    if isinstance(rng, Generator):
        return SeedSequence([int(word) for word in rng.integers(2**32, size=4)])
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return SeedSequence(int(rng))
    allowed = "a non-negative integer, a numpy SeedSequence, a numpy Generator or None"
    raise InputError("rng", f"must be {allowed}; got {show(rng)}.")


def child(seed: SeedSequence, *numbers: int) -> SeedSequence:
    """Return child b of child a of ``seed`` for ``child(seed, a, b)``, whatever was spawned before."""
    key = (*seed.spawn_key, *(int(number) for number in numbers))
    return SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)


def generator(rng: Rng) -> Generator:
    """Return a NumPy generator: the given one, or a new one from the seed."""
    return rng if isinstance(rng, Generator) else np.random.default_rng(seed_sequence(rng))


def threefry_key(seed: SeedSequence) -> Key:
    """Return the two 32-bit words that key every draw of one sample."""
    first, second = seed.generate_state(2, np.uint32)
    return int(first), int(second)


def sample_key(seed: SeedSequence, sample: int) -> Key:
    """Return the key of sample number ``sample``."""
    return threefry_key(child(seed, sample))


def threefry(key: Key, first: Array, second: Array) -> tuple[Array, Array]:
    """Return two arrays of 32 random bits for the counters (first, second), by Threefry-2x32-20."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    x = first.astype(np.uint32) + np.uint32(schedule[0])
    y = second.astype(np.uint32) + np.uint32(schedule[1])
    for round_number in range(N_ROUNDS):
        rotation = ROTATIONS[round_number % 8]
        x += y
        y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
        y ^= x
        if round_number % 4 == 3:
            injection = round_number // 4 + 1
            x += np.uint32(schedule[injection % 3])
            y += np.uint32((schedule[(injection + 1) % 3] + injection) % 2**32)
    return x, y


def unit_interval(high: Array, low: Array) -> Floats:
    """Return doubles in [0, 1) from the 53 leading bits of two 32-bit words."""
    bits = (high >> np.uint32(5)).astype(np.float64) * 2.0**26 + (low >> np.uint32(6)).astype(np.float64)
    return bits * 2.0**-53


def node_uniforms(key: Key, n_nodes: int) -> Floats:
    """Return a uniform number for each node, a function of the key and the node's number."""
    nodes = np.arange(n_nodes)
    return unit_interval(*threefry(key, nodes, nodes))


def pair_coins(key: Key, first: Array, second: Array) -> Bools:
    """Return a fair coin for each unordered pair, a function of the key and the pair."""
    word, _ = threefry(key, np.minimum(first, second), np.maximum(first, second))
    return (word >> np.uint32(31)).astype(np.bool_)

"""Dropout masks that are pure functions of (model, step, place).

A model that is trained together with others therefore has the same masks as when it is trained alone.

A mask entry is a byte of a 32-bit hash of its position, keyed by the model's seed, the training step
and the place in the network. The hash is the two-round multiply-xorshift of Wellons' search for
low-bias mixers; it needs no state, so B models draw their masks in one pass on any device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.random import SeedSequence
from torch import Tensor

INPUT, HIDDEN, FIRST_EDGES, SECOND_EDGES = range(4)
"""The places of dropout masks in a network."""
GOLDEN, MIX_1, MIX_2 = 0x1E3779B9, 0x21F0AAAD, 0x735A2D97


class Masks:
    """The dropout masks of B models.

    Parameters
    ----------
    keys
        One key per model, see :func:`draw_keys`.
    rate
        Share of entries that are dropped, below one, in steps of 1/256.
    """

    def __init__(self, keys: Tensor, rate: float) -> None:
        self.keys, self.threshold = keys, round(256 * rate)

    def draw(self, n: int, *, step: int, place: int) -> Tensor:
        """Return ``[B, n]`` factors: zero for dropped entries, otherwise what keeps the expectation."""
        position = torch.arange(-(-n // 4), dtype=torch.int32, device=self.keys.device)
        words = _mix(position ^ self._key(step, place))
        return self._factors(words.view(torch.uint8)[:, :n])

    def draw_at(self, model: Tensor, position: Tensor, *, step: int, place: int) -> Tensor:
        """Return the factors of :meth:`draw` at given models and positions; models may differ in size."""
        words = _mix((position >> 2) ^ self._key(step, place)[model, 0])
        return self._factors((words >> ((position & 3) << 3)) & 0xFF)

    def _key(self, step: int, place: int) -> Tensor:
        products = GOLDEN * (2 * step + 1), MIX_2 * (place + 1)
        by_step, by_place = ((product + 2**31) % 2**32 - 2**31 for product in products)  # as signed 32 bits
        return _mix(self.keys[:, None] + by_step ^ by_place)

    def _factors(self, numbers: Tensor) -> Tensor:
        return (numbers >= self.threshold) * (256.0 / (256 - self.threshold))


def draw_keys(seeds: Sequence[SeedSequence], device: torch.device) -> Tensor:
    """Return the key of each model, given its seed."""
    words = np.array([seed.generate_state(1, np.uint32)[0] for seed in seeds], np.uint32)
    return torch.from_numpy(words.view(np.int32)).to(device)


def _mix(x: Tensor) -> Tensor:
    """Return a hash of 32-bit integers."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * MIX_1
    x ^= (x >> 15) & 0x1FFFF
    x *= MIX_2
    x ^= (x >> 15) & 0x1FFFF
    return x

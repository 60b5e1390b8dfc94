"""Dropout masks that are pure functions of (model, step, place).

A model that is trained together with others therefore has the same masks as when it is trained alone.

A mask entry is a byte of a 32-bit hash of its position, keyed by the model's seed, the training step
and the place in the network. The hash is the two-round multiply-xorshift found by Wellons' search for
low-bias mixers; it needs no state, so B models draw their masks in one pass on any device.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from torch import Tensor

GOLDEN, MIX_1, MIX_2 = 0x1E3779B9, 0x21F0AAAD, 0x735A2D97


class Masks:
    """The dropout masks of B models.

    Parameters
    ----------
    seeds
        One seed per model.
    rate
        Share of entries that are dropped, below one, in steps of 1/256.
    """

    def __init__(self, seeds: Sequence[SeedSequence], rate: float, device: torch.device) -> None:
        words = np.array([seed.generate_state(1, np.uint32)[0] for seed in seeds], np.uint32)
        self.keys = torch.from_numpy(words.view(np.int32)).to(device)[:, None]
        self.threshold = round(256 * rate)

    @classmethod
    def from_keys(cls, keys: NDArray[np.int32], rate: float, device: torch.device) -> Masks:
        """Return the masks of models with given keys."""
        masks = cls([], rate, device)
        masks.keys = torch.from_numpy(keys.copy()).to(device)[:, None]
        return masks

    def select(self, models: slice) -> Masks:
        """Return the masks of some of the models."""
        other = copy.copy(self)
        other.keys = self.keys[models]
        return other

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
        return _mix(self.keys + by_step ^ by_place)

    def _factors(self, numbers: Tensor) -> Tensor:
        return (numbers >= self.threshold) * (256.0 / (256 - self.threshold))


def _mix(x: Tensor) -> Tensor:
    """Return a hash of 32-bit integers."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * MIX_1
    x ^= (x >> 15) & 0x1FFFF
    x *= MIX_2
    x ^= (x >> 15) & 0x1FFFF
    return x

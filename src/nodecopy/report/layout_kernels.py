"""Compiled code of the layout of graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.kernels import njit


def repulsion(positions: NDArray[np.float32], mass: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the force of all other nodes on each: the sum of mass times direction over distance."""
    x, y = np.ascontiguousarray(positions.T)
    forces = np.empty_like(positions)
    _repulsion(x, y, np.ascontiguousarray(mass), forces)
    return forces


# Without checks for division by zero and in any order, the inner loop becomes vector instructions.
@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _repulsion(x, y, mass, forces):
    for i in range(len(x)):
        own_x, own_y = x[i], y[i]
        total_x, total_y = np.float32(0), np.float32(0)
        for j in range(len(x)):
            dx, dy = own_x - x[j], own_y - y[j]
            weight = mass[j] / (dx * dx + dy * dy + np.float32(1e-4))
            total_x += dx * weight
            total_y += dy * weight
        forces[i, 0], forces[i, 1] = total_x, total_y

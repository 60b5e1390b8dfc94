"""Compiled code behind the layout of graphs."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def repulsion(places: NDArray[np.float32], mass: NDArray[np.float32]) -> NDArray[np.float32]:
    """How far all other nodes push each node: the sum of mass times direction over distance."""
    x, y = np.ascontiguousarray(places.T)
    pushes = np.empty_like(places)
    _repulsion(x, y, np.ascontiguousarray(mass), pushes)
    return pushes


# Without checks for division by zero and in any order, the inner loop becomes vector instructions.
@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _repulsion(x, y, mass, pushes):
    for i in range(len(x)):
        here_x, here_y = x[i], y[i]
        total_x, total_y = np.float32(0), np.float32(0)
        for j in range(len(x)):
            right, up = here_x - x[j], here_y - y[j]
            share = mass[j] / (right * right + up * up + np.float32(1e-4))
            total_x += right * share
            total_y += up * share
        pushes[i, 0], pushes[i, 1] = total_x, total_y

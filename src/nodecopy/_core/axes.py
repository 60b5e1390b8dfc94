"""Axes of Matplotlib to draw on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import type_name
from nodecopy._core.imports import import_optional
from nodecopy.errors import InputError


def create_axes(
    axes: Any, purpose: str, size: tuple[float, float], shape: tuple[int, ...] = (1,), **grid: Any
) -> NDArray[Any]:
    """Return the given axes in a shape, or new ones of pyplot, each of a size in inches."""
    pyplot = import_optional("matplotlib.pyplot", purpose)
    if axes is None:
        n_rows, n_columns = (1, *shape)[-2:]
        total = (n_columns * size[0], n_rows * size[1])
        _, axes = pyplot.subplots(n_rows, n_columns, figsize=total, layout="constrained", **grid)
    array = np.asarray(axes, object)
    if array.size != math.prod(shape) or not all(hasattr(panel, "set_xlim") for panel in array.flat):
        wanted = " x ".join(map(str, shape))
        raise InputError("axes", f"must be Matplotlib axes, {wanted} of them; got {type_name(axes)}.")
    return array.reshape(shape)

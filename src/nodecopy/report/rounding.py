"""Numbers and names as the page stores them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def to_texts(values: ArrayLike) -> list[str]:
    """Return ids or names as text."""
    return [str(value) for value in np.asarray(values).tolist()]


def round_number(value: Any, digits: int = 6) -> float | None:
    """Round to a number of significant digits; ``None`` where the value is not finite, as JSON has no NaN."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def round_all(values: Sequence[Any] | NDArray[Any], digits: int = 6) -> list[float | None]:
    """Round each of some values by :func:`round_number`."""
    return [round_number(float(value), digits) for value in values]

"""The setting of MKL under which the bits of a trial do not depend on what is trained together."""

from __future__ import annotations

import os
import sys

SAME_BITS = {"MKL_CBWR": "AVX2,STRICT"}
"""Makes products of matrices by MKL independent of their place in memory, to the last bit. Other libraries,
as on ARM, agree to rounding."""


def set_same_bits() -> None:
    """Set the variables of :data:`SAME_BITS` that the user has not set, unless torch is already imported.

    They have an effect only before.
    """
    if "torch" not in sys.modules:
        os.environ.update(SAME_BITS | os.environ)

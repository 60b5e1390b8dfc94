"""What columns hold."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.io.column_types import holds_numbers, holds_times, holds_weights
from nodecopy.io.table_files import Column


@pytest.mark.parametrize(
    ("column", "name", "kinds"),
    [
        (["", "1.5"], "", (True, True, False)),
        (["a", "1.5"], "", (False, False, False)),
        (["1217567877", "1217573801"], "", (True, False, True)),
        (["1", "2"], "timestamp", (True, False, True)),
        (["1", "2"], "type", (True, False, False)),
        (np.array([1.5]), "", (True, True, False)),
        (np.array(["2020-01-01"], "datetime64[D]"), "", (False, False, True)),
    ],
)
def test_kinds(column: Column, name: str, kinds: tuple[bool, bool, bool]) -> None:
    assert (holds_numbers(column), holds_weights(column, name), holds_times(column, name)) == kinds

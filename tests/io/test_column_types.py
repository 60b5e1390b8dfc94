"""What columns hold."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.io.columns import find_id_columns, holds_numbers, holds_times, holds_weights
from nodecopy.io.tables import Column


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


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        ([["a"], ["b"]], [], [0, 1]),
        ([["2024-05-31"], ["a"], ["b"], ["1.5"]], [], [1, 2]),
        ([["31.05.2024"], ["0221"], ["0222"]], [], [1, 2]),
        ([["3"], ["a"], ["b"]], [], [1, 2]),
        ([["1.5"], ["1"], ["2"]], [], [1, 2]),
        ([["5.0"], ["True"], ["1"], ["x"]], [], [2, 3]),
        ([["2001"], ["1"], ["2"]], ["year", "a", "b"], [1, 2]),
        ([["a"], ["1"], ["2"]], [], [0, 1]),
        ([["1_0"], ["2"]], [], [0, 1]),
        ([np.array([0.5]), np.array([1]), np.array(["a"], object)], [], [1, 2]),
    ],
)
def test_columns_of_ids(columns: list[Column], names: list[str], expected: list[int]) -> None:
    """Before, the first two columns held them, whatever was in them."""
    assert find_id_columns(columns, names, is_alike=True) == expected

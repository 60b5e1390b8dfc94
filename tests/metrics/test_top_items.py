from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodecopy.errors import InputError
from nodecopy.metrics.ranking import MAX_SORTED_RATIO, top_items


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 8),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([np.uint8, np.int64, np.float32, np.float64]),
    st.sampled_from([1, MAX_SORTED_RATIO]),
)
def test_top_items_on_ties(seed: int, n_items: int, k: int, levels: int, dtype: Any, max_ratio: int) -> None:
    """Few levels make many ties; with a small ratio most rows are ranked by counting ties."""
    k = min(k, n_items)
    scores = np.random.default_rng(seed).integers(levels, size=(5, n_items)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        scores[0, ::2] = -np.inf
    expected = [sorted(range(n_items), key=lambda item: (-row[item], item))[:k] for row in scores.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodecopy.metrics.ranking.MAX_SORTED_RATIO", max_ratio)
        assert top_items(scores, k).tolist() == expected


def test_top_items_without_users() -> None:
    assert top_items(np.zeros((0, 4)), 2).shape == (0, 2)


def test_wrong_scores() -> None:
    for scores, message in (
        ([1.0, 2.0], "scores must hold numbers, one row per user"),
        ([[1.0, np.nan]], "scores must be numbers; got nan"),
    ):
        with pytest.raises(InputError, match=message):
            top_items(scores, 1)

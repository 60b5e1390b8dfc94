"""The degree test against the formulas of its paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nodecopy.attacks.nettack import MAX_RATIO, DegreeTest
from tests.attacks.oracles import degree_ratio


@given(st.lists(st.integers(1, 9), min_size=4, max_size=12), st.data())
@settings(deadline=None)
def test_ratio_equals_the_formulas_of_the_paper(degrees: list[int], data: st.DataObject) -> None:
    before, now = list(degrees), list(degrees)
    test = DegreeTest(np.array(before))
    for _ in range(3):
        node, other = data.draw(st.permutations(range(len(now))))[:2]
        change = data.draw(st.sampled_from([-1, 1] if min(now[node], now[other]) > 0 else [1]))
        after = list(now)
        after[node] += change
        after[other] += change
        ratio = degree_ratio(before, after)
        flip = np.array([now[node]]), np.array([now[other]]), np.array([change])
        assert test.ratio(*flip)[0] == pytest.approx(ratio, abs=1e-9)
        if abs(ratio - MAX_RATIO) > 1e-9:
            assert test.passes(*flip).tolist() == [ratio < MAX_RATIO]
        test.record(now[node], now[other], change)
        now = after


def test_largest_ratio_is_the_quantile_it_names() -> None:
    assert pytest.approx(stats.chi2.ppf(0.05, 1), abs=1e-4) == MAX_RATIO

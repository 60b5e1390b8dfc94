from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nodecopy import Interactions, Jaccard, NodeCopying
from nodecopy._core import arrays as csr
from nodecopy.copying import donors as jaccard
from nodecopy.copying import kernels as jaccard_kernels
from tests.strategies import interactions


@settings(deadline=None)
@given(
    interactions(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([1, 2, 3, 4, 10**12]),
    st.sampled_from([1, 3, jaccard_kernels.N_TASKS]),
)
def test_the_same_bits_as_without_compiled_code(
    log: Interactions, include_self: bool, exponent: float, max_donors: int, n_tasks: int
) -> None:
    assume(log.n_users)
    rule = Jaccard(include_self, exponent, max_donors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "MIN_DENSE_SHARE", np.inf)
        patch.setattr(jaccard_kernels, "N_TASKS", n_tasks)
        expected = NodeCopying(rule).fit(log).distribution_
        patch.setattr(jaccard, "MIN_COMPILED_PRODUCTS", 0)
        compiled = NodeCopying(rule).fit(log).distribution_
    for name in ("data", "indices", "indptr"):
        first, second = (getattr(part.probabilities(), name) for part in (compiled, expected))
        assert np.array_equal(first, second)


def test_many_rows() -> None:
    """Blocks of many rows, many of which tie."""
    draws = np.random.default_rng(0)
    log = Interactions(draws.random((300, 40)) < 0.1)
    rule = Jaccard(include_self=False, exponent=2.0, max_donors=7)
    expected = NodeCopying(rule).fit(log).distribution_.probabilities()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "MIN_DENSE_SHARE", np.inf)
        patch.setattr(jaccard, "MIN_COMPILED_PRODUCTS", 0)
        compiled = NodeCopying(rule).fit(log).distribution_.probabilities()
    assert np.array_equal(compiled.toarray(), expected.toarray())

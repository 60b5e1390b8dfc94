from __future__ import annotations

import numpy as np

from nodecopy.recommend import BPRMF
from tests.contracts.recommenders import tastes


def test_embeddings_are_the_weights_whatever_the_graph() -> None:
    log = tastes()
    fitted = BPRMF(n_factors=8, n_epochs=2).fit(log, rng=0)
    for matrix in (log.matrix, log.matrix[::-1]):
        assert np.array_equal(np.concatenate(fitted.embed(matrix)), fitted.weights_["free"])

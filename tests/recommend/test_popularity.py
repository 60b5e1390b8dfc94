from __future__ import annotations

import numpy as np

from nodecopy.recommend import Popularity
from tests.contracts.recommenders import tastes


def test_scores_are_numbers_of_users() -> None:
    log = tastes()
    fitted = Popularity().fit(log)
    counts = (log.matrix.toarray() > 0).sum(axis=0)
    assert fitted.counts_.tolist() == counts.tolist()
    assert np.array_equal(fitted.score(), np.tile(counts, (log.n_users, 1)))

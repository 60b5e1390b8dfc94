from __future__ import annotations

import numpy as np
import pytest

from nodecopy.generators.base import IndependentEdges


@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_independent_with_their_probabilities(directed: bool) -> None:
    """Means and pairwise products over 20,000 samples; five standard errors."""
    p = np.array([[0.9, 0.7, 0.2], [0.5, 0.9, 1.0], [0.0, 0.3, 0.9]])
    edges, rng, n = IndependentEdges(p, directed), np.random.default_rng(0), 20_000
    samples = np.zeros((n, 3, 3))
    for sample in samples:
        sample[edges.draw(rng)] = 1
    expected = p * (1 - np.eye(3)) if directed else np.triu(p, 1)
    assert samples.mean(axis=0) == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(n))
    covariance = np.cov(samples.reshape(n, 9).T)
    assert covariance == pytest.approx(np.diag(np.diag(covariance)), abs=5 * 0.25 / np.sqrt(n))


def test_a_graph_without_nodes_has_no_edges() -> None:
    first, second = IndependentEdges(np.zeros((0, 0)), False).draw(np.random.default_rng(0))
    assert len(first) == len(second) == 0

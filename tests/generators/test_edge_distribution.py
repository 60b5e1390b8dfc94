"""Draws of independent edges, by thinning and with a uniform number for every pair."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from nodecopy.generators import blockwise, edge_distribution
from nodecopy.generators.edge_distribution import MAX_THINNING_PROBABILITY, EdgeDistribution
from tests.generators.test_calibration import random_vectors

UPPER = np.triu_indices(30, 1)
DISTRIBUTIONS = {
    "raw": EdgeDistribution(random_vectors()),
    "calibrated": EdgeDistribution(random_vectors(), (5.0, -4.0)),
    "thinned": EdgeDistribution(random_vectors(), (3.0, -6.0), 1.5),
    "thinned, decreasing in the score": EdgeDistribution(random_vectors(), (-3.0, -3.0)),
    "cut off at one": EdgeDistribution(random_vectors(), (5.0, -4.0), 2.0),
}


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_frequencies_are_the_probabilities(kind: str) -> None:
    """Each pair in 2000 draws. A correct sampler fails for one seed in 1000; the seed is fixed."""
    distribution, n_draws = DISTRIBUTIONS[kind], 2000
    logits = (distribution.decoded @ distribution.decoded.T).astype(float)[UPPER]
    slope, intercept = distribution.calibration or (1.0, 0.0)
    p = expit(logits) if distribution.calibration is None else expit(slope * expit(logits) + intercept)
    p = np.minimum(1.0, distribution.scale * p)
    np.testing.assert_allclose(distribution.probabilities(*UPPER), p, rtol=1e-5)
    assert p.max() <= distribution.upper_bound * (1 + 1e-6)
    assert (distribution.upper_bound < MAX_THINNING_PROBABILITY) == kind.startswith("thinned")
    rng = np.random.default_rng(8)
    counts = np.zeros((30, 30), int)
    for _ in range(n_draws):
        np.add.at(counts, tuple(distribution.draw(rng)), 1)
    assert counts.sum() == counts[UPPER].sum()
    error_rate = 0.001 / 3 / len(p)  # of either tail of each pair; the last third is for the total
    low, high = binom.ppf(error_rate, n_draws, p), binom.isf(error_rate, n_draws, p)
    assert ((counts[UPPER] >= low) & (counts[UPPER] <= high)).all()
    deviation = np.sqrt(n_draws * (p * (1 - p)).sum())
    assert abs(counts.sum() - n_draws * p.sum()) < norm.isf(0.001 / 6) * deviation


@pytest.mark.parametrize("kind", ["calibrated", "thinned"])
def test_small_blocks_give_edges_at_the_same_rate(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(blockwise.LOGITS_AT_ONCE, "cpu", 1)
    monkeypatch.setattr(edge_distribution, "CANDIDATES_AT_ONCE", 3)
    distribution = DISTRIBUTIONS[kind]
    samples = [distribution.draw(np.random.default_rng(seed)) for seed in range(300)]
    for edges in samples:
        assert (edges[0] < edges[1]).all()
        assert len({*zip(*edges.tolist(), strict=True)}) == edges.shape[1]
    p = distribution.probabilities(*UPPER)
    deviation = np.sqrt(300 * (p * (1 - p)).sum())
    assert abs(sum(edges.shape[1] for edges in samples) - 300 * p.sum()) < 3.9 * deviation


@pytest.mark.parametrize(("intercept", "n_edges"), [(-np.inf, 0), (np.inf, 435)])
def test_certain_probabilities(intercept: float, n_edges: int) -> None:
    distribution = EdgeDistribution(random_vectors(), (0.0, intercept))
    assert distribution.draw(np.random.default_rng(0)).shape == (2, n_edges)

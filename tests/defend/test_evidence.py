"""The posterior against direct sums, and the nodes at which it counts."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy.defend import evidence
from nodecopy.defend.evidence import Compatibility, add_evidence, combine_evidence

COUNTS = np.array([[40.0, 4, 6], [4, 30, 2], [6, 2, 50]])


def direct_evidence(
    log_odds: np.ndarray, neighbours: np.ndarray, compatibility: Compatibility, attacked_share: float
) -> np.ndarray:
    """Return the likelihood of the edges of a node for each class, by loops over all hypotheses."""
    usual, remaining = compatibility.ratios(), compatibility.ratios(evidence.REMAINING_SHARE)
    shares, total = compatibility.class_shares, np.zeros(3)
    for y in range(3):
        clean = 1.0
        for odds, p in zip(log_odds, neighbours, strict=True):
            genuine = (
                np.exp(evidence.CLEAN_ODDS_WEIGHT * odds) * (p @ usual[y]) ** evidence.CLEAN_CLASS_WEIGHT
            )
            clean *= evidence.GENUINE_SHARE * genuine + 1 - evidence.GENUINE_SHARE
        total[y] += (1 - attacked_share) * clean
        for aim in (None, 0, 1, 2):
            for share in evidence.GRID if aim != y else []:
                product = share / evidence.GRID.sum() * attacked_share / 2 / (1 if aim is None else 2)
                for odds, p in zip(log_odds, neighbours, strict=True):
                    floor = evidence.MIN_OTHER
                    false = floor + (1 - floor) * (1 - p[y]) / (1 - shares[y])
                    false = false if aim is None else p @ usual[aim]
                    genuine = np.exp(odds) * (p @ remaining[y]) ** evidence.CLASS_WEIGHT
                    product *= share * genuine + (1 - share) * false
                total[y] += product
    return np.log(total)


@pytest.mark.parametrize("max_terms", [2**23, 1])
def test_posterior_is_the_sum_over_hypotheses(monkeypatch: pytest.MonkeyPatch, max_terms: int) -> None:
    monkeypatch.setattr(evidence, "MAX_TERMS", max_terms)
    draws = np.random.default_rng(0)
    owner = np.array([0, 0, 0, 2, 2])
    log_odds, neighbours = draws.normal(size=5), draws.dirichlet(np.ones(3), size=5)
    log_prior = np.log(draws.dirichlet(np.ones(3), size=3))
    compatibility = Compatibility(COUNTS)
    posterior = combine_evidence(log_prior, owner, log_odds, neighbours, compatibility, 0.4)
    for row in range(3):
        own = owner == row
        expected = direct_evidence(log_odds[own], neighbours[own], compatibility, 0.4)
        np.testing.assert_allclose(posterior.log_evidence[row], expected, atol=1e-9)
    assert ((posterior.credibility > 0) & (posterior.credibility < 1)).all()


def test_many_edges_of_one_class_are_evidence_only_if_they_are_credible() -> None:
    neighbours = np.tile([0.02, 0.96, 0.02], (20, 1))
    prior, owner, compatibility = np.log(np.full((1, 3), 1 / 3)), np.zeros(20, int), Compatibility(COUNTS)
    credible, incredible = (
        combine_evidence(prior, owner, np.full(20, odds), neighbours, compatibility, 2 / 3)
        for odds in (3.0, -3.0)
    )
    assert credible.log_evidence[0].argmax() == 1
    assert credible.credibility.min() > 0.9
    assert incredible.log_evidence[0].argmin() == 1
    assert incredible.credibility.max() < 0.1


def test_evidence_is_added_where_it_counts() -> None:
    log_prior = np.log(np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]))
    log_evidence = np.tile([-50.0, 0.0, -3.0], (2, 1))
    combined = np.exp(add_evidence(log_prior, log_evidence, np.array([False, True])))
    np.testing.assert_allclose(combined[0], [0.7, 0.2, 0.1])
    weights = np.array([0.0, 0.2, 0.1 * np.exp(-3)])
    np.testing.assert_allclose(combined[1], weights / weights.sum(), atol=1e-12)


def test_removed_edges_lower_the_ratio_within_classes() -> None:
    compatibility = Compatibility(COUNTS)
    usual, remaining = compatibility.ratios(), compatibility.ratios(0.5)
    assert (np.diag(remaining) < np.diag(usual)).all()
    np.testing.assert_allclose(usual @ compatibility.class_shares, 1)
    np.testing.assert_allclose(remaining @ compatibility.class_shares, 1)

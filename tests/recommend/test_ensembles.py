"""Algorithms 3 and 4: scores on copied graphs, and training without likely negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nodecopy
from nodecopy import Jaccard, NodeCopying
from nodecopy._core.random import child, seed_sequence
from nodecopy.recommend import EnsembleBPR, LightGCN, SampledGraphBPR, bpr
from nodecopy.recommend.bpr import GRAPHS, NETWORK, NegativeSampler
from tests.contracts.recommenders import tastes

SHORT: dict[str, Any] = {"n_factors": 8, "n_epochs": 4, "batch_size": 64, "learning_rate": 0.02}
HAS_HISTORY = np.arange(59)


def test_a_fitted_base_is_used_as_it_is() -> None:
    """A base fitted with the child seed gives the same scores as an unfitted one, and stays unchanged."""
    log = tastes()
    unfitted = EnsembleBPR(LightGCN(**SHORT)).fit(log, rng=0)
    base = LightGCN(**SHORT).fit(log, rng=child(seed_sequence(0), NETWORK))
    before = base.score()
    assert np.array_equal(EnsembleBPR(base).fit(log, rng=0).score(), unfitted.score())
    assert np.array_equal(base.score(), before)
    assert not np.array_equal(unfitted.score(), before)


def test_scores_are_means_over_samples() -> None:
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    rule = Jaccard(include_self=False, exponent=2.0, max_donors=10)
    fitted = EnsembleBPR(base, rule, n_graphs=3).fit(log, rng=7)
    samples = NodeCopying(rule).fit(log).sample_many(3, rng=child(seed_sequence(7), GRAPHS))
    embeddings = [base.embed(sample.matrix) for sample in samples]
    scores = np.mean([users @ items.T for users, items in embeddings], axis=0)
    np.testing.assert_allclose(fitted.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_graphs", [None, 4])
def test_users_keep_their_own_items(n_graphs: int | None) -> None:
    """With keep=1 scores are those of the base; with keep=0.5, those on graphs of a model that keeps."""
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    always = EnsembleBPR(base, n_graphs=n_graphs, keep=1.0).fit(log, rng=7)
    np.testing.assert_allclose(always.score(), base.score(), rtol=1e-4, atol=1e-6)
    half = EnsembleBPR(base, n_graphs=n_graphs, keep=0.5).fit(log, rng=7)
    model = NodeCopying(Jaccard(), keep=0.5).fit(log)
    graph_seed = child(seed_sequence(7), GRAPHS)
    graphs = [sample.matrix for sample in model.sample_many(n_graphs or 0, rng=graph_seed)]
    embeddings = [base.embed(graph) for graph in graphs or [model.expected_adjacency().tocsr()]]
    scores = np.mean([users @ items.T for users, items in embeddings], axis=0)
    np.testing.assert_allclose(half.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


def test_likely_pairs_are_not_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    log = tastes()
    forbidden_pairs: list[sparse.csr_array] = []

    def record(forbidden: sparse.csr_array) -> NegativeSampler:
        forbidden_pairs.append(forbidden)
        return NegativeSampler(forbidden)

    monkeypatch.setattr(bpr, "NegativeSampler", record)
    SampledGraphBPR(LightGCN(**SHORT), threshold=0.3).fit(log, rng=0)
    model = NodeCopying(Jaccard()).fit(log)
    expected = (log.matrix.toarray() > 0) | (model.expected_adjacency().toarray() > 0.3)
    assert not expected.all(axis=1).any()
    assert np.array_equal(forbidden_pairs.pop().toarray(), expected)
    SampledGraphBPR(LightGCN(**SHORT), threshold=0.3, n_graphs=5).fit(log, rng=0)
    estimate = model.monte_carlo_adjacency(5, rng=child(seed_sequence(0), GRAPHS)).toarray()
    assert np.array_equal(forbidden_pairs.pop().toarray(), (log.matrix.toarray() > 0) | (estimate > 0.3))


def test_a_threshold_of_1_is_algorithm_3() -> None:
    log = tastes()
    ensemble = EnsembleBPR(LightGCN(**SHORT)).fit(log, rng=0)
    sampled = SampledGraphBPR(LightGCN(**SHORT), threshold=1.0).fit(log, rng=0)
    assert np.array_equal(sampled.score(), ensemble.score())
    observed = SampledGraphBPR(LightGCN(**SHORT), threshold=1.0, test_graph="observed").fit(log, rng=0)
    plain = LightGCN(**SHORT).fit(log, rng=child(seed_sequence(0), NETWORK))
    assert np.array_equal(observed.score(), plain.score())


def test_the_test_graph_can_be_changed_after_training(tmp_path: Path) -> None:
    log = tastes()
    copied = SampledGraphBPR(LightGCN(**SHORT), threshold=0.3).fit(log, rng=0)
    observed = SampledGraphBPR(LightGCN(**SHORT), threshold=0.3, test_graph="observed").fit(log, rng=0)
    scores = copied.score()
    copied.save(tmp_path / "both.npz")
    for model in (copied, nodecopy.load(tmp_path / "both.npz")):
        model.set_params(test_graph="observed")
        assert np.array_equal(model.score(), observed.score())
    observed.set_params(test_graph="copied")
    assert np.array_equal(observed.score(), scores)
    assert not np.array_equal(copied.score(), scores)

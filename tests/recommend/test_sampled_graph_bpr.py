from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nodecopy
from nodecopy import Interactions, Jaccard, NodeCopying
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.recommend import EnsembleBPR, LightGCN, SampledGraphBPR, bpr
from nodecopy.recommend.bpr import NegativeSampler
from nodecopy.recommend.ensembles import EnsembleSeeds
from tests.contracts.recommenders import tastes

SHORT: dict[str, Any] = {"n_factors": 8, "n_epochs": 4, "batch_size": 64, "learning_rate": 0.02}


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
    estimate = model.monte_carlo_adjacency(5, rng=child(seed_sequence(0), EnsembleSeeds.GRAPHS)).toarray()
    assert np.array_equal(forbidden_pairs.pop().toarray(), (log.matrix.toarray() > 0) | (estimate > 0.3))


def test_a_threshold_of_1_is_algorithm_3() -> None:
    log = tastes()
    ensemble = EnsembleBPR(LightGCN(**SHORT)).fit(log, rng=0)
    sampled = SampledGraphBPR(LightGCN(**SHORT), threshold=1.0).fit(log, rng=0)
    assert np.array_equal(sampled.score(), ensemble.score())
    observed = SampledGraphBPR(LightGCN(**SHORT), threshold=1.0, test_graph="observed").fit(log, rng=0)
    plain = LightGCN(**SHORT).fit(log, rng=child(seed_sequence(0), EnsembleSeeds.NETWORK))
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


def test_the_threshold_is_chosen_on_validation() -> None:
    log = tastes()
    draws = np.random.default_rng(1)
    validation = log.with_rows(Interactions(draws.random((60, 24)) < 0.1).rows).difference(log)
    thresholds = (0.1, 0.3, 0.6)
    chosen = SampledGraphBPR(LightGCN(**SHORT), thresholds=thresholds).fit(log, validation=validation, rng=0)
    recalls, scores = {}, {}
    for threshold in thresholds:
        model = SampledGraphBPR(LightGCN(**SHORT), threshold=threshold)
        model.fit(log, validation=validation, rng=0)
        recalls[threshold] = model.evaluate(validation, metrics=["recall@20"])["recall@20"]
        scores[threshold] = model.score()
    assert recalls[chosen.threshold_] == max(recalls.values())
    assert np.array_equal(chosen.score(), scores[chosen.threshold_])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            SampledGraphBPR(LightGCN(), threshold=2.0),
            "threshold of SampledGraphBPR must be a number between 0",
        ),
        (SampledGraphBPR(LightGCN(), thresholds=()), "thresholds of SampledGraphBPR must hold at least one"),
        (SampledGraphBPR(LightGCN()), "threshold of SampledGraphBPR must be given if there is no validation"),
        (SampledGraphBPR(LightGCN(), test_graph="x"), "test_graph of SampledGraphBPR must be one of"),
    ],
)
def test_wrong_parameters(model: SampledGraphBPR, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)

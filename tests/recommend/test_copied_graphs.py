from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, special

from nodecopy import Jaccard, NodeCopying
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, EnsembleBPR, LightGCN, SampledGraphBPR, bpr, copied_graphs, load
from nodecopy.recommend.negatives import NegativeSampler
from tests.contracts.recommenders import tastes

FEW: dict[str, Any] = {"size": 8, "epochs": 4, "batch_size": 64, "learning_rate": 0.02}
HAS_HISTORY = np.arange(59)


def test_weights_are_those_of_the_base() -> None:
    """Algorithm 3 trains nothing: a fitted base is taken as it is and gives the same as an unfitted one."""
    log, seed = tastes(), seed_sequence(0)
    unfitted = EnsembleBPR(LightGCN(**FEW)).fit(log, rng=0)
    base = LightGCN(**FEW).fit(log, rng=child(seed, 0))
    before = base.score()
    assert np.array_equal(EnsembleBPR(base).fit(log, rng=0).score(), unfitted.score())
    assert np.array_equal(base.score(), before)
    assert not np.array_equal(unfitted.score(), before)


def test_scores_are_means_over_samples() -> None:
    log = tastes()
    base = LightGCN(**FEW).fit(log, rng=5)
    law = Jaccard(include_self=False, exponent=2.0, max_donors=10)
    fitted = EnsembleBPR(base, law, n_graphs=3).fit(log, rng=7)
    samples = NodeCopying(law).fit(log).sample_many(3, rng=child(seed_sequence(7), 1))
    scores = np.mean(
        [users @ items.T for users, items in (base.embed(one.matrix) for one in samples)], axis=0
    )
    np.testing.assert_allclose(fitted.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


def test_the_expected_graph_is_the_default() -> None:
    log = tastes()
    base = LightGCN(**FEW).fit(log, rng=5)
    fitted = EnsembleBPR(base).fit(log, rng=7)
    users, items = base.embed(NodeCopying(Jaccard()).fit(log).expected_adjacency().tocsr())
    np.testing.assert_allclose(fitted.score()[HAS_HISTORY], (users @ items.T)[HAS_HISTORY], rtol=1e-5)


def test_mean_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of items that an item is expected to beat, by the definition and in small blocks."""
    monkeypatch.setattr(copied_graphs, "PAIRS_AT_ONCE", 100)
    log = tastes()
    base = LightGCN(**FEW).fit(log, rng=5)
    fitted = EnsembleBPR(base, n_graphs=2, average="probabilities").fit(log, rng=7)
    for user in (0, 17):
        scores = [users[user] @ items.T for users, items in zip(*fitted._copied, strict=True)]
        wanted = [
            np.mean([special.expit(one[item] - one[other]) for one in scores for other in range(24)])
            for item in range(24)
        ]
        np.testing.assert_allclose(fitted.score(log.user_ids[[user]])[0], wanted, rtol=1e-5)


def test_likely_pairs_are_no_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    log = tastes()
    seen: list[sparse.csr_array] = []

    def sampler(forbidden: sparse.csr_array) -> NegativeSampler:
        seen.append(forbidden)
        return NegativeSampler(forbidden)

    monkeypatch.setattr(bpr, "NegativeSampler", sampler)
    SampledGraphBPR(LightGCN(**FEW), threshold=0.3).fit(log, rng=0)
    expected = NodeCopying(Jaccard()).fit(log).expected_adjacency().toarray()
    wanted = (log.matrix.toarray() > 0) | (expected > 0.3)
    assert not wanted.all(axis=1).any()
    assert np.array_equal(seen[0].toarray(), wanted)
    seen.clear()
    SampledGraphBPR(LightGCN(**FEW), threshold=0.3, n_graphs=5).fit(log, rng=0)
    estimate = NodeCopying(Jaccard()).fit(log).monte_carlo_adjacency(5, rng=child(seed_sequence(0), 1))
    assert np.array_equal(seen[0].toarray(), (log.matrix.toarray() > 0) | (estimate.toarray() > 0.3))


def test_a_threshold_nobody_reaches_is_algorithm_3() -> None:
    log = tastes()
    ensemble = EnsembleBPR(LightGCN(**FEW)).fit(log, rng=0)
    sampled = SampledGraphBPR(LightGCN(**FEW), threshold=1.0).fit(log, rng=0)
    assert np.array_equal(sampled.score(), ensemble.score())
    observed = SampledGraphBPR(LightGCN(**FEW), threshold=1.0, test_graph="observed").fit(log, rng=0)
    plain = LightGCN(**FEW).fit(log, rng=child(seed_sequence(0), 0))
    assert np.array_equal(observed.score(), plain.score())


def test_the_graph_at_test_can_be_changed_after_training(tmp_path: Path) -> None:
    log = tastes()
    copied = SampledGraphBPR(LightGCN(**FEW), threshold=0.3).fit(log, rng=0)
    observed = SampledGraphBPR(LightGCN(**FEW), threshold=0.3, test_graph="observed").fit(log, rng=0)
    scores = copied.score()
    copied.save(tmp_path / "both.npz")
    for model in (copied, load(tmp_path / "both.npz")):
        model.test_graph = "observed"  # type: ignore[attr-defined]
        assert np.array_equal(model.score(), observed.score())
    observed.test_graph = "copied"
    assert np.array_equal(observed.score(), scores)
    assert not np.array_equal(copied.score(), scores)


@pytest.mark.parametrize("n_graphs", [None, 4])
def test_a_user_may_keep_the_own_items(n_graphs: int | None) -> None:
    """Always: the base itself. Sometimes: its scores on the graphs of a model that keeps."""
    log = tastes()
    base = LightGCN(**FEW).fit(log, rng=5)
    always = EnsembleBPR(base, n_graphs=n_graphs, keep=1.0).fit(log, rng=7)
    np.testing.assert_allclose(always.score(), base.score(), rtol=1e-4, atol=1e-6)
    sometimes = EnsembleBPR(base, n_graphs=n_graphs, keep=0.5).fit(log, rng=7)
    model = NodeCopying(Jaccard(), keep=0.5).fit(log)
    graphs = [one.matrix for one in model.sample_many(n_graphs or 0, rng=child(seed_sequence(7), 1))]
    embedded = [base.embed(one) for one in graphs or [model.expected_adjacency().tocsr()]]
    scores = np.mean([users @ items.T for users, items in embedded], axis=0)
    np.testing.assert_allclose(sometimes.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


def test_the_threshold_is_chosen_on_validation() -> None:
    log = tastes()
    draws = np.random.default_rng(1)
    validation = log.with_rows(type(log)(draws.random((60, 24)) < 0.1).rows)
    chosen = SampledGraphBPR(LightGCN(**FEW), thresholds=(0.1, 0.3, 0.6)).fit(
        log, validation=validation, rng=0
    )
    recalls = {}
    for threshold in (0.1, 0.3, 0.6):
        one = SampledGraphBPR(LightGCN(**FEW), threshold=threshold).fit(log, validation=validation, rng=0)
        recalls[threshold] = one.evaluate(validation, k=[20])["recall@20"]
        if threshold == chosen.threshold_:
            assert np.array_equal(one.score(), chosen.score())
    assert chosen.threshold_ in recalls
    assert recalls[chosen.threshold_] == max(recalls.values())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EnsembleBPR(EASE()), r"base of EnsembleBPR must be a network such as LightGCN\(\); got EASE"),  # type: ignore[arg-type]
        (EnsembleBPR(LightGCN(), n_graphs=0), "n_graphs of EnsembleBPR must be an integer of at least 1"),
        (EnsembleBPR(LightGCN(), average="ranks"), "average of EnsembleBPR must be one of"),
        (EnsembleBPR(LightGCN(), keep=1.5), "keep of EnsembleBPR must be a number between 0 and 1"),
        (EnsembleBPR(LightGCN(layers=0)), "layers of LightGCN must be"),
        (EnsembleBPR(LightGCN(), law="same"), "law of NodeCopying must be a donor law"),
        (
            SampledGraphBPR(LightGCN(), threshold=2.0),
            "threshold of SampledGraphBPR must be a number between 0",
        ),
        (SampledGraphBPR(LightGCN(), thresholds=()), "thresholds of SampledGraphBPR must hold at least one"),
        (SampledGraphBPR(LightGCN()), "threshold of SampledGraphBPR must be given if there is no validation"),
        (SampledGraphBPR(LightGCN(), test_graph="x"), "test_graph of SampledGraphBPR must be one of"),
    ],
)
def test_wrong_settings(model: EnsembleBPR, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from nodecopy import Jaccard, NodeCopying
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, EnsembleBPR, LightGCN
from nodecopy.recommend import ensembles as ensemble_bpr
from nodecopy.recommend.ensembles import EnsembleSeeds
from tests.contracts.recommenders import tastes

SHORT: dict[str, Any] = {"n_factors": 8, "n_epochs": 4, "batch_size": 64, "learning_rate": 0.02}
HAS_HISTORY = np.arange(59)


def test_a_fitted_base_is_used_as_it_is() -> None:
    """A base fitted with the child seed gives the same scores as an unfitted one, and stays unchanged."""
    log = tastes()
    unfitted = EnsembleBPR(LightGCN(**SHORT)).fit(log, rng=0)
    base = LightGCN(**SHORT).fit(log, rng=child(seed_sequence(0), EnsembleSeeds.NETWORK))
    before = base.score()
    assert np.array_equal(EnsembleBPR(base).fit(log, rng=0).score(), unfitted.score())
    assert np.array_equal(base.score(), before)
    assert not np.array_equal(unfitted.score(), before)


def test_scores_are_means_over_samples() -> None:
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    rule = Jaccard(include_self=False, exponent=2.0, max_donors=10)
    fitted = EnsembleBPR(base, rule, n_graphs=3).fit(log, rng=7)
    samples = NodeCopying(rule).fit(log).sample_many(3, rng=child(seed_sequence(7), EnsembleSeeds.GRAPHS))
    scores = np.mean(
        [users @ items.T for users, items in (base.embed(sample.matrix) for sample in samples)], axis=0
    )
    np.testing.assert_allclose(fitted.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


def test_the_expected_graph_is_the_default() -> None:
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    fitted = EnsembleBPR(base).fit(log, rng=7)
    users, items = base.embed(NodeCopying(Jaccard()).fit(log).expected_adjacency().tocsr())
    np.testing.assert_allclose(fitted.score()[HAS_HISTORY], (users @ items.T)[HAS_HISTORY], rtol=1e-5)


def test_mean_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score is the mean over graphs and items j of sigma(s_i - s_j), also in small blocks."""
    monkeypatch.setattr(ensemble_bpr, "MAX_BLOCK_PAIRS", 100)
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    fitted = EnsembleBPR(base, n_graphs=2, average="probabilities").fit(log, rng=7)
    for user in (0, 17):
        graphs = [users[user] @ items.T for users, items in zip(*fitted.embedding_stacks(), strict=True)]
        expected = [
            np.mean([special.expit(scores[item] - scores[other]) for scores in graphs for other in range(24)])
            for item in range(24)
        ]
        np.testing.assert_allclose(fitted.score(log.user_ids[[user]])[0], expected, rtol=1e-5)


@pytest.mark.parametrize("n_graphs", [None, 4])
def test_users_keep_their_own_items(n_graphs: int | None) -> None:
    """With keep=1 scores are those of the base; with keep=0.5, those on graphs of a model that keeps."""
    log = tastes()
    base = LightGCN(**SHORT).fit(log, rng=5)
    always = EnsembleBPR(base, n_graphs=n_graphs, keep=1.0).fit(log, rng=7)
    np.testing.assert_allclose(always.score(), base.score(), rtol=1e-4, atol=1e-6)
    half = EnsembleBPR(base, n_graphs=n_graphs, keep=0.5).fit(log, rng=7)
    model = NodeCopying(Jaccard(), keep=0.5).fit(log)
    graph_seed = child(seed_sequence(7), EnsembleSeeds.GRAPHS)
    graphs = [sample.matrix for sample in model.sample_many(n_graphs or 0, rng=graph_seed)]
    embeddings = [base.embed(graph) for graph in graphs or [model.expected_adjacency().tocsr()]]
    scores = np.mean([users @ items.T for users, items in embeddings], axis=0)
    np.testing.assert_allclose(half.score()[HAS_HISTORY], scores[HAS_HISTORY], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EnsembleBPR(EASE()), r"base of EnsembleBPR must be a network such as LightGCN\(\); got EASE"),  # type: ignore[arg-type]
        (EnsembleBPR(LightGCN(), n_graphs=0), "n_graphs of EnsembleBPR must be an integer of at least 1"),
        (EnsembleBPR(LightGCN(), average="ranks"), "average of EnsembleBPR must be one of"),
        (EnsembleBPR(LightGCN(), keep=1.5), "keep of EnsembleBPR must be a number between 0 and 1"),
        (EnsembleBPR(LightGCN(n_layers=0)), "n_layers of LightGCN must be"),
        (EnsembleBPR(LightGCN(), donors="same"), "donors of NodeCopying must be a donor rule"),
    ],
)
def test_wrong_parameters(model: EnsembleBPR, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)

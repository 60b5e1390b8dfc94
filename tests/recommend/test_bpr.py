"""The contract on networks trained by pairs, the training loop, the networks and negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nodecopy
from nodecopy import Interactions, Jaccard, NodeCopying
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.recommend import BPRMF, EASE, MGCCF, EnsembleBPR, LightGCN, Recommender, SampledGraphBPR, bpr
from nodecopy.recommend.baselines import above_threshold
from nodecopy.recommend.bpr import (
    GRAPHS,
    NETWORK,
    SIMILARITY_DEGREE,
    WEIGHTS,
    NegativeSampler,
    forbid_likely_pairs,
    validation_recall,
)
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes
from tests.strategies import matrices

SHORT: dict[str, Any] = {"n_factors": 8, "n_epochs": 20, "batch_size": 64, "learning_rate": 0.02}
MF = SHORT | {"learning_rate": 0.1, "regularisation": 0.0}
NETWORKS: dict[str, Recommender] = {
    "bpr-mf": BPRMF(**MF),
    "light-gcn": LightGCN(**SHORT),
    "mgccf": MGCCF(**SHORT),
    "mgccf-shallow": MGCCF(**SHORT, dropout=0.0, n_layers=1),
    "ensemble": EnsembleBPR(LightGCN(**SHORT)),
    "ensemble-samples": EnsembleBPR(MGCCF(**SHORT), n_graphs=3),
    "sampled-graph": SampledGraphBPR(LightGCN(**SHORT), threshold=0.3),
    "sampled-graph-samples": SampledGraphBPR(BPRMF(**MF), n_graphs=4, threshold=0.5, test_graph="observed"),
}


class TestNetworks(RecommenderContract):
    scores_new_users = False
    draws = True
    recommenders = NETWORKS
    min_own_group = 0.5  # of 59 users, by chance with a probability below 0.01


def validation_table(log: Interactions) -> Interactions:
    draws = np.random.default_rng(1)
    return log.with_rows(Interactions(draws.random((60, 24)) < 0.1).rows).difference(log)


def test_one_step_of_training() -> None:
    """One user, two items, one batch: the first step of Adam moves each weight by the learning rate."""
    log = Interactions([[1, 0]])
    model = BPRMF(n_factors=3, n_epochs=1, learning_rate=0.1, regularisation=0.0).fit(log, rng=3)
    network = model.build_network(log)
    start = np.random.SeedSequence(3, spawn_key=(WEIGHTS,)).generate_state(1)[0]
    network.initialise(torch.Generator().manual_seed(int(start)))
    free = network.free.detach().numpy()
    slope = -1 / (1 + np.exp(free[0] @ (free[1] - free[2])))
    gradient = slope * np.stack([free[1] - free[2], free[0], -free[0]])
    np.testing.assert_allclose(model.weights_["free"], free - 0.1 * np.sign(gradient), atol=1e-4)


def test_the_best_weights_on_validation_are_kept() -> None:
    log = tastes()
    options = SHORT | {"n_epochs": 40, "evaluate_every": 5, "patience": 2}
    stopped = BPRMF(**options).fit(log, validation=validation_table(log), rng=0)
    assert stopped.n_epochs_ % 5 == 0
    assert 0 < stopped.n_epochs_ < 40
    shorter = BPRMF(**options | {"n_epochs": stopped.n_epochs_}).fit(log, rng=0)
    assert np.array_equal(shorter.score(), stopped.score())


def test_validation_recall_is_at_20_or_the_number_of_items() -> None:
    log = tastes()
    validation = validation_table(log)
    model = BPRMF(**SHORT).fit(log, rng=0)
    users, items = model.user_embeddings_, model.item_embeddings_
    recall = validation_recall(lambda rows: users[rows] @ items.T, log, validation)
    assert recall == pytest.approx(model.evaluate(validation, metrics=["recall@20"])["recall@20"], abs=0.02)
    few, other = Interactions([[1, 0, 0]]), Interactions([[0, 0, 1]])
    assert validation_recall(lambda rows: np.array([[0.0, 1.0, 0.5]]), few, other) == 1.0


@pytest.mark.parametrize("kind", [BPRMF, LightGCN, MGCCF])
def test_embeddings_on_other_graphs(kind: Any, tmp_path: Path) -> None:
    """The training graph is the default; a loaded network embeds another graph in the same way."""
    log = tastes()
    fitted = kind(n_factors=4, n_epochs=1).fit(log, rng=0)
    assert np.array_equal(fitted.embed()[0], fitted.user_embeddings_)
    fitted.save(tmp_path / "model.npz")
    loaded, other = nodecopy.load(tmp_path / "model.npz"), log.matrix[::-1]
    for part, same in zip(loaded.embed(other), fitted.embed(other), strict=True):
        assert np.array_equal(part, same)
    if kind is BPRMF:
        assert np.array_equal(np.concatenate(fitted.embed(other)), fitted.weights_["free"])


def test_a_user_with_all_items_teaches_nothing() -> None:
    """The pairs of such a user have no negatives: the other users' embeddings are learnt without them."""
    log = Interactions([[1, 1, 1], [1, 0, 0], [0, 1, 0]])
    fitted = BPRMF(**SHORT | {"regularisation": 0.0}).fit(log, rng=0)
    network = fitted.build_network(log)
    start = np.random.SeedSequence(0, spawn_key=(WEIGHTS,)).generate_state(1)[0]
    network.initialise(torch.Generator().manual_seed(int(start)))
    moved = fitted.weights_["free"] != network.free.detach().numpy()
    assert not moved[0].any()
    assert moved[1:3].all()


def test_diverging_training() -> None:
    with pytest.raises(InputError, match="learning_rate must be smaller"):
        BPRMF(learning_rate=1e38, n_epochs=5).fit(tastes(), rng=0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LightGCN(n_layers=0), "n_layers of LightGCN must be an integer of at least 1; got 0"),
        (EnsembleBPR(EASE()), r"base of EnsembleBPR must be a network such as LightGCN\(\); got EASE"),  # type: ignore[arg-type]
        (EnsembleBPR(LightGCN(n_layers=0)), "n_layers of LightGCN must be"),
        (EnsembleBPR(LightGCN(), donors="same"), "donors of NodeCopying must be one of"),
    ],
)
def test_wrong_parameters(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", [BPRMF, LightGCN, MGCCF])
def test_cuda(kind: Any) -> None:
    fitted = kind(**SHORT, device="cuda").fit(tastes(), rng=0)
    assert share_of_own_group(fitted) > 0.7


def mean_of_powers(A: Any, free: Any, n_layers: int) -> Any:
    """Return the embeddings of LightGCN by powers of the dense propagation matrix."""
    n_users, n_items = A.shape
    both = np.block([[np.zeros((n_users, n_users)), A], [A.T, np.zeros((n_items, n_items))]])
    degrees = both.sum(axis=1)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-12)), 0)
    step = scale[:, None] * both * scale
    return sum(np.linalg.matrix_power(step, power) @ free for power in range(n_layers + 1)) / (n_layers + 1)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_embeddings_are_means_of_powers(n_layers: int) -> None:
    """On the observed graph and on one of probabilities."""
    log = tastes()
    fitted = LightGCN(n_factors=8, n_epochs=4, batch_size=64, n_layers=n_layers).fit(log, rng=0)
    free = fitted.weights_["free"].astype(float)
    draws = np.random.default_rng(0)
    for A in (log.matrix.toarray(), draws.random((60, 24)) * (draws.random((60, 24)) < 0.5)):
        embeddings = np.concatenate(fitted.embed(sparse.csr_array(A)))
        np.testing.assert_allclose(embeddings, mean_of_powers(A, free, n_layers), atol=1e-5)


def test_embeddings_of_mgccf_by_its_equations() -> None:
    log = tastes()
    model = MGCCF(n_factors=8, n_epochs=4, batch_size=64, n_layers=2)
    fitted = model.fit(log, rng=0)
    weights = {name: weight.astype(float) for name, weight in fitted.weights_.items()}
    A = log.matrix.toarray().astype(float)

    def mean(matrix: Any, values: Any) -> Any:
        return matrix @ values / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12)

    e = [weights["free"][:60], weights["free"][60:]]
    sides = [A, A.T]
    h = list(e)
    for layer in range(2):
        n = [np.tanh(mean(sides[s], h[1 - s]) @ weights[f"neighbour.{2 * layer + s}"]) for s in (0, 1)]
        h = [np.tanh(np.hstack([h[s], n[s]]) @ weights[f"combine.{2 * layer + s}"]) for s in (0, 1)]
    for side in (0, 1):
        similar = above_threshold(sparse.csr_array(sides[side]), SIMILARITY_DEGREE).toarray()
        z = np.tanh(mean(similar, e[side]) @ weights[f"similar.{side}"])
        s = np.tanh(e[side] @ weights[f"skip.{side}"])
        np.testing.assert_allclose(fitted.embed()[side], h[side] + z + s, atol=1e-5)


class Ranks:
    """A generator that returns given ranks."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks

    def integers(self, sizes: np.ndarray) -> np.ndarray:
        assert (np.array(self.ranks) < sizes).all()
        return np.array(self.ranks)


@given(matrices((4, 7)))
def test_every_rank_is_the_next_allowed_item(forbidden: sparse.csr_array) -> None:
    sampler = NegativeSampler(forbidden)
    for user, row in enumerate(forbidden.toarray()):
        allowed = np.flatnonzero(row == 0)
        assert sampler.pool_sizes[user] == len(allowed)
        users = np.full(len(allowed), user)
        items = sampler.draw(users, Ranks(list(range(len(allowed)))))  # type: ignore[arg-type]
        assert items.tolist() == allowed.tolist()


def test_uniform_over_the_pool() -> None:
    """20,000 draws from 3 items: each count is within 5 standard deviations (67) of a third."""
    forbidden = sparse.csr_array(np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0]]))
    items = NegativeSampler(forbidden).draw(np.zeros(20_000, int), np.random.default_rng(0))
    counts = np.bincount(items, minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert abs(counts[[1, 3, 4]] - 20_000 / 3).max() < 5 * 67


def test_unsorted_and_repeated_entries() -> None:
    forbidden = sparse.csr_array((np.ones(4), np.array([3, 0, 3, 1]), np.array([0, 4])), shape=(1, 4))
    sampler = NegativeSampler(forbidden)
    assert sampler.pool_sizes.tolist() == [1]
    assert sampler.draw(np.array([0, 0]), np.random.default_rng(0)).tolist() == [2, 2]
    assert forbidden.indices.tolist() == [3, 0, 3, 1]


@given(st.integers(0, 2**32))
def test_every_user_keeps_some_negatives(seed: int) -> None:
    draws = np.random.default_rng(seed)
    observed, likely = draws.random((5, 3)) < 0.3, draws.random((5, 3)) < 0.8
    forbidden = forbid_likely_pairs(sparse.csr_array(observed), sparse.csr_array(likely)).toarray()
    for user in range(5):
        both = observed[user] | likely[user]
        assert np.array_equal(forbidden[user], observed[user] if both.all() else both)


SHORTER = SHORT | {"n_epochs": 4}
HAS_HISTORY = np.arange(59)


def test_a_fitted_base_is_used_as_it_is() -> None:
    """A base fitted with the child seed gives the same scores as an unfitted one, and stays unchanged."""
    log = tastes()
    unfitted = EnsembleBPR(LightGCN(**SHORTER)).fit(log, rng=0)
    base = LightGCN(**SHORTER).fit(log, rng=child(seed_sequence(0), NETWORK))
    before = base.score()
    assert np.array_equal(EnsembleBPR(base).fit(log, rng=0).score(), unfitted.score())
    assert np.array_equal(base.score(), before)
    assert not np.array_equal(unfitted.score(), before)


def test_scores_are_means_over_samples() -> None:
    log = tastes()
    base = LightGCN(**SHORTER).fit(log, rng=5)
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
    base = LightGCN(**SHORTER).fit(log, rng=5)
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
    SampledGraphBPR(LightGCN(**SHORTER), threshold=0.3).fit(log, rng=0)
    model = NodeCopying(Jaccard()).fit(log)
    expected = (log.matrix.toarray() > 0) | (model.expected_adjacency().toarray() > 0.3)
    assert not expected.all(axis=1).any()
    assert np.array_equal(forbidden_pairs.pop().toarray(), expected)
    SampledGraphBPR(LightGCN(**SHORTER), threshold=0.3, n_graphs=5).fit(log, rng=0)
    estimate = model.monte_carlo_adjacency(5, rng=child(seed_sequence(0), GRAPHS)).toarray()
    assert np.array_equal(forbidden_pairs.pop().toarray(), (log.matrix.toarray() > 0) | (estimate > 0.3))


def test_a_threshold_of_1_is_algorithm_3() -> None:
    log = tastes()
    ensemble = EnsembleBPR(LightGCN(**SHORTER)).fit(log, rng=0)
    sampled = SampledGraphBPR(LightGCN(**SHORTER), threshold=1.0).fit(log, rng=0)
    assert np.array_equal(sampled.score(), ensemble.score())
    observed = SampledGraphBPR(LightGCN(**SHORTER), threshold=1.0, test_graph="observed").fit(log, rng=0)
    plain = LightGCN(**SHORTER).fit(log, rng=child(seed_sequence(0), NETWORK))
    assert np.array_equal(observed.score(), plain.score())


def test_the_test_graph_can_be_changed_after_training(tmp_path: Path) -> None:
    log = tastes()
    copied = SampledGraphBPR(LightGCN(**SHORTER), threshold=0.3).fit(log, rng=0)
    observed = SampledGraphBPR(LightGCN(**SHORTER), threshold=0.3, test_graph="observed").fit(log, rng=0)
    scores = copied.score()
    copied.save(tmp_path / "both.npz")
    for model in (copied, nodecopy.load(tmp_path / "both.npz")):
        model.set_params(test_graph="observed")
        assert np.array_equal(model.score(), observed.score())
    observed.set_params(test_graph="copied")
    assert np.array_equal(observed.score(), scores)
    assert not np.array_equal(copied.score(), scores)

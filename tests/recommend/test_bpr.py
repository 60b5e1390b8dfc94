"""The contract on networks trained by pairs, and the training loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import BPRMF, MGCCF, EnsembleBPR, LightGCN, Recommender, SampledGraphBPR
from nodecopy.recommend.bpr import BPRRecommender, BPRSeeds, validation_recall
from tests.contracts.recommenders import RecommenderContract, share_of_own_group, tastes

SHORT: dict[str, Any] = {"n_factors": 8, "n_epochs": 20, "batch_size": 64, "learning_rate": 0.02}
MF = SHORT | {"learning_rate": 0.1, "regularisation": 0.0}
NETWORKS: dict[str, Recommender] = {
    "bpr-mf": BPRMF(**MF),
    "light-gcn": LightGCN(**SHORT),
    "mgccf": MGCCF(**SHORT),
    "mgccf-concatenation": MGCCF(**SHORT, fusion="concatenation", dropout=0.0, n_layers=1),
    "ensemble": EnsembleBPR(LightGCN(**SHORT)),
    "ensemble-samples": EnsembleBPR(MGCCF(**SHORT), n_graphs=3, average="probabilities"),
    "sampled-graph": SampledGraphBPR(LightGCN(**SHORT), threshold=0.3),
    "sampled-graph-samples": SampledGraphBPR(BPRMF(**MF), n_graphs=4, threshold=0.5, test_graph="observed"),
}


class TestNetworks(RecommenderContract):
    scores_new_users = False
    draws = True

    @pytest.fixture(scope="class", params=NETWORKS)
    @classmethod
    def recommender(cls, request: pytest.FixtureRequest) -> Recommender:
        return NETWORKS[request.param]

    def test_own_group_first(self, fitted: Recommender) -> None:
        """A third by chance; more than half of 59 users by chance has a probability below 0.01."""
        assert share_of_own_group(fitted) > 0.5


def validation_table(log: Interactions) -> Interactions:
    draws = np.random.default_rng(1)
    return log.with_rows(Interactions(draws.random((60, 24)) < 0.1).rows).difference(log)


def test_one_step_of_training() -> None:
    """One user, two items, one batch: the first step of Adam moves each weight by the learning rate."""
    log = Interactions([[1, 0]])
    model = BPRMF(n_factors=3, n_epochs=1, learning_rate=0.1, regularisation=0.0).fit(log, rng=3)
    network = model.build_network(log)
    start = np.random.SeedSequence(3, spawn_key=(BPRSeeds.WEIGHTS,)).generate_state(1)[0]
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


def test_embed_on_the_training_graph_is_the_default() -> None:
    fitted = LightGCN(**SHORT).fit(tastes(), rng=0)
    users, items = fitted.embed()
    assert np.array_equal(users, fitted.user_embeddings_)
    assert np.array_equal(items, fitted.item_embeddings_)


def test_a_user_with_all_items_teaches_nothing() -> None:
    """The pairs of such a user have no negatives: the other users' embeddings are learnt without them."""
    log = Interactions([[1, 1, 1], [1, 0, 0], [0, 1, 0]])
    fitted = BPRMF(**SHORT | {"regularisation": 0.0}).fit(log, rng=0)
    network = fitted.build_network(log)
    start = np.random.SeedSequence(0, spawn_key=(BPRSeeds.WEIGHTS,)).generate_state(1)[0]
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
        (BPRMF(n_factors=0), "n_factors of BPRMF must be an integer of at least 1; got 0"),
        (BPRMF(evaluate_every=0), "evaluate_every of BPRMF must be an integer of at least 1; got 0"),
        (BPRMF(device="abacus"), "abacus"),
        (LightGCN(learning_rate=-1.0), "learning_rate of LightGCN must be"),
    ],
)
def test_wrong_parameters(model: BPRRecommender, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", [BPRMF, LightGCN, MGCCF])
def test_cuda(kind: Any) -> None:
    fitted = kind(**SHORT, device="cuda").fit(tastes(), rng=0)
    assert share_of_own_group(fitted) > 0.7

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import BPRMF, MGCCF, EnsembleBPR, LightGCN, Recommender, SampledGraphBPR
from nodecopy.recommend.bpr import BPRRecommender
from nodecopy.recommend.similarity import above_threshold
from tests.contracts.recommenders import RecommenderContract, tastes
from tests.recommend.test_contract import own_group

FEW: dict[str, Any] = {"size": 8, "epochs": 20, "batch_size": 64, "learning_rate": 0.02}
MF = FEW | {"learning_rate": 0.1, "regularisation": 0.0}
TRAINED: dict[str, Recommender] = {
    "bpr-mf": BPRMF(**MF),
    "light-gcn": LightGCN(**FEW),
    "mgccf": MGCCF(**FEW),
    "mgccf-concatenation": MGCCF(**FEW, fusion="concatenation", dropout=0.0, layers=1),
    "ensemble": EnsembleBPR(LightGCN(**FEW)),
    "ensemble-samples": EnsembleBPR(MGCCF(**FEW), n_graphs=3, average="probabilities"),
    "sampled-graph": SampledGraphBPR(LightGCN(**FEW), threshold=0.3),
    "sampled-graph-samples": SampledGraphBPR(BPRMF(**MF), n_graphs=4, threshold=0.5, test_graph="observed"),
}


class TestTrained(RecommenderContract):
    scores_new_users = False
    draws = True

    @pytest.fixture(scope="class", params=TRAINED)
    @classmethod
    def recommender(cls, request: pytest.FixtureRequest) -> Recommender:
        return TRAINED[request.param]

    def test_own_group_first(self, fitted: Recommender) -> None:
        """A third by chance; more than half of 59 users by chance has a probability below 0.01."""
        assert own_group(fitted) > 0.5


def dense_light_gcn(A: Any, free: Any, layers: int) -> Any:
    n_users, n_items = A.shape
    both = np.block([[np.zeros((n_users, n_users)), A], [A.T, np.zeros((n_items, n_items))]])
    degrees = both.sum(axis=1)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-12)), 0)
    step = scale[:, None] * both * scale
    return sum(np.linalg.matrix_power(step, power) @ free for power in range(layers + 1)) / (layers + 1)


@pytest.mark.parametrize("layers", [1, 3])
def test_light_gcn_is_a_mean_of_powers(layers: int) -> None:
    """On the observed graph and on one of probabilities."""
    log = tastes()
    fitted = LightGCN(**FEW, layers=layers).fit(log, rng=0)
    free = fitted._weights["free"].astype(float)
    draws = np.random.default_rng(0)
    for A in (log.matrix.toarray(), draws.random((60, 24)) * (draws.random((60, 24)) < 0.5)):
        found = np.concatenate(fitted.embed(sparse.csr_array(A)))
        np.testing.assert_allclose(found, dense_light_gcn(A, free, layers), atol=1e-5)
    np.testing.assert_allclose(np.concatenate(fitted.embed()), np.concatenate([fitted._users, fitted._items]))


def test_mgccf_by_its_equations() -> None:
    log = tastes()
    fitted = MGCCF(**FEW, layers=2, similar=4.0).fit(log, rng=0)
    weights = {name: one.astype(float) for name, one in fitted._weights.items()}
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
        alike = above_threshold(sparse.csr_array(sides[side]), 4.0).toarray()
        z = np.tanh(mean(alike, e[side]) @ weights[f"similar.{side}"])
        s = np.tanh(e[side] @ weights[f"skip.{side}"])
        np.testing.assert_allclose(fitted.embed()[side], h[side] + z + s, atol=1e-5)


def test_one_step_of_bpr_by_hand() -> None:
    """One user, two items, one batch: the first step of Adam moves each weight by the learning rate."""
    log = Interactions([[1, 0]])
    model = BPRMF(size=3, epochs=1, learning_rate=0.1, regularisation=0.0).fit(log, rng=3)
    network = model._network(log)
    start = np.random.SeedSequence(3, spawn_key=(0,)).generate_state(1)[0]
    network.initialise(torch.Generator().manual_seed(int(start)))
    free = network.free.detach().numpy()
    slope = -1 / (1 + np.exp(free[0] @ (free[1] - free[2])))
    gradient = slope * np.stack([free[1] - free[2], free[0], -free[0]])
    np.testing.assert_allclose(model._weights["free"], free - 0.1 * np.sign(gradient), atol=1e-4)


def test_the_best_weights_on_validation_are_kept() -> None:
    log = tastes()
    draws = np.random.default_rng(1)
    validation = log.with_rows(Interactions(draws.random((60, 24)) < 0.1).rows)
    few = FEW | {"epochs": 40, "check_every": 5, "patience": 2}
    stopped = BPRMF(**few).fit(log, validation=validation, rng=0)
    assert stopped.n_epochs_ < 40
    alone = BPRMF(**few | {"epochs": stopped.n_epochs_}).fit(log, rng=0)
    assert np.array_equal(alone.score(), stopped.score())


def test_a_user_with_everything_teaches_nothing() -> None:
    log = Interactions([[1, 1, 1], [1, 0, 0], [0, 1, 0]])
    assert np.isfinite(BPRMF(**FEW).fit(log, rng=0).score()).all()


def test_numbers_that_are_not_finite() -> None:
    with pytest.raises(InputError, match="learning_rate must be smaller"):
        BPRMF(learning_rate=1e38, epochs=5).fit(tastes(), rng=0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BPRMF(size=0), "size of BPRMF must be an integer of at least 1; got 0"),
        (BPRMF(device="abacus"), "device must be 'cpu' or 'cuda'"),
        (LightGCN(layers=0), "layers of LightGCN must be"),
        (LightGCN(learning_rate=-1.0), "learning_rate of LightGCN must be"),
        (MGCCF(dropout=1.0), "dropout of MGCCF must be a number between 0 and 0.99"),
        (MGCCF(fusion="attention"), "fusion of MGCCF must be one of 'sum', 'concatenation'"),
    ],
)
def test_wrong_settings(model: BPRRecommender, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", [BPRMF, LightGCN, MGCCF])
def test_cuda_learns_the_same(kind: Any) -> None:
    fitted = kind(**FEW, device="cuda").fit(tastes(), rng=0)
    assert own_group(fitted) > 0.7

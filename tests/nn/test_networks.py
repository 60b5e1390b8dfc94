from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.nn.filters import FilterNetworks, FilterRecipe
from nodecopy.nn.networks import KIPF, Networks, TrainingConfig, draw_glorot, propagation_matrix
from nodecopy.nn.stack import LowRank, SparseStack, normalise_adjacency

CPU = torch.device("cpu")
rng = np.random.default_rng(0)
FEATURES = sparse.csr_array((rng.random((30, 12)) < 0.4).astype(np.float32))
SEEDS = [SeedSequence(number) for number in range(4)]
SHORT = replace(KIPF, n_hidden=5)


def draw_graph(seed: int) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((30, 30)) < 0.15, 1)
    return normalise_adjacency(sparse.csr_array((upper | upper.T).astype(np.float32)))


GRAPHS = [draw_graph(seed) for seed in range(4)]


def test_networks_from_weights_have_the_same_logits() -> None:
    recipe = replace(SHORT, bias=True, drop_edges=0.2)
    networks = Networks.initialise(recipe, SparseStack([FEATURES] * 4, CPU), 3, SEEDS)
    again = Networks(recipe, networks.features, networks.weights, networks.masks.keys)
    stack = SparseStack(GRAPHS, CPU)
    for step in (None, 40):
        assert torch.equal(again.logits(stack, None, step), networks.logits(stack, None, step))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"propagation": "far"}, "propagation must be one of 'none', 'convolution', 'pagerank'; got 'far'"),
        ({"features": "x"}, "features must be one of"),
        ({"n_hidden": 0}, "n_hidden must be an integer of at least 1; got 0"),
        ({"n_epochs": 0}, "n_epochs must be"),
        ({"n_epochs": 2.5}, "n_epochs must be an integer"),
        ({"patience": -1}, "patience must be an integer of at least 0"),
        ({"n_steps": -1}, "n_steps must be an integer of at least 0"),
        ({"dropout": 1.0}, "dropout must be a number between 0 and 0.99; got 1.0"),
        ({"drop_edges": -0.1}, "drop_edges must be"),
        ({"teleport": 1.5}, "teleport must be"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"weight_decay": -1}, "weight_decay must be"),
        ({"rank": 0}, "rank must be an integer of at least 1; got 0"),
        ({"rank": 3, "drop_edges": 0.1}, "drop_edges must be 0 with a rank"),
    ],
)
def test_wrong_recipes(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingConfig(**wrong)


def test_a_network_without_activation_is_linear() -> None:
    networks = Networks.initialise(
        replace(SHORT, activation="none"), SparseStack([FEATURES], CPU), 3, SEEDS[:1]
    )
    first, second = (weight[0].detach() for weight in networks.weights)
    dense = torch.from_numpy(GRAPHS[0].toarray())
    expected = dense @ dense @ torch.from_numpy(FEATURES.toarray()) @ (first @ second)
    logits = networks.logits(SparseStack([GRAPHS[0]], CPU), None, None)[0]
    torch.testing.assert_close(logits.detach(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=r"activation .* one of 'relu', 'leaky', 'none'; got 'tanh'"):
        TrainingConfig(activation="tanh")


def test_the_leaky_activation_has_a_slope_of_one_fifth() -> None:
    networks = Networks.initialise(
        replace(SHORT, activation="leaky"), SparseStack([FEATURES], CPU), 3, SEEDS[:1]
    )
    first, second = (weight[0].detach() for weight in networks.weights)
    dense = torch.from_numpy(GRAPHS[0].toarray())
    hidden = dense @ torch.from_numpy(FEATURES.toarray()) @ first
    expected = dense @ torch.where(hidden > 0, hidden, hidden / 5) @ second
    logits = networks.logits(SparseStack([GRAPHS[0]], CPU), None, None)[0]
    torch.testing.assert_close(logits.detach(), expected, rtol=1e-4, atol=1e-5)


def test_selected_networks_have_the_logits_of_their_models() -> None:
    recipe = replace(SHORT, bias=True, drop_edges=0.2)
    networks = Networks.initialise(recipe, SparseStack([FEATURES] * 4, CPU), 3, SEEDS)
    part = networks.select(slice(1, 3), FEATURES)
    for step in (None, 7):
        whole = networks.logits(SparseStack(GRAPHS, CPU), None, step)[1:3]
        selected = part.logits(SparseStack(GRAPHS[1:3], CPU), None, step)
        torch.testing.assert_close(selected, whole, rtol=1e-5, atol=1e-6)


def test_weight_decay_is_on_the_first_layer_or_on_all() -> None:
    stack = SparseStack([FEATURES], CPU)
    first, rest = Networks.initialise(SHORT, stack, 3, SEEDS[:1]).parameter_groups
    assert (first["weight_decay"], rest["weight_decay"]) == (5e-4, 0.0)
    _, rest = Networks.initialise(replace(SHORT, decay_all=True), stack, 3, SEEDS[:1]).parameter_groups
    assert rest["weight_decay"] == 5e-4


def test_propagation_matrices_follow_the_rank() -> None:
    adjacency = sparse.csr_array(np.eye(4, k=1, dtype=np.float32) + np.eye(4, k=-1, dtype=np.float32))
    plain = propagation_matrix(adjacency, KIPF)
    assert isinstance(plain, sparse.csr_array)
    assert np.array_equal(plain.toarray(), normalise_adjacency(adjacency).toarray())
    approximation = propagation_matrix(adjacency, replace(KIPF, rank=2))
    assert isinstance(approximation, LowRank)
    assert approximation.left.shape == (4, 2)


def test_recipes_know_their_networks() -> None:
    assert KIPF.network_type is Networks
    assert FilterRecipe().network_type is FilterNetworks


def test_glorot_weights_lie_within_their_limit() -> None:
    weights = draw_glorot([np.random.default_rng(0)], 40, 20, CPU).detach()
    limit = np.sqrt(6 / 60)
    assert 0.95 * limit < weights.abs().max().item() <= limit

"""The engine against plain torch: one network, dense matrices, the same masks and first weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy.nn.networks import KIPF, Networks, TrainingConfig
from nodecopy.nn.stack import HIDDEN, INPUT, SparseStack, normalise_adjacency
from nodecopy.nn.training import EarlyStopping, Targets, train

CPU = torch.device("cpu")
N_NODES, N_FEATURES, N_CLASSES = 30, 12, 3
draw = np.random.default_rng(0)
LABELS = np.arange(N_NODES) % N_CLASSES
FEATURES = sparse.csr_array((draw.random((N_NODES, N_FEATURES)) < 0.4).astype(np.float32))
SEEDS = [SeedSequence(number) for number in range(4)]
TRAIN = [np.sort(draw.permutation(N_NODES)[:size]) for size in (6, 9, 6, 4)]
WATCHED = [np.setdiff1d(np.arange(N_NODES), nodes)[:12] for nodes in TRAIN]
MLP = replace(KIPF, propagation="none")
APPNP = replace(KIPF, propagation="pagerank", weight_decay=5e-3)
SHORT = replace(KIPF, n_epochs=25, n_hidden=5, weight_decay=0.05)


def graph(seed: int) -> sparse.csr_array:
    chance = np.where(LABELS[:, None] == LABELS, 0.3, 0.05)
    upper = np.triu(np.random.default_rng(seed).random((N_NODES, N_NODES)) < chance, 1)
    return normalise_adjacency(sparse.csr_array((upper | upper.T).astype(np.float32)))


GRAPHS = [graph(seed) for seed in range(4)]


def trained(recipe: TrainingConfig, models: Sequence[int], *, stop_early: bool = False) -> Networks:
    """Networks of some of four problems that differ in graph, labelled nodes and seed."""
    stack = SparseStack([FEATURES] * len(models), CPU)
    networks = Networks.initialise(recipe, stack, N_CLASSES, [SEEDS[m] for m in models])
    targets, validation = (
        Targets([nodes[m] for m in models], [LABELS[nodes[m]] for m in models], CPU)
        for nodes in (TRAIN, WATCHED)
    )
    graphs = [GRAPHS[m] for m in models]
    early_stopping = EarlyStopping(networks, graphs, validation) if stop_early else None
    train(networks, graphs, targets, early_stopping=early_stopping)
    return networks


def weights(networks: Networks, model: int) -> list[Tensor]:
    return [weight[model].detach() for weight in networks.weights]


class Plain:
    """One GCN in plain torch, with the engine's masks."""

    def __init__(self, recipe: TrainingConfig, model: int) -> None:
        self.recipe, self.model = recipe, model
        self.engine = Networks.initialise(recipe, SparseStack([FEATURES], CPU), N_CLASSES, [SEEDS[model]])
        self.graph = torch.from_numpy(GRAPHS[model].toarray())
        self.parameters = [weight[0].detach().clone().requires_grad_() for weight in self.engine.weights]

    def logits(self, step: int | None) -> Tensor:
        first, second, *biases = self.parameters
        features, scale = torch.from_numpy(FEATURES.toarray()), torch.ones(N_NODES, self.recipe.n_hidden)
        if step is not None:
            masks = self.engine.masks
            rows = np.repeat(np.arange(N_NODES), np.diff(FEATURES.indptr))
            features[rows, FEATURES.indices] *= masks.draw(FEATURES.nnz, step=step, place=INPUT)[0]
            scale = masks.draw(scale.numel(), step=step, place=HIDDEN).view_as(scale)
        hidden = torch.relu(self.graph @ (features @ first) + (biases[0] if biases else 0)) * scale
        return self.graph @ (hidden @ second) + (biases[1] if biases else 0)

    def loss(self, nodes: Any, step: int | None) -> Tensor:
        return torch.nn.functional.cross_entropy(self.logits(step)[nodes], torch.from_numpy(LABELS[nodes]))

    def train(self) -> list[Tensor]:
        first, *others = self.parameters
        groups: list[dict[str, Any]] = [
            {"params": [first], "weight_decay": self.recipe.weight_decay},
            {"params": others, "weight_decay": 0},
        ]
        optimiser = torch.optim.Adam(groups, lr=self.recipe.learning_rate)
        best, best_loss, best_epoch = [], np.inf, 0
        for epoch in range(self.recipe.n_epochs):
            optimiser.zero_grad()
            self.loss(TRAIN[self.model], epoch).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            loss = self.loss(WATCHED[self.model], None).item()
            if loss < best_loss:
                best, best_loss, best_epoch = [p.detach().clone() for p in self.parameters], loss, epoch
            elif self.recipe.patience and epoch - best_epoch >= self.recipe.patience:
                break
        return [p.detach() for p in self.parameters] if not self.recipe.patience else best


@pytest.mark.parametrize("recipe", [SHORT, replace(SHORT, bias=True)], ids=["plain", "bias"])
def test_a_network_is_what_plain_torch_trains(recipe: TrainingConfig) -> None:
    """Among them that weight decay is on the first layer alone."""
    networks = trained(recipe, range(4))
    for model in range(4):
        torch.testing.assert_close(weights(networks, model), Plain(recipe, model).train(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_each_model_stops_on_its_own(patience: int) -> None:
    recipe = replace(SHORT, patience=patience, n_epochs=60, learning_rate=0.1)
    networks = trained(recipe, range(4), stop_early=True)
    for model in range(4):
        torch.testing.assert_close(weights(networks, model), Plain(recipe, model).train(), rtol=0, atol=1e-4)
        alone = trained(recipe, [model], stop_early=True)
        torch.testing.assert_close(weights(networks, model), weights(alone, 0), rtol=0, atol=1e-6)
    whole = trained(replace(recipe, patience=0), range(4))
    assert not any(torch.allclose(weights(networks, m)[0], weights(whole, m)[0]) for m in range(4))


@pytest.mark.parametrize(
    "recipe",
    [
        SHORT,
        replace(MLP, n_epochs=10),
        replace(APPNP, n_epochs=10, n_steps=3, n_hidden=6),
        replace(SHORT, drop_edges=0.3),
        replace(APPNP, n_epochs=10, n_steps=3, n_hidden=6, drop_edges=0.3),
    ],
    ids=["gcn", "mlp", "appnp", "gcn-drop-edges", "appnp-drop-edges"],
)
def test_a_model_of_many_is_the_model_alone(recipe: TrainingConfig) -> None:
    assert len({matrix.nnz for matrix in GRAPHS}) > 1
    networks = trained(recipe, range(4))
    for model in range(4):
        alone = trained(recipe, [model])
        torch.testing.assert_close(weights(networks, model), weights(alone, 0), rtol=0, atol=1e-6)


def test_models_whose_sizes_agree_are_the_same_bit_for_bit() -> None:
    """Models 0 and 2 have as many labelled nodes; their graphs differ.

    Sixteen hidden units, as in Kipf's settings: arrays then fill whole vector registers, whose
    arithmetic rounds otherwise than that of single numbers.
    """
    recipe = replace(SHORT, n_hidden=16)
    networks, alone = trained(recipe, [0, 2]), trained(recipe, [2])
    assert all(map(torch.equal, weights(networks, 1), weights(alone, 0)))

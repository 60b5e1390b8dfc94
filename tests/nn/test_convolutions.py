"""Compiled networks against their twins in torch: logits, training steps, changes of graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.nn.networks import KIPF, Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalise_adjacency
from nodecopy.nn.training import CompiledSteps, Targets, TorchSteps

CPU = torch.device("cpu")
N_NODES, N_CLASSES = 40, 3
rng = np.random.default_rng(0)
FEATURES = [sparse.csr_array(rng.random((N_NODES, 25)) * (rng.random((N_NODES, 25)) < 0.3)) for _ in range(2)]
SEEDS = [SeedSequence(number) for number in range(2)]
NODES = [np.array([3, 8, 11]), np.array([0, 20, 21, 39])]
RECIPES = {
    "kipf": KIPF,
    "bias": replace(KIPF, bias=True, decay_all=True, activation="leaky"),
    "features": replace(KIPF, drop_input=False, activation="none", n_hidden=21),
    "no dropout": replace(KIPF, dropout=0.0, n_hidden=5, weight_decay=0.1),
}


def draw_graphs(seed: int) -> list[sparse.csr_array]:
    draw = np.random.default_rng(seed)
    dense = [(draw.random((N_NODES, N_NODES)) < 0.05).astype(np.float32) for _ in range(2)]
    return [normalise_adjacency(sparse.csr_array(np.maximum(matrix, matrix.T))) for matrix in dense]


def build(recipe: Recipe) -> Networks:
    features = SparseStack([part.astype(np.float32) for part in FEATURES], CPU)
    networks = Networks.initialise(recipe, features, N_CLASSES, SEEDS)
    for bias in networks.weights[2:]:
        bias.data.uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
    return networks


def targets(kind: str) -> Targets:
    labels: list[Any] = [nodes % N_CLASSES for nodes in NODES]
    if kind == "soft":
        labels = [rng.dirichlet(np.ones(N_CLASSES), len(nodes)).astype(np.float32) for nodes in NODES]
    return Targets(NODES, labels, CPU, [np.arange(1.0, 1 + len(nodes)) for nodes in NODES])


@pytest.mark.parametrize("step", [None, 0, 17])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_logits_are_those_of_torch(recipe: Recipe, step: int | None) -> None:
    networks, graphs = build(recipe), draw_graphs(0)
    expected = networks.logits(SparseStack(graphs, CPU), None, step).detach()
    ours = [network.logits(step) for network in networks.compile(graphs)]
    torch.testing.assert_close(torch.stack(ours), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_steps_are_those_of_torch(recipe: Recipe, kind: str) -> None:
    """Also on other graphs after the tenth step, with what Adam knows from those before."""
    problem = targets(kind)
    trained = []
    for steps_type in (CompiledSteps, TorchSteps):
        networks = build(recipe)
        steps = steps_type(networks, draw_graphs(0), problem)
        for epoch in range(20):
            if epoch == 10:
                steps.change_graphs(draw_graphs(1))
            steps.take(epoch)
        trained.append([weight.detach() for weight in networks.weights])
    start = build(recipe).weights
    for ours, theirs, first in zip(*trained, start, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-5)
        assert (ours - first).abs().max() > 0.05


def test_nothing_but_what_the_labelled_nodes_depend_on_is_computed() -> None:
    """A path of 40 nodes: two hops around a labelled node are five nodes."""
    path = normalise_adjacency(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40)).tocsr())
    networks = build(KIPF)
    first, _ = networks.compile([path] * 2, [path[[10]], path[[0]]])
    assert first.nodes.tolist() == [9, 10, 11]
    assert len(first.features.starts) == 5

"""Compiled networks against their twins in torch: logits, training steps, changes of graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.nn.compiled import PageRank
from nodecopy.nn.networks import KIPF, Networks, TrainingConfig
from nodecopy.nn.stack import SparseStack, normalise_adjacency
from nodecopy.nn.training import CompiledSteps, EarlyStopping, Targets, TorchSteps, train

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
RECIPES |= {
    f"{propagation} {name}": replace(recipe, propagation=propagation, n_steps=3, teleport=0.2)
    for propagation in ("none", "pagerank")
    for name, recipe in RECIPES.items()
}


def draw_graphs(seed: int) -> list[sparse.csr_array]:
    """Draw an undirected and a directed graph."""
    draw = np.random.default_rng(seed)
    both, directed = ((draw.random((N_NODES, N_NODES)) < 0.05).astype(np.float32) for _ in range(2))
    matrices = np.maximum(both, both.T), directed
    return [normalise_adjacency(sparse.csr_array(matrix)) for matrix in matrices]


def build(recipe: TrainingConfig) -> Networks:
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
def test_logits_are_those_of_torch(recipe: TrainingConfig, step: int | None) -> None:
    networks, graphs = build(recipe), draw_graphs(0)
    expected = networks.logits(SparseStack(graphs, CPU), None, step).detach()
    ours = [network.logits(step) for network in networks.compile(graphs)]
    torch.testing.assert_close(torch.stack(ours), expected, rtol=1e-5, atol=1e-6)
    for network, nodes, logits in zip(networks.compile(graphs, NODES), NODES, expected, strict=True):
        torch.testing.assert_close(network.logits(step), logits[nodes], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_steps_are_those_of_torch(recipe: TrainingConfig, kind: str) -> None:
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
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        assert (ours - first).abs().max() > 0.05


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_trained_networks_do_not_depend_on_their_neighbours(recipe: TrainingConfig) -> None:
    """Bit for bit, also with the weights of the lowest validation loss."""
    recipe, graphs, problem = replace(recipe, n_epochs=30, patience=5), draw_graphs(0), targets("hard")
    together = build(recipe)
    validation = Targets(NODES[::-1], [nodes % N_CLASSES for nodes in NODES[::-1]], CPU)
    train(together, graphs, problem, early_stopping=EarlyStopping(together, graphs, validation))
    for model in range(2):
        one = slice(model, model + 1)
        alone = build(recipe).select(one, FEATURES[model].astype(np.float32))
        labels = [NODES[model] % N_CLASSES]
        problem = Targets(NODES[one], labels, CPU, [np.arange(1.0, 1 + len(NODES[model]))])
        validation = Targets(NODES[::-1][one], [NODES[1 - model] % N_CLASSES], CPU)
        train(alone, graphs[one], problem, early_stopping=EarlyStopping(alone, graphs[one], validation))
        for ours, theirs in zip(alone.weights, together.weights, strict=True):
            assert torch.equal(ours[0], theirs[model])


@pytest.mark.parametrize(("n_steps", "teleport"), [(0, 0.1), (1, 0.0), (4, 0.3), (3, 1.0)])
def test_pagerank_is_its_definition(n_steps: int, teleport: float) -> None:
    graph, values = draw_graphs(0)[1], rng.normal(size=(N_NODES, 16)).astype(np.float32)
    expected = values
    for _ in range(n_steps):
        expected = (1 - teleport) * (graph @ expected) + teleport * values
    np.testing.assert_allclose(
        PageRank(graph, n_steps, teleport).propagate(values.copy()), expected, rtol=1e-5, atol=1e-6
    )


def test_nothing_but_what_the_labelled_nodes_depend_on_is_computed() -> None:
    """A path of 40 nodes: two hops around a labelled node are five nodes."""
    path = normalise_adjacency(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40)).tocsr())
    first, _ = build(KIPF).compile([path] * 2, [np.array([10]), np.array([0])])
    assert first.nodes.tolist() == [9, 10, 11]
    assert len(first.features.starts) == 5
    perceptron, _ = build(RECIPES["none kipf"]).compile([], [np.array([10]), np.array([0])])
    assert len(perceptron.features.starts) == 1


@pytest.mark.parametrize(
    "changes", [{"propagation": "pagerank", "drop_edges": 0.1}, {"rank": 3}], ids=["edges", "rank"]
)
def test_torch_computes_what_changes_edges(changes: dict[str, Any]) -> None:
    assert not replace(KIPF, **changes).is_compiled(CPU)
    assert not KIPF.is_compiled(torch.device("cuda"))

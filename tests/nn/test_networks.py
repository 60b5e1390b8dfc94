"""Networks: configurations, logits, and compiled code against torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.nn import kernels
from nodecopy.nn.compiled import FourArrayCSR, compile_networks
from nodecopy.nn.networks import (
    KIPF,
    Masks,
    Networks,
    SparseStack,
    TrainingConfig,
    add_identity_features,
    check_features,
    draw_keys,
    normalise_adjacency,
)
from nodecopy.nn.training import CompiledSteps, EarlyStopping, LabelledNodes, Targets, TorchSteps, train

CPU = torch.device("cpu")
N_NODES, N_CLASSES = 40, 3
rng = np.random.default_rng(0)
FEATURES = [sparse.csr_array(rng.random((N_NODES, 25)) * (rng.random((N_NODES, 25)) < 0.3)) for _ in range(2)]
SEEDS = [SeedSequence(number) for number in range(2)]
KEYS = draw_keys([SeedSequence(number) for number in range(3)], CPU)
NODES = [np.array([3, 8, 11]), np.array([0, 20, 21, 39])]
CONFIGS = {
    "kipf": KIPF,
    "bias": replace(KIPF, bias=True, decay_all=True, activation="leaky"),
    "features": replace(KIPF, drop_input=False, activation="none", n_hidden=21),
    "no dropout": replace(KIPF, dropout=0.0, n_hidden=5, weight_decay=0.1),
}
CONFIGS |= {
    f"{propagation} {name}": replace(config, propagation=propagation, n_steps=3, teleport=0.2)
    for propagation in ("none", "pagerank")
    for name, config in CONFIGS.items()
}


def draw_graphs(seed: int) -> list[sparse.csr_array]:
    """Draw an undirected and a directed graph."""
    draw = np.random.default_rng(seed)
    both, directed = ((draw.random((N_NODES, N_NODES)) < 0.05).astype(np.float32) for _ in range(2))
    matrices = np.maximum(both, both.T), directed
    return [normalise_adjacency(sparse.csr_array(matrix)) for matrix in matrices]


def build(config: TrainingConfig) -> Networks:
    features = SparseStack([part.astype(np.float32) for part in FEATURES], CPU)
    networks = Networks.initialise(config, features, N_CLASSES, SEEDS)
    for bias in networks.weights[2:]:
        bias.data.uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
    return networks


def label(nodes: Any) -> LabelledNodes:
    return LabelledNodes(nodes, nodes % N_CLASSES, np.arange(1.0, 1 + len(nodes)))


def targets(kind: str) -> Targets:
    models = [label(nodes) for nodes in NODES]
    if kind == "soft":
        draws = (rng.dirichlet(np.ones(N_CLASSES), len(nodes)).astype(np.float32) for nodes in NODES)
        models = [model._replace(labels=soft) for model, soft in zip(models, draws, strict=True)]
    return Targets(models, CPU)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"propagation": "far"}, "propagation must be one of 'none', 'convolution', 'pagerank'; got 'far'"),
        ({"dropout": 1.0}, "dropout must be a number between 0 and 0.99; got 1.0"),
    ],
)
def test_wrong_configs(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingConfig(**wrong)


@pytest.mark.parametrize(("activation", "slope"), [("none", 1.0), ("leaky", 0.2), ("relu", 0.0)])
def test_logits_are_those_of_dense_matrices(activation: str, slope: float) -> None:
    networks, graphs = build(replace(KIPF, activation=activation)), draw_graphs(0)
    logits = networks.logits(SparseStack(graphs, CPU), None, None).detach()
    for model, graph in enumerate(graphs):
        first, second = (weight[model].detach().numpy() for weight in networks.weights)
        hidden = graph @ (FEATURES[model].astype(np.float32) @ first)
        expected = graph @ np.where(hidden > 0, hidden, slope * hidden) @ second
        np.testing.assert_allclose(logits[model], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("features", [None, np.zeros((3, 0))], ids=["none", "no columns"])
def test_features_are_needed_and_may_be_the_identity(features: Any) -> None:
    graph = Graph(np.eye(3, k=1), features, node_ids=["a", "b", "c"])
    identity: Any = add_identity_features(graph).features
    assert identity.toarray().tolist() == np.eye(3).tolist()
    with pytest.raises(InputError, match=r"must have .*feature"):
        check_features(graph)
    with_features = graph.replace(features=np.ones((3, 2)))
    assert add_identity_features(with_features) is with_features


@pytest.mark.parametrize("step", [None, 0, 17])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_logits_are_those_of_torch(config: TrainingConfig, step: int | None) -> None:
    networks, graphs = build(config), draw_graphs(0)
    expected = networks.logits(SparseStack(graphs, CPU), None, step).detach()
    ours = [network.logits(step) for network in compile_networks(networks, graphs)]
    torch.testing.assert_close(torch.stack(ours), expected, rtol=1e-5, atol=1e-6)
    for network, nodes, logits in zip(
        compile_networks(networks, graphs, NODES), NODES, expected, strict=True
    ):
        torch.testing.assert_close(network.logits(step), logits[nodes], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_steps_are_those_of_torch(config: TrainingConfig, kind: str) -> None:
    problem = targets(kind)
    trained = []
    for steps_type in (CompiledSteps, TorchSteps):
        networks = build(config)
        steps = steps_type(networks, draw_graphs(0), problem)
        for epoch in range(20):
            steps.take(epoch)
        trained.append([weight.detach() for weight in networks.weights])
    start = build(config).weights
    for ours, theirs, first in zip(*trained, start, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        assert (ours - first).abs().max() > 0.05


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_trained_networks_do_not_depend_on_their_neighbours(config: TrainingConfig) -> None:
    """Bit for bit, also with the weights of the lowest validation loss."""
    config, graphs, problem = replace(config, n_epochs=30, patience=5), draw_graphs(0), targets("hard")
    together = build(config)
    validation = Targets([label(nodes) for nodes in NODES[::-1]], CPU)
    train(together, graphs, problem, early_stopping=EarlyStopping(together, graphs, validation))
    for model in range(2):
        one = slice(model, model + 1)
        alone = build(config).select(one, FEATURES[model].astype(np.float32))
        problem = Targets([label(NODES[model])], CPU)
        validation = Targets([label(NODES[1 - model])], CPU)
        train(alone, graphs[one], problem, early_stopping=EarlyStopping(alone, graphs[one], validation))
        for ours, theirs in zip(alone.weights, together.weights, strict=True):
            assert torch.equal(ours[0], theirs[model])


def test_nothing_but_what_the_labelled_nodes_depend_on_is_computed() -> None:
    """A path of 40 nodes: two hops around a labelled node are five nodes."""
    path = normalise_adjacency(sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(40, 40)).tocsr())
    first, _ = compile_networks(build(KIPF), [path] * 2, [np.array([10]), np.array([0])])
    assert first.nodes.tolist() == [9, 10, 11]
    assert len(first.features.starts) == 5
    perceptron, _ = compile_networks(build(CONFIGS["none kipf"]), [], [np.array([10]), np.array([0])])
    assert len(perceptron.features.starts) == 1


@pytest.mark.parametrize("width", [1, 5, 16, 23, 48])
def test_products_are_those_of_scipy(width: int) -> None:
    matrix = sparse.csr_array(rng.normal(size=(7, 9)) * (rng.random((7, 9)) < 0.4)).astype(np.float32)
    rows = FourArrayCSR.from_csr(matrix)
    dense, other = (rng.normal(size=(n, width)).astype(np.float32) for n in (9, 7))
    product, transposed = (np.full((n, width), np.nan, np.float32) for n in (7, 9))
    kernels.multiply(*rows, dense, product)
    kernels.multiply_transpose(*rows, other, transposed)
    np.testing.assert_allclose(product, matrix @ dense, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(transposed, matrix.T @ other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", [0, 7, 2**20])
@pytest.mark.parametrize("place", [0, 1])
def test_masks_have_the_bits_of_torch(step: int, place: int) -> None:
    words, values = np.empty(251, np.uint32), np.ones(1001, np.float32)
    for key, expected in zip(KEYS.tolist(), Masks(KEYS, 0.4).draw(1001, step=step, place=place), strict=True):
        kernels.draw_words(key % 2**32, step, place, words)
        factors = np.empty_like(values)
        kernels.mask_values(values, words.view(np.uint8), round(256 * 0.4), factors)
        assert np.array_equal(factors, expected.numpy())

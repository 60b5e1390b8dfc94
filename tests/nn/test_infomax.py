from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy.nn.infomax import Infomax, prelu, train_infomax
from nodecopy.nn.stack import normalise_adjacency
from tests.contracts.classifiers import planted_graph

CPU = torch.device("cpu")


def matrices() -> tuple[sparse.csr_array, sparse.csr_array]:
    graph = planted_graph()
    return sparse.csr_array(np.asarray(graph.features)), normalise_adjacency(graph.adjacency)


def test_the_loss_is_that_of_pytorch_geometric() -> None:
    """Up to the weight of the corrupted outputs, which PyG adds and the authors average."""
    nn = pytest.importorskip("torch_geometric.nn")
    features, matrix = matrices()
    model = Infomax(features, matrix, 8, np.random.default_rng(0), CPU)
    permutation = torch.from_numpy(np.random.default_rng(1).permutation(60))
    theirs = nn.DeepGraphInfomax(
        8,
        encoder=lambda chosen: model.embed(chosen)[1],
        summary=lambda z, *_: z.mean(dim=0).sigmoid(),
        corruption=lambda _: permutation,
    )
    theirs.weight = torch.nn.Parameter(model.parameters[3][0].detach())
    expected = theirs.loss(*theirs(torch.arange(60))).item() / 2
    assert model.loss(permutation).item() == pytest.approx(expected, rel=1e-5)


def test_outputs_are_those_of_a_convolution() -> None:
    features, matrix = matrices()
    model = Infomax(features, matrix, 8, np.random.default_rng(0), CPU)
    permutation = np.random.default_rng(1).permutation(60)
    outputs = model.embed(torch.from_numpy(permutation))
    for output, rows in zip(outputs, (features, features[permutation]), strict=True):
        linear = matrix @ (rows @ model.parameters[0][0].detach().numpy())
        expected = np.where(linear > 0, linear, 0.25 * linear)
        np.testing.assert_allclose(output.detach().numpy(), expected, atol=1e-5)


def test_prelu_is_that_of_torch() -> None:
    draw = torch.Generator().manual_seed(0)
    gradient = torch.randn(20, 5, generator=draw)
    results = []
    for function in (prelu, torch.nn.functional.prelu):
        inputs = torch.randn(20, 5, generator=torch.Generator().manual_seed(1)).requires_grad_()
        slope = torch.tensor([0.3], requires_grad=True)
        outputs = function(inputs, slope)
        outputs.backward(gradient)  # type: ignore[no-untyped-call]
        results.append([outputs.detach(), inputs.grad, slope.grad])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def train(**changes: Any) -> tuple[Any, int]:
    options: dict[str, Any] = {"n_hidden": 8, "learning_rate": 0.01, "n_epochs": 50, "patience": 50}
    weights, *_, n_epochs = train_infomax(
        *matrices(), **options | changes, rng=np.random.default_rng(0), device=CPU
    )
    return weights, n_epochs


def test_training_lowers_the_loss_and_stops() -> None:
    weights, n_epochs = train()
    assert n_epochs == 50
    assert np.abs(weights - train(n_epochs=1)[0]).max() > 0.01
    _, stopped = train(n_epochs=5000, patience=5)
    assert 5 < stopped < 5000


def test_the_best_weights_are_taken_back() -> None:
    """Steps that are far too long only raise the loss, so the initial weights are the best."""
    initial, _ = train(n_epochs=1)
    best, n_epochs = train(learning_rate=100.0, patience=4)
    assert n_epochs == 5
    assert np.array_equal(best, initial)

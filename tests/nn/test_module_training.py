"""Training of modules: the loop against a plain one of torch, seeds, checks and early stopping."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nodecopy.errors import InputError
from nodecopy.nn.modules import (
    ModuleEarlyStopping,
    ModuleNetwork,
    build_network,
    seed_global_generators,
    train_module,
)
from nodecopy.nn.networks import TrainingConfig
from nodecopy.nn.training import Targets
from tests.contracts.classifiers import planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()
LABELS = np.array(GRAPH.labels)
TRAIN, VALIDATION = np.arange(9), np.arange(9, 24)
CPU = torch.device("cpu")
RECIPE = TrainingConfig(n_epochs=30, learning_rate=0.05, weight_decay=1e-3)


def targets(nodes: Any = TRAIN) -> Targets:
    return Targets([nodes], [LABELS[nodes]], CPU)


def train(module: nn.Module, recipe: TrainingConfig = RECIPE, **others: Any) -> ModuleNetwork:
    network = ModuleNetwork(module, "module")
    x, edges = network.features(GRAPH), network.edges(GRAPH)
    train_module(network, x, edges, targets(), recipe, n_classes=3, **others)
    return network


class Probabilities(nn.Module):
    """A layer whose output is one of the three forms."""

    def __init__(self, form: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.form = pyg.GCNConv(12, 3), form

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layer(x, edge_index)
        forms = {"logits": out, "logarithms": out.log_softmax(dim=1), "probabilities": out.softmax(dim=1)}
        return forms[self.form]


def test_training_is_that_of_a_plain_loop() -> None:
    with seed_global_generators(0, CPU):
        plain = pyg.GAT(12, 8, 2, 3, heads=2, dropout=0.5)
        network = ModuleNetwork(plain, "module")
        x, (edges, _) = network.features(GRAPH), network.edges(GRAPH)
        steps = torch.optim.Adam(plain.parameters(), lr=0.05, weight_decay=1e-3)
        for _ in range(30):
            steps.zero_grad()
            loss = functional.cross_entropy(plain(x, edges)[TRAIN], torch.tensor(LABELS[TRAIN]))
            loss.backward()  # type: ignore[no-untyped-call]
            steps.step()
    with seed_global_generators(0, CPU):
        trained = train(pyg.GAT(12, 8, 2, 3, heads=2, dropout=0.5))
    np.testing.assert_allclose(trained.predict(GRAPH), network.predict(GRAPH), atol=1e-4)


def test_logits_log_probabilities_and_probabilities_are_trained_alike() -> None:
    predictions = [
        train(Probabilities(form)).predict(GRAPH) for form in ("logits", "logarithms", "probabilities")
    ]
    np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-4)
    np.testing.assert_allclose(predictions[2], predictions[0], atol=1e-4)


def test_gradients_are_on_inside_no_grad_and_deleted_at_the_end() -> None:
    module = Probabilities("logits")
    before = module.layer.lin.weight.detach().clone()
    with torch.no_grad():
        train(module)
    assert not torch.equal(before, module.layer.lin.weight)
    assert all(weight.grad is None for weight in module.parameters())


def test_operations_have_one_thread() -> None:
    """Several threads wait for each other for most of the time beside a busy process."""
    seen: set[int] = set()

    class Watched(Probabilities):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            if self.training:
                seen.add(torch.get_num_threads())
            return super().forward(x, edge_index)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(Watched("logits"))
        assert (seen, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)


def test_frozen_parameters_stay() -> None:
    module = Probabilities("logits")
    module.layer.bias.requires_grad_(False)
    train(module)
    assert not module.layer.bias.any()


def test_lazy_layers_are_initialised_before_training() -> None:
    assert (train(pyg.GCNConv(-1, 3)).predict(GRAPH).argmax(axis=1) == LABELS).mean() > 0.6


def test_double_precision() -> None:
    assert (train(pyg.GCNConv(12, 3).double()).predict(GRAPH).argmax(axis=1) == LABELS).mean() > 0.6


def test_early_stopping_restores_the_best_state_with_running_statistics() -> None:
    module = pyg.GIN(12, 8, 2, 3, norm="batch_norm")
    network = ModuleNetwork(module, "module")
    x, edges = network.features(GRAPH), network.edges(GRAPH)
    seen: list[tuple[float, Any]] = []

    class Recording(ModuleEarlyStopping):
        def update(self, epoch: int, network: ModuleNetwork) -> bool:
            stops = super().update(epoch, network)
            logarithms = network.log_probabilities(self.x, *self.edges)[torch.from_numpy(VALIDATION)]
            loss = functional.nll_loss(logarithms, torch.from_numpy(LABELS[VALIDATION]))
            seen.append(
                (float(loss.detach()), {k: v.clone() for k, v in network.module.state_dict().items()})
            )
            return stops

    stopping = Recording(x, edges, targets(VALIDATION), patience=3)
    recipe = TrainingConfig(n_epochs=200, learning_rate=0.1, patience=3)
    train_module(network, x, edges, targets(), recipe, n_classes=3, early_stopping=stopping)
    losses = [loss for loss, _ in seen]
    best = int(np.argmin(losses))
    assert len(losses) == best + 5 < 200  # the fourth epoch after the best is one too many
    assert all(torch.equal(value, seen[best][1][name]) for name, value in module.state_dict().items())


def test_global_generators_are_seeded_inside_and_restored_after_an_error() -> None:
    def draw() -> list[float]:
        return [float(torch.rand(())), float(np.random.rand()), random.random()]  # noqa: NPY002

    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    expected = draw()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    inside = []
    for _ in range(2):
        with suppress(KeyError), seed_global_generators(2**62 + 1, CPU):
            inside.append(draw())
            raise KeyError
    assert inside[0] == inside[1]
    assert draw() == expected


def test_a_factory_must_build_a_new_module() -> None:
    shared = pyg.GCNConv(12, 3)
    build_network(lambda n, k: shared, 12, 3, CPU, "base")
    with pytest.raises(InputError, match="base must return a new module in each call; got the same GCNConv"):
        build_network(lambda n, k: shared, 12, 3, CPU, "base")
    networks = [build_network(pyg.GCNConv, 12, 3, CPU, "base") for _ in range(2)]
    assert networks[0].module is not networks[1].module


def test_a_loss_that_is_not_finite_stops_training() -> None:
    module = Probabilities("logits")
    module.register_forward_hook(lambda part, given, out: out / (1 - (out.max() > 1.5).float()))
    with pytest.raises(
        InputError, match=r"loss of Probabilities must stay finite; got nan by epoch \d+. Lower"
    ):
        train(module, TrainingConfig(n_epochs=100, learning_rate=1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda part, given, out: (out, out) if part.training else out,
            "must return one tensor.* got a tuple",
        ),
        (lambda part, given, out: out.detach(), "output of Probabilities must depend on its parameters"),
    ],
)
def test_an_output_that_cannot_be_trained(change: Any, message: str) -> None:
    module = Probabilities("logits")
    module.register_forward_hook(change)
    with pytest.raises(InputError, match=message):
        train(module)


def test_the_features_must_stay_as_they_are() -> None:
    """The next network would be trained on the changed ones."""
    module = Probabilities("logits")
    module.register_forward_pre_hook(lambda part, given: (given[0].clamp_(0, 0.5), given[1]))
    with pytest.raises(InputError, match="forward of Probabilities must not change x in place"):
        train(module)


def test_as_many_columns_as_classes() -> None:
    with pytest.raises(InputError, match=r"GCNConv must return 3 columns.* got 5. Use the second argument"):
        train(pyg.GCNConv(12, 5))

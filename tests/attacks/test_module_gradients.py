"""Gradient attacks on modules against the evaluation of every flip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nodecopy import Graph
from nodecopy.attacks import FGA, AdaptiveCopyingAttack
from nodecopy.attacks import gradients as tested
from nodecopy.attacks.gradients import RewiredGCN
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from nodecopy.nn.modules import ModuleNetwork
from tests.contracts.attacks import TARGETS, AttackContract
from tests.contracts.classifiers import planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph(strings=False)


@pytest.fixture(autouse=True)
def expect_slow_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, a busy machine would fail tests by warnings."""
    monkeypatch.setattr(tested, "MAX_SECONDS_PER_FLIP", np.inf)


def train_module(module: Any, graph: Graph = GRAPH, n_epochs: int = 20) -> Any:
    network, labels = ModuleNetwork(module, "module"), torch.tensor(graph.label_codes)
    x, edges = network.features(graph), network.edge_index(graph.rows.row_numbers, graph.rows.indices)
    steps = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(n_epochs):
        steps.zero_grad()
        nn.functional.cross_entropy(module(x, edges), labels).backward()  # type: ignore[no-untyped-call]
        steps.step()
    return module


def create(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    return train_module(getattr(pyg, kind)(12, 8, 2, out_channels=3, **settings))


MODULES: dict[str, Any] = {kind: create(kind) for kind in ("GCN", "GAT", "GraphSAGE", "GIN")}
MODULES["cached GCN"] = create("GCN", cached=True)


class SingleLayer(nn.Module):
    """A network of one layer that takes weights."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.layer(x, edge_index, edge_weight)
        return out


# An edge of weight zero counts in a mean; the inverse degree of an isolated node has no finite gradient.
MODULES["mean"] = train_module(SingleLayer(pyg.GraphConv(12, 3, aggr="mean")))
MODULES["without loops"] = train_module(SingleLayer(pyg.GCNConv(12, 3, add_self_loops=False)))


class TestFGAOnAModuleWithWeights(AttackContract):
    budget = 3
    attack = FGA(surrogate=MODULES["GCN"])


class TestFGAOnAModuleWithoutWeights(AttackContract):
    budget = 3
    connects_isolated = False  # one neighbour of another class is enough
    attack = FGA(surrogate=MODULES["GraphSAGE"])


def loss_at(module: Any, graph: Graph, target: int) -> float:
    """The target's loss, from the module and the graph alone."""
    network, labels = ModuleNetwork(module, "module"), graph.label_codes
    assert labels is not None
    edges = network.edge_index(graph.rows.row_numbers, graph.rows.indices)
    with torch.no_grad():
        return float(-network.log_probabilities(network.features(graph), edges)[target, labels[target]])


def losses_after_each_flip(module: Any, graph: Graph, target: int) -> Any:
    losses = np.full(graph.n_nodes, -np.inf)
    for other in range(graph.n_nodes):
        if other != target:
            edits = Edits(graph)
            edits.flip(target, other)
            losses[other] = loss_at(module, graph.replace(adjacency=edits.adjacency()), target)
    return losses


@pytest.mark.parametrize("kind", MODULES)
def test_the_first_flip_is_among_the_best(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The median rank of 8 random flips among 59 is at most 3 with probability 0.001."""
    monkeypatch.setattr(tested, "N_CANDIDATES", 8)
    module, ranks = MODULES[kind], []
    for target in range(8):
        flip = FGA(surrogate=module).attack(GRAPH, [target], budget=1)
        losses = losses_after_each_flip(module, GRAPH, target)
        if flip.spent[0]:
            assert losses[flip.flips[0, 1]] > loss_at(module, GRAPH, target)
            ranks.append(int((losses > losses[flip.flips[0, 1]]).sum()))
    assert len(ranks) >= 6  # two predictions of the GIN have no active unit, and no flip changes them
    assert np.median(ranks) <= 3


@pytest.mark.parametrize("kind", MODULES)
def test_targets_are_misclassified(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "N_CANDIDATES", 8)
    module = MODULES[kind]
    predicted = ModuleNetwork(module, "module").predict(GRAPH).argmax(axis=1)
    targets = np.flatnonzero(predicted == GRAPH.label_codes)[:4]
    attacked = FGA(surrogate=module).attack(GRAPH, targets, budget=8).apply(GRAPH)
    assert GRAPH.label_codes is not None
    right = (
        ModuleNetwork(module, "module").predict(attacked).argmax(axis=1)[targets]
        == GRAPH.label_codes[targets]
    )
    assert right.mean() <= 0.5


def test_weights_are_used_where_zero_counts_for_nothing() -> None:
    """PyG's GAT, GraphSAGE and GIN take edge_weight and ignore it; a mean counts edges of weight zero."""
    rewired = {}
    for kind, module in MODULES.items():
        attacked = tested.AttackedModule(module, GRAPH, "surrogate")
        rewired[kind] = type(attacked.rewire(Edits(GRAPH), np.array([4]))).__name__
    weighted = {"GCN", "cached GCN", "without loops"}
    assert {kind for kind, name in rewired.items() if name == "WeightedModule"} == weighted


def test_the_gradient_is_that_of_the_library_for_a_gcn() -> None:
    """The same weights in PyG's GCN and in the closed form of this package."""
    torch.manual_seed(0)
    module = pyg.GCN(12, 4, 2, out_channels=3, bias=False).double()
    first, second = (conv.lin.weight.detach().T for conv in module.convs)
    edits, rows = Edits(GRAPH), np.array([4, 9])
    ours = RewiredGCN(torch.tensor(GRAPH.features).double() @ first, second, edits, rows)
    theirs = tested.AttackedModule(module, GRAPH, "surrogate").rewire(edits, rows)
    left = ours.free_pairs()
    V = torch.zeros_like(ours.present)
    V[0, 7] = 1 - 2 * ours.present[0, 7]
    label = torch.tensor(GRAPH.label_codes)

    def loss(network: Any, V: Tensor) -> Tensor:
        return nn.functional.cross_entropy(network.logits(V)[[4]], label[[4]])

    def copied_loss(network: Any, V: Tensor) -> Any:
        copied = network.copied_logits(V, torch.tensor([9, 11]), 4)
        return -copied.softmax(dim=1).mean(dim=0)[label[4]].log()

    for function in (loss, copied_loss):
        expected, gains = (network.gains(function, V, left) for network in (ours, theirs))
        torch.testing.assert_close(gains, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["GCN", "GAT"])
def test_the_adaptive_attack_lowers_the_corrected_probability(kind: str) -> None:
    module = MODULES[kind]
    network = ModuleNetwork(module, "module")
    attack = AdaptiveCopyingAttack([[1, 13, 22]], surrogate=module)
    perturbation = attack.attack(GRAPH, [4], budget=4)
    assert np.isin(perturbation.flips, [1, 13, 22]).any(axis=1).all()
    labels: Any = GRAPH.label_codes

    def corrected(graph: Graph) -> float:
        total = 0.0
        for donor in (1, 13, 22):
            features = np.array(GRAPH.features)
            features[donor] = features[4]
            total += float(network.predict(graph.replace(features=features))[donor, labels[4]])
        return total / 3

    assert corrected(perturbation.apply(GRAPH)) < 0.95 * corrected(GRAPH)


def test_an_isolated_target_where_the_gradient_is_not_finite() -> None:
    adjacency = GRAPH.adjacency.toarray()
    adjacency[4] = adjacency[:, 4] = 0
    isolated = GRAPH.replace(adjacency=adjacency)
    module = MODULES["without loops"]
    attacked = FGA(surrogate=module).attack(isolated, [4], budget=1).apply(isolated)
    assert loss_at(module, attacked, 4) > loss_at(module, isolated, 4)


def test_a_module_that_ignores_edges_is_not_attacked() -> None:
    class Perceptron(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(12, 3)

        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            out: Tensor = self.layer(x)
            return out

    assert FGA(surrogate=Perceptron()).attack(GRAPH, TARGETS, budget=2).spent.tolist() == [0, 0, 0]


def test_a_confident_prediction_is_attacked() -> None:
    """Its loss is zero in single precision."""

    class Confident(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            out: Tensor = 20 * MODULES["GCN"](x, edge_index, edge_weight)
            return out

    assert FGA(surrogate=Confident()).attack(GRAPH, TARGETS, budget=2).spent.tolist() == [2, 2, 2]


def test_the_module_is_as_it_was() -> None:
    module = create("GCN", dropout=0.5).train()
    before = [weight.clone() for weight in module.parameters()]
    module.zero_grad()
    FGA(surrogate=module).attack(GRAPH, [4], budget=2)
    assert module.training
    assert all(torch.equal(*pair) for pair in zip(before, module.parameters(), strict=True))
    assert all(weight.grad is None for weight in module.parameters())


def test_features_or_columns_that_are_not_those_of_the_graph() -> None:
    with pytest.raises(InputError, match="GCN must accept x"):
        FGA(surrogate=MODULES["GCN"]).attack(GRAPH.replace(features=np.ones((60, 5))), [4])
    with pytest.raises(InputError, match="GCN must have one output column per class"):
        FGA(surrogate=pyg.GCN(12, 8, 2, out_channels=2)).attack(GRAPH, [4])

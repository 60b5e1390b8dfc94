"""Modules of users: what they are given, what they may return, that they stay as they were, and training."""

from __future__ import annotations

import copy
import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from nodecopy import Graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.nn import modules
from nodecopy.nn.modules import (
    ModuleNetwork,
    evaluation_mode,
    label_columns,
    seed_global_generators,
    train_module,
)
from nodecopy.nn.networks import TrainingConfig
from nodecopy.nn.training import LabelledNodes, Targets
from tests.contracts.classifiers import other_edges, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()
LABELS = np.array(GRAPH.label_codes)
TRAIN, VALIDATION = np.arange(9), np.arange(9, 24)
CPU = torch.device("cpu")
CONFIG = TrainingConfig(n_epochs=30, learning_rate=0.05, weight_decay=1e-3)


class Returning(nn.Module):
    """Returns what a function makes of the features."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.output(x)


class Regularised(nn.Module):
    """Dropout and batch norm, whose results in training mode depend on chance and on other nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(12), nn.Dropout(0.5)
        self.layer = pyg.GCNConv(12, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layer(self.drop(self.norm(x)), edge_index)
        return out


def edges_of(graph: Graph) -> Tensor:
    return torch.from_numpy(np.stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64))


def test_logits_log_probabilities_and_probabilities_give_the_same() -> None:
    """Before, the softmax of probabilities would have flattened them."""
    logits = torch.randn(60, 3)
    expected = logits.softmax(dim=1).numpy()
    for output in (logits, logits.log_softmax(dim=1), logits.softmax(dim=1)):
        network = ModuleNetwork(Returning(lambda x, output=output: output), "module")
        np.testing.assert_allclose(network.predict(GRAPH), expected, atol=1e-6)


def test_a_module_in_training_mode_is_evaluated_and_restored() -> None:
    module = Regularised().train()
    module.norm.eval()  # frozen by the user
    statistics = copy.deepcopy(module.norm.state_dict())
    first, second = (ModuleNetwork(module, "module").predict(GRAPH) for _ in range(2))
    assert np.array_equal(first, second)
    assert [module.training, module.drop.training, module.norm.training] == [True, True, False]
    assert torch.equal(module.norm.state_dict()["running_mean"], statistics["running_mean"])
    assert all(weight.grad is None for weight in module.parameters())
    module.eval()
    expected = module(torch.tensor(GRAPH.features), edges_of(GRAPH)).softmax(dim=1)
    np.testing.assert_allclose(first, expected.detach().numpy(), atol=1e-6)


def test_dropout_that_evaluation_does_not_switch_off() -> None:
    module = Returning(lambda x: nn.functional.dropout(x, 0.5)[:, :3])
    with pytest.warns(DataWarning, match="predictions of Returning are random even in evaluation mode"):
        ModuleNetwork(module, "module").predict_first(GRAPH)


class WeightedSum(nn.Module):
    """The sum over neighbours of their features times the weights of the edges."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        source, target = edge_index
        return torch.zeros_like(x).index_add_(0, target, edge_weight[:, None] * x[source])[:, :3]


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_edges_without_weights_weigh_one_where_a_module_requires_weights(weight: float) -> None:
    graph, features = GRAPH.replace(adjacency=GRAPH.adjacency * weight), np.asarray(GRAPH.features)
    assert (graph.rows.weights is None) == (weight == 1)
    expected = torch.from_numpy(graph.adjacency @ features)[:, :3].softmax(dim=1)
    np.testing.assert_allclose(ModuleNetwork(WeightedSum(), "module").predict(graph), expected, atol=1e-5)


def test_dropout_samples_keep_running_statistics_and_the_mode() -> None:
    module = Regularised().eval()
    network = ModuleNetwork(module, "module")
    x, edges = network.features(GRAPH), network.edges(GRAPH.rows)
    statistics = copy.deepcopy(module.norm.state_dict())
    with torch.no_grad():
        samples = network.sample_probabilities(x, edges, 4)
        plain = network.sample_probabilities(x, edges, 0)
    assert len(samples) == 4
    assert not torch.equal(samples[0], samples[1])
    assert torch.equal(module.norm.state_dict()["running_mean"], statistics["running_mean"])
    assert not module.drop.training
    assert np.array_equal(plain[0].float().numpy(), network.predict(GRAPH))
    module.drop.p = 0.0
    (only,) = network.sample_probabilities(x, edges, 4)  # without dropout all are equal
    assert torch.equal(only, plain[0])


def test_caches_of_layers_are_neither_used_nor_changed() -> None:
    """A cached layer would predict on every graph with the edges of its training graph."""
    cached, plain = pyg.GCNConv(12, 3, cached=True), pyg.GCNConv(12, 3)
    plain.load_state_dict(cached.state_dict())
    cached(torch.tensor(GRAPH.features), edges_of(GRAPH))
    cache, changed = cached._cached_edge_index, other_edges(GRAPH)
    predictions = [ModuleNetwork(module, "module").predict(changed) for module in (cached, plain)]
    assert np.array_equal(predictions[0], predictions[1])
    assert cached.cached
    assert cached._cached_edge_index is cache
    with evaluation_mode(cached):
        assert cached._cached_edge_index is None


def test_weights_of_edges_are_given_or_missed() -> None:
    weighted = GRAPH.replace(adjacency=GRAPH.adjacency * 2.5)
    module = pyg.GCNConv(12, 3)
    expected = module(torch.tensor(GRAPH.features), edges_of(GRAPH), torch.full((GRAPH.rows.n_entries,), 2.5))
    predicted = ModuleNetwork(module, "module").predict(weighted)
    np.testing.assert_allclose(predicted, expected.softmax(dim=1).detach().numpy(), atol=1e-6)
    with pytest.warns(DataWarning, match="not used: Regularised takes no edge_weight"):
        ModuleNetwork(Regularised(), "module").predict(weighted)


def test_double_precision_and_sparse_features() -> None:
    module = Regularised().double()
    dense = ModuleNetwork(module, "module")
    assert dense.features(GRAPH).dtype == torch.float64
    as_sparse = GRAPH.replace(features=sparse.csr_array(np.asarray(GRAPH.features)))
    assert np.array_equal(dense.predict(GRAPH), dense.predict(as_sparse))


class NeedsOtherEdges(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise TypeError(f"expected a SparseTensor, got {edge_index.dtype}")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Returning(lambda x: (x, x)), "Returning must return one tensor with 60 rows.* got a tuple"),
        (Returning(lambda x: x[:5]), r"got shape \[5, 12\]"),
        (Returning(lambda x: x[:, :1]), r"at least two columns.* got shape \[60, 1\]. Wrap it"),
        (Returning(lambda x: x * torch.nan), r"Returning must return finite logits; got \[nan"),
        (NeedsOtherEdges(), "NeedsOtherEdges must accept .* TypeError: expected a SparseTensor"),
        (object(), "module must be a trained torch.nn.Module with forward"),
    ],
)
def test_error_names_the_module(module: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModuleNetwork(module, "module").predict(GRAPH)


def test_columns_are_the_distinct_labels_or_the_labels_themselves() -> None:
    path = Graph(np.zeros((4, 4)), labels=[1, 3, -1, 1])
    names, codes = label_columns(path, 2, "GCN")
    assert (names.tolist(), codes.tolist()) == ([1, 3], [0, 1, -1, 0])
    names, codes = label_columns(path, 5, "GCN")
    assert (names.tolist(), codes.tolist()) == ([0, 1, 2, 3, 4], [1, 3, -1, 1])
    named = path.replace(labels=["b", "a", "", "b"]).with_label_names(["a", "b", "c"])
    assert label_columns(named, 3, "GCN")[0].tolist() == ["a", "b", "c"]
    assert label_columns(path.replace(labels=None), 3, "GCN")[0].tolist() == [0, 1, 2]
    for graph, n_columns in ((path, 3), (named, 4)):
        with pytest.raises(InputError, match=f"GCN must have one output column .* got {n_columns} columns"):
            label_columns(graph, n_columns, "GCN")


def targets(nodes: Any = TRAIN) -> Targets:
    return Targets([LabelledNodes(nodes, LABELS[nodes])], CPU)


def train(module: nn.Module, config: TrainingConfig = CONFIG, **others: Any) -> ModuleNetwork:
    network = ModuleNetwork(module, "module")
    x, edges = network.features(GRAPH), network.edges(GRAPH.rows)
    train_module(network, x, edges, targets(), config, 3, **others)
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
        x, (edges, _) = network.features(GRAPH), network.edges(GRAPH.rows)
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
    forms = ("logits", "logarithms", "probabilities")
    predictions = [train(Probabilities(form)).predict(GRAPH) for form in forms]
    np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-4)
    np.testing.assert_allclose(predictions[2], predictions[0], atol=1e-4)


def test_frozen_parameters_stay_and_lazy_layers_are_initialised() -> None:
    module = Probabilities("logits")
    module.layer.bias.requires_grad_(False)
    train(module)
    assert not module.layer.bias.any()
    for layer in (pyg.GCNConv(-1, 3), pyg.GCNConv(12, 3).double()):
        assert (train(layer).predict(GRAPH).argmax(axis=1) == LABELS).mean() > 0.6


def test_early_stopping_restores_the_best_running_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    module, seen = pyg.GIN(12, 8, 2, 3, norm="batch_norm"), list[tuple[float, Any]]()

    def record(network: ModuleNetwork, x: Tensor, edges: Any, watched: Targets) -> float:
        logarithms = network.log_probabilities(x, *edges)[torch.from_numpy(VALIDATION)]
        loss = functional.nll_loss(logarithms, torch.from_numpy(LABELS[VALIDATION])).item()
        seen.append((loss, {k: v.clone() for k, v in network.module.state_dict().items()}))
        assert validation_loss(network, x, edges, watched) == pytest.approx(loss, rel=1e-5)
        return loss

    validation_loss = modules._validation_loss
    monkeypatch.setattr(modules, "_validation_loss", record)
    watched = ModuleNetwork(module, "module").edges(GRAPH.rows), targets(VALIDATION)
    train(module, TrainingConfig(n_epochs=200, learning_rate=0.1, patience=3), validation=watched)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part, given, out: (out, out) if part.training else out, "must return one tensor"),
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

"""Modules of users: what they are given, what they may return, and that they stay as they were."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from nodecopy import Graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.nn.modules import ModuleNetwork, evaluation_mode, label_columns
from tests.contracts.classifiers import other_edges, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()


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


def test_the_mode_is_restored_after_an_error() -> None:
    module = Regularised().train()
    with pytest.raises(InputError, match="Regularised must accept x"):
        ModuleNetwork(module, "module").predict(GRAPH.replace(features=np.ones((60, 5))))
    assert module.drop.training


def test_dropout_samples_keep_running_statistics_and_the_mode() -> None:
    module = Regularised().eval()
    network = ModuleNetwork(module, "module")
    x, edges = network.features(GRAPH), network.edges(GRAPH)
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
    with pytest.warns(
        DataWarning, match="weights of the graph are not used: Regularised takes no edge_weight"
    ):
        ModuleNetwork(Regularised(), "module").predict(weighted)


def test_a_directed_graph_keeps_its_directions() -> None:
    """Messages go from the source of an edge to its target, as in to_pyg."""
    path = Graph.from_edges([0, 1], [1, 2], features=np.eye(3), directed=True)
    predicted = ModuleNetwork(pyg.SimpleConv(aggr="sum"), "module").predict(path)
    assert predicted.argmax(axis=1)[1:].tolist() == [0, 1]


def test_double_precision_and_sparse_features() -> None:
    module = Regularised().double()
    dense = ModuleNetwork(module, "module")
    assert dense.features(GRAPH).dtype == torch.float64
    as_sparse = GRAPH.replace(features=sparse.csr_array(np.asarray(GRAPH.features)))
    assert np.array_equal(dense.predict(GRAPH), dense.predict(as_sparse))


def test_integer_features_arrive_as_floats() -> None:
    integers = GRAPH.replace(features=np.asarray(GRAPH.features).astype(int))
    network = ModuleNetwork(Regularised(), "module")
    assert np.array_equal(network.predict(integers), network.predict(GRAPH))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_module_stays_on_its_device() -> None:
    module = Regularised().cuda()
    on_gpu = ModuleNetwork(module, "module").predict(GRAPH)
    assert module.layer.lin.weight.is_cuda
    np.testing.assert_allclose(on_gpu, ModuleNetwork(module.cpu(), "module").predict(GRAPH), atol=1e-5)


def test_the_device_is_that_of_the_module() -> None:
    assert ModuleNetwork(Regularised().to("meta"), "module").device == torch.device("meta")


class NeedsOtherEdges(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise TypeError(f"expected a SparseTensor, got {edge_index.dtype}")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Returning(lambda x: (x, x)), "Returning must return one tensor with 60 rows.* got a tuple"),
        (Returning(lambda x: None), "got a NoneType"),
        (Returning(lambda x: x[:5]), r"got shape \[5, 12\]"),
        (Returning(lambda x: x[:, 0]), r"got shape \[60\]"),
        (Returning(lambda x: x[:, :1]), r"at least two columns.* got shape \[60, 1\]. Wrap it"),
        (Returning(lambda x: x * torch.nan), r"Returning must return finite logits; got \[nan"),
        (
            NeedsOtherEdges(),
            "NeedsOtherEdges must accept .* TypeError: expected a SparseTensor, got torch.int64",
        ),
        (nn.Embedding(4, 3), "Embedding must accept"),
        (object(), "module must be a trained torch.nn.Module with forward"),
        (Regularised, "module must be a trained torch.nn.Module"),
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

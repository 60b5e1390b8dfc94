"""Copied predictions of modules against the evaluation of each pair alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from nodecopy import Graph
from nodecopy.classify import ModuleClassifier
from nodecopy.defend import CopyingDefence, SuspectCorrection
from nodecopy.defend import copying as copiers
from nodecopy.defend.copying import ModuleCopier, WholeGraphCopier, evaluate_all, group_pairs
from nodecopy.errors import DataWarning
from nodecopy.nn.modules import ModuleNetwork

pyg = pytest.importorskip("torch_geometric.nn")


def ring(n_nodes: int = 40, **changes: Any) -> Graph:
    """A ring, in which distances are long."""
    draws = np.random.default_rng(0)
    first = np.arange(n_nodes)
    return Graph.from_edges(
        first,
        (first + 1) % n_nodes,
        features=draws.normal(size=(n_nodes, 5)),
        labels=draws.integers(0, 3, n_nodes),
        **changes,
    )


class MeanOfAll(nn.Module):
    """Every prediction depends on all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layer(x - 3 * x.mean(dim=0))
        return out


def create(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    return getattr(pyg, kind)(5, 8, 2, out_channels=3, **settings)


MODULES = {
    "GCN": (create("GCN"), 2),
    "GAT with three layers": (pyg.GAT(5, 8, 3, out_channels=3), 3),
    "pair norm": (create("GCN", norm="PairNorm"), None),
    "mean of all": (MeanOfAll(), None),
    "perceptron": (pyg.MLP([5, 3]), 0),
}


class WithEdges(nn.Module):
    """Accept edges for a module without any."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.module(x)
        return out


MODULES["perceptron"] = WithEdges(MODULES["perceptron"][0]), 0


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("directed", [False, True])
def test_predictions_are_those_of_each_pair_alone(kind: str, directed: bool) -> None:
    module, n_hops = MODULES[kind]
    graph, network = ring(directed=directed), ModuleNetwork(module, "module")
    copier = ModuleCopier(network, graph)
    reach = copier.reach()
    if directed or n_hops is None:
        assert reach is None
    else:
        assert reach is not None
        assert (np.diff(reach.indptr) == 2 * n_hops + 1).all()
    draws = np.random.default_rng(1)
    nodes, donors = draws.integers(0, 40, (2, 120))
    alone = WholeGraphCopier(network.predict, graph, "swap-features")
    np.testing.assert_allclose(
        copier.predict_pairs(nodes, donors), alone.predict_pairs(nodes, donors), atol=1e-5
    )


def test_a_wrong_receptive_field_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, network = ring(), ModuleNetwork(MODULES["GCN"][0], "module")
    copier = ModuleCopier(network, graph)
    monkeypatch.setattr(copier, "_count_hops", lambda pattern: 0)
    nodes, donors = np.repeat([7, 20], 20), np.tile(np.arange(20), 2)
    alone = WholeGraphCopier(network.predict, graph, "swap-features").predict_pairs(nodes, donors)
    np.testing.assert_allclose(copier.predict_pairs(nodes, donors), alone, atol=1e-5)


class DeadUnits(nn.Module):
    """Hidden units that are active for large features only, so that gradients are zero at most nodes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([pyg.GCNConv(5, 8), pyg.GCNConv(8, 3)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layers[1]((self.layers[0](x, edge_index) - 3).relu(), edge_index)
        return out


def test_dead_units_do_not_narrow_the_receptive_field() -> None:
    """Gradients, by which it was measured before, are zero here; a copied row can activate the units."""
    graph, network = ring(200), ModuleNetwork(DeadUnits(), "module")
    scale = np.where(np.arange(200) == 12, 40.0, 0.1)[:, None]
    graph = graph.replace(features=np.random.default_rng(0).normal(size=(200, 5)) * scale)
    copier = ModuleCopier(network, graph)
    reach = copier.reach()
    assert reach is not None
    assert (np.diff(reach.indptr) == 5).all()
    nodes, donors = np.full(60, 12), np.arange(60)
    alone = WholeGraphCopier(network.predict, graph, "swap-features").predict_pairs(nodes, donors)
    np.testing.assert_allclose(copier.predict_pairs(nodes, donors), alone, atol=1e-5)


class WithoutNaN(WithEdges):
    """A module that refuses NaN."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        assert not x.isnan().any()
        return super().forward(x, edge_index)


def test_receptive_fields_that_cannot_be_measured() -> None:
    pairs = Graph.from_edges(np.arange(0, 40, 2), np.arange(1, 40, 2), features=ring().features)
    refusing = ModuleNetwork(WithoutNaN(pyg.MLP([5, 3])), "module")
    assert ModuleCopier(refusing, ring()).reach() is None
    assert (
        ModuleCopier(ModuleNetwork(MODULES["GCN"][0], "module"), pairs).reach() is None
    )  # two hops, width 1


def test_groups_hold_each_pair_once_and_no_neighbours() -> None:
    draws = np.random.default_rng(0)
    upper = np.triu(draws.random((50, 50)) < 0.1, 1)
    reach = sparse.csr_array(upper | upper.T | np.eye(50, dtype=bool))
    donors = draws.integers(0, 50, 300)
    groups = group_pairs(donors, reach)
    assert sorted(np.concatenate(groups).tolist()) == list(range(300))
    for group in groups:
        inside = reach[donors[group]][:, donors[group]].toarray()
        assert (inside == np.eye(len(group))).all()
    assert len(groups) < 60


def test_a_defence_uses_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(200)
    classifier = ModuleClassifier(MODULES["GCN"][0]).fit(graph)
    n_evaluations = 0
    evaluate = ModuleNetwork.log_probabilities

    def count(*arguments: Any) -> Tensor:
        nonlocal n_evaluations
        n_evaluations += 1
        return evaluate(*arguments)

    monkeypatch.setattr(ModuleNetwork, "log_probabilities", count)
    defence = SuspectCorrection(n_donors=5, share=0.1).from_classifier(classifier, graph)
    assert defence.score_suspicion().shape == (200,)
    assert n_evaluations < 200  # not 2 * 5 * 200
    assert CopyingDefence(n_donors=5).from_classifier(classifier, graph).correct([]).shape == (0,)


def test_a_long_correction_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copiers, "MAX_SECONDS", 0.01)
    with pytest.warns(DataWarning, match="evaluate 9 graphs, which will take about 0 minutes"):
        evaluate_all(time.sleep, [0.002] + [0.0] * 8)
    assert evaluate_all(abs, [-1, 2]) == [1, 2]

"""Gradient attacks against autograd on a dense adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph
from nodecopy.attacks.gradients import RewiredGCN
from nodecopy.attacks.perturbation import Edits
from nodecopy.nn.networks import KIPF, fit_feature_scaling
from tests.attacks.oracles import dense_gcn, small_graphs

random = np.random.default_rng(2)
WEIGHTS = random.normal(size=(5, 4)), random.normal(size=(4, 3))


@pytest.fixture(autouse=True)
def use_doubles() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def features_of(graph: Graph) -> Any:
    return torch.from_numpy(fit_feature_scaling(graph, KIPF).apply(graph.features).toarray()).double()


def rewired(graph: Graph, edits: Edits, rows: list[int]) -> RewiredGCN:
    first, second = map(torch.from_numpy, WEIGHTS)
    return RewiredGCN(features_of(graph) @ first, second, edits, np.array(rows))


def dense_with(adjacency: Any, rows: list[int], V: Any) -> Any:
    change = torch.zeros(len(adjacency), len(adjacency))
    change = change.index_add(0, torch.tensor(rows), V)
    return adjacency + change + change.T


def same_as_dense(graph: Graph, rows: list[int], start: Any, ours: Any, dense: Any) -> None:
    """A scalar of both forms has the same value and the same gradient."""
    adjacency = torch.from_numpy(graph.adjacency.toarray()).double()
    V, W = start.clone().requires_grad_(), start.clone().requires_grad_()
    network = rewired(graph, Edits(graph), rows)
    mine, theirs = ours(network, V), dense(dense_with(adjacency, rows, W))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)
    (gradient,) = torch.autograd.grad(mine, V)
    (expected,) = torch.autograd.grad(theirs, W)
    free = network.free_pairs()
    torch.testing.assert_close(gradient[free], expected[free], rtol=0, atol=1e-10)


@given(small_graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_the_gradient_equals_autograd_on_a_dense_adjacency(graph: Graph, data: st.DataObject) -> None:
    """Of the victim's loss and of the training set's, at the clean graph and after some flips."""
    first, second = map(torch.from_numpy, WEIGHTS)
    X, labels = features_of(graph), torch.from_numpy(np.array(graph.labels))
    nodes = st.integers(0, graph.n_nodes - 1)
    row, other = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
    judged = torch.tensor(data.draw(st.lists(nodes, min_size=1)))
    start = torch.zeros(1, graph.n_nodes)
    if data.draw(st.booleans()):
        start[0, other] = 1 - 2 * float(graph.adjacency[row, other])

    def loss(logits: Any) -> Any:
        return torch.nn.functional.cross_entropy(logits[judged], labels[judged])

    same_as_dense(
        graph,
        [row],
        start,
        lambda network, V: loss(network.logits(V)),
        lambda adjacency: loss(dense_gcn(adjacency, X, first, second)),
    )


@given(small_graphs(min_nodes=4), st.data())
@settings(deadline=None, max_examples=40)
def test_the_gradient_through_copying_equals_a_dense_one(graph: Graph, data: st.DataObject) -> None:
    """Each donor's logits with the victim's features in its place; rows to rewire beside each other."""
    first, second = map(torch.from_numpy, WEIGHTS)
    X = features_of(graph)
    nodes = st.integers(0, graph.n_nodes - 1)
    victim = data.draw(nodes)
    donors = data.draw(st.lists(nodes, min_size=1, max_size=3))
    rows = sorted({*donors, victim})
    start = torch.zeros(len(rows), graph.n_nodes)
    if data.draw(st.booleans()):
        other = data.draw(nodes)
        if other not in rows:
            start[0, other] = 1 - 2 * float(graph.adjacency[rows[0], other])

    def defended(adjacency: Any) -> Any:
        mean: Any = 0
        for donor in donors:
            swapped = X.clone()
            swapped[donor] = X[victim]
            mean = mean + dense_gcn(adjacency, swapped, first, second)[donor].softmax(0) / len(donors)
        return mean[1].log()

    same_as_dense(
        graph,
        rows,
        start,
        lambda network, V: network.copied_logits(V, torch.tensor(donors), victim).softmax(1).mean(0)[1].log(),
        defended,
    )

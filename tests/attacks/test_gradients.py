"""Gradient attacks against autograd on a dense adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph
from nodecopy.attacks import FGA, ThroughCopying
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.gradients import RewiredGCN
from nodecopy.nn.features import feature_matrix
from nodecopy.nn.networks import KIPF
from tests.attacks.oracles import dense_gcn, small_graphs

random = np.random.default_rng(2)
WEIGHTS = random.normal(size=(5, 4)), random.normal(size=(4, 3))


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def features_of(graph: Graph) -> Any:
    return torch.from_numpy(feature_matrix(graph, KIPF).toarray()).double()


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


@given(small_graphs(least=4), st.data())
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


def planted() -> Graph:
    draws = np.random.default_rng(6)
    upper = np.triu(draws.random((30, 30)) < 0.15, 1)
    return Graph(upper | upper.T, draws.integers(0, 2, (30, 5)).astype(float), np.arange(30) % 3)


def dense_loss(graph: Graph, target: int) -> float:
    first, second = map(torch.from_numpy, WEIGHTS)
    logits = dense_gcn(
        torch.from_numpy(graph.adjacency.toarray()).double(), features_of(graph), first, second
    )
    return float(-logits[target].log_softmax(0)[target % 3])


def test_fga_takes_the_steepest_flip_each_time() -> None:
    """Both kinds: an edge is removed where that helps, and only added where there is none."""
    graph, kinds = planted(), set()
    first, second = map(torch.from_numpy, WEIGHTS)
    for target in range(6, 12):
        found = FGA(4, surrogate=WEIGHTS).attack(graph, [target])
        A, done = torch.from_numpy(graph.adjacency.toarray()).double(), [target]
        for flip, added in zip(found.flips.tolist(), found.is_added, strict=True):
            V = torch.zeros(1, 30, requires_grad=True)
            logits = dense_gcn(dense_with(A, [target], V), features_of(graph), first, second)
            (gradient,) = torch.autograd.grad(-logits[target].log_softmax(0)[target % 3], V)
            gain = gradient[0] * (1 - 2 * A[target])
            gain[done] = -torch.inf
            other = int(gain.argmax())
            assert flip == [target, other]
            assert gain[other] > 0
            assert added == (A[target, other] == 0)
            kinds.add(bool(added))
            A[target, other] = A[other, target] = 1 - A[target, other]
            done.append(other)
        assert found.spent.tolist() == [4]
        assert dense_loss(found.apply(graph), target) > dense_loss(graph, target)
    assert kinds == {True, False}


def test_more_flips_per_step_are_fewer_gradients() -> None:
    graph = planted()
    one, four = (FGA(4, flips_per_step=n, surrogate=WEIGHTS).attack(graph, [7]) for n in (1, 4))
    assert one.flips[0].tolist() == four.flips[0].tolist()
    assert four.spent.tolist() == [4]


def test_later_victims_see_earlier_flips() -> None:
    """The second victim's gradient is that of the graph which the first attack left."""
    graph = planted()
    both = FGA(3, surrogate=WEIGHTS).attack(graph, [7, 9])
    after_first = both.of(7).apply(graph)
    assert np.array_equal(both.of(9).flips, FGA(3, surrogate=WEIGHTS).attack(after_first, [9]).flips)


def test_through_copying_spoils_the_defended_prediction() -> None:
    graph, donors = planted(), [[3, 12, 20]]

    def defended(attacked: Graph) -> float:
        network = rewired(attacked, Edits(attacked), [0])
        logits = network.copied_logits(torch.zeros(1, 30), torch.tensor(donors[0]), 7)
        return float(logits.softmax(1).mean(0)[7 % 3])

    at_donors = ThroughCopying(donors, 6, surrogate=WEIGHTS).attack(graph, [7])
    anywhere = ThroughCopying(donors, 6, at_victim=True, surrogate=WEIGHTS).attack(graph, [7])
    assert at_donors.spent.tolist() == [6]
    assert defended(at_donors.apply(graph)) < defended(graph)
    assert defended(anywhere.apply(graph)) < defended(graph)
    assert np.isin(at_donors.flips, donors[0]).any(axis=1).all()


def test_two_donors_never_flip_the_same_edge() -> None:
    """A complete flip of all pairs of two neighbouring donors, each once."""
    graph = planted()
    found = ThroughCopying([[3, 12]], 500, flips_per_step=500, surrogate=WEIGHTS).attack(graph, [7])
    ends = np.sort(found.flips, axis=1)
    assert len(np.unique(ends, axis=0)) == len(ends)
    assert (ends[:, 0] != ends[:, 1]).all()
    found.apply(graph)


def test_the_victims_own_edges_are_flipped_if_asked() -> None:
    graph = planted()
    donor = int(graph.adjacency[[7]].indices[0])
    for at_victim in (False, True):
        attack = ThroughCopying([[donor]], 500, at_victim=at_victim, flips_per_step=500, surrogate=WEIGHTS)
        flips = attack.attack(graph, [7]).flips
        assert (~(flips == donor).any(axis=1)).any() == at_victim
        assert np.isin(flips, [donor, 7]).any(axis=1).all()

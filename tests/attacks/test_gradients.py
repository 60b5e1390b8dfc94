"""Gradient attacks against autograd on a dense adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph
from nodecopy.attacks import FGA, AdaptiveCopyingAttack
from nodecopy.attacks.gradients import RewiredGCN
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling
from nodecopy.nn.networks import KIPF
from tests.attacks.oracles import dense_gcn, small_graphs
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract, with_isolated
from tests.contracts.classifiers import N_NODES, planted_graph

random = np.random.default_rng(2)
WEIGHTS = random.normal(size=(5, 4)), random.normal(size=(4, 3))


@pytest.fixture(autouse=True)
def use_doubles() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def features_of(graph: Graph) -> Any:
    scaling = FeatureScaling.fit(graph.features, KIPF.features, encoder=graph.feature_encoder)
    return torch.from_numpy(scaling.apply(graph.features).toarray()).double()


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
@settings(max_examples=40)
def test_the_gradient_equals_autograd_on_a_dense_adjacency(graph: Graph, data: st.DataObject) -> None:
    """Of the victim's loss and of the training set's, at the clean graph and after some flips."""
    first, second = map(torch.from_numpy, WEIGHTS)
    X, labels = features_of(graph), torch.from_numpy(np.array(graph.label_codes))
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
@settings(max_examples=40)
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


def test_pairs_are_free_once_and_loops_never() -> None:
    rows = np.array([4, 9, 30])
    weights = torch.zeros(N_NODES, 2, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)
    network = RewiredGCN(*weights, Edits(planted_graph()), rows)
    free = {(int(rows[row]), node) for row, node in network.free_pairs().nonzero().tolist()}
    expected = {frozenset((row, node)) for row in rows.tolist() for node in range(N_NODES) if node != row}
    assert {frozenset(pair) for pair in free} == expected
    assert len(free) == len(expected)


def test_a_network_without_edges_promises_nothing() -> None:
    weights = torch.zeros(N_NODES, 2, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)
    network = RewiredGCN(*weights, Edits(planted_graph()), np.array([4]))
    left = network.free_pairs()
    gains = network.gains(lambda network, V: network.logits(V).sum(), torch.zeros_like(network.present), left)
    assert (gains[left] == 0).all()
    assert gains[~left].tolist() == [-torch.inf]


DRAWS = np.random.default_rng(1)
SURROGATE = DRAWS.normal(size=(12, 4)), DRAWS.normal(size=(4, 3))  # training one in each test would take long


class TestFGA(AttackContract):
    budget = 3
    attack = FGA(surrogate=SURROGATE)


class TestFGAAsRunByTheAuthors(AttackContract):
    budget = 3
    connects_isolated = False
    attack = FGA(loss="training-set", surrogate=SURROGATE)

    def test_every_flip_is_at_node_zero(self, graph: Graph) -> None:
        assert (self.run(graph).flips == 0).any(axis=1).all()

    def test_isolated_target(self, graph: Graph) -> None:
        """The attack does not look at the target, which stays isolated."""
        isolated = with_isolated(graph, 4)
        assert self.run(isolated, [4]).apply(isolated).degrees[4] == 0


def planted() -> Graph:
    draws = np.random.default_rng(6)
    upper = np.triu(draws.random((30, 30)) < 0.15, 1)
    return Graph(upper | upper.T, draws.integers(0, 2, (30, 5)).astype(float), np.arange(30) % 3)


def dense_loss(graph: Graph, target: int) -> float:
    first, second = map(torch.from_numpy, WEIGHTS)
    adjacency = torch.from_numpy(graph.adjacency.toarray()).double()
    logits = dense_gcn(adjacency, features_of(graph), first, second)
    return float(-logits[target].log_softmax(0)[target % 3])


def test_fga_makes_the_steepest_flip_each_time() -> None:
    """Both kinds: an edge is removed where that helps, and only added where there is none."""
    graph, kinds = planted(), set()
    first, second = map(torch.from_numpy, WEIGHTS)
    for target in range(6, 12):
        flips = FGA(surrogate=WEIGHTS).attack(graph, [target], budget=4)
        A, done = torch.from_numpy(graph.adjacency.toarray()).double(), [target]
        for flip, added in zip(flips.flips.tolist(), flips.is_added, strict=True):
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
        assert flips.spent.tolist() == [4]
        assert dense_loss(flips.apply(graph), target) > dense_loss(graph, target)
    assert kinds == {True, False}


def test_later_targets_are_attacked_in_the_graph_that_earlier_attacks_left() -> None:
    """The second target's gradient is that of the graph which the first attack left."""
    graph = planted()
    both = FGA(surrogate=WEIGHTS).attack(graph, [7, 9], budget=3)
    after_first = both.of(7).apply(graph)
    assert np.array_equal(both.of(9).flips, FGA(surrogate=WEIGHTS).attack(after_first, [9], budget=3).flips)


@pytest.mark.parametrize("donors", ["features", "expected", "neighbourhoods"])
class TestAdaptiveCopyingAttack(AttackContract):
    @pytest.fixture(autouse=True)
    def choose(self, donors: str) -> None:
        self.attack = AdaptiveCopyingAttack(donors, n_donors=3, surrogate=SURROGATE)


def test_given_donors_are_attacked() -> None:
    graph = planted_graph()
    donors = np.array([[(target + 3) % 60, (target + 6) % 60] for target in TARGETS])
    flips = AdaptiveCopyingAttack(donors, surrogate=SURROGATE).attack(graph, TARGETS, budget=4, rng=0)
    for target, own in zip(TARGETS, donors, strict=True):
        assert len(flips.of(target).flips) > 0
        assert np.isin(flips.of(target).flips, own).any(axis=1).all()


def test_donors_by_an_embedding() -> None:
    """On a line of positions the donors of node 4 are 3 and 5."""
    graph = planted_graph()
    line: Any = lambda graph: np.arange(graph.n_nodes)[:, None]  # noqa: E731
    attack = AdaptiveCopyingAttack(line, n_donors=2, surrogate=SURROGATE)
    flips = attack.attack(graph, [4], budget=6, rng=0).flips
    assert len(flips) == 6
    assert np.isin(flips, [3, 5]).any(axis=1).all()


def test_attack_lowers_the_defended_probability_of_the_true_class() -> None:
    graph, donors = planted(), [[3, 12, 20]]

    def defended(attacked: Graph) -> float:
        network = rewired(attacked, Edits(attacked), [0])
        logits = network.copied_logits(torch.zeros(1, 30), torch.tensor(donors[0]), 7)
        return float(logits.softmax(1).mean(0)[7 % 3])

    at_donors = AdaptiveCopyingAttack(donors, surrogate=WEIGHTS).attack(graph, [7], budget=6)
    assert at_donors.spent.tolist() == [6]
    assert defended(at_donors.apply(graph)) < defended(graph)
    assert np.isin(at_donors.flips, donors[0]).any(axis=1).all()


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (FGA(loss="victim"), "loss of FGA must be one of 'target', 'training-set'; got 'victim'"),
        (FGA(surrogate=(np.zeros((12, 4)), np.zeros((5, 3)))), "surrogate of FGA must be two matrices"),
        (AdaptiveCopyingAttack([[1, 2]]), "donors of AdaptiveCopyingAttack must have 3 rows"),
        (AdaptiveCopyingAttack([[60], [1], [1]]), "donors of AdaptiveCopyingAttack must lie"),
        (AdaptiveCopyingAttack(n_donors=60), "n_donors of AdaptiveCopyingAttack must be an integer"),
    ],
)
def test_wrong_parameters(attack: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attack.attack(planted_graph(), TARGETS, train=TRAIN, rng=0)

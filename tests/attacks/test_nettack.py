"""Nettack against brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Graph
from nodecopy.attacks import Nettack, Perturbation, TargetedAttack
from nodecopy.attacks.nettack import MAX_RATIO, FeatureCoOccurrence
from nodecopy.errors import InputError
from tests.attacks import oracles
from tests.attacks.oracles import degree_ratio, linear_logits, margin, small_graphs
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract, with_isolated
from tests.contracts.classifiers import planted_graph

WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))


LINEAR = np.random.default_rng(1).normal(size=(12, 3))
"""Weights of a surrogate for the contract: training one in each test would take long."""


class TestNettack(AttackContract):
    def build(self, *, together: bool = True) -> TargetedAttack:
        return Nettack(degree_test=False, surrogate=LINEAR, together=together)


class TestIndirectNettack(AttackContract):
    def build(self, *, together: bool = True) -> TargetedAttack:
        return Nettack(degree_test=False, surrogate=LINEAR, direct=False, together=together)

    def test_edges_of_the_target_are_not_flipped(self, graph: Graph) -> None:
        for target in TARGETS:
            assert target not in self.run(graph, together=False).of(target).flips


class TestNettackWithFeatures(AttackContract):
    connects_isolated = False

    def build(self, *, together: bool = True) -> TargetedAttack:
        return Nettack(degree_test=False, surrogate=LINEAR, features=True, together=together)

    def test_budget_of_an_isolated_target_is_spent_on_edges_or_features(self, graph: Graph) -> None:
        isolated = with_isolated(graph, 4)
        assert self.run(isolated, [4], budget=2).spent.tolist() == [2]


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (Nettack(structure=False), "structure or features of Nettack must be True"),
        (Nettack(direct=False, n_influencers=0), "n_influencers of Nettack"),
        (
            Nettack(surrogate=torch.nn.Linear(12, 3)),  # type: ignore[arg-type]
            r"got a torch.nn.Module. FGA\(surrogate=module\) attacks a module",
        ),
        (
            Nettack(surrogate=np.zeros((2, 3))),
            r"surrogate of Nettack must have the shape \(12, 3\); got \(2, 3\)",
        ),
    ],
)
def test_error_names_a_wrong_parameter(attack: Nettack, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attack.attack(planted_graph(), TARGETS, train=TRAIN, rng=0)


def test_features_must_be_binary_to_be_flipped() -> None:
    graph = planted_graph().replace(features=0.5 * np.eye(60))
    with pytest.raises(InputError, match="features of the graph must be binary"):
        Nettack(features=True).attack(graph, TARGETS, train=TRAIN, rng=0)


def arrays(graph: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    assert isinstance(graph.features, np.ndarray)
    return graph.adjacency.toarray().astype(float), graph.features.copy()


def best_margin(graph: Graph, flips: Perturbation, *, features: bool, degree_test: bool) -> float:
    """The lowest margin at node 0 that one more flip can give, by trying all; infinite without any."""
    A, X = arrays(flips.apply(graph))
    assert graph.labels is not None
    true, start = int(graph.labels[0]), graph.degrees.tolist()
    margins = [np.inf]
    for other in set(range(1, len(A))) - set(flips.flips[:, 1].tolist()):
        B = oracles.flip(A, 0, other)
        lonely = ((B.sum(0) == 0) & (A.sum(0) > 0)).any()
        noticed = degree_test and degree_ratio(start, B.sum(0).astype(int).tolist()) >= MAX_RATIO
        if not lonely and not noticed:
            margins.append(margin(linear_logits(B, X, WEIGHTS)[0], true))
    allowed = (arrays(graph)[1][0] > 0) | FeatureCoOccurrence(sparse.csr_array(arrays(graph)[1])).likely(0)
    for feature in set(np.flatnonzero(allowed).tolist()) - set(flips.feature_flips[:, 1].tolist()):
        if features:
            Z = X.copy()
            Z[0, feature] = 1 - Z[0, feature]
            margins.append(margin(linear_logits(A, Z, WEIGHTS)[0], true))
    return min(margins)


@given(small_graphs(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=400)
def test_every_flip_is_the_best_there_is(graph: Graph, features: bool, degree_test: bool) -> None:
    """By the margin it reaches, since equal margins may belong to different flips."""
    assert graph.labels is not None
    attacks = [
        Nettack(features=features, degree_test=degree_test, surrogate=WEIGHTS).attack(
            graph, [0], budget=budget
        )
        for budget in range(4)
    ]
    for before, after in pairwise(attacks):
        best = best_margin(graph, before, features=features, degree_test=degree_test)
        assert after.spent[0] - before.spent[0] == (best < np.inf)
        if best < np.inf:
            A, X = arrays(after.apply(graph))
            reached = margin(linear_logits(A, X, WEIGHTS)[0], int(graph.labels[0]))
            assert reached == pytest.approx(best, abs=1e-9)


def test_degree_test_by_hand() -> None:
    """On a cycle every degree is two, so a degree of three shows; one is below the power law."""
    cycle = np.roll(np.eye(9), 1, axis=1)
    graph = Graph(cycle, np.eye(9)[:, :5], np.arange(9) % 3)
    flips = Nettack(surrogate=WEIGHTS).attack(graph, [0], budget=4)
    assert (len(flips.added), len(flips.removed)) == (0, 1)  # another removal would isolate the node
    assert Nettack(surrogate=WEIGHTS, degree_test=False).attack(graph, [0], budget=4).spent.tolist() == [4]


def test_no_node_loses_its_last_edge() -> None:
    star = np.zeros((6, 6))
    star[0, 1:] = 1
    graph = Graph(star, np.eye(6)[:, :5], np.arange(6) % 3)
    flips = Nettack(surrogate=WEIGHTS, degree_test=False).attack(graph, [0], budget=5)
    assert flips.spent.tolist() == [0]  # the hub has an edge to everybody, and each is a leaf's only one


def test_influencers_are_neighbours_first() -> None:
    random = np.random.default_rng(4)
    upper = np.triu(random.random((20, 20)) < 0.2, 1)
    graph = Graph(upper | upper.T, random.integers(0, 2, (20, 5)), np.arange(20) % 3)
    target = int(np.flatnonzero(graph.degrees >= 3)[0])
    attack = Nettack(direct=False, n_influencers=2, surrogate=WEIGHTS, degree_test=False)
    flips = attack.attack(graph, [target], budget=4)
    neighbours = graph.adjacency[[target]].indices
    assert flips.spent.tolist() == [4]
    assert len(set(flips.flips[:, 0].tolist())) <= 2
    assert set(flips.flips[:, 0].tolist()) <= set(neighbours.tolist())
    assert target not in flips.flips


def test_features_that_can_be_added() -> None:
    """By hand: words a, b, c, d, e; a-b, b-c occur together, d with a, e alone."""
    X = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    likely = FeatureCoOccurrence(sparse.csr_array(X.astype(float))).likely
    # Degrees a 2, b 2, c 1, d 1. Node 0 has a, b: half of 1/2 + 1/2 is 1/2, and each word is reached by
    # at most one of them with exactly 1/2, which is not more.
    assert likely(0).tolist() == [False] * 5
    # Node 1 has b, c: half of 1/2 + 1 is 3/4; b is reached from c with 1.
    assert likely(1).tolist() == [False, True, False, False, False]
    # Node 2 has a, d: half of 3/2; a is reached from d with 1.
    assert likely(2).tolist() == [True, False, False, False, False]


def test_feature_flips_are_applied_sparse_and_dense() -> None:
    random = np.random.default_rng(5)
    upper = np.triu(random.random((12, 12)) < 0.3, 1)
    dense = Graph(upper | upper.T, random.integers(0, 2, (12, 5)).astype(float), np.arange(12) % 3)
    other = dense.replace(features=sparse.csr_array(arrays(dense)[1]))
    attack = Nettack(structure=False, features=True, surrogate=WEIGHTS)
    flips = attack.attack(dense, [2], budget=3)
    assert len(flips.feature_flips) == flips.spent[0] > 0
    assert attack.attack(other, [2], budget=3) == flips
    _, X = arrays(dense)
    for node, feature in flips.feature_flips:
        X[node, feature] = 1 - X[node, feature]
    assert np.array_equal(flips.apply(dense).features, X)  # type: ignore[arg-type]
    assert np.array_equal(flips.apply(other).features.toarray(), X)  # type: ignore[union-attr]
    assert "#" in str(flips)

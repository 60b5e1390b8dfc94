"""Nettack against brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from nodecopy import Graph
from nodecopy.attacks import Nettack, Perturbation
from nodecopy.attacks.degree_test import CUTOFF, DegreeTest
from nodecopy.attacks.linear_logits import LinearLogits
from nodecopy.attacks.nettack import CoOccurrence
from tests.attacks import oracles
from tests.attacks.oracles import degree_ratio, linear_logits, margin, small_graphs

WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))


def arrays(graph: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    assert isinstance(graph.features, np.ndarray)
    return graph.adjacency.toarray().astype(float), graph.features.copy()


def linear(graph: Graph) -> LinearLogits:
    return LinearLogits(graph, sparse.csr_array(arrays(graph)[1]), WEIGHTS)


@given(small_graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_scores_equal_brute_force_also_after_flips(graph: Graph, data: st.DataObject) -> None:
    """Direct and indirect pairs, at first and after flips of edges and features."""
    adjacency, features = arrays(graph)
    n, state = graph.n_nodes, linear(graph)
    nodes = st.integers(0, n - 1)
    for _ in range(4):
        u = data.draw(nodes)
        np.testing.assert_allclose(
            state.logits(u), linear_logits(adjacency, features, WEIGHTS)[u], rtol=0, atol=1e-10
        )
        for m in {u, data.draw(nodes)}:
            after = state.after_flips(u, m)
            for other in set(range(n)) - {m, u if m != u else m}:
                brute = linear_logits(oracles.flipped(adjacency, m, other), features, WEIGHTS)[u]
                np.testing.assert_allclose(after[other], brute, rtol=0, atol=1e-10)
        first, second = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
        adjacency = oracles.flipped(adjacency, first, second)
        state.flip(first, second)
        node, feature = data.draw(nodes), data.draw(st.integers(0, 4))
        features[node, feature] = 1 - features[node, feature]
        state.flip_feature(node, feature)
        assert np.array_equal(state.has_feature(node), features[node] > 0)
        assert np.array_equal(state.adjacency().toarray(), adjacency)


def best_margin(graph: Graph, made: Perturbation, *, features: bool, degree_test: bool) -> float:
    """The lowest margin at node 0 that one more flip can give, by trying all; infinite without any."""
    A, X = arrays(made.apply(graph))
    assert graph.labels is not None
    true, start = int(graph.labels[0]), graph.degrees.tolist()
    margins = [np.inf]
    for other in set(range(1, len(A))) - set(made.flips[:, 1].tolist()):
        B = oracles.flipped(A, 0, other)
        lonely = ((B.sum(0) == 0) & (A.sum(0) > 0)).any()
        noticed = degree_test and degree_ratio(start, B.sum(0).astype(int).tolist()) >= CUTOFF
        if not lonely and not noticed:
            margins.append(margin(linear_logits(B, X, WEIGHTS)[0], true))
    allowed = (arrays(graph)[1][0] > 0) | CoOccurrence(sparse.csr_array(arrays(graph)[1])).likely(0)
    for feature in set(np.flatnonzero(allowed).tolist()) - set(made.feature_flips[:, 1].tolist()):
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
    made = [
        Nettack(budget, features=features, degree_test=degree_test, surrogate=WEIGHTS).attack(graph, [0])
        for budget in range(4)
    ]
    for before, after in pairwise(made):
        best = best_margin(graph, before, features=features, degree_test=degree_test)
        assert after.spent[0] - before.spent[0] == (best < np.inf)
        if best < np.inf:
            A, X = arrays(after.apply(graph))
            reached = margin(linear_logits(A, X, WEIGHTS)[0], int(graph.labels[0]))
            assert reached == pytest.approx(best, abs=1e-9)


@given(st.lists(st.integers(1, 9), min_size=4, max_size=12), st.data())
@settings(deadline=None)
def test_degree_test_equals_a_plain_one(degrees: list[int], data: st.DataObject) -> None:
    before, now = list(degrees), list(degrees)
    test = DegreeTest(np.array(before))
    for _ in range(3):
        one, other = data.draw(st.permutations(range(len(now))))[:2]
        change = data.draw(st.sampled_from([-1, 1] if min(now[one], now[other]) > 0 else [1]))
        after = list(now)
        after[one] += change
        after[other] += change
        ratio = degree_ratio(before, after)
        n, total = test._after(np.array([now[one]]), np.array([now[other]]), np.array([change]))
        assert test._ratio(n, total)[0] == pytest.approx(ratio, abs=1e-9)
        if abs(ratio - CUTOFF) > 1e-9:
            passed = test.unnoticed(np.array([now[one]]), np.array([now[other]]), np.array([change]))
            assert passed.tolist() == [ratio < CUTOFF]
        test.flip(now[one], now[other], change)
        now = after


def test_the_cutoff_is_the_quantile_it_names() -> None:
    assert pytest.approx(stats.chi2.ppf(0.05, 1), abs=1e-4) == CUTOFF


def test_degree_test_by_hand() -> None:
    """On a cycle every degree is two, so a degree of three shows; one is below the power law."""
    cycle = np.roll(np.eye(9), 1, axis=1)
    graph = Graph(cycle, np.eye(9)[:, :5], np.arange(9) % 3)
    found = Nettack(4, surrogate=WEIGHTS).attack(graph, [0])
    assert (len(found.added), len(found.removed)) == (0, 1)  # another removal would isolate the node
    assert Nettack(4, surrogate=WEIGHTS, degree_test=False).attack(graph, [0]).spent.tolist() == [4]


def test_nobody_is_left_without_edges() -> None:
    star = np.zeros((6, 6))
    star[0, 1:] = 1
    graph = Graph(star, np.eye(6)[:, :5], np.arange(6) % 3)
    found = Nettack(5, surrogate=WEIGHTS, degree_test=False).attack(graph, [0])
    assert found.spent.tolist() == [0]  # the hub has an edge to everybody, and each is a leaf's only one


def test_influencers_are_neighbours_first() -> None:
    random = np.random.default_rng(4)
    upper = np.triu(random.random((20, 20)) < 0.2, 1)
    graph = Graph(upper | upper.T, random.integers(0, 2, (20, 5)), np.arange(20) % 3)
    target = int(np.flatnonzero(graph.degrees >= 3)[0])
    attack = Nettack(4, direct=False, n_influencers=2, surrogate=WEIGHTS, degree_test=False)
    found = attack.attack(graph, [target])
    neighbours = graph.adjacency[[target]].indices
    assert found.spent.tolist() == [4]
    assert len(set(found.flips[:, 0].tolist())) <= 2
    assert set(found.flips[:, 0].tolist()) <= set(neighbours.tolist())
    assert target not in found.flips


def test_words_that_may_be_added() -> None:
    """By hand: words a, b, c, d, e; a-b, b-c occur together, d with a, e alone."""
    X = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    likely = CoOccurrence(sparse.csr_array(X.astype(float))).likely
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
    attack = Nettack(3, structure=False, features=True, surrogate=WEIGHTS)
    found = attack.attack(dense, [2])
    assert len(found.feature_flips) == found.spent[0] > 0
    assert attack.attack(other, [2]) == found
    _, X = arrays(dense)
    for node, feature in found.feature_flips:
        X[node, feature] = 1 - X[node, feature]
    assert np.array_equal(found.apply(dense).features, X)  # type: ignore[arg-type]
    assert np.array_equal(found.apply(other).features.toarray(), X)  # type: ignore[union-attr]
    assert "#" in str(found)

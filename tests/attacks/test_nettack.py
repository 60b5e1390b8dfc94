"""Nettack, its tests and surrogates against brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from nodecopy import Graph
from nodecopy.attacks import FGA, AdaptiveCopyingAttack, Attack, Nettack, Perturbation
from nodecopy.attacks.nettack import MAX_RATIO, DegreeTest, FeatureCoOccurrence, NettackEdits
from nodecopy.errors import DataWarning, InputError
from tests.attacks import oracles
from tests.attacks.oracles import degree_ratio, linear_logits, margin, small_graphs
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract, with_isolated
from tests.contracts.classifiers import planted_graph

WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))
LINEAR = np.random.default_rng(1).normal(size=(12, 3))  # training one in each test would take long


class TestNettack(AttackContract):
    attack = Nettack(degree_test=False, surrogate=LINEAR)


class TestIndirectNettack(AttackContract):
    attack = Nettack(degree_test=False, surrogate=LINEAR, direct=False)

    def test_edges_of_the_target_are_not_flipped(self, graph: Graph) -> None:
        for target in TARGETS:
            assert target not in self.run(graph, together=False).of(target).flips


class TestNettackWithFeatures(AttackContract):
    connects_isolated = False
    attack = Nettack(degree_test=False, surrogate=LINEAR, features=True)

    def test_budget_of_an_isolated_target_is_spent_on_edges_or_features(self, graph: Graph) -> None:
        isolated = with_isolated(graph, 4)
        assert self.run(isolated, [4], budget=2).spent.tolist() == [2]


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (Nettack(structure=False), "structure or features of Nettack must be True"),
        (Nettack(direct=False, n_influencers=0), "n_influencers of Nettack"),
        (Nettack(surrogate=torch.nn.Linear(12, 3)), "attacks a module"),  # type: ignore[arg-type]
        (Nettack(surrogate=np.zeros((2, 3))), "surrogate of Nettack must have the shape"),
    ],
)
def test_wrong_parameters(attack: Nettack, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attack.attack(planted_graph(), TARGETS, train=TRAIN, rng=0)
    graph = planted_graph().replace(features=0.5 * np.eye(60))
    with pytest.raises(InputError, match="features of the graph must be binary"):
        Nettack(features=True).attack(graph, TARGETS, train=TRAIN, rng=0)


def arrays(graph: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    assert isinstance(graph.features, np.ndarray)
    return graph.adjacency.toarray().astype(float), graph.features.copy()


def best_margin(graph: Graph, flips: Perturbation, *, features: bool, degree_test: bool) -> float:
    """The lowest margin at node 0 that one more flip can give, by trying all; infinite without any."""
    A, X = arrays(flips.apply(graph))
    assert graph.label_codes is not None
    true, start = int(graph.label_codes[0]), graph.degrees.tolist()
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
@settings(max_examples=400)
def test_every_flip_is_the_best_there_is(graph: Graph, features: bool, degree_test: bool) -> None:
    """By the margin it reaches, since equal margins may belong to different flips."""
    assert graph.label_codes is not None
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
            reached = margin(linear_logits(A, X, WEIGHTS)[0], int(graph.label_codes[0]))
            assert reached == pytest.approx(best, abs=1e-9)


def test_degree_test_by_hand() -> None:
    """On a cycle every degree is two, so a degree of three shows; one is below the power law."""
    cycle = np.roll(np.eye(9), 1, axis=1)
    graph = Graph(cycle, np.eye(9)[:, :5], np.arange(9) % 3)
    flips = Nettack(surrogate=WEIGHTS).attack(graph, [0], budget=4)
    assert (len(flips.added), len(flips.removed)) == (0, 1)  # another removal would isolate the node
    careless = Nettack(surrogate=WEIGHTS, degree_test=False)
    assert careless.attack(graph, [0], budget=4).spent.tolist() == [4]
    star = np.zeros((6, 6))
    star[0, 1:] = 1
    graph = Graph(star, np.eye(6)[:, :5], np.arange(6) % 3)
    # The hub has an edge to every node, and each is a leaf's only one.
    assert careless.attack(graph, [0], budget=5).spent.tolist() == [0]


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


@given(small_graphs(), st.data())
@settings(max_examples=40)
def test_logits_equal_brute_force_before_and_after_flips(graph: Graph, data: st.DataObject) -> None:
    """Direct and indirect pairs, before and after flips of edges and features."""
    assert isinstance(graph.features, np.ndarray)
    adjacency, features = graph.adjacency.toarray().astype(float), graph.features.copy()
    n, state = graph.n_nodes, NettackEdits(graph, sparse.csr_array(features), WEIGHTS, np.zeros(0, int))
    nodes = st.integers(0, n - 1)
    for _ in range(4):
        u = data.draw(nodes)
        np.testing.assert_allclose(
            state.logits(u), linear_logits(adjacency, features, WEIGHTS)[u], rtol=0, atol=1e-10
        )
        for m in {u, data.draw(nodes)}:
            after = state.after_flips(u, m)
            for other in set(range(n)) - {m, u if m != u else m}:
                brute = linear_logits(oracles.flip(adjacency, m, other), features, WEIGHTS)[u]
                np.testing.assert_allclose(after[other], brute, rtol=0, atol=1e-10)
        first, second = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
        adjacency = oracles.flip(adjacency, first, second)
        state.flip(first, second)
        node, feature = data.draw(nodes), data.draw(st.integers(0, 4))
        features[node, feature] = 1 - features[node, feature]
        state.flip_feature(node, feature)
        assert np.array_equal(state.has_feature(node), features[node] > 0)
        assert np.array_equal(state.adjacency().toarray(), adjacency)


@given(st.lists(st.integers(1, 9), min_size=4, max_size=12), st.data())
def test_ratio_equals_the_formulas_of_the_paper(degrees: list[int], data: st.DataObject) -> None:
    before, now = list(degrees), list(degrees)
    test = DegreeTest(np.array(before))
    for _ in range(3):
        node, other = data.draw(st.permutations(range(len(now))))[:2]
        change = data.draw(st.sampled_from([-1, 1] if min(now[node], now[other]) > 0 else [1]))
        after = list(now)
        after[node] += change
        after[other] += change
        ratio = degree_ratio(before, after)
        flip = np.array([now[node]]), np.array([now[other]]), np.array([change])
        assert test.ratio(*flip)[0] == pytest.approx(ratio, abs=1e-9)
        test.record(now[node], now[other], change)
        now = after


def test_largest_ratio_is_the_quantile_it_names() -> None:
    assert pytest.approx(stats.chi2.ppf(0.05, 1), abs=1e-4) == MAX_RATIO


@pytest.mark.parametrize(
    "attack", [Nettack(degree_test=False), FGA(), FGA(loss="training-set"), AdaptiveCopyingAttack([[1, 2]])]
)
def test_surrogate_is_trained_from_the_seed(attack: Attack) -> None:
    graph = planted_graph()
    flips = [attack.attack(graph, [4], budget=3, train=TRAIN, rng=seed) for seed in (0, 0, 1, 2)]
    assert flips[0] == flips[1]
    assert any(other != flips[0] for other in flips[2:])
    assert flips[0].spent.tolist() == [3]
    with (
        pytest.warns(DataWarning, match=r"no training node has class yew \(20 nodes\)"),
        pytest.raises(InputError, match=f"classes that some training node has.* got .*'{graph.node_ids[5]}'"),
    ):
        attack.attack(graph, [5], train=[0, 1])
    assert graph.label_codes is not None
    unlabelled = graph.replace(labels=np.where(np.arange(60) == 0, -1, graph.label_codes))
    with pytest.raises(InputError, match=f"labelled nodes; got the node with id '{graph.node_ids[0]}'"):
        attack.attack(unlabelled, [4], train=TRAIN)


def find_flips(attack: Attack, graph: Graph) -> list[list[int]]:
    flips: list[list[int]] = attack.attack(graph, [4], budget=3, train=TRAIN, rng=0).flips.tolist()
    return flips


@pytest.mark.parametrize("attack", [Nettack, FGA])
def test_surrogates_standardise_measurements(attack: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Flips found on raw measurements hardly changed a classifier that standardises them."""
    graph = planted_graph()
    features: Any = graph.features
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    amounts = graph.replace(features=standardised * 1e3 ** np.arange(-1, 2).repeat(4) + 5)
    flips = find_flips(attack(), amounts)
    (message,) = caplog.messages
    assert message.startswith("features: each column is standardised for the attacker's surrogate, since")
    assert flips == find_flips(attack(scale="none"), graph.replace(features=standardised))
    assert flips != find_flips(attack(scale="none"), amounts)
    with pytest.raises(InputError, match=f"scale of {attack.__name__} must be one of .*; got 'log'"):
        find_flips(attack(scale="log"), amounts)


@pytest.mark.parametrize(("attack", "scale"), [(Nettack, "none"), (FGA, "rows")])
def test_surrogates_take_word_counts_as_in_their_papers(attack: Any, scale: str) -> None:
    graph = planted_graph().replace(features=np.random.default_rng(0).poisson(0.2, (60, 30)))
    assert find_flips(attack(), graph) == find_flips(attack(scale=scale), graph)


def test_a_class_without_training_nodes_is_left_out() -> None:
    """It was refused before; the surrogate is that of a graph without the labels of the class."""
    graph = planted_graph()
    labels = np.array(graph.labels)
    train = [node for node in TRAIN if labels[node] != "yew"]
    unlabelled = graph.replace(labels=np.where(labels == "yew", "", labels))
    for attack in (Nettack(degree_test=False), FGA(), AdaptiveCopyingAttack([[1, 2]])):
        with pytest.warns(DataWarning, match="no training node has class yew"):
            flips = attack.attack(graph, [4], budget=3, train=train, rng=0)
        assert flips == attack.attack(unlabelled, [4], budget=3, train=train, rng=0)
    alone = graph.replace(labels=np.where((labels == "yew") & (np.arange(60) != 5), "", labels))
    with pytest.raises(InputError, match="at least one node of every class; got none of class yew"):
        Nettack().attack(alone, [5], rng=0)  # the only node of its class is no training node by default

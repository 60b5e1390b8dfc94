"""Donor rules: probabilities by hand, by plain loops and by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import (
    Balanced,
    Graph,
    Interactions,
    Jaccard,
    KeepByDegree,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    datasets,
    sample_like,
)
from nodecopy._core.arrays import IntArray
from nodecopy.copying import choose_donors, rank_donors
from nodecopy.copying import donors as rules
from nodecopy.copying import kernels as kernels
from nodecopy.copying.distributions import DonorLists, KeepingDistribution
from nodecopy.copying.donors import group_labels
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.embeddings import shared_neighbourhoods
from nodecopy.features.neighbours import NeighbourSearch
from tests.copying.oracles import Matrix, with_keep
from tests.strategies import interactions

EMPTY = Graph(np.zeros((4, 4)))


def P(donors: Any, data: Graph | Interactions = EMPTY) -> Matrix:
    return np.asarray(donors.fit(data).probabilities().toarray())


def test_same_label_by_hand() -> None:
    half = 1 / 2
    wanted = [[half, 0, half, 0], [0, half, 0, half], [half, 0, half, 0], [0, half, 0, half]]
    assert P(SameLabel([0, 1, 0, 1])).tolist() == wanted
    assert P(SameLabel([7, 2, 7, 2])).tolist() == wanted
    assert P(SameLabel(), EMPTY.replace(labels=["x", "y", "x", "y"])).tolist() == wanted


def test_nodes_without_label_keep_their_own() -> None:
    wanted = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    assert P(SameLabel([-1, 0, 0, -1])).tolist() == wanted
    assert P(SameLabel(), EMPTY.replace(labels=["", "a", "a", ""])).tolist() == wanted
    assert P(SameLabel([-1] * 4)).tolist() == np.eye(4).tolist()


POINTS = np.array([[0.0], [1.0], [2.0], [5.0]])


@given(st.data(), st.booleans())
def test_nearest_neighbours_against_sorting(data: st.DataObject, include_self: bool) -> None:
    """Points on a small lattice, so that distances often tie."""
    n = data.draw(st.integers(2, 8))
    points = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=n, max_size=n)))
    k = data.draw(st.integers(1, n if include_self else n - 1))
    result = P(NearestNeighbours(k, points, include_self), Graph(np.zeros((n, n))))
    for i in range(n):
        others = [m for m in range(n) if include_self or m != i]
        distance = {m: int(((points[i] - points[m]) ** 2).sum()) for m in others}
        chosen = sorted(others, key=lambda m, d=distance, i=i: (d[m], m != i, m))[:k]  # type: ignore[misc]
        wanted = [1 / len(chosen) if m in chosen else 0 for m in range(n)]
        np.testing.assert_allclose(result[i], wanted, rtol=1e-15)


def test_weighted_by_hand() -> None:
    similarity = np.array([[1.0, 3, 0, 0], [0, 0, 0, 0], [0, 2, 0, 0], [1, 1, 1, 1]])
    wanted = [[0.25, 0.75, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 0.25, 0.25]]
    for given_as in (
        similarity,
        sparse.csr_array(similarity),
        sparse.coo_array(similarity.astype(np.float32)),
    ):
        assert P(Weighted(given_as)).tolist() == wanted
    assert P(Weighted(np.ones((4, 4), bool))).tolist() == np.full((4, 4), 0.25).tolist()
    assert P(Weighted(np.zeros((4, 4)))).tolist() == np.eye(4).tolist()


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300, 1.7e308])
def test_weights_may_be_tiny_or_huge(scale: float) -> None:
    similarity = np.zeros((4, 4))
    similarity[:, :2] = scale
    similarity[3] = [1e-300, 0, 0, 1e300]
    result = P(Weighted(similarity))
    assert result[:3].tolist() == [[0.5, 0.5, 0, 0]] * 3
    assert result[3].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("donors", [SameLabel(np.zeros(0, int)), Jaccard(), Weighted(np.zeros((0, 0)))])
def test_no_nodes(donors: Any) -> None:
    assert P(donors, Graph(np.zeros((0, 0)))).shape == (0, 0)


# Degrees 1, 2, 2, 3 and 0.
PAW = Graph.from_edges([0, 1, 1, 2], [3, 2, 3, 3], node_ids=range(5))
LINE = np.array([[0.0], [1.0], [3.0], [3.5], [4.0]])


@pytest.mark.parametrize(
    ("k", "groups", "ratio", "include_self", "wanted"),
    [
        (2, None, 1.0, True, [[0], [1, 2], [2, 1], [3], [4]]),
        (2, None, 1.5, True, [[0], [1, 2], [2, 3], [3, 2], [4]]),
        (3, None, 2.0, True, [[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1], [4]]),
        (2, None, 2.0, False, [[1, 2], [0, 2], [3, 1], [2, 1], [4]]),
        (2, [0, 0, 1, 1, 0], None, True, [[0, 1], [1, 0], [2, 3], [3, 2], [4, 1]]),
        (3, [0, 0, 1, 1, -1], None, True, [[0, 1], [1, 0], [2, 3], [3, 2], [4]]),
        (2, [0, 0, 1, 1, 0], 1.4, False, [[0], [1], [2], [3], [4]]),
    ],
)
def test_nearest_among_peers_by_hand(
    k: int, groups: Any, ratio: float | None, include_self: bool, wanted: list[list[int]]
) -> None:
    by_hand = np.zeros((5, 5))
    for i, donors in enumerate(wanted):
        by_hand[i, donors] = 1 / len(donors)
    rule = NearestNeighbours(k, LINE, include_self, groups=groups, max_degree_ratio=ratio)
    np.testing.assert_allclose(P(rule, PAW), by_hand, rtol=1e-15)
    rule = NearestNeighbours(k, sparse.csr_array(LINE), include_self, groups=groups, max_degree_ratio=ratio)
    np.testing.assert_allclose(P(rule, PAW), by_hand, rtol=1e-15)


@settings(max_examples=40)
@given(st.integers(2, 25), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_balanced_law_takes_every_node_once(n: int, k: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    graph = Graph(draw.random((n, n)) < 0.3, directed=True)
    plain = NearestNeighbours(min(k, n), draw.normal(size=(n, 2)))
    balanced, before = P(Balanced(plain), graph), P(plain, graph)
    np.testing.assert_allclose(balanced.sum(axis=0), 1, rtol=1e-7)
    np.testing.assert_allclose(balanced.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(balanced, balanced.T, atol=1e-7)
    mutual = np.maximum(before, before.T)
    scale = np.sqrt(np.diag(balanced) / np.diag(mutual))
    np.testing.assert_allclose(balanced, mutual * np.outer(scale, scale), rtol=1e-6)
    # So the copied rows are expected to have each degree as often as the observed ones.
    degrees = graph.degrees
    for degree in np.unique(degrees):
        expected = balanced[:, degrees == degree].sum()
        assert expected == pytest.approx((degrees == degree).sum(), rel=1e-6)


def test_a_star_without_loops_cannot_be_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_SCALINGS", 200)
    star = np.zeros((4, 4))
    star[0, 1:] = star[1:, 0] = 1
    with pytest.raises(InputError, match="donors of Balanced must let every node be its own donor"):
        Balanced(Weighted(star)).fit(EMPTY)


def test_later_searches_within_groups_reuse_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    upper = np.triu(draw.random((90, 90)) < 0.06, 1)
    graph = Graph(upper | upper.T, (draw.random((90, 40)) < 0.1).astype(float))
    labelled = [graph.replace(labels=draw.integers(0, n_groups, 90)) for n_groups in (3, 3, 3, 90)]
    embedding = shared_neighbourhoods(graph)
    alone = [NearestNeighbours(5, embedding, groups="labels").fit(graph) for graph in labelled]
    n_searched: list[int] = []
    search = NeighbourSearch.nearest

    def nearest(self: NeighbourSearch, *args: Any, **kwargs: Any) -> tuple[IntArray, IntArray]:
        indptr, indices = search(self, *args, **kwargs)
        n_searched[-1] += len(indptr) - 1
        return indptr, indices

    monkeypatch.setattr(NeighbourSearch, "nearest", nearest)
    for of, wanted in zip(labelled, alone, strict=True):
        n_searched.append(0)
        donors = NearestNeighbours(5, "neighbourhoods", groups="labels").fit(of)
        assert np.array_equal(donors.offsets, wanted.offsets)
        assert np.array_equal(donors.members, wanted.members)
    assert n_searched[0] == 90
    assert 90 < n_searched[1] < 90 + 45  # all nodes among all, and some within their group
    assert 0 < n_searched[2] < 45


@pytest.mark.parametrize("donors", [SameLabel(), NearestNeighbours(2, np.eye(9), groups="labels")])
def test_few_labels_warn(donors: Any) -> None:
    """Nodes without a label keep their neighbours, so that samples were the input without a word."""
    few = Graph(np.ones((9, 9)), labels=[0, 0, 1, 1, -1, -1, -1, -1, -1])
    with pytest.warns(DataWarning, match="4 of 9 nodes have a label, by which donors are"):
        NodeCopying(donors).fit(few)
    NodeCopying(donors).fit(few.replace(labels=[0, 0, 1, 1, 1, -1, -1, -1, -1]))


def test_nearest_by_neighbourhoods_are_nodes_with_similar_neighbours() -> None:
    halves = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)  # two cliques
    rule = NearestNeighbours(4, embeddings="neighbourhoods")
    assert P(rule, Graph(halves)).tolist() == np.kron(np.eye(2), np.full((4, 4), 0.25)).tolist()


FEW, HALF = [0, -1, -1, -1], [0, 1, -1, -1]


@pytest.mark.parametrize(
    ("labels", "features", "donors", "reason"),
    [
        (HALF, np.eye(4), SameLabel, "2 of 4 nodes have a label"),
        (FEW, np.eye(4), NearestNeighbours, "only 1 of 4 nodes have a label, fewer than half, and there are"),
        (FEW, None, Jaccard, "only 1 of 4 nodes have a label, fewer than half, and there are no features"),
        (None, None, Jaccard, "no node has a label, and there are no features"),
    ],
)
def test_the_law_of_a_graph(labels: Any, features: Any, donors: type, reason: str) -> None:
    graph = Graph(np.ones((4, 4)), features, labels)
    chosen, because = choose_donors(graph)
    assert isinstance(chosen, donors)
    assert because.startswith(reason)
    assert chosen.fit(graph).n_nodes == 4  # even with fewer nodes than the default number of neighbours


def test_donors_of_features_are_chosen_by_held_out_edges() -> None:
    draws = np.random.default_rng(0)
    labels = np.arange(90) % 3
    dense = np.triu(draws.random((90, 90)) < np.where(labels[:, None] == labels, 0.4, 0.02), 1)
    graph = Graph(dense, draws.random((90, 5)))  # the features are uninformative
    chosen: Any = choose_donors(graph)[0]
    assert chosen.embeddings == "neighbourhoods"
    assert repr(rank_donors(graph, rng=0)[0][0]) == repr(chosen)
    assert NodeCopying().fit(graph).distribution_.n_nodes == 90


def test_labels_that_explain_the_edges_are_the_best_donors() -> None:
    labels = np.arange(80) % 2
    draws = np.random.default_rng(0)
    dense = np.triu(draws.random((80, 80)) < np.where(labels[:, None] == labels, 0.3, 0.02), 1)
    given: list[Any] = [SameLabel(draws.permutation(labels)), SameLabel(labels)]
    best, worst = rank_donors(Graph(dense), given, rng=0)
    assert best[0] is given[1]
    # Knowing the labels gives 0.8; the standard error of an area is below 0.06 with 50 edges.
    assert best[1] > 0.68
    assert abs(worst[1] - 0.5) < 0.18


KARATE, LIBRARY = datasets.load("karate"), datasets.load("library")


@pytest.mark.parametrize(
    "data", [KARATE, KARATE.replace(features=np.eye(34)), KARATE.replace(labels=None, directed=True), LIBRARY]
)
def test_rules_of_all_data_are_ranked(data: Any) -> None:
    ranked = rank_donors(data, rng=0)
    assert [area for _, area in ranked] == sorted((area for _, area in ranked), reverse=True)
    assert len({repr(rule) for rule, _ in ranked}) == len(ranked) >= 2


def test_wrong_arguments_of_rank_donors() -> None:
    complete = Interactions(np.ones((2, 2)))
    given: Any
    for data, given, fragment in (
        *((graph, None, "2 edges") for graph in (EMPTY, complete)),
        *((KARATE, [], "at least one"), (KARATE, Jaccard(), "list")),
    ):
        with pytest.raises(InputError, match=fragment):
            rank_donors(data, given, rng=0)


def jaccard(sets: list[set[int]], include_self: bool, exponent: float, top: int | None) -> Matrix:
    n = len(sets)
    S = np.zeros((n, n))
    for i in range(n):
        for m in range(n):
            shared = len(sets[i] & sets[m])
            if shared and (include_self or i != m):
                S[i, m] = shared / len(sets[i] | sets[m])
        if top is not None:
            S[i, sorted(range(n), key=lambda m, i=i: (-S[i, m], m))[top:]] = 0  # type: ignore[misc]
        S[i] = np.where(S[i] > 0, S[i] ** exponent, 0)
        if not S[i].any():
            S[i, i] = 1
    return np.asarray(S / S.sum(axis=1, keepdims=True))


@given(
    interactions(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.none() | st.integers(1, 4),
    st.sampled_from([1, 20, rules.MAX_BLOCK_ENTRIES]),
)
def test_jaccard_against_sets(
    log: Interactions, include_self: bool, exponent: float, top: int | None, block: int
) -> None:
    """Also with blocks of one user and of a few."""
    sets = [set(np.flatnonzero(row).tolist()) for row in log.matrix.toarray()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "MAX_BLOCK_ENTRIES", block)
        result = P(Jaccard(include_self, exponent, top), log)
    expected = jaccard(sets, include_self, exponent, top).reshape(result.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@given(
    interactions(),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([1, 2, 3, 4, 10**12]),
    st.sampled_from([1, 3, kernels.N_TASKS]),
)
def test_the_same_bits_as_without_compiled_code(
    log: Interactions, include_self: bool, exponent: float, max_donors: int, n_tasks: int
) -> None:
    assume(log.n_users)
    rule = Jaccard(include_self, exponent, max_donors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "N_TASKS", n_tasks)
        expected = NodeCopying(rule).fit(log).distribution_
        patch.setattr(rules, "MIN_COMPILED_PRODUCTS", 0)
        compiled = NodeCopying(rule).fit(log).distribution_
    for name in ("data", "indices", "indptr"):
        first, second = (getattr(part.probabilities(), name) for part in (compiled, expected))
        assert np.array_equal(first, second)


N_GRID = 4000
STAR = Graph.from_edges([0, 0, 0], [1, 2, 3], node_ids=range(5), labels=[0, 1, 1, 0, 0])


def test_keep_by_degree_by_hand() -> None:
    """Degrees 3, 1, 1, 1, 0 with a pseudo-degree of 1 keep 3/4, 1/2, 1/2, 1/2 and 0 of their own."""
    found = KeepByDegree(SameLabel(), pseudo_degree=1).fit(STAR).probabilities().toarray()
    third = 1 / 3
    wanted = [
        [0.75 + third / 4, 0, 0, third / 4, third / 4],
        [0, 0.75, 0.25, 0, 0],
        [0, 0.25, 0.75, 0, 0],
        [third / 2, 0, 0, 0.5 + third / 2, third / 2],
        [third, 0, 0, third, third],
    ]
    np.testing.assert_allclose(found, np.array(wanted), atol=1e-15)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.6, 1.0])), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=30)
def test_kept_donors_have_their_probabilities(nodes: list[tuple[int, float]], keep: float) -> None:
    groups, keep_of = (np.array(part) for part in zip(*nodes, strict=True))
    lists = DonorLists.from_groups(np.unique(groups, return_inverse=True)[1])
    distribution, n = KeepingDistribution(lists, keep_of.astype(float)), len(nodes)
    counts = np.zeros((n, n))
    for u in (np.arange(N_GRID) + 0.5) / N_GRID:
        counts[np.arange(n), distribution.draw(np.full(n, u), keep)] += 1
    wanted = with_keep(distribution.probabilities().toarray(), keep)
    np.testing.assert_allclose(counts / N_GRID, wanted, atol=2 / N_GRID)


@pytest.mark.parametrize(
    ("donors", "fragment"),
    [
        (SameLabel(), "labels of SameLabel must be given"),
        (NearestNeighbours(2), "embeddings of NearestNeighbours must be given"),
        (NearestNeighbours(0, POINTS), "an integer of at least 1; got 0"),
        (NearestNeighbours(2, POINTS[:3]), "must be a matrix with 4 rows"),
        (NearestNeighbours(2, embeddings="nodes"), "if a name, must be one of"),
        (NearestNeighbours(2, POINTS, max_degree_ratio=0.5), "max_degree_ratio of NearestNeighbours must be"),
        (NearestNeighbours(2, POINTS, groups="labels"), "groups of NearestNeighbours must be given"),
        (Weighted(-np.eye(4)), "must not hold negative weights"),
        (Weighted(np.ones((4, 3))), "must have shape"),
        (KeepByDegree("same"), "KeepByDegree must be one of .*; got 'same'. Did you mean same-label"),
        (Balanced(SameLabel), "donors of Balanced must be a donor rule"),  # type: ignore[arg-type]
    ],
)
def test_errors(donors: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        donors.fit(EMPTY)


def test_labels_that_a_node_and_its_donor_share() -> None:
    graph = Graph(np.ones((3, 3)), labels=[0, 1, 0])
    assert group_labels(Balanced(SameLabel()), graph).tolist() == [0, 1, 0]
    assert group_labels(Jaccard(), graph) is None


@pytest.mark.parametrize(
    ("name", "donors"),
    [
        ("same-label", SameLabel()),
        ("nearest-neighbours", NearestNeighbours()),
        ("jaccard", Jaccard()),
        ("auto", None),
        (KeepByDegree("same-label"), KeepByDegree(SameLabel())),
        (Balanced("jaccard"), Balanced(Jaccard())),
    ],
)
def test_donor_rules_by_name(name: Any, donors: Any) -> None:
    digits = datasets.load("digits").subgraph(range(100))
    assert NodeCopying(name).fit(digits).sample(rng=0) == NodeCopying(donors).fit(digits).sample(rng=0)
    assert sample_like(digits, donors=name, rng=0) == sample_like(digits, donors=donors, rng=0)

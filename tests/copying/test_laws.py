from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import (
    Balanced,
    Graph,
    Interactions,
    Jaccard,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
)
from nodecopy._core.arrays import IntArray
from nodecopy.copying import donors as rules
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.embeddings import shared_neighbourhoods
from nodecopy.features.neighbours import NeighbourSearch
from tests.copying.oracles import Matrix

EMPTY = Graph(np.zeros((4, 4)))


def P(donors: Any, data: Graph | Interactions = EMPTY) -> Matrix:
    return np.asarray(donors.fit(data).probabilities().toarray())


def test_same_label_by_hand() -> None:
    half = 1 / 2
    wanted = [[half, 0, half, 0], [0, half, 0, half], [half, 0, half, 0], [0, half, 0, half]]
    assert P(SameLabel([0, 1, 0, 1])).tolist() == wanted
    assert P(SameLabel([7, 2, 7, 2])).tolist() == wanted
    assert P(SameLabel(), EMPTY.replace(labels=["x", "y", "x", "y"])).tolist() == wanted


def test_given_labels_replace_the_graphs() -> None:
    graph = EMPTY.replace(labels=[0, 0, 0, 0])
    assert P(SameLabel(np.array([0, 1, 2, 3], np.uint8)), graph).tolist() == np.eye(4).tolist()
    assert P(SameLabel(), graph).tolist() == np.full((4, 4), 0.25).tolist()


def test_nodes_without_label_keep_their_own() -> None:
    wanted = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    assert P(SameLabel([-1, 0, 0, -1])).tolist() == wanted
    assert P(SameLabel(), EMPTY.replace(labels=["", "a", "a", ""])).tolist() == wanted
    assert P(SameLabel([-1] * 4)).tolist() == np.eye(4).tolist()


def test_labels_stay_as_they_were() -> None:
    labels = np.array([-1, 0, -1, 2])
    SameLabel(labels).fit(EMPTY)
    assert labels.tolist() == [-1, 0, -1, 2]


POINTS = np.array([[0.0], [1.0], [2.0], [5.0]])


@pytest.mark.parametrize(
    ("include_self", "ties", "wanted"),
    [
        (True, "first", [[0, 1], [1, 0], [2, 1], [3, 2]]),
        (True, "all", [[0, 1], [0, 1, 2], [1, 2], [2, 3]]),
        (False, "first", [[1, 2], [0, 2], [0, 1], [1, 2]]),
        (False, "all", [[1, 2], [0, 2], [0, 1], [1, 2]]),
    ],
)
def test_two_nearest_by_hand(include_self: bool, ties: str, wanted: list[list[int]]) -> None:
    rule = NearestNeighbours(2, POINTS, include_self, ties)
    by_hand = np.zeros((4, 4))
    for i, donors in enumerate(wanted):
        by_hand[i, donors] = 1 / len(donors)
    np.testing.assert_allclose(P(rule), by_hand, rtol=1e-15)


def test_one_nearest_without_self_and_with_ties() -> None:
    rule = NearestNeighbours(1, POINTS, include_self=False, ties="all")
    assert P(rule)[1].tolist() == [0.5, 0, 0.5, 0]
    rule = NearestNeighbours(1, POINTS, include_self=False)
    assert P(rule)[1].tolist() == [1, 0, 0, 0]


@settings(deadline=None)
@given(st.data(), st.booleans(), st.sampled_from(["first", "all"]))
def test_nearest_neighbours_against_sorting(data: st.DataObject, include_self: bool, ties: str) -> None:
    """Points on a small lattice, so that distances often tie."""
    n = data.draw(st.integers(2, 8))
    points = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=n, max_size=n)))
    k = data.draw(st.integers(1, n if include_self else n - 1))
    result = P(NearestNeighbours(k, points, include_self, ties), Graph(np.zeros((n, n))))
    for i in range(n):
        others = [m for m in range(n) if include_self or m != i]
        distance = {m: int(((points[i] - points[m]) ** 2).sum()) for m in others}
        ranked = sorted(others, key=lambda m, d=distance, i=i: (d[m], m != i, m))  # type: ignore[misc]
        chosen = ranked[:k]
        if ties == "all":
            chosen = [m for m in others if distance[m] <= distance[ranked[k - 1]]]
        wanted = [1 / len(chosen) if m in chosen else 0 for m in range(n)]
        np.testing.assert_allclose(result[i], wanted, rtol=1e-15)


def test_features_are_the_default_embeddings() -> None:
    for features in (POINTS, sparse.csr_array(POINTS)):
        graph = EMPTY.replace(features=features)
        assert np.array_equal(P(NearestNeighbours(2, scale="none"), graph), P(NearestNeighbours(2, POINTS)))


def test_measurements_are_standardised_to_find_donors(caplog: pytest.LogCaptureFixture) -> None:
    """Donors were the nodes with the nearest income before, whatever their city."""
    city, income = np.repeat([0.0, 1.0], 20), np.random.default_rng(0).normal(5e4, 1e4, 40)
    graph = Graph(np.zeros((40, 40)), np.column_stack([city, 1 - city, income]))
    with caplog.at_level(logging.INFO, "nodecopy"):
        probabilities = P(NearestNeighbours(10), graph)
    assert not probabilities[city == 0][:, city == 1].any()
    assert "features: each column is standardised to find donors, since" in caplog.text
    assert "Use scale='unit', 'rows', 'none' or 'binary' otherwise." in caplog.text
    assert P(NearestNeighbours(10, scale="none"), graph)[city == 0][:, city == 1].any()


def test_word_counts_are_used_as_they_are_to_find_donors() -> None:
    counts = np.random.default_rng(0).poisson(0.2, (40, 30)).astype(float)
    graph = Graph(np.zeros((40, 40)), counts)
    assert np.array_equal(P(NearestNeighbours(5), graph), P(NearestNeighbours(5, counts), graph))


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


def nan_matrix() -> Matrix:
    matrix = np.ones((4, 4))
    matrix[2, 3] = np.nan
    return matrix


@pytest.mark.parametrize(
    ("donors", "message"),
    [
        (SameLabel(), "labels of SameLabel must be given, since the graph has no labels."),
        (SameLabel([0, 1]), "labels of SameLabel must hold one entry per node, 4 in all; got 2."),
        (SameLabel([0.5, 1, 2, 3]), "labels of SameLabel must be integers; got float64."),
        (SameLabel(["a", "b", "c", "d"]), "labels of SameLabel must be integers; got <U1."),
        (SameLabel([[0, 1, 2, 3]]), r"labels of SameLabel must have one dimension; got shape \(1, 4\)."),
        (NearestNeighbours(2), "embeddings of NearestNeighbours must be given"),
        (
            NearestNeighbours(5, POINTS),
            "n_neighbours of NearestNeighbours must be an integer between 1 and n_nodes = 4; got 5.",
        ),
        (
            NearestNeighbours(4, POINTS, include_self=False),
            "n_neighbours of NearestNeighbours must be an integer between 1 and n_nodes - 1 = 3; got 4.",
        ),
        (
            NearestNeighbours(0, POINTS),
            "n_neighbours of NearestNeighbours must be an integer between 1 and .* got 0.",
        ),
        (
            NearestNeighbours(2, POINTS, ties="some"),
            "ties of NearestNeighbours must be one of 'first', 'all'; got 'some'.",
        ),
        (
            NearestNeighbours(2, POINTS[:3]),
            r"embeddings of NearestNeighbours must be a matrix with 4 rows, one per node; got shape \(3, 1\)",
        ),
        (NearestNeighbours(2, POINTS[:, 0]), r"embeddings of NearestNeighbours .* got shape \(4,\)."),
        (
            NearestNeighbours(2, nan_matrix()),
            "embeddings of NearestNeighbours must hold finite numbers; got nan.",
        ),
        (Jaccard(exponent=-1), "exponent of Jaccard must be a number of at least 0; got -1."),
        (Jaccard(exponent=float("nan")), "exponent of Jaccard must be a number of at least 0; got nan."),
        (Jaccard(max_donors=0), "max_donors of Jaccard must be an integer of at least 1; got 0."),
        (Weighted(-np.eye(4)), "similarity of Weighted must not hold negative weights; got -1.0."),
        (Weighted(nan_matrix()), "similarity of Weighted must hold finite numbers; got nan."),
        (Weighted(np.ones((4, 3))), r"similarity of Weighted must have shape \(4, 4\); got \(4, 3\)."),
        (
            Weighted(np.ones(4)),
            r"similarity of Weighted must be a matrix with two dimensions; got shape \(4,\).",
        ),
    ],
)
def test_errors_say_what_is_allowed_and_what_came(donors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        donors.fit(EMPTY)


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


def test_peers_are_all_where_nothing_divides_them() -> None:
    draw = np.random.default_rng(0)
    embeddings = draw.normal(size=(30, 3)).round(1)
    ring = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30, labels=np.zeros(30, int))
    for ties in ("first", "all"):
        plain = P(NearestNeighbours(4, embeddings, ties=ties), ring)
        assert np.array_equal(
            P(NearestNeighbours(4, embeddings, ties=ties, max_degree_ratio=1.0), ring), plain
        )
        assert np.array_equal(P(NearestNeighbours(4, embeddings, ties=ties, groups="labels"), ring), plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_degree_ratio": 0.5}, "max_degree_ratio of NearestNeighbours must be a number of at least 1"),
        ({"groups": "labels"}, "groups of NearestNeighbours must be given, since the graph has no labels"),
        ({"groups": [0, 1]}, "groups of NearestNeighbours must hold one entry per node, 5 in all; got 2"),
        ({"groups": np.ones(5)}, "groups of NearestNeighbours must be integers; got float64"),
        (
            {"max_degree_ratio": 2.0, "n_neighbours": 0},
            "n_neighbours of NearestNeighbours must be an integer of at least 1; got 0",
        ),
    ],
)
def test_peers_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NearestNeighbours(**{"n_neighbours": 2, "embeddings": LINE, **options}).fit(PAW)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 25), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_balanced_law_takes_every_node_once(n: int, k: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    graph = Graph(draw.random((n, n)) < 0.3, directed=True)
    plain = NearestNeighbours(min(k, n), draw.normal(size=(n, 2)))
    balanced, before = P(Balanced(plain), graph), P(plain, graph)
    np.testing.assert_allclose(balanced.sum(axis=0), 1, rtol=1e-7)
    np.testing.assert_allclose(balanced.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(balanced, balanced.T, atol=1e-7)
    assert np.array_equal(balanced > 0, (before > 0) | (before.T > 0))
    # So the copied rows are expected to have each degree as often as the observed ones.
    degrees = graph.degrees
    for degree in np.unique(degrees):
        expected = balanced[:, degrees == degree].sum()
        assert expected == pytest.approx((degrees == degree).sum(), rel=1e-6)


def test_what_is_balanced_stays() -> None:
    labels = [0, 1, 0, 1]
    np.testing.assert_allclose(P(Balanced(SameLabel(labels))), P(SameLabel(labels)), rtol=1e-8)
    by_hand = [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]
    # D W D with D = diag(a, b, a) has rows of one where 2 a^2 + a b = 1 and 2 a b + b^2 = 1.
    found = P(Balanced(Weighted([[2, 1, 0], [1, 1, 1], [0, 1, 2]])), Graph(np.zeros((3, 3))))
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-8)
    assert found[0, 2] == 0
    doubly = P(Balanced(Weighted(by_hand)), Graph(np.zeros((3, 3))))
    np.testing.assert_allclose(doubly, by_hand, rtol=1e-8)


def test_a_star_without_loops_cannot_be_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_SCALINGS", 200)
    star = np.zeros((4, 4))
    star[0, 1:] = star[1:, 0] = 1
    with pytest.raises(InputError, match="donors of Balanced must let every node be its own donor"):
        Balanced(Weighted(star)).fit(EMPTY)


def test_later_searches_within_groups_take_the_nodes_that_the_first_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    with pytest.warns(
        DataWarning, match="4 of 9 nodes have a label, by which donors are drawn; the others keep"
    ):
        NodeCopying(donors).fit(few)
    NodeCopying(donors).fit(few.replace(labels=[0, 0, 1, 1, 1, -1, -1, -1, -1]))


def test_nearest_by_neighbourhoods_are_nodes_with_similar_neighbours() -> None:
    halves = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)  # two cliques
    rule = NearestNeighbours(4, embeddings="neighbourhoods")
    assert P(rule, Graph(halves)).tolist() == np.kron(np.eye(2), np.full((4, 4), 0.25)).tolist()
    assert rule.reads_edges


def test_nearest_by_neighbourhoods_uses_features_where_there_are_any() -> None:
    words = np.kron(np.eye(2), np.ones((4, 3)))
    rule = NearestNeighbours(4, embeddings="neighbourhoods")
    graph = Graph(np.zeros((8, 8)), features=words)
    assert P(rule, graph).tolist() == np.kron(np.eye(2), np.full((4, 4), 0.25)).tolist()
    swapped = graph.replace(features=words[::-1].repeat(2, axis=1)[:, ::-1])  # the same edges, other features
    assert P(rule, swapped).tolist() == P(rule, graph).tolist()


def test_named_embeddings_are_checked() -> None:
    with pytest.raises(InputError, match="embeddings of NearestNeighbours, if a name, must be one of"):
        P(NearestNeighbours(2, embeddings="nodes"))
    with pytest.raises(InputError, match="must be a matrix for interactions"):
        P(NearestNeighbours(2, embeddings="neighbourhoods"), Interactions(np.eye(3)))

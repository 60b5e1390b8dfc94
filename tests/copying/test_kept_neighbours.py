from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph, KeepByDegree, NodeCopying, SameLabel, Weighted, datasets
from nodecopy.copying.distributions import DonorLists
from nodecopy.copying.donors import KeepingDistribution
from nodecopy.errors import InputError
from tests.copying.oracles import with_keep

N_GRID = 4000
STAR = Graph.from_edges([0, 0, 0], [1, 2, 3], node_ids=range(5), labels=[0, 1, 1, 0, 0])


def test_probabilities_by_hand() -> None:
    """Degrees 3, 1, 1, 1, 0 with a prior of 1 keep 3/4, 1/2, 1/2, 1/2 and 0 of their own."""
    found = KeepByDegree(SameLabel(), prior=1).fit(STAR).probabilities().toarray()
    third = 1 / 3
    wanted = [
        [0.75 + third / 4, 0, 0, third / 4, third / 4],
        [0, 0.75, 0.25, 0, 0],
        [0, 0.25, 0.75, 0, 0],
        [third / 2, 0, 0, 0.5 + third / 2, third / 2],
        [third, 0, 0, third, third],
    ]
    np.testing.assert_allclose(found, np.array(wanted), atol=1e-15)


def test_a_prior_of_zero_is_the_observed_graph_but_for_nodes_without_neighbours() -> None:
    donors = KeepByDegree(SameLabel(), prior=0).fit(STAR).probabilities().diagonal()
    np.testing.assert_allclose(donors, [1, 1, 1, 1, 1 / 3])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.6, 1.0])), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=30, deadline=None)
def test_draws_have_their_probabilities(nodes: list[tuple[int, float]], keep: float) -> None:
    groups, keep_of = (np.array(part) for part in zip(*nodes, strict=True))
    lists = DonorLists.from_groups(np.unique(groups, return_inverse=True)[1])
    distribution, n = KeepingDistribution(lists, keep_of.astype(float)), len(nodes)
    counts = np.zeros((n, n))
    for u in (np.arange(N_GRID) + 0.5) / N_GRID:
        counts[np.arange(n), distribution.draw(np.full(n, u), keep)] += 1
    wanted = with_keep(distribution.probabilities().toarray(), keep)
    np.testing.assert_allclose(counts / N_GRID, wanted, atol=2 / N_GRID)


def test_compiled_draws_are_the_same() -> None:
    distribution = KeepByDegree(SameLabel()).fit(STAR)
    for u in (0.0, 0.3, 0.6, np.nextafter(1.0, 0.0)):
        uniforms = np.full(5, u)
        plain = distribution.draw(uniforms, 0.2)
        np.testing.assert_array_equal(distribution.draw(uniforms, 0.2, compiled=True), plain)


def test_matches_are_those_of_the_probabilities() -> None:
    distribution = KeepByDegree(Weighted(np.arange(25.0).reshape(5, 5))).fit(STAR)
    group_of, wanted = np.array([0, 1, 0, 2, 1]), np.array([0, 2, -1, 2, 1])
    P = distribution.probabilities().toarray()
    by_hand = [P[i, group_of == wanted[i]].sum() for i in range(5)]
    np.testing.assert_allclose(distribution.match_probabilities(group_of, wanted), by_hand)


def test_hubs_keep_their_neighbours() -> None:
    """Nodes of degree 16 and more keep theirs with probability 0.89 or more, nodes of degree 1 with 0.33."""
    club = datasets.load("karate")
    model = NodeCopying(KeepByDegree(SameLabel())).fit(club)
    own = np.mean([model.draw_donors(rng=5, sample=i) == np.arange(34) for i in range(100)], axis=0)
    degrees = club.rows.degrees
    assert own[degrees >= 16].min() > 0.8 > 0.5 > own[degrees == 1].max()


def test_wrong_parameters() -> None:
    with pytest.raises(InputError, match="prior of KeepByDegree must be a number of at least 0"):
        KeepByDegree(SameLabel(), prior=-1).fit(STAR)
    with pytest.raises(InputError, match="donors of KeepByDegree must be a donor rule"):
        KeepByDegree("same").fit(STAR)  # type: ignore[arg-type]

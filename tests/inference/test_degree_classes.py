from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph, Interactions, NodeCopying, SameLabel, datasets
from nodecopy.copying import DonorRule
from nodecopy.errors import InputError
from nodecopy.inference import DegreeClasses, edge_count_variance
from tests.inference.known_graphs import Floats, draw_graph, heavy_tail, two_blocks


def class_of(graph: Graph, donors: DegreeClasses) -> list[int]:
    result: list[int] = donors.fit(graph).list_of.tolist()
    return result


def test_degrees_that_differ_by_chance_are_one_class() -> None:
    graph = draw_graph(np.full((300, 300), 0.05), np.random.default_rng(0))
    assert len(set(class_of(graph, DegreeClasses(np.zeros(300, int))))) == 1


def test_a_star_is_divided_into_hub_and_leaves() -> None:
    star = Graph.from_edges([0] * 20, range(1, 21))
    assert class_of(star, DegreeClasses([0] * 21)) == [1] + [0] * 20


def test_classes_do_not_cross_communities() -> None:
    graph = draw_graph(two_blocks(200), np.random.default_rng(0))
    block = np.arange(200) % 2
    classes = np.array(class_of(graph, DegreeClasses(block)))
    assert not set(classes[block == 0]) & set(classes[block == 1])


def test_a_smaller_tolerance_gives_more_classes() -> None:
    graph = draw_graph(heavy_tail(300), np.random.default_rng(0))
    n_classes = [len(set(class_of(graph, DegreeClasses(tolerance=t)))) for t in (0.0, 2.0, 50.0)]
    assert n_classes[0] > n_classes[1] > n_classes[2]


@pytest.mark.parametrize("probabilities", [two_blocks(200), heavy_tail(200)], ids=["blocks", "heavy tail"])
def test_the_variance_of_the_number_of_edges_is_that_of_independent_edges(probabilities: Floats) -> None:
    """Means over 20 graphs of the exact variance, in which nothing is sampled but the graphs."""
    assert 0.85 < variance_ratio(probabilities, DegreeClasses()) < 1.2


def test_whole_blocks_overstate_it_where_expected_degrees_differ() -> None:
    blocks = np.arange(200) % 2
    assert variance_ratio(heavy_tail(200), SameLabel(blocks)) > 1.8


def test_donors_of_equal_degree_understate_it() -> None:
    """Only the coins are left, which give half of the variance."""
    assert variance_ratio(two_blocks(200), DegreeClasses(tolerance=0.0, communities=np.arange(200) % 2)) > 0.8
    ratios = []
    rng = np.random.default_rng(1)
    for _ in range(10):
        graph = draw_graph(two_blocks(200), rng)
        ratios.append(edge_count_variance(NodeCopying(SameLabel(graph.degrees)).fit(graph)))
    donors, coins = np.mean(ratios, axis=0)
    assert donors < 0.1 * coins


def variance_ratio(probabilities: Floats, donors: DonorRule) -> float:
    """Return the mean variance of the number of edges by copying over that of independent edges."""
    rng = np.random.default_rng(1)
    graphs = [draw_graph(probabilities, rng) for _ in range(20)]
    variances = [edge_count_variance(NodeCopying(donors).fit(graph)).total for graph in graphs]
    return float(np.mean(variances) / np.triu(probabilities * (1 - probabilities), 1).sum())


def test_expected_numbers_of_edges_nearly_stay() -> None:
    """Donors are uniform within classes, so every node is expected to be a donor once."""
    graph = draw_graph(heavy_tail(200), np.random.default_rng(0))
    P = DegreeClasses().fit(graph).probabilities()
    assert np.allclose(P.sum(axis=0), 1)


def test_labels_of_the_graph() -> None:
    club = datasets.load("karate")
    assert club.labels is not None
    assert class_of(club, DegreeClasses("labels")) == class_of(club, DegreeClasses(club.labels))


@pytest.mark.parametrize(
    ("donors", "message"),
    [
        (DegreeClasses("labels"), r"communities of DegreeClasses must be integers, 'labels' of a graph that"),
        (DegreeClasses([0.5, 1.0]), r"communities of DegreeClasses must be integers; got float64"),
        (DegreeClasses([0]), r"communities of DegreeClasses must hold one entry per node, 2"),
        (DegreeClasses(tolerance=-1), r"tolerance of DegreeClasses must be a number of at least 0"),
    ],
)
def test_wrong_settings(donors: DegreeClasses, message: str) -> None:
    with pytest.raises(InputError, match=message):
        donors.fit(Graph([[0, 1], [1, 0]]))


def test_interactions_are_an_error() -> None:
    with pytest.raises(InputError, match="graph of DegreeClasses must be a graph"):
        NodeCopying(DegreeClasses()).fit(Interactions([[1, 0], [0, 1]]))

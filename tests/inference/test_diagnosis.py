from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, Jaccard, NodeCopying, SameLabel, datasets
from nodecopy._core.messages import mute_data_warnings
from nodecopy.errors import DataWarning
from nodecopy.experiments.data import KnownNetwork
from nodecopy.experiments.tasks.coverage import pagerank_of_first
from nodecopy.generators import BarabasiAlbert, ErdosRenyi
from nodecopy.inference import Estimate, bootstrap
from nodecopy.inference.diagnosis import (
    diagnose,
    donor_variance_ratio,
    few_donors_share,
    node_variance_factor,
    shape,
    share_below,
)
from tests.inference.known_graphs import draw_graph, heavy_tail, two_blocks

CLUB = datasets.load("karate")


def test_the_share_of_edge_ends_at_nodes_with_few_donors() -> None:
    alone = np.arange(34)
    alone[2:] = 2
    model = NodeCopying(SameLabel(alone)).fit(CLUB)  # the first two nodes keep their 16 and 9 neighbours
    assert few_donors_share(model) == pytest.approx(25 / 156)
    assert few_donors_share(model, power=2) == pytest.approx((16**2 + 9**2) / (CLUB.degrees**2).sum())
    assert few_donors_share(NodeCopying(SameLabel()).fit(CLUB)) == 0
    assert 0 <= few_donors_share(NodeCopying(Jaccard(max_donors=2)).fit(CLUB)) <= 1


def test_hubs_without_donors_are_a_warning() -> None:
    graph = KnownNetwork.by_name("dc-sbm", 200, 15, SeedSequence(1)).draw(SeedSequence(2))
    with pytest.warns(DataWarning, match="nodes with large degrees have fewer than 3 donors") as caught:
        result = bootstrap(graph, ["density", "degree_variance"], n=60, rng=0)
    assert len(caught) == len(result.problems) == 1


def test_edges_that_depend_on_each_other_are_a_warning() -> None:
    """Every node of a growing network brings four edges; its own model brings them, too."""
    nx = pytest.importorskip("networkx")
    growing = nx.barabasi_albert_graph(300, 4, seed=0)
    with pytest.warns(DataWarning, match="have fewer edges than nearly all nodes of the graph"):
        result = bootstrap(growing, "transitivity", n=40, rng=0)
    assert result.problems[0].next_model is None
    with mute_data_warnings():
        assert not bootstrap(growing, "transitivity", model=BarabasiAlbert(), n=40, rng=0).problems
    path, ring = (Graph.from_edges(range(n), [*range(1, 24), 0][:n]) for n in (23, 24))
    pairs = Graph.from_edges(range(0, 24, 2), range(1, 24, 2))
    assert share_below(ring, pairs) == 1.0
    assert share_below(ring, path) == share_below(ring, Graph(np.zeros((24, 24)))) == 0  # by chance; no edges


def test_donors_whose_degrees_differ_are_a_warning() -> None:
    graph = draw_graph(heavy_tail(300), np.random.default_rng(0), labels=np.arange(300) % 2)
    with pytest.warns(DataWarning, match="number of edges is too large, by a factor of about"):
        result = bootstrap(graph, "density", model=SameLabel(), n=40, rng=0)
    ratio = donor_variance_ratio(NodeCopying(SameLabel()).fit(graph))
    assert ratio is not None
    assert f"{((1 + ratio) / 2) ** 0.5:.2g}" in result.problems[0].text
    assert not bootstrap(graph, "density", n=40, rng=0).problems


def test_donors_of_equal_degree_are_a_warning() -> None:
    graph = draw_graph(two_blocks(300), np.random.default_rng(0))
    with pytest.warns(DataWarning, match="number of edges is too small, by a factor of about 0.7"):
        bootstrap(graph, "density", model=SameLabel(np.minimum(graph.degrees, 30)), n=20, rng=0)


def test_modularity_of_estimated_communities_is_a_warning() -> None:
    graph = draw_graph(two_blocks(120), np.random.default_rng(0))
    with pytest.warns(DataWarning, match="modularity uses communities that are estimated"):
        (problem,) = bootstrap(graph, ["density", "modularity"], n=40, rng=0).problems
    assert problem.statistic == "modularity"
    assert not bootstrap(graph.replace(labels=np.arange(120) % 2), "modularity", n=40, rng=0).problems


def test_an_interval_between_two_groups_of_values_means_nothing() -> None:
    """Samples of this network have communities with many edges inside, or with many between them."""
    with mute_data_warnings():
        results = [
            bootstrap(graph, "modularity", n=200, rng=0) for graph in (CLUB.replace(labels=None), CLUB)
        ]
    for result, is_expected in zip(results, (True, False), strict=True):
        assert any("its interval means nothing" in str(problem) for problem in result.problems) == is_expected


def test_skewed_statistics_are_a_warning() -> None:
    rng = np.random.default_rng(0)
    skewed, even = rng.exponential(size=500), rng.normal(size=500)
    assert [shape(x)[0] for x in (skewed, even, np.ones(500))] == pytest.approx([2, 0, 0], abs=0.4)
    row = Estimate("share", 1.0, 1.0, 0.0, 0.0, 2.0)
    (problem,) = diagnose(ErdosRenyi().fit(CLUB), [row], {"share": skewed})
    assert "share is skewed over samples" in problem.text
    assert not diagnose(ErdosRenyi().fit(CLUB), [row], {"share": even})


@pytest.mark.parametrize(("name", "is_skewed"), [("directed", True), ("bipartite", False)])
def test_the_pagerank_of_a_node_of_a_sparse_directed_network_is_skewed(name: str, is_skewed: bool) -> None:
    """In the experiment its interval covers 89 %, and 91 % in the bipartite network."""
    graph = KnownNetwork.by_name(name, 200, 5, SeedSequence(1)).draw(SeedSequence(2)).replace(labels=None)
    with mute_data_warnings():
        result = bootstrap(graph, pagerank_of_first, n=500, rng=0)
    assert [problem.text.startswith("pagerank_of_first is skewed") for problem in result.problems] == (
        [True] if is_skewed else []
    )


@pytest.mark.parametrize(("name", "is_warned"), [("sbm", True), ("dc-sbm", False)])
def test_a_population_of_nodes_that_are_alike_is_a_warning(name: str, is_warned: bool) -> None:
    graph = KnownNetwork.by_name(name, 200, 15, SeedSequence(1)).draw(SeedSequence(2))
    with mute_data_warnings():
        result = bootstrap(graph, "density", resample="nodes", n=40, rng=0)
    assert [problem.statistic for problem in result.problems] == [None] * is_warned
    assert node_variance_factor(graph.replace(directed=True)) == 1
    assert node_variance_factor(Graph(np.zeros((4, 4)))) == 1


NODES = (
    np.zeros(4),
    np.array([1.0, 1.0, 0.0, 0.0]),
    np.array([2.9, -3.1, 0.0, 0.0]),
    np.zeros(4),
    np.zeros(4),
)


@pytest.mark.parametrize(
    ("estimate", "values", "messages"),
    [
        ((np.nan, np.nan, np.nan, np.nan, np.nan), np.full(20, 0.1), ["x of the graph is undefined"]),
        ((0.1, *[np.nan] * 4), np.where(np.arange(20) < 3, np.nan, 0.1), ["x is undefined in 3 samples"]),
        ((0.1, 1e-17, -2e-16, 0.1, 0.1), np.full(20, 0.1), ["x is the same in all samples"]),  # by rounding
        ((0.1, 0.0, 0.1, 0.1, 0.1), np.full(20, 0.1), ["do not represent it. Use the model 'node-copying'"]),
        (NODES, np.zeros((20, 4)), ["standard errors for 1 of 4 nodes", "in all samples for 2 of 4 nodes"]),
    ],
)
def test_values_that_are_a_warning(estimate: Any, values: Any, messages: list[str]) -> None:
    problems = diagnose(ErdosRenyi().fit(CLUB), [Estimate("x", *estimate)], {"x": values})
    assert [problem.statistic for problem in problems] == ["x"] * len(messages)
    assert all(message in problem.text for message, problem in zip(messages, problems, strict=True))

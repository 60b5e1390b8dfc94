"""Statistics by name and as functions, communities, and their stability."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import nodecopy
from nodecopy import Graph, NodeCopying, SameLabel, datasets, to_networkx
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import ErdosRenyi
from nodecopy.inference import DegreeClasses, community_stability, spectral_communities
from nodecopy.inference import statistics as module
from nodecopy.inference.statistics import (
    EXTRA,
    MAX_DENSE_NODES,
    compute_modularity,
    count_communities,
    degree_variance,
    density,
    largest_eigenvalue,
    pagerank,
    prepare_measure,
    statistic_names,
)
from nodecopy.io.networks import to_igraph
from nodecopy.metrics import eigenvalue_kernels as kernels
from nodecopy.metrics.counting_kernels import sort_by_degree
from tests.inference.known_graphs import draw_graph, heavy_tail, two_blocks

CLUB = datasets.load("karate")
DONORS = SameLabel(CLUB.label_codes)
GRAPHS = [
    CLUB,
    Graph.from_edges([0, 1, 2], [1, 2, 3], node_ids=range(6)),  # with isolated nodes
    Graph.from_edges([0] * 9, range(1, 10)),
    Graph.from_edges(range(8), [*range(1, 8), 0]),
    draw_graph(two_blocks(300), np.random.default_rng(0)),
]


def test_names_are_those_of_statistics_and_others() -> None:
    assert set(statistic_names()) == {*nodecopy.statistics(CLUB), *EXTRA, "modularity"}
    _, measure = prepare_measure(statistic_names(), CLUB, None)
    assert list(measure(CLUB)) == statistic_names()


def test_values_against_networkx() -> None:
    network = to_networkx(CLUB)
    assert density(CLUB) == pytest.approx(nx.density(network))
    assert degree_variance(CLUB) == pytest.approx(np.var([d for _, d in network.degree]))
    ranks = nx.pagerank(network, weight=None, tol=1e-12)
    assert pagerank(CLUB) == pytest.approx(np.array(list(ranks.values())), abs=1e-8)
    names = nx.get_node_attributes(network, "label")
    parts = [{node for node in network if names[node] == club} for club in ("Mr. Hi", "Officer")]
    _, measure = prepare_measure("modularity", CLUB, None)
    assert measure(CLUB)["modularity"] == pytest.approx(nx.community.modularity(network, parts, weight=None))


def test_directed_and_empty_graphs() -> None:
    graph = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], directed=True)
    ranks = nx.pagerank(to_networkx(graph), tol=1e-12)  # the last node is a sink
    assert pagerank(graph) == pytest.approx(np.array(list(ranks.values())), abs=1e-8)
    assert density(graph) == pytest.approx(2 / 6)
    assert largest_eigenvalue(graph) == pytest.approx(np.linalg.norm(graph.adjacency.toarray(), 2))
    assert np.isnan(density(Graph([[0.0]])))
    assert largest_eigenvalue(Graph([[0.0]])) == 0


@pytest.mark.parametrize("graph", GRAPHS)
def test_compiled_and_plain_code_agree(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = np.linalg.eigvalsh(graph.adjacency.toarray().astype(float)).max()
    expected = pagerank(graph)
    assert largest_eigenvalue(graph) == pytest.approx(exact)
    monkeypatch.setattr(module, "MIN_COMPILED_ENTRIES", 1)
    assert largest_eigenvalue(graph) == pytest.approx(exact, rel=1e-8)
    assert np.abs(pagerank(graph) - expected).sum() < 1e-7
    assert pagerank(graph).sum() == pytest.approx(1)
    one_way = Graph.from_edges([0, 1], [1, 2], directed=True)  # not taken for undirected
    assert pagerank(one_way)[2] > pagerank(one_way)[0]


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-13])
def test_residual_of_pagerank_is_small_although_steps_are_in_single_precision(tolerance: float) -> None:
    graph = GRAPHS[-1]
    A, degrees = graph.adjacency.toarray().astype(float), graph.degrees.astype(float)
    assert degrees.min() > 0
    *rows, number = sort_by_degree(graph.rows.indptr, graph.rows.indices)
    solution = kernels.pagerank(*rows, 0.85, tolerance, 200)[number] * graph.n_nodes / (1 - 0.85)
    residual = (1 - solution + 0.85 * A @ (solution / degrees)) / np.sqrt(degrees)
    assert np.linalg.norm(residual) <= 1.1 * tolerance * np.linalg.norm(1 / np.sqrt(degrees))


@pytest.mark.parametrize(
    ("graph", "library", "package"),
    [
        (CLUB, None, "nodecopy"),
        (nx.karate_club_graph(), None, "networkx"),
        (CLUB, "networkx", "networkx"),
        (CLUB, "igraph", "igraph"),
        (nx.karate_club_graph(), "nodecopy", "nodecopy"),
    ],
)
def test_functions_take_the_graphs_of_their_library(graph: Any, library: str | None, package: str) -> None:
    seen = []

    def n_ties(given: Any) -> int:
        seen.append(type(given).__module__)
        return 3

    own, measure = prepare_measure([n_ties, "density"], graph, library)
    assert measure(own) == {"density": pytest.approx(density(own)), "n_ties": 3.0}
    assert seen[0].startswith(package)


@pytest.mark.parametrize(
    ("statistic", "graph", "library", "message"),
    [
        ("transitivty", CLUB, None, "Did you mean transitivity"),
        ([], CLUB, None, "or a dictionary of functions by name; got none"),
        ([3], CLUB, None, "or a dictionary of functions by name; got 3"),
        (3, CLUB, None, "or a dictionary of functions by name; got 3"),
        (["density", "density"], CLUB, None, "got 'density' more than once"),
        ("density", Graph(np.zeros((0, 0))), None, "graph must have nodes"),
        ("density", CLUB, "graph-tool", "library must be one of 'nodecopy', 'networkx', 'igraph'"),
        (lambda graph: None, CLUB, None, "it returned none"),
        (lambda graph: {}, CLUB, None, "at least one number"),
        (lambda graph: "a", CLUB, None, "must return a number, or one per node or edge; got 'a'"),
        (lambda graph: np.zeros((2, 2)), CLUB, None, "Choose one of its columns"),
    ],
)
def test_wrong_statistics(statistic: Any, graph: Any, library: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare_measure(statistic, graph, library)[1](graph)


def test_errors_of_functions_name_the_statistic() -> None:
    def inverse(graph: Graph) -> float:
        return 1 / graph.n_edges

    empty = Graph(np.zeros((3, 3)))
    for first, fragment in ((empty, "Set library"), (CLUB, "This is a sample")):
        measure = prepare_measure(inverse, CLUB, None)[1]
        with pytest.raises(ZeroDivisionError) as caught:
            measure(first), measure(empty)
        (note,) = caught.value.__notes__
        assert note.startswith(f"The statistic inverse was computed on {empty!r}.")
        assert fragment in note


def test_communities_of_modularity_are_estimated_from_every_graph() -> None:
    """A sparse block model: the communities of one draw fit another draw much worse than that one."""
    own, measure = prepare_measure("modularity", CLUB.replace(labels=None), None)
    assert measure(own)["modularity"] == pytest.approx(0.37, abs=0.02)
    first, second = (draw_graph(two_blocks(200, 0.04, 0.01), np.random.default_rng(seed)) for seed in (0, 1))
    found = spectral_communities(first)
    assert compute_modularity(second, found) < compute_modularity(first, found) - 0.1
    for fixed_nodes in (True, False):
        _, measure = prepare_measure("modularity", first, None, fixed_nodes=fixed_nodes)
        again = spectral_communities(second, found.max() + 1)
        assert measure(second)["modularity"] == compute_modularity(second, again)


# Communities.


@pytest.mark.parametrize("n_nodes", [200, MAX_DENSE_NODES + 100])  # dense and iterative eigenvalues
@pytest.mark.parametrize("chances", [(0.15, 0.02), (0.0, 0.1)], ids=["blocks", "bipartite"])
def test_two_blocks_are_found(n_nodes: int, chances: tuple[float, float]) -> None:
    graph = draw_graph(two_blocks(n_nodes, *chances), np.random.default_rng(0))
    assert count_communities(graph) == 2
    agreement = (spectral_communities(graph) == np.arange(n_nodes) % 2).mean()
    assert max(agreement, 1 - agreement) > 0.97


def test_degrees_do_not_decide() -> None:
    """A community by degree would agree with the block for half of the nodes."""
    graph = draw_graph(heavy_tail(400), np.random.default_rng(0))
    agreement = (spectral_communities(graph, 2) == np.arange(400) % 2).mean()
    assert max(agreement, 1 - agreement) > 0.85


def test_graphs_of_one_community() -> None:
    graph = draw_graph(np.full((200, 200), 0.08), np.random.default_rng(0))
    assert count_communities(graph) == 1
    for one in (graph, Graph([[0.0]]), Graph(np.zeros((3, 3)))):
        assert spectral_communities(one).tolist() == [0] * one.n_nodes
    with pytest.raises(InputError, match=r"n_communities must be an integer between 1 and n_nodes = 2"):
        spectral_communities(Graph([[0, 1], [1, 0]]), 3)


def test_directions_are_ignored_and_results_are_reproducible() -> None:
    graph = draw_graph(two_blocks(100, 0.3, 0.02), np.random.default_rng(0))
    one_way = Graph(np.triu(graph.adjacency.toarray()), directed=True)
    assert np.array_equal(spectral_communities(graph), spectral_communities(one_way))


# Stability.


def test_communities_that_do_not_depend_on_edges_are_stable() -> None:
    result = community_stability(CLUB, lambda graph: graph.label_codes, model=DONORS, n=5, rng=0)
    assert result.together.tolist() == [1, 1]
    assert result.nodes.tolist() == [1] * 34
    assert result.sizes.sum() == 34


def test_shares_are_those_of_all_pairs() -> None:
    result = community_stability(CLUB, model=ErdosRenyi(), n=6, rng=1)
    share = (result.memberships[:, :, None] == result.memberships[:, None, :]).mean(axis=0)
    for community, together in enumerate(result.together):
        members = np.flatnonzero(result.communities == community)
        pairs, size = share[np.ix_(members, members)], len(members)
        assert together == pytest.approx((pairs.sum() - size) / (size * (size - 1)))
        assert result.nodes[members[0]] == pytest.approx((pairs[0].sum() - 1) / (size - 1))
    assert result.all_pairs == pytest.approx((share.sum() - 34) / (34 * 33))


def test_communities_of_other_libraries() -> None:
    settings: dict[str, Any] = {"model": DONORS, "n": 3, "rng": 0}
    result = community_stability(to_networkx(CLUB), nx.community.louvain_communities, **settings)
    assert len(result.to_pandas()) == 34
    walktrap = lambda graph: graph.community_walktrap().as_clustering()  # noqa: E731
    walks = community_stability(to_igraph(CLUB), walktrap, **settings)
    assert walks.sizes.sum() == 34
    assert walks.plot().get_xlabel() == "community"


def test_warnings_of_stability() -> None:
    edges = np.random.default_rng(0).random((40, 40)) < 0.2
    with pytest.warns(DataWarning, match="have them whether they exist or not"):
        result = community_stability(Graph(edges, directed=True), n=2, rng=0)
    assert result.model.startswith("ClassCopying")
    assert len(result.problems) == 1
    with pytest.warns(DataWarning, match="fewer than 3 donors"):
        result = community_stability(CLUB, model=DegreeClasses("labels"), n=2, rng=0)
    assert len(result.problems) == 1


@pytest.mark.parametrize(
    ("communities", "message"),
    [
        ([0, 1], "communities must be a function"),
        (lambda graph: 0, "must return one per node; got 0"),
        (lambda graph: [0, 1], "must return one per node, 34 in all"),
    ],
)
def test_wrong_communities(communities: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        community_stability(CLUB, communities, n=3, model=NodeCopying(DONORS))

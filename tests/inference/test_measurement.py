from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import nodecopy
from nodecopy import Graph, datasets, to_networkx
from nodecopy.errors import InputError
from nodecopy.inference import spectral_communities
from nodecopy.inference.statistics import (
    EXTRA,
    compute_modularity,
    degree_variance,
    density,
    largest_eigenvalue,
    pagerank,
    prepare_measure,
    statistic_names,
)
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")


def test_names_are_those_of_statistics_and_others() -> None:
    expected = {*nodecopy.statistics(CLUB), *EXTRA, "modularity"}
    assert set(statistic_names()) == expected
    _, measure = prepare_measure(statistic_names(), CLUB, None)
    assert list(measure(CLUB)) == statistic_names()


def test_values_against_networkx() -> None:
    network = to_networkx(CLUB)
    assert density(CLUB) == pytest.approx(nx.density(network))
    assert degree_variance(CLUB) == pytest.approx(np.var([d for _, d in network.degree]))
    eigenvalues = np.linalg.eigvalsh(CLUB.adjacency.toarray())
    assert largest_eigenvalue(CLUB) == pytest.approx(eigenvalues.max())
    ranks = nx.pagerank(network, weight=None, tol=1e-12)
    assert pagerank(CLUB) == pytest.approx(np.array(list(ranks.values())), abs=1e-8)
    parts = [
        {node for node in network if network.nodes[node]["label"] == club} for club in ("Mr. Hi", "Officer")
    ]
    _, measure = prepare_measure("modularity", CLUB, None)
    assert measure(CLUB)["modularity"] == pytest.approx(nx.community.modularity(network, parts, weight=None))


def test_directed_graphs() -> None:
    graph = Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], directed=True)
    ranks = nx.pagerank(to_networkx(graph), tol=1e-12)  # the last node is a sink
    assert pagerank(graph) == pytest.approx(np.array(list(ranks.values())), abs=1e-8)
    assert density(graph) == pytest.approx(2 / 6)
    assert largest_eigenvalue(graph) == pytest.approx(np.linalg.norm(graph.adjacency.toarray(), 2))


def test_an_empty_graph_has_undefined_values() -> None:
    lonely = Graph([[0.0]])
    assert np.isnan(density(lonely))
    assert largest_eigenvalue(lonely) == 0


@pytest.mark.parametrize(
    ("graph", "library", "kind"),
    [
        (CLUB, None, "Graph"),
        (nx.karate_club_graph(), None, "networkx.Graph"),
        (CLUB, "networkx", "networkx.Graph"),
        (CLUB, "igraph", "igraph.Graph"),
        (nx.karate_club_graph(), "nodecopy", "Graph"),
    ],
)
def test_functions_take_the_graphs_of_their_library(graph: Any, library: str | None, kind: str) -> None:
    seen = []

    def n_ties(given: Any) -> int:
        seen.append(type(given))
        return 3

    own, measure = prepare_measure([n_ties, "density"], graph, library)
    assert measure(own) == {"density": pytest.approx(density(own)), "n_ties": 3.0}
    assert seen[0].__name__ == "Graph"
    assert seen[0].__module__.startswith(kind.partition(".")[0].lower() if "." in kind else "nodecopy")


def test_functions_may_return_one_number_per_node() -> None:
    own, measure = prepare_measure([nx.degree_centrality, lambda g: [1, 2]], nx.path_graph(2), None)
    values = measure(own)
    assert values["degree_centrality"] == pytest.approx(np.array([1.0, 1.0]))
    assert values["statistic 2"] == pytest.approx(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("statistic", "message"),
    [
        ("transitivty", r"statistic must be one of .*; got 'transitivty'. Did you mean transitivity"),
        ([], "statistic must be a name, a function, or several of them; got none"),
        ([3], "statistic must be a name, a function, or several of them; got 3"),
    ],
)
def test_other_statistics_are_an_error(statistic: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare_measure(statistic, CLUB, None)


@pytest.mark.parametrize("value", ["many", np.zeros((2, 2))])
def test_other_results_are_an_error(value: Any) -> None:
    own, measure = prepare_measure(lambda graph: value, CLUB, None)
    with pytest.raises(InputError, match="statistic 1 must return a number, or one per node"):
        measure(own)


def test_other_graphs_and_libraries_are_an_error() -> None:
    with pytest.raises(InputError, match="graph must have nodes"):
        prepare_measure("density", Graph(np.zeros((0, 0))), None)
    with pytest.raises(InputError, match="library must be one of 'nodecopy', 'networkx', 'igraph'"):
        prepare_measure("density", CLUB, "graph-tool")


def test_modularity_without_labels_is_that_of_estimated_communities() -> None:
    own, measure = prepare_measure("modularity", CLUB.replace(labels=None), None)
    assert measure(own)["modularity"] == pytest.approx(0.37, abs=0.02)


def test_communities_are_found_in_every_graph_again() -> None:
    """A sparse block model: the communities of one draw fit another draw much worse than that one."""
    first, second = (draw_graph(two_blocks(200, 0.04, 0.01), np.random.default_rng(seed)) for seed in (0, 1))
    found = spectral_communities(first)
    assert compute_modularity(second, found) < compute_modularity(first, found) - 0.1
    for fixed_nodes in (True, False):
        _, measure = prepare_measure("modularity", first, None, fixed_nodes=fixed_nodes)
        again = spectral_communities(second, found.max() + 1)
        assert measure(second)["modularity"] == compute_modularity(second, again)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda graph: None, "it returned none"),
        (lambda graph: {}, "at least one number"),
        (lambda graph: "a", "got 'a'"),
        (lambda graph: np.zeros((2, 2)), "Choose one of its columns"),
    ],
)
def test_what_functions_may_return(function: Any, message: str) -> None:
    _, measure = prepare_measure(function, CLUB, None)
    with pytest.raises(InputError, match=message):
        measure(CLUB)


def test_statistics_that_are_none() -> None:
    with pytest.raises(InputError, match="a name, a function, or several of them; got 3"):
        prepare_measure(3, CLUB, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got 'density' more than once"):
        prepare_measure(["density", "density"], CLUB, None)


def test_errors_of_functions_name_the_statistic() -> None:
    def broken(graph: Graph) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        prepare_measure(broken, CLUB, None)[1](CLUB)
    (note,) = caught.value.__notes__
    assert note.startswith(f"The statistic broken was computed on {CLUB!r}. library= says")


def test_errors_in_samples_say_so() -> None:
    """A diameter of a sample that is not connected, for instance."""

    def inverse(graph: Graph) -> float:
        return 1 / graph.n_edges

    measure = prepare_measure(inverse, CLUB, None)[1]
    measure(CLUB)
    with pytest.raises(ZeroDivisionError) as caught:
        measure(Graph(np.zeros((3, 3))))
    assert "This is a sample" in caught.value.__notes__[0]

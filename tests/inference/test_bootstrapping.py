from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph, NodeCopying, SameLabel, datasets, to_networkx
from nodecopy._core.messages import mute_data_warnings
from nodecopy._core.parallel import report_progress
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import SBM, ErdosRenyi
from nodecopy.inference import LatentPositionBootstrap, NodeBootstrap, NodeSubsampling, bootstrap
from nodecopy.inference.statistics import density, prepare_measure
from tests.inference.known_graphs import Floats, draw_graph, heavy_tail, two_blocks

CLUB = datasets.load("karate")
LAW = SameLabel()
SMOOTH = ["density", "triangles", "transitivity", "largest_eigenvalue"]


@pytest.mark.parametrize("method", ["basic", "percentile", "normal", "studentised"])
def test_methods(method: str) -> None:
    result = bootstrap(CLUB, "density", model=LAW, n=40, method=method, rng=0)
    row = result["density"]
    assert (result.method, result.n, result.target) == (method, 40, "edges")
    assert row.observed == pytest.approx(density(CLUB))
    assert row.low < row.observed < row.high


def test_samples_are_those_of_the_model_and_do_not_depend_on_workers() -> None:
    one, two = (bootstrap(CLUB, "triangles", model=LAW, n=30, workers=w, rng=7) for w in (1, 2))
    assert np.array_equal(one.values["triangles"], two.values["triangles"])
    assert one.values["triangles"].std() > 0


@pytest.mark.parametrize(
    "model", [NodeCopying(LAW), LAW, ErdosRenyi(), SBM()], ids=["model", "donors", "ER", "SBM"]
)
def test_any_graph_model(model: Any) -> None:
    result = bootstrap(CLUB, "density", model=model, n=20, rng=0)
    assert float(result["density"].standard_error) > 0


@pytest.mark.parametrize(
    "model", [None, NodeBootstrap(), NodeSubsampling(), LatentPositionBootstrap()], ids=str
)
def test_the_population_of_nodes(model: Any) -> None:
    result = bootstrap(CLUB, "density", model=model, target="nodes", n=60, rng=0)
    assert "if nodes were drawn again" in result.question
    edges = bootstrap(CLUB, "density", model=LAW, n=60, rng=0)
    assert float(result["density"].standard_error) > float(edges["density"].standard_error)


@pytest.mark.parametrize("probabilities", [two_blocks(150), heavy_tail(150)], ids=["blocks", "heavy tail"])
def test_standard_errors_without_labels(probabilities: Floats) -> None:
    """Means over 12 graphs; the true deviations are of 500 graphs, with a standard error of 3 %."""
    rng = np.random.default_rng(0)
    _, measure = prepare_measure(SMOOTH, draw_graph(probabilities, rng), None)
    truth: Any = [list(measure(draw_graph(probabilities, rng)).values()) for _ in range(500)]
    deviations = np.std(truth, axis=0)
    estimated = []
    for _ in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            result = bootstrap(draw_graph(probabilities, rng), SMOOTH, n=50, rng=rng)
        estimated.append([float(row.standard_error) for row in result])
    ratios = np.sqrt(np.mean(np.square(estimated), axis=0)) / deviations
    assert (ratios > 0.82).all(), ratios
    assert (ratios < 1.35).all(), ratios


def test_statistics_of_nodes() -> None:
    each, band = (
        bootstrap(CLUB, "pagerank", model=LAW, n=60, simultaneous=simultaneous, rng=0)["pagerank"]
        for simultaneous in (False, True)
    )
    assert np.asarray(each.low).shape == (34,)
    assert (np.asarray(band.high) - band.low > np.asarray(each.high) - each.low).mean() > 0.9


def test_functions_of_networkx_graphs() -> None:
    network = nx.karate_club_graph()
    result = bootstrap(network, nx.transitivity, model=SameLabel(CLUB.labels), n=10, rng=0)
    assert result["transitivity"].observed == pytest.approx(nx.transitivity(network))


def test_progress_is_reported() -> None:
    steps: list[str] = []
    with report_progress(lambda item, done, n: steps.append(item)):
        bootstrap(CLUB, "density", model=LAW, n=3, rng=0)
        assert steps == ["sample 1 of 3", "sample 2 of 3", "sample 3 of 3", "sample 3 of 3"]
        bootstrap(CLUB, "density", model=LAW, n=2, method="studentised", rng=0)
    assert steps[-3:] == ["standard error 1 of 2", "standard error 2 of 2", "standard error 2 of 2"]


def test_few_donors_are_a_warning() -> None:
    with pytest.warns(DataWarning, match="at nodes with fewer than 3 donors"):
        result = bootstrap(CLUB, "density", n=40, rng=0)
    assert len(result.problems) == 1


def test_samples_far_from_the_observed_graph_are_a_warning() -> None:
    rule = NodeCopying(LAW, symmetrise="maximum")
    with pytest.warns(DataWarning, match="the mean of density over samples differs from the observed value"):
        bootstrap(CLUB, "density", model=rule, n=20, rng=0)


def test_undefined_values_and_extremes_are_warnings() -> None:
    cycle = Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0])
    with pytest.warns(DataWarning, match="assortativity of the graph is undefined, so there is no interval"):
        bootstrap(cycle, "assortativity", model=NodeCopying(SameLabel([0] * 6), keep=0.9), n=20, rng=0)
    with pytest.warns(DataWarning, match="max_degree depends on few nodes"):
        bootstrap(CLUB, "max_degree", model=LAW, n=10, rng=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 1}, "n of bootstrap must be an integer of at least 2"),
        ({"level": 95}, r"level of bootstrap must be a number between 0.01 and 0.9999; got 95"),
        ({"method": "bca"}, "method of bootstrap must be one of 'basic'"),
        ({"target": "vertices"}, "target of bootstrap must be one of 'edges', 'nodes'"),
        ({"model": NodeBootstrap()}, "model for target='edges' must be a graph model such as"),
        ({"model": SameLabel}, "model for target='edges' must be a graph model such as"),
        ({"model": LAW, "target": "nodes"}, r"model for target='nodes' must be NodeBootstrap\(\)"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap(CLUB, "density", **settings)


def test_statistics_of_different_lengths_are_an_error() -> None:
    def degrees_seen(graph: Graph) -> list[float]:
        return list(range(graph.n_edges))

    with pytest.raises(InputError, match="statistic must return as many numbers for every sample"):
        bootstrap(CLUB, degrees_seen, target="nodes", n=5, rng=0)


@pytest.mark.parametrize("statistic", ["pagerank", nx.degree_centrality, nx.edge_betweenness_centrality])
def test_nodes_that_are_drawn_again_have_no_values_of_their_own(statistic: Any) -> None:
    network = to_networkx(CLUB)
    with pytest.raises(InputError, match="statistic must not have a value per node or edge"):
        bootstrap(network, statistic, target="nodes", n=5, rng=0)
    with mute_data_warnings():
        counts = bootstrap(
            CLUB, lambda graph: np.bincount(graph.degrees, minlength=40)[:3], target="nodes", n=30, rng=0
        )
    assert np.shape(counts["statistic 1"].low) == (3,)


@pytest.mark.parametrize("processes", [False, True])
def test_workers_do_not_change_results(processes: bool) -> None:
    network = to_networkx(datasets.load("karate"))
    settings: dict[str, Any] = {"model": SameLabel(), "n": 7, "rng": 3}
    statistics = [nx.degree_centrality, lambda graph: graph.number_of_edges(), "density"]
    alone = bootstrap(network, statistics, **settings)
    together = bootstrap(network, statistics, workers=2, processes=processes, **settings)
    for name, rows in alone.values.items():
        np.testing.assert_array_equal(together.values[name], rows)


def test_errors_in_processes_are_those_of_the_function() -> None:
    def broken(graph: Any) -> float:
        if graph.n_edges != 78:
            raise ZeroDivisionError
        return 1.0

    with pytest.raises(ZeroDivisionError):
        bootstrap(datasets.load("karate"), broken, model=SameLabel(), n=4, workers=2, processes=True, rng=0)


def test_few_samples_are_a_warning() -> None:
    with pytest.warns(DataWarning, match="20 samples are too few .* level of 0.95.* Draw at least 39"):
        bootstrap(CLUB, "density", model=SameLabel(), n=20, rng=0)

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, Jaccard, NodeCopying, SameLabel, datasets
from nodecopy._core.messages import mute_data_warnings
from nodecopy.errors import DataWarning, InputError
from nodecopy.experiments.data import KnownNetwork
from nodecopy.experiments.tasks.coverage import pagerank_of_first
from nodecopy.generators import BarabasiAlbert, ErdosRenyi, RandomDotProduct
from nodecopy.inference import BootstrapResult, Estimate, bootstrap
from nodecopy.inference.diagnosis import (
    N_CHECKED,
    check_validity,
    diagnose,
    donor_variance_ratio,
    few_donors_share,
    next_model,
    node_variance_factor,
    shape,
    share_below,
)
from nodecopy.inference.resampling import MODELS, choose_sampler
from nodecopy.inference.statistics import prepare_measure
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


CLUB = datasets.load("karate")


@lru_cache
def known_network(name: str, degree: int) -> KnownNetwork:
    return KnownNetwork.by_name(name, 200, degree, SeedSequence(1))


def network(name: str, degree: int = 15, number: int = 0) -> Graph:
    return known_network(name, degree).draw(SeedSequence([2, number]))


def test_a_second_draw_is_as_doubtful_as_stated() -> None:
    """The test is exact at 5 % with 19 samples; more than 8 of 50 happens with chance 1e-3."""
    draws = [[network("dc-sbm", number=20 * trial + k) for k in range(N_CHECKED + 1)] for trial in range(50)]
    checks = [check_validity(first, others) for first, *others in draws]
    n_extreme = sum(check.p_value <= 1 / (N_CHECKED + 1) for check in checks)
    assert sum(check.is_doubtful for check in checks) <= n_extreme <= 8
    assert np.mean([check.score - check.reference for check in checks]) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("name", ["sbm", "dc-sbm"])
def test_samples_of_the_default_are_not_doubtful(name: str) -> None:
    with mute_data_warnings():
        results = [bootstrap(network(name, number=k), "density", n=30, rng=k) for k in range(4)]
    checks: list[Any] = [result.validity for result in results]
    assert not any(check.is_doubtful for check in checks)
    assert np.mean([check.score for check in checks]) <= 1.5 * np.mean([check.reference for check in checks])
    assert str(checks[0]) in repr(results[0])
    assert results[0].to_dict()["validity"]["p_value"] == checks[0].p_value


def test_samples_of_a_wrong_model_are_doubtful() -> None:
    """A block model of a network with heavy-tailed degrees; the next model is named."""
    with pytest.warns(
        DataWarning, match="less like the samples than they are like each other.*Use the model 'node-copying'"
    ):
        result = bootstrap(network("dc-sbm"), "density", model=ErdosRenyi(), n=30, rng=0)
    check: Any = result.validity
    assert check.is_doubtful
    assert check.score > 0.4 > check.reference
    assert check.p_values.mean() < 0.05
    assert result.problems[0].next_model == "node-copying"


def test_the_check_can_be_switched_off_and_needs_given_nodes() -> None:
    with mute_data_warnings():
        settings: dict[str, Any] = {"n": 20, "rng": 0}
        assert bootstrap(CLUB, "density", validity=False, **settings).validity is None
        assert bootstrap(CLUB, "density", resample="nodes", **settings).validity is None
        assert bootstrap(Graph(np.zeros((4, 4))), "n_edges", **settings).validity is not None


@pytest.mark.parametrize("name", ["sbm", "graphon"])
def test_standard_errors_of_the_default_are_near_the_truth(name: str) -> None:
    """Mean standard errors of 10 networks, over the deviation of 300: its own error is about 7 %."""
    names = ["degree_variance", "triangles", "transitivity"]
    with mute_data_warnings():
        results = [bootstrap(network(name, 15, k), names, n=50, validity=False, rng=k) for k in range(10)]
    measure = prepare_measure(names, network(name), None)[1]
    values = [measure(network(name, 15, number)) for number in range(100, 400)]
    for statistic in names:
        truth = np.std([float(value[statistic]) for value in values], ddof=1)
        ratio = np.mean([float(result[statistic].standard_error) for result in results]) / truth
        assert 0.8 <= ratio <= 1.2


def test_a_second_level_finds_what_a_fitted_model_misses() -> None:
    """The dot product graph overstates the variance of degrees, also in its own samples."""
    settings: dict[str, Any] = {"model": RandomDotProduct(2), "n": 40, "validity": False, "rng": 0}
    with mute_data_warnings():
        first, second = (
            bootstrap(network("sbm"), ["degree_variance", "degrees"], levels=levels, **settings)
            for levels in (1, 2)
        )
    assert list(second.calibration) == ["degree_variance"]  # numbers only
    factor = second.calibration["degree_variance"]
    assert 0.4 < factor < 0.9
    row, scaled = first["degree_variance"], second["degree_variance"]
    assert scaled.standard_error == pytest.approx(factor * float(row.standard_error))
    assert second.scaled_values("degree_variance").std(ddof=1) == pytest.approx(scaled.standard_error)
    assert not first.calibration
    with pytest.raises(InputError, match="levels must be 1 if nodes are resampled"):
        bootstrap(CLUB, "triangles", resample="nodes", levels=2, n=5)


def test_the_order_of_models() -> None:
    """Messages follow the order of the names that auto tries, and start again after the last."""
    for resample, models in MODELS.items():
        names = list(models)
        samplers = [choose_sampler(name, resample) for name in names]
        assert [next_model(sampler) for sampler in samplers] == [*names[1:], names[0]]
    assert next_model(ErdosRenyi()) == next_model(NodeCopying(SameLabel())) == "node-copying"
    assert next_model(choose_sampler(None, "edges")) == "dc-sbm"


def test_auto_takes_the_first_model_that_represents_the_graph(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "nodecopy")
    graph = network("sbm")
    with mute_data_warnings():
        first, other = (bootstrap(graph, "density", model=model, n=30, rng=0) for model in ("auto", None))
        second = bootstrap(CLUB, "density", model="auto", n=30, rng=0)  # the hubs have no donors
    assert isinstance(first, BootstrapResult)
    assert first["density"] == other["density"]
    assert "ClassCopying" in first.model
    assert "RandomDotProduct" in second.model
    failed = "node-copying does not represent the graph; dc-sbm does not represent the graph"
    assert f"model: dot-product; {failed}." in caplog.text

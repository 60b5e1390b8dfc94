"""Intervals of bootstrap and compare_graphs, and the forms of their results."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from nodecopy import Graph, NodeCopying, SameLabel, datasets, to_networkx
from nodecopy._core.messages import mute_data_warnings
from nodecopy._core.random import child
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import SBM, BlockConfigurationModel, DegreeCorrectedSBM, ErdosRenyi
from nodecopy.inference import (
    DegreeClasses,
    LatentPositionBootstrap,
    NodeBootstrap,
    NodeSubsampling,
    bootstrap,
    community_stability,
    compare_graphs,
    null_test,
    spectral_communities,
)
from nodecopy.inference.bootstrapping import METHODS, estimate_interval
from nodecopy.inference.resampling import MODELS, SAMPLES_SEED, NodeResampler, collect_values, start_sampling
from nodecopy.inference.statistics import density, prepare_measure
from nodecopy.io.networks import to_igraph
from tests.inference.known_graphs import Floats, draw_graph, heavy_tail, two_blocks

CLUB = datasets.load("karate")
DONORS = SameLabel()
SMOOTH = ["density", "triangles", "transitivity", "largest_eigenvalue"]
RESULT = bootstrap(CLUB, ["density", "degrees"], model=DONORS, n=30, rng=0)
SKEWED = np.random.default_rng(0).exponential(size=5_000) + 3.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [NodeCopying(DONORS), DONORS, ErdosRenyi(), SBM()], ids=str)
def test_methods_and_models(method: str, model: Any) -> None:
    result = bootstrap(CLUB, "density", model=model, n=40, method=method, rng=0)
    row = result["density"]
    assert (result.method, result.n, result.resample) == (method, 40, "edges")
    assert row.observed == pytest.approx(density(CLUB))
    assert row.low < row.observed < row.high


@pytest.mark.parametrize(
    "model", [None, NodeBootstrap(), NodeSubsampling(), LatentPositionBootstrap()], ids=str
)
def test_resampled_nodes_add_to_the_variance(model: Any) -> None:
    result = bootstrap(CLUB, "density", model=model, resample="nodes", n=60, rng=0)
    edges = bootstrap(CLUB, "density", model=DONORS, n=60, rng=0)
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
        with mute_data_warnings():
            result = bootstrap(draw_graph(probabilities, rng), SMOOTH, n=50, rng=rng)
        estimated.append([float(row.standard_error) for row in result])
    ratios = np.sqrt(np.mean(np.square(estimated), axis=0)) / deviations
    assert (ratios > 0.82).all(), ratios
    assert (ratios < 1.35).all(), ratios


def test_workers_do_not_change_results() -> None:
    network = to_networkx(CLUB)
    settings: dict[str, Any] = {"model": DONORS, "n": 7, "rng": 3}
    statistics = [nx.degree_centrality, lambda graph: graph.number_of_edges(), "density"]
    alone = bootstrap(network, statistics, **settings)
    together = bootstrap(network, statistics, workers=2, **settings)
    for name, rows in alone.values.items():
        np.testing.assert_array_equal(together.values[name], rows)
        assert rows.std() > 0


@pytest.mark.parametrize(
    ("statistic", "settings", "message"),
    [
        ("density", {"confidence": 95}, "confidence of bootstrap must be a number between 0.01 and 0.9999"),
        ("density", {"method": "normal", "simultaneous": True}, "method must be 'basic'"),
        ("density", {"model": NodeBootstrap()}, "model must be a graph model such as"),
        ("density", {"model": DONORS, "resample": "nodes"}, r"model must be NodeBootstrap\(\)"),
        ("pagerank", {"resample": "nodes"}, "must be a number if nodes are resampled"),
        (nx.edge_betweenness_centrality, {"resample": "nodes"}, "must be a number if nodes are resampled"),
        (lambda g: list(range(g.number_of_edges())), {"resample": "nodes"}, "as many numbers"),
        ("degrees", {"n": 10**9}, "n must need at most"),
    ],
)
def test_wrong_settings(statistic: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap(to_networkx(CLUB), statistic, **{"n": 5, "model": None, **settings}, rng=0)


# Intervals from values in samples.


@pytest.mark.parametrize("method", ["basic", "normal"])
def test_the_interval_does_not_depend_on_the_bias(method: str) -> None:
    first = estimate_interval("x", 10.0, SKEWED, confidence=0.95, method=method)
    second = estimate_interval("x", 10.0, SKEWED + 100, confidence=0.95, method=method)
    assert (first.low, first.high) == pytest.approx((second.low, second.high))
    assert first.bias == pytest.approx(SKEWED.mean() - 10)


def test_methods_by_their_definitions() -> None:
    mean, low, high = SKEWED.mean(), *np.quantile(SKEWED, [0.05, 0.95], method="weibull")
    rows = {m: estimate_interval("x", 1.0, SKEWED, confidence=0.9, method=m) for m in METHODS}
    assert tuple(rows["basic"][4:]) == pytest.approx((1 - (high - mean), 1 + (mean - low)))
    assert tuple(rows["percentile"][4:]) == pytest.approx((low, high))
    width = stats.norm.isf(0.05) * SKEWED.std(ddof=1)
    assert tuple(rows["normal"][4:]) == pytest.approx((1 - width, 1 + width))


@pytest.mark.parametrize("method", METHODS)
def test_a_factor_scales_deviations(method: str) -> None:
    plain, double = (
        estimate_interval("x", SKEWED.mean(), SKEWED, confidence=0.9, method=method, factor=factor)
        for factor in (1.0, 2.0)
    )
    assert double.high - double.low == pytest.approx(2 * (plain.high - plain.low))


def test_a_simultaneous_band_covers_all_nodes_at_once() -> None:
    values = np.random.default_rng(1).normal(size=(2_000, 50))
    settings: dict[str, Any] = {"confidence": 0.9, "method": "normal"}
    band = estimate_interval("x", np.zeros(50), values, simultaneous=True, **settings)
    each = estimate_interval("x", np.zeros(50), values, **settings)
    deviations = values - values.mean(axis=0)
    inside = [((e.low <= deviations) & (deviations <= e.high)).all(axis=1).mean() for e in (band, each)]
    assert inside[0] == pytest.approx(0.9, abs=0.005)
    assert inside[1] < 0.05
    constant = estimate_interval("x", np.ones(3), np.ones((9, 3)), simultaneous=True, **settings)
    assert np.array_equal(constant.low, constant.high)


def test_few_samples_cover_as_stated() -> None:
    """Normal samples and observed values, 20,000 times with 40 samples each; five standard errors."""
    rng, n = np.random.default_rng(0), 20_000
    settings: dict[str, Any] = {"confidence": 0.9, "method": "basic"}
    row = estimate_interval("x", rng.normal(size=n), rng.normal(size=(40, n)), **settings)
    covered = (np.asarray(row.low) <= 0) & (np.asarray(row.high) >= 0)
    assert covered.mean() == pytest.approx(0.9, abs=5 * 0.3 / np.sqrt(n))


# Results.


def test_results_of_numbers_and_nodes() -> None:
    loaded = json.loads(json.dumps(RESULT.to_dict()))
    assert (loaded["resample"], loaded["confidence"]) == ("edges", 0.95)
    assert loaded["statistics"]["density"]["observed"] == pytest.approx(0.139, abs=1e-3)
    assert len(loaded["statistics"]["degrees"]["low"]) == 34
    table = RESULT.to_pandas()
    assert len(table) == 35
    assert table.loc[("degrees", 34), "observed"] == 17  # the id of the second hub
    pytest.importorskip("matplotlib").use("agg")
    axes = RESULT.plot()
    assert [place.get_title() for place in axes] == ["density", "degrees"]
    single = bootstrap(CLUB, "density", model=DONORS, n=5, rng=0)
    assert single.plot(axes[0]) is axes[0]
    assert list(single.to_pandas().index) == ["density"]


def test_ranks_and_top_shares_agree() -> None:
    low, high = RESULT.rank_interval()
    assert (low <= high).all()
    assert low[np.argmax(RESULT.top_share(1))] == low.min() == 1
    assert RESULT.top_share(2).sum() == pytest.approx(2)
    assert RESULT.top_share(34, "degrees").tolist() == [1] * 34
    for ranking in (RESULT.rank_interval, lambda name: RESULT.top_share(2, name)):
        with pytest.raises(InputError, match=r"one of \['degrees'\]"):
            ranking("density")


def test_ranks_do_not_follow_the_bias_of_the_samples() -> None:
    """Donors from the whole network: the expected degree in samples is halfway to the mean degree."""
    result = bootstrap(CLUB, "degrees", model=SameLabel([0] * 34), n=200, rng=0)
    hub = int(np.argmax(CLUB.degrees))
    assert np.asarray(result["degrees"].bias)[hub] < -4
    centred = result.values["degrees"] - result.values["degrees"].mean(axis=0) + CLUB.degrees
    expected = (centred.argmax(axis=1) == hub).mean()
    assert result.top_share(1)[hub] == pytest.approx(expected)
    assert expected > (result.values["degrees"].argmax(axis=1) == hub).mean() + 0.1


def test_statistics_of_edges() -> None:
    network = to_networkx(CLUB)
    with pytest.warns(DataWarning, match="undefined in some samples"):
        result = bootstrap(network, [nx.edge_betweenness_centrality, "density"], model=DONORS, n=60, rng=0)
    name = "edge_betweenness_centrality"
    estimate, values = result[name], result.values[name]
    assert "78 edges" in repr(result)
    n_defined = np.isfinite(values).sum(axis=0)
    np.testing.assert_array_equal(np.isfinite(np.asarray(estimate.low)), n_defined >= 20)
    edge = int(np.argmax(n_defined))
    mean = np.asarray(estimate.observed)[edge] + np.asarray(estimate.bias)[edge]
    assert np.nanmean(values[:, edge]) == pytest.approx(mean)
    assert result.plot()[-1].get_xlabel() == "edges, in ascending order"
    other = result.annotate(network)
    first, second = result.keys_of(name)[edge]
    assert other.edges[first, second][f"{name}_low"] == np.asarray(estimate.low)[edge]
    assert other.graph["density_high"] == result["density"].high
    assert "density" not in network.graph
    assert result.to_dict()["statistics"][name]["edges"][edge] == [first, second]
    with pytest.raises(InputError, match="name must be a statistic of nodes; edge_betweenness"):
        result.rank_interval()


@pytest.mark.parametrize(("resample", "name"), [(key, name) for key in MODELS for name in MODELS[key]])
def test_models_by_the_names_of_the_command_line(resample: str, name: str) -> None:
    settings: dict[str, Any] = {"n": 5, "resample": resample, "rng": 0}
    with mute_data_warnings():
        by_name, by_object = (
            bootstrap(CLUB, "density", model=model, **settings) for model in (name, MODELS[resample][name]())
        )
        compare_graphs(CLUB, CLUB, "density", model=name, **settings)
    np.testing.assert_array_equal(by_name.values["density"], by_object.values["density"])


def test_a_misspelt_model() -> None:
    with pytest.raises(InputError, match=r"one of dc-sbm, .*; got 'dot-produkt'\. Did you mean dot-product"):
        bootstrap(CLUB, "density", model="dot-produkt")
    with pytest.raises(InputError, match=r"resample='nodes' must be one of latent-positions, .*; got 'sbm'"):
        bootstrap(CLUB, "density", model="sbm", resample="nodes")


def test_results_print_as_tables() -> None:
    settings: dict[str, Any] = {"n": 20, "model": "sbm", "rng": 0}
    names = ["density", "pagerank"]
    with mute_data_warnings():
        interval = bootstrap(CLUB, names, simultaneous=True, **settings)
        test = null_test(CLUB, ["transitivity", "assortativity"], n=20, rng=0)
        stability = community_stability(CLUB, **settings)
        printed: list[tuple[Any, int, str, int]] = [
            (interval, 2, "statistic       observed  standard error", 11),
            (test, 1, "statistic      observed  mean of the null", 2),
            (test["transitivity"], 1, "statistic     observed", 1),
            (compare_graphs(CLUB, CLUB, "density", **settings), 2, "statistic  first  second", 1),
            (stability, 1, "community  nodes  pairs", len(stability.sizes)),
        ]
    for result, n_lines, head, n_rows in printed:
        lines = str(result).splitlines()
        assert lines[n_lines].startswith(head)
        (width,) = {len(line) for line in lines[n_lines : n_lines + n_rows + 1]}  # numbers are to the right
        assert width > len(head)
    assert "pagerank: the 10 largest of 34 nodes" in str(interval)


def test_annotated_nodes() -> None:
    network = to_igraph(CLUB)
    result = bootstrap(network, ["pagerank", "density"], model=DONORS, n=10, rng=0)
    other = result.annotate(network)
    assert other.vs["pagerank_high"] == np.asarray(result["pagerank"].high).tolist()
    assert other["density"] == result["density"].observed
    with pytest.raises(InputError, match="network must be"):
        result.annotate(CLUB)
    grid = nx.grid_2d_graph(3, 3)  # whose nodes are tuples
    statistics = [nx.degree_centrality, nx.edge_betweenness_centrality]
    with pytest.warns(DataWarning, match="12 of 12 values have no interval"):
        result = bootstrap(grid, statistics, model=DegreeClasses(np.zeros(9, int)), n=5, rng=0)
    other = result.annotate(grid)
    assert other.nodes[1, 1]["degree_centrality"] == 0.5
    assert other.edges[(0, 0), (0, 1)]["edge_betweenness_centrality"] > 0


# Comparisons.


def test_a_difference_of_densities_is_found_between_graphs_of_different_size() -> None:
    rng = np.random.default_rng(0)
    first, second = (draw_graph(two_blocks(n, p), rng) for n, p in ((150, 0.2), (100, 0.1)))
    row = compare_graphs(first, second, ["density"], n=100, rng=0)["density"]
    assert row.is_clear
    assert row.low < 0.05 < row.high
    same = compare_graphs(first, draw_graph(two_blocks(150, 0.2), rng), ["density"], n=100, rng=0)["density"]
    assert not same.is_clear


def test_variances_of_differences_add() -> None:
    settings: dict[str, Any] = {"model": DONORS, "n": 2_000}
    row = compare_graphs(CLUB, CLUB, "density", rng=0, **settings)["density"]
    single = bootstrap(CLUB, "density", rng=1, **settings)["density"]
    assert row.difference == 0
    assert row.standard_error == pytest.approx(2**0.5 * single.standard_error, rel=0.08)


def test_deviations_of_subsamples_are_scaled() -> None:
    rng = np.random.default_rng(0)
    graphs = [draw_graph(two_blocks(n), rng) for n in (80, 120)]
    settings: dict[str, Any] = {"model": NodeSubsampling(), "resample": "nodes", "n": 1_000}
    with mute_data_warnings():
        row = compare_graphs(graphs[0], graphs[1], "density", rng=0, **settings)["density"]
        results = [bootstrap(graph, "density", rng=1, **settings) for graph in graphs]
    # 1.5 times that without scaling
    errors = [float(result["density"].standard_error) for result in results]
    assert row.standard_error == pytest.approx(np.linalg.norm(errors), rel=0.1)


def test_differences_in_other_forms() -> None:
    network = to_networkx(CLUB)  # whose library functions of both graphs take
    with pytest.warns(DataWarning, match="fewer than 3 donors"):
        result = compare_graphs(network, CLUB, ["density", nx.transitivity], n=40, rng=0)
    first = result.problems[0]
    assert first.text.startswith("first graph: ")
    assert result.to_dict()["problems"][0] == first._asdict()
    assert f"Warning: {first}" in repr(result)
    assert list(result.to_pandas().index) == ["density", "transitivity"]
    assert result.to_dict()["statistics"]["transitivity"]["difference"] == 0
    pytest.importorskip("matplotlib").use("agg")
    assert [text.get_text() for text in result.plot().get_yticklabels()] == ["density", "transitivity"]
    with pytest.raises(InputError, match="statistic must be a number to be compared; degrees has"):
        compare_graphs(CLUB, CLUB, "degrees", model=DONORS, n=5, rng=0)


CLUB = datasets.load("karate")


def test_values_are_those_of_sample_many() -> None:
    observed, measure = prepare_measure("n_edges", CLUB, None)
    model = NodeCopying(SameLabel())
    *_, samples = start_sampling(observed, measure, model, call="bootstrap", n=5, rng=SeedSequence(3))
    values = collect_values(samples, measure(observed), 5)
    seed = child(SeedSequence(3), SAMPLES_SEED)
    expected = [sample.n_edges for sample in model.fit(CLUB).sample_many(5, rng=seed)]
    assert values["n_edges"].tolist() == expected


@pytest.mark.parametrize("model", [SBM(), DegreeCorrectedSBM(), BlockConfigurationModel()])
def test_blocks_without_labels_are_spectral_communities(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Label propagation found one block in half of the networks with two blocks."""
    for number in range(5):
        graph = draw_graph(two_blocks(200), np.random.default_rng(number))
        observed, measure = prepare_measure("density", graph, None)
        fitted: Any = start_sampling(observed, measure, model, call="null_test", n=2, rng=0)[0]
        assert np.array_equal(fitted.blocks_, spectral_communities(graph))
        assert caplog.messages[-1].startswith("blocks: 2 communities, estimated from the graph.")


@pytest.mark.parametrize(
    "resampler", [NodeBootstrap(), NodeSubsampling(0.5), LatentPositionBootstrap()], ids=repr
)
@pytest.mark.parametrize("directed", [False, True])
def test_samples_are_graphs_that_depend_on_the_seed_alone(resampler: NodeResampler, directed: bool) -> None:
    fitted = resampler.fit(CLUB.replace(directed=directed))
    first, again, other = (fitted.draw(SeedSequence(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.directed == directed
    assert first.label_codes is not None
    assert len(first.label_codes) == first.n_nodes


def test_the_bootstrap_takes_edges_among_drawn_nodes() -> None:
    """Of two linked nodes, a sample has an edge only if it has one copy of each."""
    pair = NodeBootstrap().fit(Graph([[0, 1], [1, 0]]))
    n_edges = [pair.draw(SeedSequence(seed)).n_edges for seed in range(400)]
    assert set(n_edges) == {0, 1}
    assert np.mean(n_edges) == pytest.approx(0.5, abs=0.1)  # four standard errors


def test_a_subsample_is_an_induced_subgraph() -> None:
    graph = CLUB.replace(labels=np.arange(34))
    sample = NodeSubsampling(0.4).fit(graph).draw(SeedSequence(3))
    assert sample.label_codes is not None
    assert len(set(sample.label_codes.tolist())) == 14
    induced = graph.adjacency[sample.label_codes][:, sample.label_codes]
    assert np.array_equal(sample.adjacency.toarray(), induced.toarray())
    assert NodeSubsampling(0.5).fit(graph).deviation_factor == pytest.approx(1.0)
    with pytest.raises(InputError, match=r"share of NodeSubsampling must be a number between 0.01 and 0.99"):
        NodeSubsampling(1.0).fit(CLUB)


def test_latent_positions_keep_the_density() -> None:
    fitted = LatentPositionBootstrap().fit(CLUB)
    mean = np.mean([fitted.draw(SeedSequence(seed)).n_edges for seed in range(200)])
    assert mean == pytest.approx(78, rel=0.15)

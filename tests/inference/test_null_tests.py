from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import sparse, stats

from nodecopy import Graph, Interactions, NodeCopying, SameLabel, datasets, inference
from nodecopy._core.random import child
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import (
    BarabasiAlbert,
    BlockConfigurationModel,
    ChungLu,
    ConfigurationModel,
    ErdosRenyi,
)
from nodecopy.generators.classical import detect_sides, join_sides
from nodecopy.inference import spectral_communities
from nodecopy.inference.null_tests import NULL_MODELS
from nodecopy.inference.resampling import SAMPLES_SEED
from nodecopy.inference.statistics import compute_modularity
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")


@pytest.mark.parametrize("null", [*NULL_MODELS, ErdosRenyi(), NodeCopying(SameLabel()), SameLabel()], ids=str)
def test_null_models_by_name_and_as_objects(null: Any) -> None:
    """Those of node copying warn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (result,) = inference.null_test(CLUB, "transitivity", null=null, n=19, rng=0)
    is_copying = null == "node-copying" or isinstance(null, (NodeCopying, SameLabel))
    assert any("is not of the stated size" in str(warning.message) for warning in caught) == is_copying
    assert 0 < result.p_value <= 1
    assert len(result.values) == result.n_samples <= 19


def test_the_p_value_by_its_definition() -> None:
    result = inference.null_test(CLUB, "assortativity", n=60, stop_after=None, rng=0)["assortativity"]
    values, observed = result.values, result.observed
    upper, lower = (values >= observed).sum() + 1, (values <= observed).sum() + 1
    assert result.p_value == pytest.approx(min(1, 2 * min(upper, lower) / 61))
    assert result.z_score == pytest.approx((observed - values.mean()) / values.std(ddof=1))
    settings: dict[str, Any] = {"alternative": "less", "n": 60, "stop_after": None, "rng": 0}
    (one_sided,) = inference.null_test(CLUB, "assortativity", **settings)
    assert one_sided.p_value == pytest.approx(lower / 61)


def test_sampling_stops_when_the_answer_is_clear() -> None:
    graph = draw_graph(np.full((60, 60), 0.2), np.random.default_rng(0))
    settings: dict[str, Any] = {"null": "erdos-renyi", "rng": 0}
    result = inference.null_test(graph, "transitivity", n=5_000, stop_after=10, **settings)["transitivity"]
    assert result.stopped_early
    assert result.n_samples < 200
    assert result.p_value > 0.05
    results = inference.null_test(graph, "transitivity", n=50, stop_after=None, **settings)
    assert not results["transitivity"].stopped_early


def test_a_statistic_that_the_null_model_fixes_is_a_warning() -> None:
    with pytest.warns(DataWarning, match="density is as observed in all samples of the null model"):
        result = inference.null_test(CLUB, "density", n=30, rng=0)["density"]
    assert np.isnan(result.z_score)  # not the ratio of two rounding errors
    assert np.isnan(result.p_value)


@pytest.mark.parametrize("stop_after", [None, 5])
def test_a_true_null_is_rejected_as_often_as_stated(stop_after: int | None) -> None:
    """Of 300 graphs of the null with a given density, 5 % are rejected; the bounds fail with chance 1e-4."""
    rng = np.random.default_rng(0)
    rejections = 0
    for _ in range(300):
        pairs = rng.permutation(190)[:40]
        first, second = np.triu_indices(20, 1)
        graph = Graph.from_edges(first[pairs], second[pairs], node_ids=range(20))
        settings: dict[str, Any] = {"alternative": "greater", "n": 39, "stop_after": stop_after, "rng": rng}
        (result,) = inference.null_test(graph, "triangles", null="erdos-renyi", **settings)
        rejections += result.p_value <= 0.05
    assert rejections <= stats.binom.isf(1e-4, 300, 0.05)
    assert rejections >= stats.binom.ppf(1e-4, 300, 0.02)  # ties make a test of counts conservative


@pytest.mark.parametrize("model", [ConfigurationModel(1), BlockConfigurationModel(1)], ids=str)
def test_short_chains_keep_the_level(model: Any) -> None:
    """Swaps of a dense graph are mostly refused, so that one per edge leaves it nearly as it is.

    With chains from the observed graph 1 % of the graphs would be rejected at 10 %; ties cost a part as well.
    """
    rng, rejections = np.random.default_rng(0), 0
    start = draw_graph(np.full((14, 14), 0.75), rng, labels=np.arange(14) % 2)
    null = type(model)(300).fit(start)
    for _ in range(150):
        settings: dict[str, Any] = {"alternative": "greater", "n": 19, "stop_after": None, "rng": rng}
        (result,) = inference.null_test(null.sample(rng=rng), "assortativity", null=model, **settings)
        rejections += result.p_value <= 0.1
    assert 0.03 * 150 <= rejections <= stats.binom.isf(1e-4, 150, 0.1)


def test_undefined_samples_count_as_extreme_with_a_warning() -> None:
    def at_least(graph: Graph) -> float:
        return 1.0 if graph == CLUB else float("nan")

    with pytest.warns(DataWarning, match="at_least is undefined in 7 of 7 samples, which count as extreme"):
        result = inference.null_test(CLUB, at_least, n=50, stop_after=7, rng=0)["at_least"]
    assert result.p_value == 1  # sampling stopped, since they count


def test_planted_triangles_are_found() -> None:
    rng = np.random.default_rng(0)
    graph = draw_graph(np.full((100, 100), 0.04), rng)
    corners = rng.permutation(100)[:60].reshape(3, 20)
    source, target, _ = graph.edges()
    first, second = np.append(source, corners), np.append(target, corners[[1, 2, 0]])
    planted = Graph.from_edges(first, second, node_ids=range(100))
    result = inference.null_test(planted, "triangles", alternative="greater", n=199, rng=0)["triangles"]
    assert result.p_value == pytest.approx(1 / 200)
    assert result.z_score > 3


def test_results_in_other_forms() -> None:
    results = inference.null_test(CLUB, ["transitivity", "assortativity"], n=30, rng=0)
    assert results.to_pandas().loc["transitivity", "p_value"] == results["transitivity"].p_value
    assert results.to_dict()["assortativity"]["n_samples"] == results["assortativity"].n_samples
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert len(results.plot()) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"null": "configuraton"}, "null of null_test must be one of .* Did you mean configuration"),
        ({"sides": np.arange(34)}, "sides of null_test must have two values, .* got 34 values"),
        ({"sides": np.arange(34) < 9}, "got [0-9]+ edges within a side. Give None"),
        ({"weights": "keep"}, "weights of null_test must be one of 'permute', 'strengths'"),
        ({"statistic": "degrees"}, "statistic must be a number to be tested; degrees has 34 values"),
        ({"statistic": lambda g: 1.0 if g == CLUB else [1.0, 2.0]}, "statistic 1 has 2 values in a sample"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        inference.null_test(CLUB, **{"statistic": "density", "n": 5, **settings})


def test_modularity_without_labels_is_that_of_the_communities_of_each_sample() -> None:
    graph, null = draw_graph(two_blocks(60), np.random.default_rng(0)), ErdosRenyi(fixed_edges=True)
    seed = SeedSequence(0)
    (result,) = inference.null_test(graph, "modularity", null=null, n=20, stop_after=None, rng=seed)
    samples = null.fit(graph).sample_many(20, rng=child(seed, SAMPLES_SEED))
    expected = [compute_modularity(sample, spectral_communities(sample)) for sample in samples]
    assert result.values.tolist() == expected
    assert len(set(expected)) > 1


def bipartite_network(seed: int = 0, n_users: int = 30, n_items: int = 50) -> Interactions:
    rng = np.random.default_rng(seed)
    activity, fame = rng.pareto(3, n_users) + 1, rng.pareto(3, n_items) + 1
    scale = 6 * n_users / np.outer(activity, fame).sum()
    return Interactions(rng.random((n_users, n_items)) < scale * np.outer(activity, fame)).at_least()


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        ("configuration", ("degrees", "sides")),
        ("erdos-renyi", ("number of edges", "sides")),
        ("degree-corrected-blocks", ("degrees", "sides")),
        (ChungLu(), ("sides",)),
    ],
    ids=str,
)
def test_null_models_keep_the_sides_of_a_bipartite_network(null: Any, expected: tuple[str, ...]) -> None:
    """They are known of interactions, and detected in their graph; the observed value is not changed."""
    table = bipartite_network()
    settings: dict[str, Any] = {"null": null, "n": 19, "rng": 0, "stop_after": None}
    (result,) = inference.null_test(table, "assortativity", **settings)
    graph = join_sides(table.matrix)
    (detected,) = inference.null_test(graph, "assortativity", **settings)
    assert result.kept == detected.kept == expected
    assert "with the same " + ", ".join(expected) in result.question
    assert result.values.tolist() == detected.values.tolist()
    other = np.arange(graph.n_nodes) >= table.n_users
    assert inference.null_test(graph, "assortativity", sides=other, **settings).tests[0].kept == expected
    (free,) = inference.null_test(graph, "assortativity", sides=None, **settings)
    assert free.kept == tuple(name for name in expected if name != "sides")


def test_models_that_lose_the_sides_are_a_warning() -> None:
    with pytest.warns(DataWarning, match="do not have the sides of the graph"):
        (result,) = inference.null_test(bipartite_network(), "density", null=BarabasiAlbert(), n=5, rng=0)
    assert "sides" not in result.kept


def test_detected_sides() -> None:
    """Cycles of chance are no reason to take a graph for bipartite."""
    table = bipartite_network()
    sides = detect_sides(join_sides(table.matrix))
    assert sides is not None
    assert sides.tolist() == [0] * table.n_users + [1] * table.n_items
    assert detect_sides(CLUB) is None
    path = Graph.from_edges(range(9), range(1, 10))
    assert detect_sides(path) is None


@pytest.mark.parametrize("weights", ["permute", "strengths"])
@pytest.mark.parametrize("directed", [False, True])
def test_null_models_keep_the_weights(weights: str, directed: bool) -> None:
    rng = np.random.default_rng(0)
    matrix = (rng.random((40, 40)) < 0.2) * rng.integers(1, 9, (40, 40)) * np.linspace(1, 3, 40)
    graph = Graph(np.triu(matrix, 1) if not directed else matrix, directed=directed)
    total = []

    def correlation(sample: Graph) -> float:
        total.append(sample.adjacency.sum())
        assert np.array_equal(sample.adjacency.diagonal(), graph.adjacency.diagonal())
        sums: Any = [g.adjacency.sum(axis=0) - g.adjacency.diagonal() for g in (sample, graph)]
        return float(np.corrcoef(*sums)[0, 1]) + 1e-9 * rng.random()

    (result,) = inference.null_test(graph, correlation, weights=weights, n=9, rng=0)
    assert {"weights", "degrees"} <= set(result.kept)
    assert total == pytest.approx([graph.adjacency.sum()] * len(total))
    assert (result.values > 0.9).all() == (weights == "strengths")


@pytest.mark.parametrize("kind", ["bipartite", "directed", "weighted"])
def test_the_level_of_null_models_that_keep_structure(kind: str) -> None:
    """Of 200 networks of the null 5 % are rejected at 5 %; the bounds fail with chance 2e-4."""
    rejections = 0
    for seed in range(200):
        graph, statistic = (
            structured_network(kind, seed),
            strength_variance if kind == "weighted" else "path_length",
        )
        (result,) = inference.null_test(graph, statistic, n=39, stop_after=None, rng=seed)
        rejections += result.p_value <= 0.05
    assert stats.binom.ppf(1e-4, 200, 0.05) <= rejections <= stats.binom.isf(1e-4, 200, 0.05)


def structured_network(kind: str, seed: int) -> Any:
    """Return a network that is uniform given its degrees and, if weighted, has independent weights."""
    rng = np.random.default_rng(seed)
    table = bipartite_network(seed)
    if kind == "bipartite":
        return table
    directed = kind == "directed"
    size = min(table.matrix.shape)
    graph = Graph(table.matrix[:size, :size], directed=directed)
    sample = ConfigurationModel(30).fit(graph).sample(rng=rng)
    return (
        sample
        if directed
        else sample.replace(adjacency=sparse.triu(sample.adjacency).multiply(rng.pareto(3, (size, size)) + 1))
    )


def strength_variance(graph: Graph) -> float:
    """Return the variance of the sums of weights."""
    return float(np.var(graph.adjacency.sum(axis=0)))

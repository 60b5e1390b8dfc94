"""Statistics of graphs: by hand, by formulas and NetworkX, compiled and plain counts, and comparisons."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.arrays import Rows
from nodecopy.errors import DataWarning, InputError
from nodecopy.graph import Graph
from nodecopy.metrics import counting, counting_kernels, structure
from nodecopy.metrics.classification import warn_about_missing_labels
from nodecopy.metrics.structure import (
    LABEL_NAMES,
    Comparison,
    compare,
    degree_statistics,
    edge_overlap,
    mean_path_length,
    select_statistics,
    statistics,
    triangle_statistics,
)

KEYS = [
    "n_nodes", "n_edges", "mean_degree", "max_degree", "claw_share", "edge_entropy", "degree_gini",
    "power_law_exponent", "cross_community_share", "edge_homophily", "class_insensitive_homophily",
    "triangles", "transitivity", "average_clustering", "assortativity", "n_components", "largest_component",
]  # fmt: skip


def graph_of(*edges: tuple[int, int], n: int, directed: bool = False, labels: Any = None) -> Graph:
    source, target = [a for a, _ in edges], [b for _, b in edges]
    return Graph.from_edges(source, target, node_ids=np.arange(n), labels=labels, directed=directed)


def random_graph(n: int, n_edges: int, seed: int, *, directed: bool = False) -> Graph:
    draws = np.random.default_rng(seed)
    hubs = (n * draws.random((2, n_edges)) ** 2).astype(int)  # low numbers have high degrees
    labels = draws.integers(-1, 3, n)
    return Graph.from_edges(*hubs, node_ids=np.arange(n), labels=labels, directed=directed)


def star(n_leaves: int) -> Graph:
    return graph_of(*((0, i) for i in range(1, n_leaves + 1)), n=n_leaves + 1)


@st.composite
def graphs(draw: st.DrawFn, directed: bool = False) -> Graph:
    n = draw(st.integers(0, 12))
    node = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=40)) if n else []
    labels = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    return graph_of(*edges, n=n, directed=directed, labels=np.array(labels, np.int64))


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("labels", [None, -1, 0])
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_without_edges(n: int, labels: int | None, directed: bool) -> None:
    codes = None if labels is None else np.full(n, labels)
    graph = Graph(sparse.csr_array((n, n)), labels=codes, directed=directed)
    values = statistics(graph, observed=graph)
    defined = {"n_nodes": n, "n_edges": 0, "triangles": 0}
    defined |= {"n_components": n, "largest_component": min(n, 1)}
    if n:
        defined |= {"mean_degree": 0, "max_degree": 0, "average_clustering": 0}
    assert list(values) == [*KEYS, "path_length", "edge_overlap"]
    assert {key: value for key, value in values.items() if not math.isnan(value)} == defined


def test_weights_are_ignored() -> None:
    graph = random_graph(30, 80, 0)
    assert statistics(graph.replace(adjacency=graph.adjacency * 2.5)) == statistics(graph)


def test_powers_of_degrees_beyond_64_bits() -> None:
    """Powers of a degree of three million exceed 64 bits."""
    n = 3_000_000
    degrees = np.concatenate([[n], np.ones(n, np.int64)])
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    indices = np.concatenate([np.arange(1, n + 1), np.zeros(n)]).astype(np.int32)
    rows = Rows(indptr, indices, None, n + 1)
    graph = Graph(sparse.csr_array((n + 1, n + 1))).with_rows(rows)
    assert triangle_statistics(graph)["assortativity"] == -1
    assert degree_statistics(graph)["claw_share"] == pytest.approx(1 / 8, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("directed", [False, True])
def test_against_networkx(seed: int, directed: bool) -> None:
    graph = random_graph(60, [40, 120, 300, 600][seed], seed, directed=directed)
    given_graph: Any = networkx.from_scipy_sparse_array(
        graph.adjacency, create_using=networkx.DiGraph if directed else networkx.Graph
    )
    simple = networkx.Graph(given_graph)
    simple.remove_edges_from(list(networkx.selfloop_edges(simple)))
    values = statistics(graph)
    sizes = [len(component) for component in networkx.connected_components(simple)]
    lengths = dict(networkx.all_pairs_shortest_path_length(given_graph))
    distances = [d for u, reached in lengths.items() for v, d in reached.items() if u != v]
    assert values["triangles"] == sum(networkx.triangles(simple).values()) / 3
    assert values["transitivity"] == pytest.approx(networkx.transitivity(simple))
    assert values["average_clustering"] == pytest.approx(networkx.average_clustering(simple))
    assert values["assortativity"] == pytest.approx(networkx.degree_assortativity_coefficient(simple))
    assert (values["n_components"], values["largest_component"]) == (len(sizes), max(sizes))
    assert values["path_length"] == pytest.approx(sum(distances) / len(distances))


@pytest.mark.parametrize("seed", range(3))
def test_against_the_formulas_in_plain_python(seed: int) -> None:
    graph = random_graph(40, 100, seed)
    degrees, n, m = graph.degrees.tolist(), graph.n_nodes, graph.rows.n_entries
    values = statistics(graph)
    shares = [d / m for d in degrees if d]
    assert values["edge_entropy"] == pytest.approx(-sum(p * math.log(p) for p in shares) / math.log(n))
    assert values["claw_share"] == pytest.approx(sum(math.comb(d, 3) for d in degrees) / math.comb(m, 3))
    differences = sum(abs(a - b) for a in degrees for b in degrees)
    assert values["degree_gini"] == pytest.approx(differences / (2 * n * sum(degrees)))
    positive = [d for d in degrees if d]
    logarithms = sum(math.log(d / min(positive)) for d in positive)
    assert values["power_law_exponent"] == pytest.approx(1 + len(positive) / logarithms)
    assert graph.label_codes is not None
    first, second = graph.rows.row_numbers, graph.rows.indices
    ends = [
        (a, b)
        for a, b in zip(graph.label_codes[first], graph.label_codes[second], strict=True)
        if min(a, b) >= 0
    ]
    assert values["cross_community_share"] == pytest.approx(sum(a != b for a, b in ends) / len(ends))
    labelled = Counter(label for label in graph.label_codes.tolist() if label >= 0)
    excess = 0.0
    for label, size in labelled.items():
        own = [a == b for a, b in ends if a == label]
        excess += max(0, sum(own) / len(own) - size / labelled.total())
    assert values["class_insensitive_homophily"] == pytest.approx(excess / (len(labelled) - 1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_compiled_and_plain_statistics_are_equal(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(3000, 20_000, 0)
    rows = graph.rows
    graph = graph.with_rows(Rows(rows.indptr.astype(dtype), rows.indices.astype(dtype), None, 3000))
    other = random_graph(3000, 20_000, 1)
    expected = statistics(graph, observed=other)
    monkeypatch.setattr(structure, "MIN_COMPILED_ENTRIES", 0)
    assert statistics(graph, observed=other) == expected


def test_many_small_graphs_are_counted_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_graph(100, 200, 0).rows
    monkeypatch.setattr(structure, "_counted_entries", 0)
    monkeypatch.setattr(structure, "MIN_TOTAL_ENTRIES", 2 * rows.n_entries)
    names = [structure.select_counting(rows).__name__.rpartition(".")[2] for _ in range(3)]
    assert names == ["counting", "counting", "counting_kernels"]


def test_sampled_path_length_is_seeded_and_close(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(2000, 6000, 0)
    exact = mean_path_length(graph)
    monkeypatch.setattr(structure, "MAX_EXACT_NODES", 1000)
    assert "path_length" not in statistics(graph)
    sampled = statistics(graph, path_length=True, rng=5)["path_length"]
    assert sampled == mean_path_length(graph, rng=5) != exact
    assert sampled == pytest.approx(exact, rel=0.02)
    assert "path_length" not in statistics(star(3), path_length=False)


@pytest.mark.parametrize("directed", [False, True])
def test_select_statistics(directed: bool) -> None:
    draws = np.random.default_rng(0)
    graph, other = (
        Graph(draws.random((20, 20)) < 0.2, labels=np.arange(20) % 3, directed=directed) for _ in range(2)
    )
    everything = statistics(graph, observed=other)
    for name, value in everything.items():
        assert select_statistics(graph, [name], observed=other) == {name: value}
    assert list(select_statistics(graph, ["triangles", "n_edges"])) == ["triangles", "n_edges"]
    with pytest.raises(InputError, match="Did you mean triangles"):
        select_statistics(graph, ["triangle"])
    with pytest.raises(InputError, match="name of a statistic must be one of"):
        select_statistics(graph, ["edge_overlap"])


def test_edge_overlap() -> None:
    observed = graph_of((0, 1), (1, 2), (2, 3), n=4)
    assert edge_overlap(graph_of((0, 1), (0, 3), n=4), observed) == pytest.approx(1 / 3)
    assert edge_overlap(observed, observed) == 1
    with pytest.raises(InputError, match=r"observed must have 4 nodes; got 5"):
        edge_overlap(observed, star(4))


def test_small_graphs_do_without_numba() -> None:
    code = (
        "import sys; from nodecopy import Graph; from nodecopy.metrics.structure import statistics;"
        "statistics(Graph.from_edges([0, 1], [1, 2])); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# Counts by SciPy and by compiled code, which test each other; a search over triples tests both


def triangles_by_search(graph: Graph) -> list[int]:
    linked = graph.adjacency.toarray() > 0
    counts = [0] * graph.n_nodes
    for trio in combinations(range(graph.n_nodes), 3):
        if all(linked[a, b] for a, b in combinations(trio, 2)):
            for node in trio:
                counts[node] += 1
    return counts


@settings(max_examples=150)
@given(graph=graphs())
def test_compiled_and_plain_counts_are_equal(graph: Graph) -> None:
    rows = graph.rows
    expected = triangles_by_search(graph)
    for module in (counting, counting_kernels):
        assert module.triangle_counts(rows).tolist() == expected
        assert module.count_triangles(rows) == sum(expected) // 3
    assert counting.component_sizes(rows) == counting_kernels.component_sizes(rows)


@settings(max_examples=150)
@given(graph=graphs(directed=True))
def test_compiled_and_plain_counts_of_directed_rows_are_equal(graph: Graph) -> None:
    assert graph.label_codes is not None
    for plain, compiled in zip(
        counting.label_counts(graph.rows, graph.label_codes, 4),
        counting_kernels.label_counts(graph.rows, graph.label_codes, 4),
        strict=True,
    ):
        assert plain.tolist() == compiled.tolist()
    sources = np.arange(graph.n_nodes)[::2]
    expected = counting_kernels.distances(graph.rows, sources)
    assert counting.distances(graph.rows, sources) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MAX_LEVELS", 1)  # so that compiled code takes over
        assert counting.distances(graph.rows, sources) == expected


def path(*labels: int) -> Graph:
    return Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], labels=list(labels))


def test_partial_labels_are_a_warning() -> None:
    graph = path(0, 0, 1, -1, -1, -1)
    with pytest.warns(DataWarning, match="modularity counts the 3 others .* over 2 of 5 edges") as caught:
        warn_about_missing_labels(graph, ["modularity", "edge_homophily"])
    assert str(caught[0].message).endswith("Set labels to change this.")
    assert statistics(graph)["edge_homophily"] == 1 / 2


@pytest.mark.parametrize("labels", [(0, 0, 1, 1, 0, 1), (-1,) * 6])
def test_all_or_no_labels_give_no_warning(labels: tuple[int, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_missing_labels(path(*labels), ["modularity", *LABEL_NAMES])
        warn_about_missing_labels(path(0, 0, 1, 1, 0, -1), ["transitivity"])


# Comparison of samples with the observed graph

PATH = Graph.from_edges([0, 1, 2], [1, 2, 3])
CYCLE = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
TAILED = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3])


@pytest.fixture
def comparison() -> Comparison:
    def samples() -> Iterator[Graph]:
        yield from (PATH, CYCLE, TAILED)

    return compare(PATH, samples())


def test_means_and_deviations(comparison: Comparison) -> None:
    each = [statistics(sample, observed=PATH) for sample in (PATH, CYCLE, TAILED)]
    assert comparison.n_samples == 3
    assert comparison.statistics == tuple(each[0])
    for name, observed, mean, deviation, *_ in comparison:
        values = [sample[name] for sample in each]
        assert observed == pytest.approx(each[0][name], nan_ok=True)
        assert mean == pytest.approx(np.mean(values), nan_ok=True)
        assert deviation == pytest.approx(np.std(values, ddof=1), nan_ok=True)
        assert comparison.values[name] == pytest.approx(values, nan_ok=True)
    assert comparison["edge_overlap"].observed == 1
    assert comparison["edge_overlap"].mean == pytest.approx((1 + 1 + 2 / 3 + 1 / 3) / 3)


def test_forms_of_a_comparison(comparison: Comparison) -> None:
    table = json.loads(json.dumps(comparison.to_dict()))
    assert table["n_samples"] == 3
    assert table["statistics"]["n_edges"]["observed"] == 3
    assert list(table["statistics"]) == list(comparison.statistics)
    frame = comparison.to_pandas()
    assert list(frame.columns) == ["observed", "mean", "deviation", "low", "high", "p_value"]
    assert frame.loc["n_edges", "mean"] == pytest.approx(11 / 3)
    with pytest.raises(KeyError):
        comparison["modularity"]


def test_wrong_samples() -> None:
    with pytest.raises(InputError, match="at least one graph; got none"):
        compare(PATH, [])
    smaller = Graph.from_edges([0], [1])
    with pytest.raises(InputError, match=r"of Graph\(4 nodes.*; got Graph\(2 nodes.* as number 1"):
        compare(PATH, [PATH, smaller])
    with pytest.raises(InputError, match="several graphs"):
        compare(PATH, PATH)  # type: ignore[arg-type]
    for other in (PATH.replace(node_ids=[5, 6, 7, 8]), PATH.replace(directed=True)):
        with pytest.raises(InputError, match=r"node ids and directedness of .* as number 0"):
            compare(PATH, [other])


def test_intervals_and_p_values_of_samples() -> None:
    rng = np.random.default_rng(0)
    samples = [Graph(np.triu(rng.random((4, 4)) < 0.5, 1)) for _ in range(99)]
    row = compare(PATH, samples)["n_edges"]
    values = np.sort([sample.n_edges for sample in samples])
    assert row.low == pytest.approx(np.quantile(values, 0.025, method="weibull"))
    below, above = (values <= 3).sum(), (values >= 3).sum()
    assert row.p_value == pytest.approx(min(1.0, 2 * (min(below, above) + 1) / 100))


def test_undefined_samples_count_as_extreme() -> None:
    row = compare(PATH, [CYCLE, *[TAILED] * 8])["assortativity"]  # undefined where all degrees are equal
    assert math.isnan(row.low)
    assert row.p_value == pytest.approx(2 * (1 + 1) / (9 + 1))


def test_a_statistic_outside_of_all_samples_has_a_sentence() -> None:
    comparison = compare(PATH, [CYCLE, CYCLE])
    assert comparison.outside["n_edges"] == (
        "n_edges is 3, less than in all 2 samples (4 to 4): draw more samples to be sure."
    )
    assert compare(PATH, [CYCLE] * 40).outside["n_edges"].endswith("their model does not explain it.")
    assert "n_nodes" not in comparison.outside
    assert "edge_overlap" not in comparison.outside
    assert not compare(PATH, [PATH]).outside


def test_samples_that_fall_apart_have_advice() -> None:
    club, fragment = datasets.load("karate"), "keep near 1"
    pieces = club.replace(adjacency=np.zeros((34, 34)))
    comparison = compare(club, [pieces] * 3)
    assert fragment in comparison.outside["n_components"]
    assert str(comparison).count(fragment) == 1
    assert fragment not in str(compare(pieces, [club] * 3))  # samples with fewer components

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse

from nodecopy._core.arrays import Rows
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.metrics import structure
from nodecopy.metrics.structure import (
    component_statistics,
    degree_statistics,
    edge_overlap,
    label_statistics,
    mean_path_length,
    select_statistics,
    statistics,
    triangle_statistics,
)
from tests.metrics.example_graphs import graph_of, random_graph, star

KEYS = [
    "n_nodes",
    "n_edges",
    "mean_degree",
    "max_degree",
    "claw_share",
    "edge_entropy",
    "degree_gini",
    "power_law_exponent",
    "cross_community_share",
    "edge_homophily",
    "class_insensitive_homophily",
    "triangles",
    "transitivity",
    "average_clustering",
    "assortativity",
    "n_components",
    "largest_component",
]


def test_triangle_by_hand() -> None:
    values = statistics(graph_of((0, 1), (1, 2), (2, 0), n=3, labels=[0, 0, 1]))
    assert list(values) == [*KEYS, "path_length"]
    assert values["n_edges"] == 3
    assert (values["mean_degree"], values["max_degree"], values["claw_share"]) == (2, 2, 0)
    assert values["edge_entropy"] == pytest.approx(1)
    assert (values["degree_gini"], values["triangles"], values["transitivity"]) == (0, 1, 1)
    assert (values["average_clustering"], values["n_components"], values["largest_component"]) == (1, 1, 3)
    assert values["cross_community_share"] == pytest.approx(2 / 3)
    assert values["edge_homophily"] == pytest.approx(1 / 3)
    assert values["class_insensitive_homophily"] == 0  # max(0, 1/2 - 2/3) + max(0, 0 - 1/3)
    assert values["path_length"] == 1
    assert math.isnan(values["assortativity"])
    assert math.isnan(values["power_law_exponent"])


def test_star_by_hand() -> None:
    values = statistics(star(4))
    assert values["claw_share"] == 4 / math.comb(8, 3)
    assert values["edge_entropy"] == pytest.approx((0.5 * math.log(2) + 0.5 * math.log(8)) / math.log(5))
    assert values["degree_gini"] == pytest.approx(2 * (1 + 2 + 3 + 4 + 5 * 4) / (5 * 8) - 6 / 5)
    assert values["power_law_exponent"] == 1 + 5 / math.log(4)
    assert (values["triangles"], values["transitivity"], values["average_clustering"]) == (0, 0, 0)
    assert values["assortativity"] == -1
    assert values["path_length"] == (8 * 1 + 12 * 2) / 20


def test_path_and_two_components_by_hand() -> None:
    path = graph_of((0, 1), (1, 2), (2, 3), n=4)
    assert mean_path_length(path) == (3 * 1 + 2 * 2 + 1 * 3) / 6
    two = graph_of((0, 1), (1, 2), (3, 4), n=6)
    assert component_statistics(two) == {"n_components": 3, "largest_component": 3}
    assert mean_path_length(two) == (4 * 1 + 2 * 2 + 2 * 1) / 8


def test_directed_graphs_count_rows_but_cluster_without_directions() -> None:
    cycle = graph_of((0, 1), (1, 2), (2, 0), (2, 2), n=4, directed=True)
    values = statistics(cycle)
    assert (values["n_edges"], values["mean_degree"], values["max_degree"]) == (4, 1, 2)
    assert (values["triangles"], values["transitivity"], values["n_components"]) == (1, 1, 2)
    assert values["path_length"] == (3 * 1 + 3 * 2) / 6


def test_unlabelled_ends_do_not_count() -> None:
    values = label_statistics(graph_of((0, 1), (1, 2), (2, 3), n=4, labels=[7, 7, 900, -1]))
    assert (values["cross_community_share"], values["edge_homophily"]) == (0.5, 0.5)
    # class 7: h = 2/3 against 2/3 of the nodes; class 900: h = 0
    assert values["class_insensitive_homophily"] == pytest.approx(0)


def test_class_insensitive_homophily_of_two_cliques() -> None:
    values = label_statistics(graph_of((0, 1), (2, 3), n=4, labels=["a", "a", "b", "b"]))
    assert values["class_insensitive_homophily"] == 1


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


def test_one_class_is_all_homophily_but_not_class_insensitive() -> None:
    values = label_statistics(graph_of((0, 1), n=3, labels=[0, 0, 0]))
    assert (values["cross_community_share"], values["edge_homophily"]) == (0, 1)
    assert math.isnan(values["class_insensitive_homophily"])


def test_single_edge_has_no_claws_and_no_assortativity() -> None:
    values = statistics(star(1))
    assert all(math.isnan(values[key]) for key in ("claw_share", "transitivity", "assortativity"))


def test_values_are_plain_numbers() -> None:
    values = statistics(random_graph(30, 80, 0), observed=random_graph(30, 80, 1))
    assert {type(value) for value in values.values()} <= {int, float}
    assert json.loads(json.dumps(values)) == values


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
    assert graph.labels is not None
    first, second = graph.rows.row_numbers, graph.rows.indices
    ends = [(a, b) for a, b in zip(graph.labels[first], graph.labels[second], strict=True) if min(a, b) >= 0]
    assert values["cross_community_share"] == pytest.approx(sum(a != b for a, b in ends) / len(ends))
    labelled = Counter(label for label in graph.labels.tolist() if label >= 0)
    excess = 0.0
    for label, size in labelled.items():
        own = [a == b for a, b in ends if a == label]
        excess += max(0, sum(own) / len(own) - size / labelled.total())
    assert values["class_insensitive_homophily"] == pytest.approx(excess / (len(labelled) - 1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_compiled_and_plain_statistics_have_the_same_bits(
    dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(3000, 20_000, 0)
    rows = graph.rows
    graph = graph.with_rows(Rows(rows.indptr.astype(dtype), rows.indices.astype(dtype), None, 3000))
    other = random_graph(3000, 20_000, 1)
    expected = statistics(graph, observed=other)
    monkeypatch.setattr(structure, "MIN_COMPILED_ENTRIES", 0)
    assert statistics(graph, observed=other) == expected


def test_many_small_graphs_are_counted_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_graph(100, 200, 0).rows
    monkeypatch.setattr(structure._CountedEntries, "total", 0)
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
    with pytest.raises(InputError, match=r"observed must have the nodes of the graph, 4 in all; got 5"):
        edge_overlap(observed, star(4))


def test_small_graphs_do_without_numba() -> None:
    code = (
        "import sys; from nodecopy import Graph; from nodecopy.metrics.structure import statistics;"
        "statistics(Graph.from_edges([0, 1], [1, 2])); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# The observed rows of the paper's Table 1, except for the mean degree of Cora: nodes, edges, mean degree,
# max degree, cross-community %, claws 1e-4 %, entropy %.
PUBLISHED = {
    "cora": (2485, 5069, 4.08, 168, 19.59, 6.345, 95.59),
    "polblogs": (1222, 16714, 27.36, 351, 9.42, 10.09, 90.27),
    "bitcoin": (472, 491, 2.081, 53, 27.1, 239.9, 92.31),
    "amazon-photo": (7487, 119043, 31.80, 1434, 17.28, 0.754, 94.24),
}


@pytest.mark.skipif("NODECOPY_DATA" not in os.environ, reason="needs NODECOPY_DATA, a folder of datasets")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_statistics(name: str) -> None:
    datasets = pytest.importorskip("nodecopy.datasets", reason="needs nodecopy.datasets")
    graph = datasets.load(name, largest_component=True).undirected()
    nodes, edges, mean_degree, max_degree, crossing, claws, entropy = PUBLISHED[name]
    values = statistics(graph, path_length=False)
    assert (values["n_nodes"], values["n_edges"], values["max_degree"]) == (nodes, edges, max_degree)
    assert values["mean_degree"] == pytest.approx(mean_degree, abs=0.005)
    assert values["cross_community_share"] * 100 == pytest.approx(crossing, abs=0.05)
    assert values["claw_share"] * 1e6 == pytest.approx(claws, rel=1e-3)  # Cora's is 6.344
    assert values["edge_entropy"] * 100 == pytest.approx(entropy, abs=0.005)


def test_a_directed_graph_is_symmetrised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    directed = Graph.from_edges([0, 1, 2], [1, 2, 0], directed=True)
    structure.statistics(directed)  # fills the cache of names
    calls: list[bool] = []
    original = structure._without_directions

    def record(graph: Graph) -> Graph:
        calls.append(graph.directed)
        return original(graph)

    monkeypatch.setattr(structure, "_without_directions", record)
    values = structure.select_statistics(directed, ["triangles", "n_components"])
    assert values == {"triangles": 1, "n_components": 1}
    assert calls.count(True) == 1

"""Donors of inference: degree classes, copying by them, and the exact variance of the number of edges."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, GraphModel, NodeCopying, SameLabel, Weighted, datasets
from nodecopy.copying import DonorRule
from nodecopy.errors import InputError
from nodecopy.inference import ClassCopying, DegreeClasses, edge_count_variance
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.inference.known_graphs import Floats, draw_graph, heavy_tail, two_blocks

GRAPH = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], labels=[0, 1, 0, 1])
WEIGHTS = Weighted([[1, 2, 0, 0], [0, 1, 1, 2], [3, 0, 1, 1], [0, 0, 2, 1]])


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
    club: Any = datasets.load("karate")
    assert class_of(club, DegreeClasses("labels")) == class_of(club, DegreeClasses(club.label_codes))


def test_a_smaller_tolerance_gives_more_classes() -> None:
    graph = draw_graph(heavy_tail(300), np.random.default_rng(0))
    n_classes = [len(set(class_of(graph, DegreeClasses(tolerance=t)))) for t in (0.0, 2.0, 50.0)]
    assert n_classes[0] > n_classes[1] > n_classes[2]
    # Donors are uniform within classes, so every node is expected to be a donor once.
    assert np.allclose(DegreeClasses().fit(graph).probabilities().sum(axis=0), 1)


def variance_ratio(probabilities: Floats, donors: DonorRule) -> float:
    """Return the mean exact variance of the number of edges over that of independent edges, for 20 graphs."""
    rng = np.random.default_rng(1)
    graphs = [draw_graph(probabilities, rng) for _ in range(20)]
    variances = [edge_count_variance(NodeCopying(donors).fit(graph)).total for graph in graphs]
    return float(np.mean(variances) / np.triu(probabilities * (1 - probabilities), 1).sum())


def test_the_variance_of_the_number_of_edges_is_that_of_independent_edges() -> None:
    """Whole blocks overstate it where expected degrees differ."""
    assert 0.85 < variance_ratio(two_blocks(200), DegreeClasses()) < 1.2
    assert 0.85 < variance_ratio(heavy_tail(200), DegreeClasses()) < 1.2
    assert variance_ratio(heavy_tail(200), SameLabel(np.arange(200) % 2)) > 1.8
    assert variance_ratio(two_blocks(200), DegreeClasses(np.arange(200) % 2, tolerance=0.0)) > 0.8


def test_donors_of_equal_degree_understate_it() -> None:
    """Only the coins are left, which give half of the variance."""
    rng = np.random.default_rng(1)
    graphs = [draw_graph(two_blocks(200), rng) for _ in range(10)]
    variances = [edge_count_variance(NodeCopying(SameLabel(graph.degrees)).fit(graph)) for graph in graphs]
    donors, coins = np.mean(variances, axis=0)
    assert donors < 0.1 * coins


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DegreeClasses("labels"), "communities of DegreeClasses must be integers, 'labels' of a graph that"),
        (DegreeClasses([0]), "communities of DegreeClasses must hold one entry per node, 2"),
        (ClassCopying("labels"), "communities of DegreeClasses must be integers, 'labels' of a graph that"),
    ],
)
def test_wrong_settings(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(Graph([[0, 1], [1, 0]]))


# Copying by classes.


class TestClassCopying(GraphModelContract):
    models = (ClassCopying("labels"),)
    graphs = tuple(
        community_graph(directed=directed, weighted=weighted)
        for directed, weighted in product((False, True), repeat=2)
    )


@pytest.mark.parametrize("directed", [False, True])
def test_edges_have_the_density_of_their_classes(directed: bool) -> None:
    """The mean of 4,000 samples; five standard errors. Self-loops of directed copies are dropped."""
    edges, n = np.random.default_rng(0).random((12, 12)) < 0.4, 4_000
    np.fill_diagonal(edges, False)
    graph = Graph(edges, labels=np.arange(12) % 2, directed=directed)
    model = ClassCopying("labels", tolerance=100.0).fit(graph)
    own = np.eye(2)[np.arange(12) % 2]
    pairs = own.sum(axis=0)[:, None] * own.sum(axis=0) - np.diag(own.sum(axis=0)) * (not directed)
    densities = own.T @ graph.binary().adjacency.toarray() @ own / pairs
    expected = own @ densities @ own.T
    np.fill_diagonal(expected, 0)
    samples = list(model.sample_many(n, rng=0))
    mean = sum(sample.adjacency.toarray() for sample in samples) / n
    assert mean == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(n))
    if not directed:  # as many edges as observed on average, with the variance on the page on the theory
        counts = np.array([sample.n_edges for sample in samples])
        donors = sum(graph.degrees[own[:, k] > 0].var() * 6 for k in range(2)) / 4
        coins = (expected * (1 - expected)).sum() / 4
        assert counts.mean() == pytest.approx(graph.n_edges, abs=5 * counts.std() / np.sqrt(n))
        assert counts.var() == pytest.approx(donors + coins, rel=0.12)


def test_a_copied_row_has_as_many_nodes_of_each_class_as_its_donor() -> None:
    """A node alone in its class keeps its row, except for the coins; others exchange their nodes."""
    star = Graph.from_edges([0] * 6 + [1, 2, 3], [1, 2, 3, 4, 5, 6, 2, 3, 4])
    model = ClassCopying(np.zeros(7, int)).fit(star)
    classes = model.model_.distribution_.list_of  # type: ignore[attr-defined]
    assert (classes == classes[0]).sum() == 1
    samples = list(model.sample_many(40, rng=0))
    assert all(sample.degrees[0] == 6 for sample in samples)  # both ends agree
    assert len({sample.rows.indices.tobytes() for sample in samples}) > 20


def test_classes_are_those_of_out_degrees_and_of_in_degrees() -> None:
    n_nodes = 60
    hubs = [(0, j) for j in range(1, 50)] + [(j, 1) for j in range(2, 50)]
    ring = [(i, (i + 1) % n_nodes) for i in range(n_nodes)]
    graph = Graph.from_edges(*zip(*{*hubs, *ring}, strict=True), directed=True)
    model = ClassCopying(np.zeros(n_nodes, int)).fit(graph)
    classes = model.model_.distribution_.list_of  # type: ignore[attr-defined]
    source, target = graph.degrees.argmax(), np.bincount(graph.rows.indices, minlength=n_nodes).argmax()
    for node, offset in product((source, target), (0, n_nodes)):
        is_alone = (classes == classes[node + offset]).sum() == 1
        assert is_alone == ((node == source) == (offset == 0))


# The variance of the number of edges, against all samples that are possible.


def enumerate_samples(graph: Graph, Q: Floats) -> tuple[Floats, Floats]:
    """Return the entries above the diagonal and the probability of every choice of donors and coins."""
    A, n = graph.adjacency.toarray(), graph.n_nodes
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    samples, chances = [], []
    for donors in product(range(n), repeat=n):
        chance = np.prod([Q[node, donor] for node, donor in enumerate(donors)])
        if not chance:
            continue
        for coins in product([0, 1], repeat=len(pairs)):
            samples.append([A[donors[(i, j)[c]], (j, i)[c]] for (i, j), c in zip(pairs, coins, strict=True)])
            chances.append(chance / 2 ** len(pairs))
    return np.array(samples, float), np.array(chances)


def donor_probabilities(model: NodeCopying[Graph]) -> Floats:
    own = np.eye(model.graph_.n_nodes)
    return np.asarray((1 - model.keep) * model.distribution_.probabilities().toarray() + model.keep * own)


def entry_covariances(A: Floats, Q: Floats) -> Floats:
    """Return the covariances of all entries by the page on the theory, [i, j, k, l] for (i, j) and (k, l)."""
    n, p = len(A), Q @ A
    q = (p + p.T) / 2
    covariances = np.zeros((n, n, n, n))
    for i, j, k in product(range(n), repeat=3):
        if i != j and i != k:
            of_donors = (Q[i] @ (A[:, j] * A[:, k]) - p[i, j] * p[i, k]) / 4
            shared = q[i, j] * (1 - q[i, j]) if j == k else of_donors
            covariances[i, j, i, k] = covariances[j, i, i, k] = shared
            covariances[i, j, k, i] = covariances[j, i, k, i] = shared
    return covariances


@pytest.mark.parametrize("donors", [SameLabel(), SameLabel([0, 0, 0, 0]), WEIGHTS])
@pytest.mark.parametrize("keep", [0.0, 0.3])
def test_every_possible_sample(donors: DonorRule, keep: float) -> None:
    """Marginals and covariances of entries, the variances of counts, and the expected variance of degrees."""
    model = NodeCopying(donors, keep).fit(GRAPH)
    A, Q = GRAPH.adjacency.toarray(), donor_probabilities(model)
    samples, chances = enumerate_samples(GRAPH, Q)
    assert chances.sum() == pytest.approx(1)
    means = chances @ samples
    first, second = np.triu_indices(4, 1)
    p = Q @ A
    assert means == pytest.approx(((p + p.T) / 2)[first, second])
    covariances = (samples - means).T @ ((samples - means) * chances[:, None])
    theory = entry_covariances(A, Q)[first[:, None], second[:, None], first, second]
    assert covariances == pytest.approx(theory)
    assert edge_count_variance(model).total == pytest.approx(covariances.sum())
    model.keep, model.symmetrise = 0.9, "maximum"  # settings of the next fit
    assert edge_count_variance(model).total == pytest.approx(covariances.sum())
    full = np.zeros((len(samples), 4, 4))
    full[:, first, second] = full[:, second, first] = samples
    degrees = full.sum(axis=2)
    assert expected_degree_variance(A, Q) == pytest.approx(chances @ degrees.var(axis=1))


def expected_degree_variance(A: Floats, Q: Floats) -> float:
    """Return the expectation of the variance of degrees, by the page on the theory."""
    n, p = len(A), Q @ A
    np.fill_diagonal(p, 0)
    q = (p + p.T) / 2
    x = A.sum(axis=1)[None, :] - A  # [i, m]: edges of donor m to nodes other than i
    donors = (Q * x**2).sum(axis=1) - (Q * x).sum(axis=1) ** 2
    variances = (q * (1 - q)).sum(axis=1) + (donors - (p * (1 - p)).sum(axis=1)) / 4
    means = q.sum(axis=1)
    coins = (p.sum() - (p * p.T).sum()) / 4
    of_mean = 4 / n**2 * (donors.sum() / 4 + coins)
    return float((variances + means**2).mean() - of_mean - means.mean() ** 2)


def test_blocks_overstate_the_variance_of_degrees_by_a_quarter() -> None:
    """The mean over 10 graphs with two blocks of 400 nodes; terms of order one over the block size remain."""
    n, rng = 800, np.random.default_rng(0)
    blocks = np.arange(n) % 2
    chance = np.where(blocks[:, None] == blocks, 0.1, 0.02)
    Q = (blocks[:, None] == blocks) / 400
    ratios = []
    for _ in range(10):
        edges = np.triu(rng.random((n, n)) < chance, 1).astype(float)
        A = edges + edges.T
        ratios.append(expected_degree_variance(A, Q) / A.sum(axis=1).var())
    assert np.mean(ratios) == pytest.approx(1.25, abs=0.03)


def test_a_node_without_other_donors_has_three_quarters_of_the_variance() -> None:
    """A hub in 200 graphs of 200 nodes, by the exact variance of its degree."""
    n, rng = 200, np.random.default_rng(0)
    chance = np.full((n, n), 0.1)
    chance[0] = chance[:, 0] = 0.4
    Q = np.full((n, n), 1 / (n - 1))
    Q[0], Q[:, 0] = 0, 0
    Q[0, 0] = 1
    variances = []
    for _ in range(200):
        edges = np.triu(rng.random((n, n)) < chance, 1).astype(float)
        A = edges + edges.T
        p = Q @ A
        q = (p + p.T)[0, 1:] / 2
        variances.append((q * (1 - q)).sum() / (0.4 * 0.6 * (n - 1)))
    assert np.mean(variances) == pytest.approx(0.75, abs=0.01)


def test_copied_rows_double_the_variance_of_in_degrees() -> None:
    """The variances of out- and in-degrees, from 20 samples: rows alone, and copying by classes."""
    n, rng = 400, np.random.default_rng(0)
    edges = (rng.random((n, n)) < 0.1).astype(float)
    np.fill_diagonal(edges, 0)
    graph = Graph(edges, labels=np.zeros(n, int), directed=True)
    models: list[GraphModel[Graph]] = [NodeCopying(SameLabel()), ClassCopying("labels", tolerance=100.0)]
    ratios = []
    for model in models:
        samples = [sample.adjacency.toarray() for sample in model.fit(graph).sample_many(20, rng=0)]
        for axis in (1, 0):
            ratios.append(np.mean([A.sum(axis=axis).var() for A in samples]) / edges.sum(axis=axis).var())
    assert ratios == pytest.approx([1.0, 2.0, 1.0, 1.0], rel=0.08)


@pytest.mark.parametrize("donors", [SameLabel(), WEIGHTS])
def test_the_samples_of_the_model(donors: DonorRule) -> None:
    """The sample variance of 4,000 counts; with a kurtosis below 3, five standard errors are 11 %."""
    model = NodeCopying(donors).fit(GRAPH)
    counts = [sample.n_edges for sample in model.sample_many(4_000, rng=0)]
    assert np.var(counts) == pytest.approx(edge_count_variance(model).total, rel=0.11)


@pytest.mark.parametrize("block_size", [100, 400])
def test_blocks_have_half_of_the_variance_from_each_source(block_size: int) -> None:
    """The mean over graphs tends to p (1 - p) for each pair, half from donors and half from coins."""
    n, rng, p = 2 * block_size, np.random.default_rng(0), 0.1
    blocks = np.arange(n) % 2
    chance = np.where(blocks[:, None] == blocks, p, p / 4)
    truth = np.triu(chance * (1 - chance), 1).sum()
    parts = []
    for _ in range(10):
        graph = Graph(np.triu(rng.random((n, n)) < chance, 1), labels=blocks)
        parts.append(edge_count_variance(NodeCopying(SameLabel()).fit(graph)))
    assert np.mean(parts, axis=0) / truth == pytest.approx([0.5, 0.5], abs=0.06)


@pytest.mark.parametrize(
    ("graph", "symmetrise"), [(GRAPH, "maximum"), (GRAPH.replace(directed=True), "one-endpoint")]
)
def test_other_rules_are_an_error(graph: Graph, symmetrise: str) -> None:
    with pytest.raises(InputError, match="model of edge_count_variance must copy an undirected graph"):
        edge_count_variance(NodeCopying(SameLabel(), symmetrise=symmetrise).fit(graph))

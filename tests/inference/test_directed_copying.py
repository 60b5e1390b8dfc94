from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.inference import DirectedCopying, bootstrap
from tests.contracts.graph_models import GraphModelContract, community_graph


def draw_directed(n_nodes: int) -> Graph:
    edges = np.random.default_rng(0).random((n_nodes, n_nodes)) < 0.3
    np.fill_diagonal(edges, False)
    return Graph(edges, directed=True)


class TestDirectedCopying(GraphModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> DirectedCopying:
        return DirectedCopying("labels")

    @pytest.fixture(scope="class", params=[False, True], ids=["binary", "weighted"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        return community_graph(directed=True, weighted=request.param)


def test_either_end_decides() -> None:
    """The mean of 4,000 samples against (Q A + A R^T) / 2; five standard errors."""
    graph = draw_directed(8)
    model = DirectedCopying(np.zeros(8, int), tolerance=100.0).fit(graph)
    A, Q = graph.adjacency.toarray(), np.full((8, 8), 1 / 8)  # one class of sources and one of targets
    expected = (Q @ A + A @ Q) / 2
    np.fill_diagonal(expected, 0)
    n = 4_000
    mean = sum(sample.adjacency.toarray() for sample in model.sample_many(n, rng=0)) / n
    assert mean == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(n))


def test_classes_are_those_of_out_degrees_and_of_in_degrees() -> None:
    n_nodes = 60
    hubs = [(0, j) for j in range(1, 50)] + [(j, 1) for j in range(2, 50)]
    ring = [(i, (i + 1) % n_nodes) for i in range(n_nodes)]
    graph = Graph.from_edges(*zip(*{*hubs, *ring}, strict=True), directed=True)
    model = DirectedCopying(np.zeros(n_nodes, int)).fit(graph)
    classes = model.model_.distribution_.list_of  # type: ignore[attr-defined]
    source, target = graph.degrees.argmax(), np.bincount(graph.rows.indices, minlength=n_nodes).argmax()
    for node, offset in product((source, target), (0, n_nodes)):
        is_alone = (classes == classes[node + offset]).sum() == 1
        assert is_alone == ((node == source) == (offset == 0))


def test_it_is_the_default_of_directed_graphs() -> None:
    result = bootstrap(draw_directed(20), "density", n=5, rng=0)
    assert result.model == "DirectedCopying()"


def test_an_undirected_graph_is_an_error() -> None:
    with pytest.raises(InputError, match="graph of DirectedCopying must be directed; got Graph"):
        DirectedCopying().fit(Graph([[0, 1], [1, 0]]))

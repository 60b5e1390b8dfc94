"""Donor rules within the graphs of a batch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Balanced, Graph, Jaccard, KeepByDegree, NearestNeighbours, SameLabel, Weighted
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.graph_batches import WithinGraphs, join_distributions, split_graph
from nodecopy.errors import InputError

SIZES = [5, 1, 4, 7]
LABELS = np.random.default_rng(0).integers(0, 2, sum(SIZES))
EMBEDDINGS = np.random.default_rng(1).normal(size=(sum(SIZES), 2))
SIMILARITY = np.random.default_rng(2).random((sum(SIZES), sum(SIZES)))


def batch() -> Graph:
    rng = np.random.default_rng(3)
    blocks = [np.triu(rng.random((n, n)) < 0.6, 1).astype(float) for n in SIZES]
    return Graph(sparse.block_diag(blocks, format="csr"), EMBEDDINGS, LABELS)


class SameDegree:
    """A donor rule of a user's own."""

    def fit(self, data: Any) -> DonorDistribution:
        return SameLabel(data.rows.degrees).fit(data)


class Shifted:
    """A donor rule of a user's own with a value per node."""

    reads_edges = False

    def __init__(self, labels: Any) -> None:
        self.labels = labels

    def fit(self, data: Any) -> DonorDistribution:
        return SameLabel(self.labels + 1).fit(data)

    def restrict(self, nodes: slice, n_nodes: int) -> Shifted:
        assert n_nodes == sum(SIZES)
        return Shifted(self.labels[nodes])


RULES = [
    (SameLabel(), lambda part: SameLabel()),
    (SameLabel(LABELS), lambda part: SameLabel(LABELS[part])),
    (NearestNeighbours(1), lambda part: NearestNeighbours(1)),
    (NearestNeighbours(1, EMBEDDINGS, groups=LABELS), lambda part: NearestNeighbours(1, groups="labels")),
    (Jaccard(exponent=2.0), lambda part: Jaccard(exponent=2.0)),
    (Weighted(SIMILARITY), lambda part: Weighted(SIMILARITY[part, part])),
    (Weighted(sparse.csr_array(SIMILARITY)), lambda part: Weighted(SIMILARITY[part, part])),
    (Balanced(SameLabel()), lambda part: Balanced(SameLabel())),
    (Balanced(Jaccard()), lambda part: Balanced(Jaccard())),
    (KeepByDegree(SameLabel(LABELS)), lambda part: KeepByDegree(SameLabel(LABELS[part]))),
    (SameDegree(), lambda part: SameDegree()),
    (Shifted(LABELS), lambda part: Shifted(LABELS[part])),
]


@pytest.mark.parametrize(("donors", "law_of"), RULES, ids=lambda donors: type(donors).__name__)
def test_every_graph_has_the_donors_that_it_has_alone(donors: Any, law_of: Any) -> None:
    """Before, donors of a batch came from all of its graphs."""
    graph, bounds = batch(), np.cumsum([0, *SIZES])
    whole = WithinGraphs(donors, SIZES).fit(graph).probabilities().toarray()
    parts = [slice(*bound) for bound in pairwise(bounds)]
    alone = [law_of(part).fit(graph.subgraph(np.arange(17)[part])).probabilities() for part in parts]
    np.testing.assert_allclose(whole, sparse.block_diag(alone).toarray(), atol=1e-8)


def test_small_graphs_have_the_donors_that_there_are() -> None:
    probabilities = WithinGraphs(NearestNeighbours(5), SIZES).fit(batch()).probabilities().toarray()
    assert (probabilities > 0).sum(axis=1).tolist() == [5] * 5 + [1] + [4] * 4 + [5] * 7


def test_values_of_one_graph_serve_graphs_of_the_same_nodes() -> None:
    two = Graph(np.zeros((6, 6)))
    donors = WithinGraphs(SameLabel([0, 0, 1]), [3, 3]).fit(two).probabilities().toarray()
    np.testing.assert_array_equal(donors[:3, :3], donors[3:, 3:])
    assert not donors[:3, 3:].any()


def test_distributions_of_two_kinds_are_joined() -> None:
    pair = Graph.from_edges([0], [1], labels=[0, 0])
    parts = [SameLabel().fit(pair), Weighted([[0, 1], [3, 1]]).fit(pair)]
    expected = [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1], [0, 0, 0.75, 0.25]]
    assert join_distributions(parts).probabilities().toarray().tolist() == expected


def test_wrong_laws_and_sizes() -> None:
    with pytest.raises(InputError, match="donors of WithinGraphs must be a donor rule"):
        WithinGraphs("same", SIZES).fit(batch())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sizes must be integers that add up to 17 nodes"):
        WithinGraphs(SameLabel(), [5]).fit(batch())


def test_a_graph_is_split_where_no_edge_is() -> None:
    graph = Graph(
        [[0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 3, 0]], np.eye(4), ["a", "b", "", "a"], list("wxyz")
    )
    parts = split_graph(graph, [2, 2, 0])
    assert parts == [graph.subgraph([0, 1]), graph.subgraph([2, 3]), graph.subgraph(np.zeros(0, int))]
    assert all(part.label_names == ("a", "b") for part in parts)
    with pytest.raises(InputError, match=r"graphs of a batch must have no edge to others; got \(2, 3\)"):
        split_graph(graph, [3, 1])
    with pytest.raises(InputError, match="add up to 4 nodes"):
        split_graph(graph, [3])

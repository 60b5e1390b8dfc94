from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from nodecopy import Graph, Interactions, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
from nodecopy.copying import distributions
from nodecopy.errors import InputError
from tests.copying.oracles import Matrix, all_donors, dense, maximum, with_keep
from tests.strategies import graphs

SIMILARITY = np.array([[0, 1, 2, 0], [0, 0, 0, 0], [3, 1, 0, 1], [1, 1, 1, 2.0]])
RULES = [
    SameLabel([0, 0, 1, 0]),
    SameLabel([-1, 2, 2, -1]),
    NearestNeighbours(2, [[0.0], [1.0], [3.0], [4.0]]),
    NearestNeighbours(1, [[0.0], [1.0], [2.0], [4.0]], include_self=False),
    Jaccard(),
    Jaccard(include_self=False, exponent=2),
    Weighted(SIMILARITY),
]
SQUARE = np.array([[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]])
HEAVY = np.array([[0, 1, 0, 3], [1, 0, 0.5, 3], [0, 0.5, 0, 0], [3, 3, 0, 0]])
ARROWS = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [2, 0, 0, 1], [0, 0, 0, 0.5]])


def by_enumeration(model: NodeCopying[Any]) -> Matrix:
    """The expectation as a sum over every donor vector."""
    A = dense(model.graph_.rows).astype(float)
    total = np.zeros(A.shape)
    for donors, probability in all_donors(
        with_keep(model.distribution_.probabilities().toarray(), model.keep)
    ):
        sample = A[donors]
        if not getattr(model.graph_, "directed", True):
            if model.symmetrise == "maximum":
                sample = maximum(A, donors)
            else:  # a fair coin for each pair
                sample = (sample + sample.T) / 2 * (1 - np.eye(len(A)))
        total += probability * sample
    return total


def check(model: NodeCopying[Any]) -> None:
    """Every way to ask for the expectation gives the sum over all donors."""
    wanted, expected = by_enumeration(model), model.expected_adjacency()
    n_rows, n_columns = expected.shape
    np.testing.assert_allclose(expected.toarray(), wanted, atol=1e-12)
    np.testing.assert_allclose(expected.tocsr().toarray(), wanted, atol=1e-12)
    some = np.array([2, 0, 2])
    np.testing.assert_allclose(expected.rows(some).toarray(), wanted[some], atol=1e-12)
    first, second = np.indices((n_rows, n_columns)).reshape(2, -1)
    np.testing.assert_allclose(expected.entries(first, second), wanted[first, second], atol=1e-12)
    right = np.arange(3.0 * n_columns).reshape(n_columns, 3)
    np.testing.assert_allclose(expected @ right, wanted @ right, atol=1e-12)
    np.testing.assert_allclose(expected @ right[:, 0], wanted @ right[:, 0], atol=1e-12)
    product = expected @ sparse.csr_array(right)
    assert isinstance(product, sparse.csr_array)
    np.testing.assert_allclose(product.toarray(), wanted @ right, atol=1e-12)


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("donors", RULES)
@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint"])
@pytest.mark.parametrize("adjacency", [SQUARE, HEAVY])
def test_undirected(adjacency: Matrix, symmetrise: str, donors: Any, keep: float) -> None:
    check(NodeCopying(donors, keep, symmetrise).fit(Graph(adjacency)))


@pytest.mark.parametrize("keep", [0.0, 0.3])
@pytest.mark.parametrize("donors", RULES)
def test_directed(donors: Any, keep: float) -> None:
    check(NodeCopying(donors, keep).fit(Graph(ARROWS, directed=True)))


@pytest.mark.parametrize("keep", [0.0, 0.3])
@pytest.mark.parametrize("donors", RULES)
def test_bipartite(donors: Any, keep: float) -> None:
    check(NodeCopying[Interactions](donors, keep).fit(Interactions(ARROWS[:, :3])))


def test_products_go_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "MAX_BLOCK_ENTRIES", 5)
    check(NodeCopying(Weighted(SIMILARITY), 0.3).fit(Graph(HEAVY)))


@settings(max_examples=25)
@given(st.data(), graphs(max_nodes=4), st.sampled_from(["maximum", "one-endpoint"]))
def test_random_graphs(data: st.DataObject, graph: Graph, symmetrise: str) -> None:
    n = graph.n_nodes
    weights = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n * n, max_size=n * n))
    model = NodeCopying(Weighted(np.reshape(weights, (n, n))), 0.25, symmetrise).fit(graph)
    np.testing.assert_allclose(model.expected_adjacency().toarray(), by_enumeration(model), atol=1e-9)


def test_single_precision_weights_keep_double_precision_sums() -> None:
    weights = (np.random.default_rng(0).integers(1, 40, (30, 30)) / 7).astype(np.float32)
    graph = Graph(weights)
    assert graph.rows.weights is not None
    assert graph.rows.weights.dtype == np.float32
    exact = NodeCopying(SameLabel(np.arange(30))).fit(graph).expected_adjacency()
    np.testing.assert_allclose(exact.toarray(), graph.adjacency.toarray(), rtol=1e-12)


def test_too_many_weights_name_the_way_out() -> None:
    graph = Graph(np.arange(1.0, 145.0).reshape(12, 12))
    model = NodeCopying(SameLabel([0] * 12), symmetrise="maximum").fit(graph)
    with pytest.raises(InputError, match=r"at most 64 different weights; got 66\. Use monte_carlo_adjacency"):
        model.expected_adjacency()
    for other in (
        NodeCopying(model.donors, symmetrise="one-endpoint").fit(model.graph_),
        NodeCopying(model.donors).fit(model.graph_.replace(directed=True)),
    ):
        assert other.expected_adjacency().toarray().shape == (12, 12)


@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint"])
@pytest.mark.parametrize("directed", [False, True])
def test_samples_have_this_mean(symmetrise: str, directed: bool) -> None:
    """Binomial counts within their two-sided interval; all 64 entries pass with probability 1 - 1e-6.

    With 4,000 samples a probability that is off by 0.1 is missed less than once in a million.
    """
    n_samples, error_rate = 4000, 1e-6 / 64
    model = NodeCopying(Weighted(SIMILARITY), 0.2, symmetrise).fit(Graph(SQUARE, directed=directed))
    counts = n_samples * model.monte_carlo_adjacency(n_samples, rng=11).toarray()
    exact = np.clip(model.expected_adjacency().toarray(), 0, 1)
    assert (counts >= stats.binom.ppf(error_rate / 2, n_samples, exact)).all()
    assert (counts <= stats.binom.isf(error_rate / 2, n_samples, exact)).all()

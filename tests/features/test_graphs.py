"""Nearest-neighbour graphs and learned graphs against oracles and a general solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from nodecopy import graph_from_features
from nodecopy.errors import InputError
from nodecopy.features import read_feature_graph
from nodecopy.features.graphs import estimate_scale, initial_duals, primal_weights, solve_dual
from tests.features.test_neighbours import oracle


def points(n: int, seed: int = 0, width: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=(n, width))


def every_pair(n: int) -> tuple[Any, Any]:
    first, second = np.triu_indices(n, 1)
    return first.astype(np.int64), second.astype(np.int64)


def objective(W: Any, costs: Any) -> float:
    """The model as it is printed, on dense matrices."""
    return float((W * costs).sum() - np.log(W.sum(axis=1)).sum() + (W**2).sum() / 2)


def dense_reference(costs: Any) -> Any:
    """The same minimum by a general solver on all pairs."""
    n = len(costs)
    first, second = every_pair(n)

    def value(w: Any) -> tuple[float, Any]:
        W = np.zeros((n, n))
        W[first, second] = W[second, first] = w
        inverse = 1 / W.sum(axis=1)
        return objective(W, costs), 2 * (costs[first, second] + w) - inverse[first] - inverse[second]

    bounds = [(1e-12, None)] * len(first)
    options: Any = {"maxiter": 10000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10}
    solve: Any = minimize
    start = np.full(len(first), 1 / n)
    found = solve(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    W = np.zeros((n, n))
    W[first, second] = W[second, first] = found.x
    return W


@settings(max_examples=25)
@given(st.integers(3, 9), st.integers(0, 10**6), st.sampled_from([0.03, 0.3, 3.0, 30.0]))
def test_duals_give_the_minimum_of_the_objective(n: int, seed: int, scale: float) -> None:
    x = points(n, seed)
    costs = scale * np.square(x[:, None] - x).sum(axis=2)
    first, second = every_pair(n)
    flat = costs[first, second]
    duals = solve_dual(first, second, flat, np.ones(n))
    W = np.zeros((n, n))
    W[first, second] = W[second, first] = primal_weights(first, second, flat, duals)
    np.testing.assert_allclose(W.sum(axis=1), 1 / duals, rtol=1e-8)
    reference = dense_reference(costs)
    gap = objective(reference, costs) - objective(W, costs)
    assert gap > -1e-9
    # The objective is strongly convex: how far the reference is from its minimum bounds how far it is from W.
    np.testing.assert_allclose(W, reference, atol=1e-4 + np.sqrt(2 * max(gap, 0)))


def test_duals_to_begin_with() -> None:
    """Costs 0 and 1: p = 1 / p with one edge, 2 p - 1 = 1 / p with both. Costs 0 and 0: 2 p = 1 / p."""
    np.testing.assert_allclose(initial_duals(np.array([[0.0, 1.0], [0.0, 0.0]])), [1.0, 0.5**0.5])


@pytest.mark.parametrize("outlier", [1e2, 1e4, 1e6, 1e9, 1e12])
def test_an_outlier_changes_nobody_else(outlier: float) -> None:
    """No weight is above one at the minimum: w <= (1 / s_i + 1 / s_j) / 2, and both sums are at least w."""
    x = points(60, 1)
    alone = graph_from_features(x, "learned", n_neighbours=3).adjacency.toarray()
    far = graph_from_features(np.vstack([x, np.full((1, x.shape[1]), outlier)]), "learned", n_neighbours=3)
    assert (far.degrees > 0).all()
    assert far.adjacency.max() <= 1
    assert far.adjacency[[60]].sum() < 0.01
    near = far.adjacency.toarray()[:60, :60]
    assert abs((near > 0).sum() - (alone > 0).sum()) <= 12  # of about 180: the scale is a little another
    heavy = graph_from_features(np.random.default_rng(0).lognormal(0, 3, (200, 3)), "learned", n_neighbours=5)
    assert (heavy.degrees > 0).all()


def test_a_node_alone_takes_as_many_as_estimated() -> None:
    """The lone node's problem, min c.w - log(sum w) + w.w / 2, has k weights at the estimated scale."""
    z = np.sort(np.random.default_rng(1).random(12))
    for k in range(1, 11):
        costs = estimate_scale(z[None], k) * z
        low, high = 0.0, 100.0
        for _ in range(100):  # the sum of the weights is one over the level they fall short of costs by
            level = (low + high) / 2
            low, high = (low, level) if np.maximum(level - costs, 0).sum() * level > 1 else (level, high)
        assert (level > costs).sum() == k


@pytest.mark.parametrize(("n", "k"), [(60, 3), (200, 6), (200, 15)])
def test_the_wanted_mean_degree(n: int, k: int) -> None:
    graph = graph_from_features(points(n), "learned", n_neighbours=k)
    assert abs(2 * graph.n_edges / n - k) <= 0.05 * k
    assert graph.degrees.min() >= 1
    assert graph.is_weighted


@settings(max_examples=20)
@given(st.integers(5, 30), st.integers(0, 10**6), st.sampled_from(["knn", "learned"]))
def test_other_numbers_of_nodes_same_graph(n: int, seed: int, method: str) -> None:
    x, order = points(n, seed), np.random.default_rng(seed).permutation(n)
    plain = graph_from_features(x, method, n_neighbours=3).adjacency.toarray()
    shuffled = graph_from_features(x[order], method, n_neighbours=3).adjacency.toarray()
    np.testing.assert_allclose(shuffled, plain[np.ix_(order, order)], atol=1e-6)


@pytest.mark.parametrize("method", ["knn", "learned"])
def test_sparse_and_dense_features_are_one(method: str) -> None:
    x = (np.random.default_rng(0).random((40, 30)) < 0.2).astype(float)
    x[3] = 0
    dense = graph_from_features(x, method, n_neighbours=4)
    packed = graph_from_features(sparse.csr_array(x), method, n_neighbours=4)
    np.testing.assert_allclose(dense.adjacency.toarray(), packed.adjacency.toarray(), atol=1e-6)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=9), st.data())
def test_nearest_neighbours_are_joined(cells: list[int], data: st.DataObject) -> None:
    rows = np.array(cells, float)[:, None]
    k = data.draw(st.integers(1, len(cells) - 1))
    ids = [f"n{i}" for i in range(len(cells))]
    graph = graph_from_features(rows, n_neighbours=k, labels=cells, node_ids=ids)
    expected = np.zeros((len(cells), len(cells)))
    for i, near in enumerate(oracle(rows, k, False)):
        expected[i, near] = expected[near, i] = 1
    assert graph.adjacency.toarray().tolist() == expected.tolist()
    assert not graph.is_weighted
    np.testing.assert_array_equal(graph.features, rows)
    assert graph.node_ids[0] == "n0"


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((12, 2)),
        np.ones((12, 2)),
        np.repeat(points(4), 6, axis=0),
        np.vstack([points(8), np.zeros((8, 3))]),
    ],
    ids=["zeros", "one point", "duplicates", "some zeros"],
)
def test_duplicates_and_zeros(x: Any) -> None:
    graph = graph_from_features(x, "learned", n_neighbours=3)
    assert np.isfinite(graph.adjacency.data).all()
    assert graph.degrees.min() >= 1
    assert graph_from_features(x, n_neighbours=3).degrees.min() >= 3


def test_all_others_may_be_neighbours() -> None:
    assert graph_from_features(points(6), "learned", n_neighbours=5).n_edges == 15
    assert graph_from_features([[0.0], [1.0]], "learned", n_neighbours=1).n_edges == 1


@pytest.mark.parametrize(
    ("features", "options", "fragment"),
    [
        (points(4), {"method": "nearest"}, "method {owner} must be one of 'knn', 'learned'"),
        (points(4), {"n_neighbours": 4}, "n_neighbours {owner} must be .* n_nodes - 1 = 3; got 4"),
        (points(4), {"n_neighbours": 0, "method": "learned"}, "n_neighbours {owner} must be .* got 0"),
        ([[0.0], [np.nan]], {"n_neighbours": 1}, "features {owner} must hold finite numbers; got nan"),
    ],
)
def test_wrong_input(features: Any, options: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment.format(owner="of graph_from_features")):
        graph_from_features(features, **options)


def test_scaled_columns_count_alike() -> None:
    """The second column has much larger differences, which alone decided about neighbours before."""
    features = np.array([[0.0, 1000], [0, 1100], [1, 1010], [1, 1110], [0.5, 3000]])
    raw, scaled = (graph_from_features(features, n_neighbours=1, scale=scale) for scale in ("none", "auto"))
    assert raw.adjacency[[0, 0], [1, 2]].tolist() == [0, 1]
    assert scaled.adjacency[[0, 0], [1, 2]].tolist() == [1, 0]
    np.testing.assert_array_equal(scaled.features, features)


# Graphs from files of features.

FEATURES = "id,age,income\n007,31,30000\n008,33,90000\n009,70,31000\n010,72,88000\n"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "features.csv"
    path.write_text(FEATURES)
    return path


def test_nodes_are_joined_with_their_neighbours(features: Path, caplog: pytest.LogCaptureFixture) -> None:
    (features.parent / "labels.csv").write_text("id,label\n009,old\n007,young\n")
    graph = read_feature_graph(features, labels=features.parent / "labels.csv", n_neighbours=2)
    assert graph.node_ids.tolist() == ["007", "008", "009", "010"]
    assert np.array(graph.labels).tolist() == ["young", "", "old", ""]
    # By scaled columns: raw incomes would join 007 with 009 and 010.
    assert graph.adjacency.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    assert graph.features.tolist() == [[31, 30000], [33, 90000], [70, 31000], [72, 88000]]  # type: ignore[union-attr]
    assert graph.feature_encoder.feature_names_ == ["age", "income"]
    assert "features.csv: there are no edges, so each node is connected to its 2 nearest" in caplog.text


def test_few_nodes_and_unknown_ids(features: Path) -> None:
    assert read_feature_graph(features).n_edges == 6
    (features.parent / "labels.csv").write_text("id,label\n009,old\n7,young\n")
    with pytest.raises(InputError, match=r"labels.csv: id '7' is not a node of the graph, but '007' is"):
        read_feature_graph(features, labels=features.parent / "labels.csv")
    features.write_text("id,age\n007,31\n")
    with pytest.raises(InputError, match="features of at least two nodes; got 1"):
        read_feature_graph(features)


def test_one_hot_encoded_text_is_no_word_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Networks standardised such columns, while distances were measured after scaling by rows."""
    rows = [f"n{number},{'abcd'[number % 4]},{'efgh'[number // 4 % 4]}" for number in range(16)]
    (tmp_path / "f.csv").write_text("\n".join(["id,town,job", *rows]))
    read_feature_graph(tmp_path / "f.csv", n_neighbours=3)
    assert "features: each column is standardised to measure distances" in caplog.text

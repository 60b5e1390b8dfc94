"""The choice of a scaling by the data, and scalings that are the same on other graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling, is_sparse_counts, scale_features
from nodecopy.io import FeatureEncoder

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.1, (50, 30)).astype(float)
ANSWERS = np.eye(5)[RNG.integers(0, 5, (50, 20))].reshape(50, -1)
MEASUREMENTS = RNG.normal(size=(50, 4)) * [1, 10, 1000, 0.01] + [0, 40, 30_000, 1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [[1, 0, 3], [0, 0, 0], [-2, 2, 0]]),
        ("binary", [[1, 0, 1], [0, 0, 0], [1, 1, 0]]),
        ("unit", [[0.1**0.5, 0, 0.9**0.5], [0, 0, 0], [-(0.5**0.5), 0.5**0.5, 0]]),
        ("rows", [[0.25, 0, 0.75], [0, 0, 0], [-0.5, 0.5, 0]]),
    ],
)
def test_scaled_features(kind: str, expected: Any) -> None:
    features = np.array([[1.0, 0, 3], [0, 0, 0], [-2, 2, 0]])
    scaled = FeatureScaling.fit(features, kind).apply(features)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("features", "kind", "reason"),
    [
        (COUNTS, "unit", "none is negative"),
        (COUNTS * RNG.uniform(0.5, 5, 30), "unit", "none is negative"),  # TF-IDF
        (np.eye(20), "unit", "95% of them are zero"),
        (np.eye(3)[[0, 1, 2, 2, 2, 2]], "unit", "67% of them are zero"),
        (MEASUREMENTS, "standardise", "some values are negative"),
        (abs(MEASUREMENTS), "standardise", "only 0% of them are zero"),
        (COUNTS - 0.1, "standardise", "some values are negative"),
        # Two amounts beside one-hot columns: mostly zeros and not negative, but sums of rows are amounts.
        (np.hstack([abs(MEASUREMENTS[:, 1:3]), np.eye(25)[np.arange(50) % 25]]), "standardise", "one column"),
        # Six percentages beside 20 questions of five answers: no column has a large share.
        (np.hstack([RNG.integers(0, 100, (50, 6)), ANSWERS]), "standardise", "those of the median column"),
        (RNG.integers(1, 5, (50, 12)) * (RNG.random((50, 12)) < 0.4), "standardise", "12 columns are too"),
        (ANSWERS, "unit", "80% of them are zero"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_scaling_is_chosen_by_the_data(
    features: Any, kind: str, reason: str, form: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert FeatureScaling.fit(form(features)).kind == kind
    (message,) = caplog.messages
    assert message.startswith("features: each ")
    assert reason in message
    assert message.endswith("Set features to change this.")


def test_encoded_columns_are_no_word_counts(caplog: pytest.LogCaptureFixture) -> None:
    texts = {f"question {number}": list("abcde" * 10) for number in range(5)}
    encoder = FeatureEncoder().fit(texts)
    matrix = encoder.transform(texts)
    assert FeatureScaling.fit(matrix).kind == "unit"
    graph = Graph(np.zeros((50, 50)), matrix).with_feature_encoder(encoder)
    scaled = scale_features(graph, purpose="to find donors")
    assert caplog.messages[-1].startswith("features: each column is standardised to find donors, since they")
    assert caplog.messages[-1].endswith("(some columns were one-hot encoded or imputed).")
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nodes_are_compared_by_word_counts_as_they_are(form: Any) -> None:
    graph = Graph(np.zeros((50, 50)), form(COUNTS))
    assert scale_features(graph) is graph.features
    rows: Any = scale_features(graph, "rows")
    np.testing.assert_allclose(rows.sum(axis=1), COUNTS.sum(axis=1) > 0, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_value_that_makes_all_others_equal_is_a_warning(form: Any) -> None:
    """The accuracy of a GCN fell from 0.99 to 0.49; a single member of a category is no outlier."""
    FeatureScaling.fit(form(np.hstack([MEASUREMENTS, np.eye(50, 1)])), "standardise")
    features = np.array(MEASUREMENTS)
    features[7, 2] = 1e9
    with pytest.warns(DataWarning, match=r"the value 1e\+09 of node 7 in column 2 .* is so large"):
        FeatureScaling.fit(form(features), "standardise")


def test_other_graphs_are_scaled_by_the_means_and_deviations_of_the_first() -> None:
    scaling = FeatureScaling.fit(MEASUREMENTS, "standardise")
    whole = scaling.apply(MEASUREMENTS).toarray()
    np.testing.assert_array_equal(scaling.apply(MEASUREMENTS[:3]).toarray(), whole[:3])
    np.testing.assert_array_equal(scaling.apply(sparse.csr_array(MEASUREMENTS)).toarray(), whole)
    full = FeatureScaling.fit(sparse.csr_array(MEASUREMENTS), "standardise").apply(MEASUREMENTS).toarray()
    np.testing.assert_allclose(full, whole, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e-30, 123456.789, -1e30])
def test_constant_columns_become_zero(form: Any, value: float) -> None:
    features = np.column_stack([np.full(50, value), MEASUREMENTS])
    scaling = FeatureScaling.fit(form(features), "standardise")
    assert not scaling.apply(form(features)).toarray()[:, 0].any()
    features[0, 0] = value + 1  # a value that says nothing, since no node had another one in fit
    assert not scaling.apply(form(features)).toarray()[:, 0].any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_huge_features_are_standardised(form: Any) -> None:
    features = form(MEASUREMENTS * 1e300)
    scaled = FeatureScaling.fit(features).apply(features).toarray()
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)


def test_sparse_features_stay_sparse() -> None:
    """They would need 80 GB as a dense matrix, for zeros that are no longer zero."""
    n = 100_000
    entries = np.arange(n)
    matrix = sparse.csr_array((np.where(entries % 2, -3.0, 5.0), (entries, entries)), shape=(n, n))
    scaled = FeatureScaling.fit(matrix).apply(matrix)
    assert scaled.nnz == n
    small = sparse.csr_array(matrix[:50, :50])
    expected = small.toarray() / small.toarray().std(axis=0)
    standardised = FeatureScaling.fit(small, "standardise").apply(small).toarray()
    np.testing.assert_allclose(standardised, expected, rtol=1e-6)


def path(weights: Any) -> sparse.csr_array:
    n = len(weights)
    return Graph.from_edges(range(n), range(1, n + 1), weights).adjacency


@pytest.mark.parametrize(
    ("weights", "kind", "reason"),
    [
        (np.ones(20), "raw", None),
        (np.full(20, 7.0), "raw", None),
        (RNG.uniform(size=200), "raw", "weights: as they are, since"),
        (RNG.poisson(3, 200) + 1, "raw", "at most 2. Set weights to change this"),
        (np.exp(RNG.normal(size=2000, scale=2)), "log", "heavy-tailed: their standard deviation"),
        (1e-300 * np.exp(RNG.normal(size=2000, scale=2)), "log", "Set weights to change this"),
        ([1.0] * 8 + [1000.0], "log", "log(1 + weight / smallest weight)"),
    ],
)
def test_the_scaling_of_weights_is_chosen_by_the_data(
    weights: Any, kind: str, reason: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert WeightScaling.fit(path(weights)).kind == kind
    assert (reason in caplog.text) if reason else not caplog.messages


def test_scaled_weights() -> None:
    adjacency = path([2.0, 6.0, 2e6])
    assert WeightScaling.fit(adjacency, "raw").apply(adjacency) is adjacency
    assert (WeightScaling.fit(adjacency, "binary").apply(adjacency).data == 1).all()
    scaling = WeightScaling.fit(adjacency, "log")
    np.testing.assert_allclose(np.unique(scaling.apply(adjacency).data), np.log1p([1, 3, 1e6]))
    np.testing.assert_allclose(np.unique(scaling.apply(path([4.0])).data), np.log1p([2]))  # the same unit


def test_extreme_weights_and_graphs_without_edges() -> None:
    adjacency = path([1e-300, 1.0, 1e300])
    assert np.isfinite(WeightScaling.fit(adjacency, "log").apply(adjacency).data).all()
    empty = Graph(np.zeros((3, 3))).adjacency
    for kind in ("auto", "raw", "log", "binary"):
        assert WeightScaling.fit(empty, kind).apply(empty).nnz == 0
    large = path([1e39, 1e39])
    assert np.isfinite(WeightScaling.fit(large, "log").apply(large).data).all()


def test_word_counts_may_be_binary() -> None:
    assert FeatureScaling.fit(np.eye(30), counts="binary").kind == "binary"  # was a KeyError


LARGE = FeatureScaling("standardise", np.zeros(2), np.array([0.1, 1.0]))
UNCENTRED = FeatureScaling("standardise", None, np.array([0.1, 1.0]))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: FeatureScaling("unit").apply([[1e300, 0.0]]), r"got inf\. Standardise them"),
        (lambda: LARGE.apply([[1e308, 0.0]]), "standardised features in single precision .* got inf"),
        (lambda: UNCENTRED.apply([[1e308, 0.0]]), "standardised features in single precision .* got inf"),
        (lambda: WeightScaling("raw").apply(path([1e39])), "sums of edge weights .* weights='log'"),
        (lambda: LARGE.apply(np.ones((2, 3))), "features must have 2 columns, as in fit; got 3"),
        (lambda: FeatureScaling("auto"), "kind of FeatureScaling must be one of 'unit'"),
        (lambda: FeatureScaling("standardise"), "deviations of FeatureScaling must be given"),
    ],
)
def test_errors(call: Callable[[], Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()


def test_counts_are_sparse_from_80_percent_zeros_on() -> None:
    counts = np.eye(5)
    assert is_sparse_counts(counts)
    assert is_sparse_counts(sparse.csr_array(counts))
    counts[0, 1] = 2
    assert not is_sparse_counts(counts)

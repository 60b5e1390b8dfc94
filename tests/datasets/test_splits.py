"""Splits: sizes, disjointness, seeds, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import datasets
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

LABELS = np.repeat([0, 1, 2, -1], [30, 40, 50, 10])


@given(
    seed=st.integers(0, 2**32),
    per_class=st.integers(1, 30),
    rest=st.integers(0, 30),
    bound=st.integers(0, 30),
)
@settings(max_examples=50, deadline=None)
def test_label_split_is_disjoint_balanced_and_labelled(
    seed: int, per_class: int, rest: int, bound: int
) -> None:
    validation, test = min(rest, bound), rest - min(rest, bound)
    split = datasets.label_split(LABELS, per_class, validation, test, rng=seed)
    assert [len(part) for part in split] == [3 * per_class, validation, test]
    together = np.concatenate(split)
    assert len(np.unique(together)) == len(together)
    assert (LABELS[together] >= 0).all()
    assert np.bincount(LABELS[split.train]).tolist() == [per_class] * 3
    assert all((np.diff(part) > 0).all() for part in split)


def test_label_split_depends_on_its_seed() -> None:
    first, again, other = (datasets.label_split(LABELS, 5, 20, 30, rng=seed) for seed in (4, 4, 5))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.test, other.test)
    generator = np.random.default_rng(4)
    splits = [datasets.label_split(LABELS, 5, 20, 30, rng=generator) for _ in range(2)]
    assert not np.array_equal(splits[0].train, splits[1].train)


def test_every_labelled_node_is_drawn_in_some_split() -> None:
    counts = np.zeros((3, len(LABELS)), int)
    for seed in range(300):
        for count, part in zip(counts, datasets.label_split(LABELS, 5, 20, 30, rng=seed), strict=True):
            count[part] += 1
    assert (counts[:, :120] > 0).all()
    assert not counts[:, 120:].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "labels must hold one integer per node; got None"),
        ((["a", "b"],), "labels must hold integers"),
        (([0, -2],), "labels must hold integers of at least -1"),
        (([-1, -1],), "labels must name a class"),
        ((LABELS, 31), "per_class must be at most 30, the nodes of class 0; got 31"),
        ((LABELS, 0), "per_class must be an integer of at least 1; got 0"),
        ((LABELS, 5, -1), "validation must be an integer of at least 0"),
        ((LABELS, 5, 5, 2.5), "test must be an integer"),
        ((LABELS, 5, 60, 46), r"validation \+ test must be at most 105.*got 60 \+ 46 = 106"),
    ],
)
def test_wrong_label_splits(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        datasets.label_split(*arguments, rng=0)


@pytest.mark.parametrize("directed", [False, True])
def test_without_test_edges_isolates_test_nodes_only(directed: bool) -> None:
    draws = np.random.default_rng(1)
    weights = np.where(draws.random((30, 30)) < 0.2, draws.integers(1, 5, (30, 30)), 0)
    graph = Graph(weights, labels=LABELS[20:50], node_ids=np.arange(100, 130), directed=directed)
    test = [3, 7, 29]
    expected = graph.adjacency.toarray()
    expected[test] = 0
    expected[:, test] = 0
    reduced = datasets.without_test_edges(graph, test)
    assert reduced == graph.replace(adjacency=expected)
    assert reduced.rows.indptr.dtype == graph.rows.indptr.dtype


def test_without_test_edges_takes_masks_and_ids() -> None:
    with pytest.raises(InputError, match="test must lie between 0 and 33"):
        datasets.without_test_edges(datasets.load("karate"), [34])
    path = Graph.from_edges(["a", "b"], ["b", "c"])
    for test in ([0], [True, False, False], ["a"]):
        assert datasets.without_test_edges(path, test).n_edges == 1


@given(st.integers(0, 60), st.integers(0, 10), st.integers(0, 10), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_interaction_split_has_every_interaction_once(n: int, first: int, second: int, seed: int) -> None:
    first, second = min(first, second), abs(second - first)
    fractions = (first / 10, second / 10, (10 - first - second) / 10)
    positions = np.random.default_rng(seed).choice(80, n, replace=False)
    entries = (np.arange(1.0, n + 1), (positions // 10, positions % 10))
    whole = Interactions(sparse.csr_array(entries, shape=(8, 10)), user_ids=np.arange(50, 58))
    parts = datasets.interaction_split(whole, fractions, rng=seed)
    bounds = [first * n // 10, (first + second) * n // 10, n]
    assert [part.n_interactions for part in parts] == np.diff([0, *bounds]).tolist()
    total = sum(part.matrix.toarray() for part in parts)
    assert np.array_equal(total, whole.matrix.toarray())
    for part in parts:
        assert np.array_equal(part.user_ids, whole.user_ids)
        assert np.array_equal(part.item_ids, whole.item_ids)
        assert Interactions(part.matrix, part.user_ids, part.item_ids) == part


def test_interaction_split_depends_on_its_seed_and_stays_binary() -> None:
    whole = Interactions(np.ones((20, 10)))
    first, again, other = (datasets.interaction_split(whole, rng=seed) for seed in (2, 2, 3))
    assert first == again
    assert first.train != other.train
    assert not any(part.is_weighted for part in first)
    assert [part.n_interactions for part in first] == [140, 20, 40]


@pytest.mark.parametrize("fractions", [(0.5, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5)])
def test_fractions_must_add_up(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="fractions must be three numbers of at least 0 that add up to 1"):
        datasets.interaction_split(Interactions(np.ones((3, 3))), fractions, rng=0)


def test_there_are_three_fractions() -> None:
    with pytest.raises(InputError, match="fractions must hold one entry per part, 3 in all; got 2"):
        datasets.interaction_split(Interactions(np.ones((3, 3))), (0.5, 0.5), rng=0)

"""Splits: sizes, disjointness, seeds, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import datasets
from nodecopy.errors import InputError
from nodecopy.graph import Graph

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

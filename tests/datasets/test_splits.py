"""Splits of nodes and interactions: sizes, disjointness, seeds, files and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import datasets
from nodecopy.errors import DataWarning, InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

LABELS = np.repeat([0, 1, 2, -1], [30, 40, 50, 10])
TRAIN, TEST = Interactions([[1, 1, 0], [0, 1, 1]]), Interactions([[0, 0, 1], [1, 0, 0]])
PLAIN = Interactions(np.ones((3, 3)))
HEADER = "user_id:token\titem_id:token\n"


@given(
    seed=st.integers(0, 2**32),
    per_class=st.integers(1, 30),
    rest=st.integers(0, 30),
    bound=st.integers(0, 30),
)
@settings(max_examples=50)
def test_label_split_is_disjoint_and_balanced(seed: int, per_class: int, rest: int, bound: int) -> None:
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
    path = Graph.from_edges(["a", "b"], ["b", "c"])
    for test in ([0], [True, False, False], ["a"]):
        assert datasets.without_test_edges(path, test).n_edges == 1


@given(st.integers(0, 60), st.integers(0, 10), st.integers(0, 10), st.integers(0, 2**32))
@settings(max_examples=60)
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


def test_a_tenth_of_train_is_the_validation_part_if_there_is_none() -> None:
    train = Interactions(np.ones((20, 10)))
    first, again = (datasets.fixed_split(train, Interactions(np.zeros((20, 10)))) for _ in range(2))
    assert first.train == train
    assert first.validation == again.validation
    assert first.validation.n_interactions == 20
    assert first.validation.difference(train).n_interactions == 0


def timed_log(n_users: int = 12, n_items: int = 9, seed: int = 0) -> Interactions:
    draws = np.random.default_rng(seed)
    row, column = np.nonzero(draws.random((n_users, n_items)) < 0.6)
    times = draws.integers(30, size=len(row))
    return Interactions.from_table(row, column, times=times, user_ids=range(n_users), item_ids=range(n_items))


def as_set(part: Interactions) -> set[tuple[int, int]]:
    users, items, _ = part.table()
    return set(zip(users.tolist(), items.tolist(), strict=True))


def test_a_repeated_item_stays_in_train() -> None:
    """An interaction before the bound is not taken out of train because the item is met again after it."""
    users, items = ["ann", "ann", "ann", "bob"], ["tea", "jam", "tea", "ham"]
    log = Interactions.from_table(users, items, [1, 2, 5, 3], times=[1, 2, 4, 3])
    train, _, test = datasets.time_split(log, (0.7, 0.0, 0.3))
    assert train.table()[1].tolist() == ["jam", "tea"]
    assert train.matrix.data.tolist() == [2, 5]
    assert test.table()[1].tolist() == ["ham"]


@given(
    seed=st.integers(0, 2**32), shares=st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.0, 0.5), (0.6, 0.4, 0.0)])
)
@settings(max_examples=30)
def test_time_split_puts_every_part_before_the_next(seed: int, shares: Any) -> None:
    log = timed_log(seed=seed)
    parts = datasets.time_split(log, shares)
    assert sorted(pair for part in parts for pair in as_set(part)) == sorted(as_set(log))
    latest = -1
    for part, share in zip(parts, shares, strict=True):
        assert part.times is not None
        assert bool(part.n_interactions) or share < 0.2
        if part.n_interactions:
            assert part.times.min() > latest
            latest = part.times.max()
    assert parts.train.n_interactions <= shares[0] * log.n_interactions


@given(seed=st.integers(0, 2**32), n_test=st.integers(1, 3), n_validation=st.integers(0, 2))
@settings(max_examples=30)
def test_last_item_split_against_sorting(seed: int, n_test: int, n_validation: int) -> None:
    log = timed_log(seed=seed)
    assert log.times is not None
    users, items, _ = log.table()
    expected: list[set[tuple[int, int]]] = [set(), set(), set()]
    for user in range(log.n_users):
        own = np.flatnonzero(users == user)
        ranked = items[own[np.argsort(log.times[own], kind="stable")]].tolist()
        n = len(ranked)
        bounds = (n - n_test - n_validation, n - n_test) if n > n_test + n_validation else (n, n)
        for part, names in zip(expected, np.split(ranked, bounds), strict=True):
            part |= {(user, item) for item in names}
    parts = datasets.last_item_split(log, n_test, n_validation)
    assert [as_set(part) for part in parts] == expected


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_user_split_separates_users(seed: int) -> None:
    log = timed_log(20)
    split = datasets.user_split(log, (0.5, 0.2, 0.3), rng=seed)
    tables = [split.train, split.validation.history, split.test.history]
    assert [table.n_users for table in tables] == [10, 4, 6]
    assert sorted(np.concatenate([table.user_ids for table in tables]).tolist()) == list(range(20))
    everything = [split.train, *split.validation, *split.test]
    assert all(np.array_equal(table.item_ids, log.item_ids) for table in everything)
    assert sorted(pair for table in everything for pair in as_set(table)) == sorted(as_set(log))
    for users in (split.validation, split.test):
        assert np.array_equal(users.history.user_ids, users.test.user_ids)
        degrees = users.history.rows.degrees + users.test.rows.degrees
        expected = np.clip(np.round(0.8 * degrees), 1, np.maximum(degrees - 1, 1))
        assert users.history.rows.degrees.tolist() == np.where(degrees > 0, expected, 0).tolist()
    assert datasets.user_split(log, (0.5, 0.2, 0.3), rng=seed) == split


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: datasets.label_split(None), "labels must hold one label per node; got None"),
        (lambda: datasets.label_split([-1, -1]), "labels must name a class"),
        (lambda: datasets.label_split(LABELS, 31), "per_class must be at most 30, the nodes of class 0"),
        (lambda: datasets.label_split(LABELS, 5, 60, 46), r"validation \+ test must be at most 105.*got 106"),
        (lambda: datasets.interaction_split(PLAIN, (0.5, 0.5, 0.5)), "fractions must .* add up to 1"),
        (lambda: datasets.time_split(PLAIN), "time_split needs interactions with times"),
        (
            lambda: datasets.time_split(Interactions.from_table([0, 0, 1], [0, 1, 1], times=[5, 5, 5])),
            r"times must leave a training part; 3 interactions",
        ),
        (lambda: datasets.fixed_split(pd.DataFrame(), TEST), "train must be Interactions .*got pandas"),
        (lambda: datasets.fixed_split(TRAIN, TEST, TEST), "validation must be inside train; 2 pairs"),
        (lambda: datasets.fixed_split(TRAIN, TRAIN), "test must have no pair in common with train; got 4"),
        (lambda: datasets.fixed_split(TRAIN, Interactions([[1, 0]])), "test must be of the same users"),
    ],
)
def test_splits_that_cannot_be_made(call: Callable[[], Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()


def test_splits_take_data_frames() -> None:
    log = timed_log()
    users, items, _ = log.table()
    frame = pd.DataFrame({"user": users, "item": items, "time": log.times})
    assert datasets.last_item_split(frame) == datasets.last_item_split(log)
    assert datasets.time_split(frame) == datasets.time_split(log)
    assert datasets.interaction_split(frame, rng=0) == datasets.interaction_split(log, rng=0)
    assert datasets.user_split(frame, rng=0) == datasets.user_split(log, rng=0)


def write(folder: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(folder / name.replace("_", "."))
        paths[-1].write_text(text)
    return paths


def test_lists_of_lightgcn(tmp_path: Path) -> None:
    """Items of the test part alone are items of all parts; a user may have no test items."""
    train, test, valid = write(
        tmp_path,
        train_txt="0 10 11 12\n1 11\n2 10 12\n",
        test_txt="0 14\n1 10 12\n2\n",
        valid_txt="0 12 11\n2 10\n",
    )
    split = datasets.read_split(train, test, valid)
    items = [10, 11, 12, 14]
    assert split.train == Interactions([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]], item_ids=items)
    assert split.validation == Interactions([[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]], item_ids=items)
    assert split.test == Interactions([[0, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]], item_ids=items)


def test_lists_of_equal_length_are_no_ratings_beside_other_lists(tmp_path: Path) -> None:
    train, test = write(tmp_path, train_txt="0 10 11 12\n1 11\n", test_txt="0 13 14\n1 10 12\n")
    assert datasets.read_split(train, test).test.n_interactions == 4


def test_atomic_files_have_a_validation_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train, valid, test = write(
        tmp_path,
        x_train_inter=HEADER + "1\ta\n2\tb\n",
        x_valid_inter=HEADER + "1\tb\n",
        x_test_inter=HEADER + "2\ta\n",
    )
    split = datasets.read_split([train, valid], test, valid)
    assert split.train == Interactions([[1, 1], [0, 1]], [1, 2], ["a", "b"])
    assert split.validation == Interactions([[0, 1], [0, 0]], [1, 2], ["a", "b"])
    assert datasets.read_split(train, test, valid) == split
    assert "the validation part is outside the training part and was added to it" in caplog.text
    valid.write_text(HEADER + "1\tb\n2\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"validation must be inside train; 1 pairs .* train\.union"):
        datasets.read_split(train, test, valid)
    with pytest.raises(InputError, match=r"validation must have no pair in common with test; got 1"):
        datasets.read_split(train, test, test)


def test_ids_are_texts_if_some_are() -> None:
    train = pd.DataFrame({"user": [1, 2, 2], "item": ["7", "8", "x"]})
    test = pd.DataFrame({"user": [1, 2], "item": [8, 7]})
    split = datasets.read_split(train, test)
    assert split.test == Interactions([[0, 1, 0], [1, 0, 0]], [1, 2], ["7", "8", "x"])


def test_files_without_common_ids_are_a_warning() -> None:
    train = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    for column, name in (("user", "users"), ("item", "items")):
        test = pd.DataFrame({"user": ["b", "a"], "item": ["x", "y"]})
        test[column] = ["u1", "u2"]
        with pytest.warns(DataWarning, match=f"test: none of its {name} are in train"):
            datasets.read_split(train, test)

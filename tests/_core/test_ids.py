from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodecopy._core.arrays import check_ids, check_weights, deduplicate, find_positions
from nodecopy.errors import InputError


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, -1], np.array([3, -1], np.int64)),
        (["b", "a"], np.array(["b", "a"])),
        (np.array([1, 2], np.uint8), np.array([1, 2], np.int64)),
        (np.array(["x", 7], object), np.array(["x", "7"])),
        (["x", 7, np.str_("y")], np.array(["x", "7", "y"])),
        ([], np.zeros(0, np.int64)),
    ],
)
def test_ids_become_integers_or_strings(values: Any, expected: Any) -> None:
    ids = check_ids(values, "ids")
    assert ids.dtype.kind == expected.dtype.kind
    assert ids.tolist() == expected.tolist()
    assert not ids.flags.writeable


def test_ids_are_a_copy() -> None:
    values = np.array([5, 6])
    ids = check_ids(values, "ids")
    values[0] = 9
    assert ids.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("values", "length", "message"),
    [
        ([1, 2], 3, "node_ids must hold one entry per node, 3 in all; got 2"),
        ([1, 1], 2, "node_ids must be unique; got 1 more than once"),
        ([0.5], None, "node_ids must hold integers or strings; got float64"),
        (np.array(["a", None]), None, "node_ids must hold integers or strings without missing values"),
        (["a", float("nan")], None, "node_ids must hold integers or strings without .* got nan"),
        (["a", 1.5], None, "node_ids must hold integers or strings without .* got 1.5"),
        (("a", True), None, "node_ids must hold integers or strings without .* got True"),
        (np.array([2**63], np.uint64), None, "node_ids must fit into 64 bits with a sign; got 92233"),
        ([[1]], None, "node_ids must have one dimension"),
    ],
)  # fmt: skip
def test_wrong_ids_are_named(values: Any, length: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_ids(values, "node_ids", length)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1), st.data())
def test_positions_invert_indexing(ids: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(ids)))
    positions = find_positions(np.array(values, np.int64), np.array(ids), "values")
    assert [ids[position] for position in positions] == values


@pytest.mark.parametrize("ids", [[], [1], [1, 5]])
def test_an_unknown_id_is_an_error(ids: list[int]) -> None:
    with pytest.raises(InputError, match="source must hold known ids; got 3, which is not among them"):
        find_positions(np.array([3]), np.array(ids, np.int64), "source")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], "weight must hold one entry per edge, 2 in all; got 3"),
        (["a", "b"], "weight must hold numbers"),
        ([1, np.inf], "weight must hold finite numbers; got inf"),
        ([1, -0.5], "weight must not be negative; got -0.5"),
    ],
)
def test_wrong_weights_are_named(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_weights(values, 2)


def test_booleans_and_integers_are_weights() -> None:
    assert check_weights([True, False], 2).tolist() == [1.0, 0.0]
    assert check_weights([2, 3], 2).dtype == np.float64


ENTRIES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 9), st.integers(0, 3)))


@given(ENTRIES, st.booleans())
def test_of_repeated_entries_the_largest_or_the_one_of_highest_rank_counts(
    entries: list[tuple[int, int, int, int]], ranked: bool
) -> None:
    first, second, values, rank = np.array(entries, np.int64).reshape(-1, 4).T
    expected = np.zeros((3, 4))
    best: dict[tuple[int, int], Any] = {}
    for position, (i, j, value, order) in enumerate(entries):
        key = (order, position) if ranked else (value, position)
        if (i, j) not in best or key >= best[i, j]:
            best[i, j], expected[i, j] = key, value
    matrix = deduplicate(first, second, values.astype(float), (3, 4), rank=rank if ranked else None)
    assert matrix.toarray().tolist() == expected.tolist()
    assert matrix.nnz == len(best)


@pytest.mark.parametrize("max_compared", [0, 8])
@pytest.mark.parametrize("ids", [["b", "a", "c"], [20, 10, 30]])
def test_few_ids_are_compared_and_many_are_sorted(
    ids: list[Any], max_compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodecopy._core.arrays.MAX_COMPARED", max_compared)
    names = np.array(ids)
    assert find_positions(names[[2, 0, 2]], names, "items").tolist() == [2, 0, 2]
    unknown = np.array([ids[1], ids[0] * 5])
    with pytest.raises(InputError, match=f"items must hold known ids; got {ids[0] * 5!r}"):
        find_positions(unknown, names, "items")
    with pytest.raises(InputError, match="items must hold known ids"):
        find_positions(unknown, names[:0], "items")

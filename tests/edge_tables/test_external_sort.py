"""Distinct pairs from a scratch file, beside a dictionary."""

from __future__ import annotations

import tempfile
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy.edge_tables.external_sort import HALF, PairSorter

NUMBERS = st.integers(0, 3) | st.integers(-HALF, HALF - 1) | st.sampled_from([-HALF, HALF - 1, -1])
PIECES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 5)), max_size=30), max_size=4)


def spread(folder: str, pieces: list[list[tuple[int, int, int]]], weight: Any) -> PairSorter:
    pairs = PairSorter(Path(folder) / "scratch", weight)
    for piece in pieces:
        first, second, weights = np.array(piece, np.int64).reshape(-1, 3).T
        more = () if weight is None else (weights.astype(weight),)
        pairs.add(first.astype(np.int32), second.astype(np.int32), *more)
    return pairs


@settings(deadline=None)  # the first example waits for a kernel to be compiled
@given(PIECES, st.sampled_from([None, np.float64, np.int8]))
def test_each_pair_once_with_its_largest_weight(pieces: Any, weight: Any) -> None:
    wanted: dict[tuple[int, int], int] = {}
    for first, second, each in sorted(chain(*pieces), key=itemgetter(2)):
        wanted[first, second] = 0 if weight is None else each
    with tempfile.TemporaryDirectory() as folder:
        pairs = spread(folder, pieces, weight)
        for _ in range(2):  # whoever reads it makes it anew
            found = [row for part in pairs.parts() for row in zip(*(c.tolist() for c in part), strict=True)]
            assert {(row[0], row[1]): sum(row[2:]) for row in found} == wanted
            assert len(found) == len(wanted)


@pytest.mark.parametrize("weight", [None, np.float64])
def test_large_parts_come_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: Any) -> None:
    monkeypatch.setattr("nodecopy.edge_tables.external_sort.MAX_SORTED_PAIRS", 100)
    star = [(7, leaf, leaf % 5) for leaf in range(1000)]
    often = [(3, 4, 1)] * 1000
    pieces = [star, often, [(7, 1, 9)], often]
    found = [
        row
        for part in spread(str(tmp_path), pieces, weight).parts()
        for row in zip(*(column.tolist() for column in part), strict=True)
    ]
    assert {row[:2] for row in found} == {row[:2] for row in star} | {(3, 4)}
    assert len(found) == 1001
    if weight is not None:
        assert {(a, b): w for a, b, w in found}[7, 1] == 9


def test_pairs_with_the_same_first_number_are_together_and_parts_are_even(tmp_path: Path) -> None:
    first, second = np.random.default_rng(0).integers(0, 10_000, (2, 100_000))
    pairs = PairSorter(tmp_path / "scratch")
    for piece in np.split(np.stack([first, second]).astype(np.int32), 4, axis=1):
        pairs.add(*piece)
    parts = [(source, target) for source, target in pairs.parts()]
    source = np.concatenate([part[0] for part in parts])
    assert np.count_nonzero(np.diff(source)) == len(np.unique(first)) - 1
    assert max(len(part[0]) for part in parts) < 3 * 100_000 / 256


def test_the_stream_has_the_types_that_were_given(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pairs = spread(str(tmp_path), [[(-1, 7, 2), (-1, 7, 5)], [(3, -4, 1)]], np.float32)
    table = arrow.table(pairs).sort_by("source")
    assert table.to_pydict() == {"source": [-1, 3], "target": [7, -4], "weight": [5.0, 1.0]}
    assert table.schema.types == [arrow.int32(), arrow.int32(), arrow.float32()]

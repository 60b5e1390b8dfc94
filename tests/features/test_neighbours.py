"""Nearest neighbours against a plain oracle."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.features import neighbours
from nodecopy.features.neighbours import NeighbourSearch


def oracle(rows: NDArray[Any], k: int, include_self: bool) -> list[list[int]]:
    """Measure everything, sort it, cut it."""
    answer = []
    for i in range(len(rows)):
        measured = sorted(
            (float(np.square(rows[i] - rows[j]).sum()), j != i, j)
            for j in range(len(rows))
            if include_self or j != i
        )
        answer.append([j for _, _, j in measured[:k]])
    return answer


def ragged(result: tuple[Any, Any]) -> list[list[int]]:
    indptr, indices = result
    return [indices[a:b].tolist() for a, b in pairwise(indptr)]


@settings(max_examples=150)
@given(st.data())
def test_against_the_oracle(data: st.DataObject) -> None:
    n, width = data.draw(st.integers(1, 12)), data.draw(st.integers(0, 3))
    # few values make ties and duplicates; a factor makes them inexact, an offset makes norms large
    cells = data.draw(st.lists(st.integers(0, 2), min_size=n * width, max_size=n * width))
    factor, offset = data.draw(st.sampled_from([(1.0, 0.0), (0.1, 0.0), (0.1, 1e7), (1e-9, 1.0)]))
    rows = np.array(cells, float).reshape(n, width) * factor + offset
    include_self = data.draw(st.booleans()) or n == 1
    k = data.draw(st.integers(1, n - (not include_self)))
    expected = oracle(rows, k, include_self)
    for matrix in (rows, sparse.csr_array(rows)):
        assert ragged(NeighbourSearch(matrix).nearest(k, include_self=include_self)) == expected


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(5).normal(size=(60, 7))
    expected = ragged(NeighbourSearch(rows).nearest(5))
    assert expected == oracle(rows, 5, True)
    monkeypatch.setattr(neighbours, "MAX_BLOCK_NUMBERS", 130)
    assert ragged(NeighbourSearch(rows).nearest(5)) == expected


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_scale_does_not_matter(scale: float) -> None:
    rows = np.array([[1.0], [2.0], [4.0], [8.0]]) * scale
    assert ragged(NeighbourSearch(rows).nearest(2)) == [[0, 1], [1, 0], [2, 1], [3, 2]]


@pytest.mark.parametrize(
    "rows", [[[np.nan]], [[np.inf]], sparse.csr_array([[np.nan]]), [1.0], [["a"]], [[1], [1, 2]], [[1j]]]
)
def test_wrong_arguments(rows: Any) -> None:
    with pytest.raises(InputError, match="embeddings of NeighbourSearch must"):
        NeighbourSearch(rows).nearest(1)
    with pytest.raises(InputError, match=r"must have shape \(3, 2\); got \(3, 1\)"):
        NeighbourSearch(np.ones((3, 2)), queries=np.ones((3, 1)))


def test_some_rows_are_answered_as_all_are() -> None:
    rows = np.random.default_rng(2).integers(0, 4, size=(40, 3)).astype(float)
    asked = np.array([7, 3, 39])
    everybody = ragged(NeighbourSearch(rows).nearest(4, include_self=False))
    some = NeighbourSearch(rows).nearest(4, of=asked, include_self=False)
    assert ragged(some) == [everybody[row] for row in asked]
    assert NeighbourSearch(rows).nearest(2, of=asked[:0])[1].size == 0


@settings(max_examples=60)
@given(st.integers(0, 99), st.sampled_from([1.0, 0.1]), st.booleans())
def test_nodes_may_look_from_elsewhere(seed: int, factor: float, is_sparse: bool) -> None:
    draw = np.random.default_rng(seed)
    rows, queries = (draw.integers(0, 4, size=(12, 2)) * factor for _ in range(2))
    kind: Any = sparse.csr_array if is_sparse else np.array
    found = ragged(NeighbourSearch(kind(rows), queries=kind(queries)).nearest(3, include_self=False))
    for i, answer in enumerate(found):
        measured = sorted((float(np.square(queries[i] - rows[j]).sum()), j) for j in range(12) if j != i)
        assert answer == [j for _, j in measured[:3]]


def test_new_points_find_all_nodes_whatever_is_asked_beside_them() -> None:
    """The node with the position of a query is no self; before, queries had to be one per node."""
    draw = np.random.default_rng(0)
    rows, points = draw.integers(0, 4, (30, 3)), draw.integers(0, 4, (50, 3))
    for matrix, queries in ((rows, points), (rows / 4, points / 4), (sparse.csr_array(rows / 4), points / 4)):
        search = NeighbourSearch(matrix, queries=as_like(queries, matrix), queries_are_nodes=False)
        expected = [
            np.lexsort((np.arange(30), np.square(point - rows).sum(axis=1)))[:4].tolist() for point in points
        ]
        assert ragged(search.nearest(4)) == expected
        few = NeighbourSearch(matrix, queries=as_like(queries[7:9], matrix), queries_are_nodes=False)
        assert ragged(few.nearest(4)) == expected[7:9]
        assert len(ragged(search.nearest(30))[0]) == 30
    with pytest.raises(InputError, match=r"queries of .* must have shape \(50, 3\); got \(50, 2\)"):
        NeighbourSearch(rows, queries=points[:, :2], queries_are_nodes=False)


def as_like(queries: NDArray[Any], matrix: Any) -> Any:
    return sparse.csr_array(queries) if sparse.issparse(matrix) else queries

"""Pairs of whole numbers, each once, where there are more of them than memory holds.

A hash table of all pairs, as databases build it for this, costs a miss of the cache for each of them. Spread
over parts by their first number, pairs can be sorted instead, one part after the other: that is several times
faster, needs the memory of one part, and leaves pairs with the same first number beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nodecopy._core.optional_imports import import_optional

N_PARTS = 256
MOST = 2**21  # pairs of a part that are sorted at once
SPREAD = 2654435761  # 2^32 over the golden ratio: neighbouring numbers go to parts far from each other
HALF, WORD = 2**31, 2**32  # a pair is packed as first * WORD + (second + HALF)


class SpreadPairs:
    """Pairs of 32-bit numbers in a scratch file; each comes back once, with the largest of its weights.

    An Arrow stream, whose columns are source, target and perhaps weight: whoever reads it makes it anew.

    Parameters
    ----------
    path
        The scratch file.
    weight
        Type of the weights, if there are any.
    """

    def __init__(self, path: Path, weight: Any = None) -> None:
        self._path, self._weight = path, weight
        self._type = np.dtype([("pair", np.int64)] + ([] if weight is None else [("weight", weight)]))
        self._bounds: list[NDArray[np.int64]] = []  # of the parts within each piece of the file
        path.touch()

    def add(self, source: NDArray[Any], target: NDArray[Any], weight: NDArray[Any] | None = None) -> None:
        """Append pairs, those of a part beside each other."""
        piece, places = np.empty(len(source), self._type), np.empty(len(source), np.int32)
        bounds = _spread(source, target, piece["pair"], places)
        if weight is not None:
            piece["weight"][places] = weight
        self._bounds.append((self._bounds[-1][-1] if self._bounds else 0) + bounds)
        with self._path.open("ab") as file:
            file.write(piece.data)

    def parts(self) -> Iterator[tuple[NDArray[Any], ...]]:
        """Columns of the distinct pairs, part by part, in ascending order within each.

        A part with more than ``MOST`` pairs comes in several: a node with very many edges, or pairs that were
        added very often, take no more memory.
        """
        sizes = sum((np.diff(bounds) for bounds in self._bounds), np.zeros(N_PARTS, np.int64))
        with self._path.open("rb") as file:
            for number in np.flatnonzero(sizes).tolist():
                if sizes[number] <= MOST:
                    yield _unpacked(np.concatenate(list(self._pieces(file, number))))
                else:
                    yield from self._in_rounds(file, number)

    def _in_rounds(self, file: Any, number: int) -> Iterator[tuple[NDArray[Any], ...]]:
        n_rounds = 1 + sum(len(_distinct(piece)) for piece in self._pieces(file, number)) // MOST
        for round_ in range(n_rounds):
            pieces = self._pieces(file, number)
            chosen = [_distinct(piece[piece["pair"] % n_rounds == round_]) for piece in pieces]
            if any(map(len, chosen)):
                yield _unpacked(np.concatenate(chosen))

    def _pieces(self, file: Any, number: int) -> Iterator[NDArray[Any]]:
        size = self._type.itemsize
        for bounds in self._bounds:
            file.seek(size * int(bounds[number]))
            yield np.frombuffer(file.read(size * int(bounds[number + 1] - bounds[number])), self._type)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        arrow = import_optional("pyarrow", "an engine of tables")
        types: dict[str, Any] = {"source": np.int32, "target": np.int32}
        if self._weight is not None:
            types["weight"] = self._weight
        schema = arrow.schema([(name, arrow.from_numpy_dtype(kind)) for name, kind in types.items()])
        batches = (arrow.record_batch(list(columns), schema) for columns in self.parts())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


@njit(cache=True, nogil=True)
def _spread(source: Any, target: Any, pairs: Any, places: Any) -> Any:
    """Pack pairs, those of a part beside each other, and tell where each went; returns the parts' bounds."""
    bounds = np.zeros(N_PARTS + 1, np.int64)
    for number in source:
        bounds[(np.int64(number) * SPREAD >> 24 & N_PARTS - 1) + 1] += 1
    bounds = np.cumsum(bounds)
    ends = bounds[:-1].copy()
    for i in range(len(source)):
        part = np.int64(source[i]) * SPREAD >> 24 & N_PARTS - 1
        pairs[ends[part]] = np.int64(source[i]) * WORD + target[i] + HALF
        places[i] = ends[part]
        ends[part] += 1
    return bounds


def _distinct(part: NDArray[Any]) -> NDArray[Any]:
    """Each pair of a part once, in ascending order, with its largest weight."""
    if "weight" not in (part.dtype.names or ()):
        return np.unique(part["pair"]).view(part.dtype)
    part = part[np.argsort(part["pair"])]
    first = np.flatnonzero(np.append(True, part["pair"][1:] != part["pair"][:-1])[: len(part)])
    found = part[first]
    found["weight"] = np.maximum.reduceat(part["weight"], first) if len(part) else ()
    return found


def _unpacked(part: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Columns of the distinct pairs of a part."""
    weighted = "weight" in (part.dtype.names or ())
    part = _distinct(part) if weighted else np.sort(part["pair"])
    source, target = np.empty((2, len(part)), np.int32)
    n_distinct = _unpack(part["pair"] if weighted else part, source, target)
    return source[:n_distinct], target[:n_distinct], *([part["weight"]] if weighted else [])


@njit(cache=True, nogil=True)
def _unpack(pairs: Any, source: Any, target: Any) -> int:
    """Unpack sorted pairs, each once; returns how many there are."""
    n_distinct, last = 0, pairs[0] - 1
    for pair in pairs:
        if pair != last:
            source[n_distinct], target[n_distinct] = pair >> 32, pair % WORD - HALF
            n_distinct, last = n_distinct + 1, pair
    return n_distinct

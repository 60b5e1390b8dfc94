"""External sort of distinct pairs of integers, by partitions of their first number.

It is several times faster than the hash tables of databases and needs the memory of one partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.imports import import_optional
from nodecopy._core.kernels import compiled
from nodecopy.edge_tables.engines import PURPOSE

N_PARTITIONS = 256
MAX_SORTED_PAIRS = 2**21  # pairs of a partition that are sorted at once
HASH_FACTOR = 2654435761  # 2^32 over the golden ratio
HALF, WORD = 2**31, 2**32  # A pair is packed as first * WORD + (second + HALF)


class PairSorter:
    """Arrow stream of distinct pairs of 32-bit numbers, with their largest weights, from a scratch file."""

    def __init__(self, path: Path, weight: Any = None) -> None:
        self._path, self._weight = path, weight
        self._type = np.dtype([("pair", np.int64)] + ([] if weight is None else [("weight", weight)]))
        self._bounds: list[Ints] = []  # of the partitions within each block of the file
        path.touch()

    def add(self, source: Array, target: Array, weight: Array | None = None) -> None:
        piece, places = np.empty(len(source), self._type), np.empty(len(source), np.int32)
        bounds = _partition(source, target, piece["pair"], places)
        if weight is not None:
            piece["weight"][places] = weight
        self._bounds.append((self._bounds[-1][-1] if self._bounds else 0) + bounds)
        with self._path.open("ab") as file:
            file.write(piece.data)

    def parts(self) -> Iterator[tuple[Array, ...]]:
        """Yield the columns of the distinct pairs by partition, sorted; large ones are split."""
        sizes = sum((np.diff(bounds) for bounds in self._bounds), np.zeros(N_PARTITIONS, np.int64))
        with self._path.open("rb") as file:
            for number in np.flatnonzero(sizes).tolist():
                if sizes[number] <= MAX_SORTED_PAIRS:
                    yield _unpack_columns(np.concatenate(list(self._pieces(file, number))))
                else:
                    yield from self._in_rounds(file, number)

    def _in_rounds(self, file: Any, number: int) -> Iterator[tuple[Array, ...]]:
        n_rounds = 1 + sum(len(_distinct(piece)) for piece in self._pieces(file, number)) // MAX_SORTED_PAIRS
        for round_ in range(n_rounds):
            pieces = self._pieces(file, number)
            chosen = [_distinct(piece[piece["pair"] % n_rounds == round_]) for piece in pieces]
            if any(map(len, chosen)):
                yield _unpack_columns(np.concatenate(chosen))

    def _pieces(self, file: Any, number: int) -> Iterator[Array]:
        size = self._type.itemsize
        for bounds in self._bounds:
            file.seek(size * int(bounds[number]))
            yield np.frombuffer(file.read(size * int(bounds[number + 1] - bounds[number])), self._type)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        arrow = import_optional("pyarrow", PURPOSE)
        types: dict[str, Any] = {"source": np.int32, "target": np.int32}
        if self._weight is not None:
            types["weight"] = self._weight
        schema = arrow.schema([(name, arrow.from_numpy_dtype(kind)) for name, kind in types.items()])
        batches = (arrow.record_batch(list(columns), schema) for columns in self.parts())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


@compiled
def _partition(source: Any, target: Any, pairs: Any, places: Any) -> Any:
    """Pack pairs by partition; return the bounds of the partitions."""
    bounds = np.zeros(N_PARTITIONS + 1, np.int64)
    for number in source:
        bounds[(np.int64(number) * HASH_FACTOR >> 24 & N_PARTITIONS - 1) + 1] += 1
    bounds = np.cumsum(bounds)
    ends = bounds[:-1].copy()
    for i in range(len(source)):
        part = np.int64(source[i]) * HASH_FACTOR >> 24 & N_PARTITIONS - 1
        pairs[ends[part]] = np.int64(source[i]) * WORD + target[i] + HALF
        places[i] = ends[part]
        ends[part] += 1
    return bounds


def _distinct(part: Array) -> Array:
    if "weight" not in (part.dtype.names or ()):
        return np.unique(part["pair"]).view(part.dtype)
    part = part[np.argsort(part["pair"])]
    first = np.flatnonzero(np.append(True, part["pair"][1:] != part["pair"][:-1])[: len(part)])
    distinct = part[first]
    distinct["weight"] = np.maximum.reduceat(part["weight"], first) if len(part) else ()
    return distinct


def _unpack_columns(part: Array) -> tuple[Array, ...]:
    weighted = "weight" in (part.dtype.names or ())
    part = _distinct(part) if weighted else np.sort(part["pair"])
    source, target = np.empty((2, len(part)), np.int32)
    n_distinct = _unpack_pairs(part["pair"] if weighted else part, source, target)
    return source[:n_distinct], target[:n_distinct], *([part["weight"]] if weighted else [])


@compiled
def _unpack_pairs(pairs: Any, source: Any, target: Any) -> int:
    """Unpack distinct pairs among sorted ones; return their number."""
    n_distinct, last = 0, pairs[0] - 1
    for pair in pairs:
        if pair != last:
            source[n_distinct], target[n_distinct] = pair >> 32, pair % WORD - HALF
            n_distinct, last = n_distinct + 1, pair
    return n_distinct

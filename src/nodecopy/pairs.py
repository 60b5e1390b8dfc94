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
from numpy.typing import NDArray

from nodecopy.extras import optional

N_PARTS = 256
SPREAD = np.int64(
    2654435761
)  # 2^32 over the golden ratio: neighbouring numbers go to parts far from each other
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
        piece = np.empty(len(source), self._type)
        np.multiply(source, WORD, out=piece["pair"], dtype=np.int64)
        piece["pair"] += target
        piece["pair"] += HALF
        if weight is not None:
            piece["weight"] = weight
        part = (source * SPREAD >> 24).astype(np.uint8)
        start = self._bounds[-1][-1] if self._bounds else 0
        self._bounds.append(start + np.append(0, np.cumsum(np.bincount(part, minlength=N_PARTS))))
        with self._path.open("ab") as file:
            file.write(piece[np.argsort(part, kind="stable")].data)

    def parts(self) -> Iterator[tuple[NDArray[Any], ...]]:
        """Columns of the distinct pairs, part by part, in ascending order within each."""
        with self._path.open("rb") as file:
            for number in range(N_PARTS):
                part = np.concatenate([np.empty(0, self._type), *self._pieces(file, number)])
                if len(part):
                    yield _largest(part)

    def _pieces(self, file: Any, number: int) -> Iterator[NDArray[Any]]:
        size = self._type.itemsize
        for bounds in self._bounds:
            file.seek(size * int(bounds[number]))
            yield np.frombuffer(file.read(size * int(bounds[number + 1] - bounds[number])), self._type)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        arrow = optional("pyarrow", "an engine of tables")
        types: dict[str, Any] = {"source": np.int32, "target": np.int32}
        if self._weight is not None:
            types["weight"] = self._weight
        schema = arrow.schema([(name, arrow.from_numpy_dtype(kind)) for name, kind in types.items()])
        batches = (arrow.record_batch(list(columns), schema) for columns in self.parts())
        reader = arrow.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def _largest(part: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Each pair of a part once, unpacked, with its largest weight."""
    weighted = part.dtype.names == ("pair", "weight")
    if weighted:
        part = part[np.argsort(part["pair"])]
    pair = part["pair"] if weighted else np.sort(part["pair"])
    first = np.append(True, pair[1:] != pair[:-1])
    weights = (np.maximum.reduceat(part["weight"], np.flatnonzero(first)),) if weighted else ()
    pair = pair[first]
    return (pair >> 32).astype(np.int32), (pair % WORD - HALF).astype(np.int32), *weights

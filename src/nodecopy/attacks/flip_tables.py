"""Edge flips as tables: one row per flip, with the ids of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.escaping import add_escaped
from nodecopy._core.formats import PathLike
from nodecopy.attacks.edits import WHOLE_GRAPH, Edits
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.table_files import Table, read_table, write_table

CHANGES = ("remove", "add")
"""What the column ``change`` holds, by whether an edge is added."""


def write_flips(
    path: PathLike,
    node_ids: NDArray[Any],
    flips: NDArray[np.int64],
    is_added: NDArray[np.bool_],
    owners: NDArray[np.int64],
    *,
    spreadsheet: bool = False,
) -> None:
    """Write the columns first, second, change and target; flips of the whole graph have no target."""
    columns: dict[str, NDArray[Any] | None] = {
        "first": node_ids[flips[:, 0]],
        "second": node_ids[flips[:, 1]],
        "change": np.array(CHANGES)[is_added.astype(int)],
        "target": None if (owners == WHOLE_GRAPH).any() else node_ids[owners],
    }
    write_table(path, columns, spreadsheet=spreadsheet)


def read_flips(path: Any, graph: Graph) -> tuple[list[Edits], NDArray[np.int64]]:
    """Return the edits of a graph that a table describes, and the targets in order of appearance.

    The column ``change`` may be missing: an edge that exists is then removed, another one added. If a change
    is repeated, the targets were attacked each alone, and there is one record for each of them.
    """
    table = read_table(path, lambda first, below: True)
    position = add_escaped({str(node): number for number, node in enumerate(graph.node_ids.tolist())})
    pairs = np.stack([_positions(table, name, position) for name in ("first", "second")], axis=1)
    names = table.names or []
    owners = np.full(len(pairs), WHOLE_GRAPH)
    if "target" in names:
        owners = _positions(table, "target", position)
    targets = owners[np.sort(np.unique(owners, return_index=True)[1])]
    changes = _changes(table) if "change" in names else None
    repeated = changes is not None and _has_repetitions(pairs, changes)
    records = [Edits(graph)]
    for number, (first, second) in enumerate(pairs.tolist()):
        owner = int(owners[number])
        if repeated and records[-1].flips and records[-1].owner != owner:
            records.append(Edits(graph))
        records[-1].owner = owner
        is_added = not records[-1].has_edge(first, second)
        if changes is not None and changes[number] != CHANGES[is_added]:
            state = "absent" if is_added else "present"
            raise InputError(
                f"change in {table.where(number)} must be {CHANGES[is_added]!r}, since the edge is {state}; "
                f"got {changes[number]!r}. Give the graph before the attack."
            )
        records[-1].flip(first, second)
    return records, targets[targets != WHOLE_GRAPH]


def _positions(table: Table, name: str, position: dict[str, int]) -> NDArray[np.int64]:
    """Return the positions of the ids in a column."""
    words = [str(word).strip() for word in _column(table, name)]
    for row, word in enumerate(words):
        if word not in position:
            raise InputError(f"{name} in {table.where(row)} must be the id of a node; got {word!r}.")
    return np.array([position[word] for word in words], np.int64)


def _changes(table: Table) -> list[str]:
    words = [str(word).strip() for word in _column(table, "change")]
    for row, word in enumerate(words):
        if word not in CHANGES:
            raise InputError(f"change in {table.where(row)} must be 'add' or 'remove'; got {word!r}.")
    return words


def _column(table: Table, name: str) -> Sequence[Any]:
    names = table.names or []
    if name not in names:
        raise InputError(f"flips must have the columns first and second; got {', '.join(names)}.")
    return list(table.columns[names.index(name)])


def _has_repetitions(pairs: NDArray[np.int64], changes: list[str]) -> bool:
    """Return whether some pair is changed twice in the same way without the opposite in between."""
    last: dict[tuple[int, ...], str] = {}
    for pair, change in zip(map(tuple, np.sort(pairs, axis=1).tolist()), changes, strict=True):
        if last.get(pair) == change:
            return True
        last[pair] = change
    return False

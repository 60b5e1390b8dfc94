"""Files of a labelled graph for the commands attack and defend."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy import Graph, read_graph, write_graph
from nodecopy.io.tables import write_table

TABLES = ("--features", "features.csv", "--labels", "labels.csv")


def write_files(folder: Path = Path(), n: int = 30, n_labelled: int = 29) -> Graph:
    """Write people of two kinds, joined with the next ones of their kind; the first ones have labels."""
    names = np.array([f"p{number:02d}" for number in range(n)])
    kind = np.array(["cat", "dog"])[np.arange(n) % 2]
    first = np.repeat(np.arange(n), 2)
    second = (first + np.tile([2, 4], n)) % n
    graph, features, labels = (folder / f"{name}.csv" for name in ("graph", "features", "labels"))
    write_graph(Graph.from_edges(names[first], names[second]), graph)
    values = np.eye(2)[np.arange(n) % 2] + 0.3 + 0.2 * np.random.default_rng(0).random((n, 2))
    write_table(features, {"id": names, "a": values[:, 0], "b": values[:, 1]})
    write_table(labels, {"id": names[:n_labelled], "label": kind[:n_labelled]})
    return read_graph(graph, features=features, labels=labels)


def rows(path: str) -> list[dict[str, Any]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))

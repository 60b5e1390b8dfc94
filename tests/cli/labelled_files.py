"""Files of a labelled graph for the commands attack and defend."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy import Graph, read_graph, write_graph
from nodecopy.io.tables import write_table

TABLES = ("--features", "features.csv", "--labels", "labels.csv")


def write_files() -> Graph:
    """Thirty people of two kinds, joined with the next ones of their kind; the last has no label."""
    names = np.array([f"p{number:02d}" for number in range(30)])
    kind = np.array(["cat", "dog"])[np.arange(30) % 2]
    first = np.repeat(np.arange(30), 2)
    second = (first + np.tile([2, 4], 30)) % 30
    write_graph(Graph.from_edges(names[first], names[second]), "graph.csv")
    features = np.eye(2)[np.arange(30) % 2] + 0.3 + 0.2 * np.random.default_rng(0).random((30, 2))
    write_table("features.csv", {"id": names, "a": features[:, 0], "b": features[:, 1]})
    write_table("labels.csv", {"id": names[:29], "label": kind[:29]})
    return read_graph("graph.csv", features="features.csv", labels="labels.csv")


def rows(path: str) -> list[dict[str, Any]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))

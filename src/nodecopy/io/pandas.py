"""Edges and interactions as pandas data frames, which :func:`.read_graph` and its like accept."""

from __future__ import annotations

from typing import Any

from nodecopy._core.arrays import check_row_data
from nodecopy._core.imports import import_optional
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions


def to_pandas(data: Graph | Interactions) -> Any:
    """Return a data frame with external ids and a row per edge (undirected ones once) or interaction.

    >>> print(to_pandas(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], [1, 2])))
      source target  weight
    0    ann    bob     1.0
    1    bob   cleo     2.0
    """
    check_row_data(data)
    if isinstance(data, Graph):
        columns = dict(zip(("source", "target", "weight"), data.edges(), strict=True))
    else:
        columns = dict(zip(("user", "item", "rating"), data.table(), strict=True))
    present = {name: column for name, column in columns.items() if column is not None}
    return import_optional("pandas", "to_pandas").DataFrame(present)

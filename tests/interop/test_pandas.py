"""pandas in and out."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph, Interactions, read_graph, read_interactions, to_pandas
from nodecopy.errors import InputError

pandas = pytest.importorskip("pandas")


def test_graphs_go_out_and_come_back() -> None:
    for graph in (
        Graph.from_edges(["ann", "bob"], ["bob", "cleo"]),
        Graph.from_edges([3, 1], [1, 2], [0.5, 2.0], directed=True),
    ):
        assert read_graph(to_pandas(graph), directed=graph.directed) == graph


def test_interactions_go_out_and_come_back() -> None:
    log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"], [1, 2, 5])
    assert list(to_pandas(log).columns) == ["user", "item", "rating"]
    assert read_interactions(to_pandas(log)) == log
    columns = to_pandas(log)
    assert Interactions.from_table(columns["user"], columns["item"], columns["rating"]) == log


def test_labels_and_features_join_by_id() -> None:
    edges = pandas.DataFrame({"u": ["a", "b"], "v": ["b", "c"]})
    labels = pandas.DataFrame({"id": ["b", "a"], "label": ["x", "y"]})
    features = pandas.DataFrame({"id": ["c", "b", "a"], "size": [3.0, 2.0, 1.0]})
    graph = read_graph(edges, labels=labels, features=features)
    assert np.array_equal(np.array(graph.named_labels()), ["y", "x", ""])
    assert np.array_equal(np.array(graph.features), [[1], [2], [3]])


@pytest.mark.parametrize("dtype", ["Int64", "category", "string", "object"])
def test_the_column_types_of_pandas(dtype: str) -> None:
    frame = pandas.DataFrame({"source": [1, 2], "target": [2, 3]}).astype(dtype)
    expected = [1, 2, 3] if dtype != "string" else ["1", "2", "3"]
    assert list(map(str, read_graph(frame).node_ids)) == list(map(str, expected))


def test_gaps_and_wrong_columns_are_told_with_their_row() -> None:
    frame = pandas.DataFrame({"source": ["a", None], "target": ["b", "c"]})
    with pytest.raises(InputError, match="the data frame: row 2 has no source"):
        read_graph(frame)
    missing = pandas.DataFrame({"source": pandas.array([1, None], "Int64"), "target": [1, 2]})
    with pytest.raises(InputError, match="the data frame: row 2 has no source"):
        read_graph(missing)
    with pytest.raises(InputError, match="there is no column 'from'"):
        read_graph(frame, source="from")

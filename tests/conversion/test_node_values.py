"""Labels and features in the order of the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from nodecopy import Graph, as_graph, read_graph
from nodecopy.errors import InputError

EDGES = pd.DataFrame({"from": ["cleo", "bob"], "to": ["ann", "cleo"]})
MATRIX = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def labels_of(graph: Graph) -> list[Any]:
    return list(np.asarray(graph.named_labels()).tolist())


@pytest.mark.parametrize(
    "labels",
    [
        {"cleo": "x", "ann": "y"},
        pd.Series({"cleo": "x", "ann": "y"}),
        pd.Series(["x", None, "y"], ["cleo", "bob", "ann"]),
        pd.DataFrame({"kind": ["x", "y"]}, ["cleo", "ann"]),
        pd.DataFrame({"id": ["cleo", "ann"], "kind": ["x", "y"]}),
        pd.DataFrame({"node": ["cleo", "ann"], "age": [1, 2], "label": ["x", "y"]}),
        pa.table({"name": ["cleo", "ann"], "kind": ["x", "y"]}),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_by_id(labels: Any) -> None:
    assert labels_of(as_graph(EDGES, labels=labels)) == ["y", "", "x"]


def test_integers_with_missing_values_stay_integers() -> None:
    labels = pd.Series([3, None], ["ann", "bob"])
    assert labels_of(as_graph(EDGES, labels=labels)) == [3, -1, -1]
    assert labels_of(as_graph(EDGES, labels=labels.astype("Int64"))) == [3, -1, -1]


def test_values_without_ids_need_an_order_that_the_caller_knows() -> None:
    """Nodes of an edge list are in the order of their ids, which no array of the caller follows."""
    with pytest.raises(InputError, match="labels of an edge list must come with node ids"):
        as_graph(EDGES, labels=[0, 1, 0])
    with pytest.raises(InputError, match="features of an edge list must come with node ids"):
        as_graph(EDGES, features=np.eye(3))
    assert labels_of(as_graph(MATRIX, labels=[0, 1, 0])) == [0, 1, 0]
    assert labels_of(as_graph(pd.DataFrame({"u": [0, 1], "v": [1, 2]}), labels=[0, 1, 0])) == [0, 1, 0]


def test_unknown_ids_are_listed() -> None:
    with pytest.raises(InputError, match=r"labels: 2 of 3 ids are not nodes of the graph: 'an', 'bo'. Did"):
        as_graph(EDGES, labels={"an": 0, "bo": 1, "cleo": 1})
    numbered = pd.DataFrame({"u": [10, 11], "v": [11, 12]})
    with pytest.raises(
        InputError, match=r"labels: node ids must be in a column, such as id, or in the index"
    ):
        as_graph(numbered, labels=pd.Series([0, 1, 0, 1, 1]))
    with pytest.raises(InputError, match=r"labels: node 'ann' is listed more than once"):
        as_graph(EDGES, labels=pd.Series([0, 1], ["ann", "ann"]))


def test_features_by_id() -> None:
    frame = pd.DataFrame({"age": [3.0, 1.0, 2.0], "city": ["Oslo", "Rome", "Oslo"]}, ["cleo", "ann", "bob"])
    graph = as_graph(EDGES, features=frame)
    np.testing.assert_array_equal(graph.features, [[1, 0, 1], [2, 1, 0], [3, 1, 0]])
    assert graph.feature_encoder is not None
    np.testing.assert_array_equal(as_graph(EDGES, features=frame["age"]).features, [[1], [2], [3]])
    vectors = {"bob": [2, 0], "cleo": [3, 0], "ann": [1, 0]}
    np.testing.assert_array_equal(as_graph(EDGES, features=vectors).features, [[1, 0], [2, 0], [3, 0]])
    with pytest.raises(InputError, match=r"features: there is no row for a node of the graph: 'bob'. Add"):
        as_graph(EDGES, features=frame.drop("bob"))


def test_a_table_without_ids_or_with_several_labels() -> None:
    with pytest.raises(InputError, match=r"labels: .* must have a column for id and label; it has 1"):
        as_graph(EDGES, labels=pa.table({"kind": ["x"]}))
    with pytest.raises(
        InputError,
        match=r"labels: .* must have a column label or class, or one beside the ids; it has id, a, b",
    ):
        as_graph(EDGES, labels=pd.DataFrame({"a": [1], "b": [2]}, ["ann"]))


def test_a_graph_takes_labels_and_features_too() -> None:
    graph = Graph.from_edges(["b"], ["a"])
    changed = as_graph(graph, labels={"b": 1}, features=sparse.eye_array(2))
    assert labels_of(changed) == [-1, 1]
    assert sparse.issparse(changed.features)


PATH = pd.DataFrame({"u": [0, 1, 2, 3], "v": [1, 2, 3, 4]})


@pytest.mark.parametrize("name", ["id", "account_id", "account_no"])
@pytest.mark.parametrize("index", [None, [9, 8, 7, 6, 5]])
def test_frames_are_aligned_as_by_read_graph(name: str, index: Any) -> None:
    """Before, the index 0, 1, 2, ... was taken for ids, and account_id for a feature."""
    ids = [4, 3, 2, 1, 0]
    features = pd.DataFrame({name: ids, "age": [44.5, 33.0, 22.0, 11.0, 0.0]}, index)
    labels = pd.DataFrame({name: ids, "kind": list("xxyyy")}, index)
    graph = as_graph(PATH, labels=labels, features=features)
    assert labels_of(graph) == list("yyyxx")
    np.testing.assert_array_equal(graph.features, [[0], [11], [22], [33], [44.5]])
    expected = read_graph(PATH, labels=labels, features=features)
    assert graph == expected
    wrong = labels.replace({name: {0: 7}})
    with pytest.raises(InputError, match=r"labels: id 7 is not a node of the graph"):
        as_graph(PATH, labels=wrong)


def test_the_default_index_is_ids_only_where_nodes_are_numbered() -> None:
    ages = pd.DataFrame({"age": [3.5, 1.0, 2.0, 2.0, 5.0], "n_cars": [0, 1, 1, 1, 0]})
    np.testing.assert_array_equal(as_graph(PATH, features=ages).features, ages)
    for labels in (pd.Series([0, 1, 0]), pd.DataFrame({"label": [0, 1, 0]})):
        with pytest.raises(
            InputError, match=r"labels: node ids must be in a column, .* default one of pandas"
        ):
            as_graph(PATH, labels=labels)
    moved = PATH + 1
    with pytest.raises(InputError, match="features: node ids must be in a column"):
        as_graph(moved, features=ages)
    named = ages.set_axis([1, 2, 3, 4, 5]).rename_axis("account")
    np.testing.assert_array_equal(as_graph(moved, features=named).features, ages)


def test_an_index_that_was_set_is_preferred_to_a_column_with_other_ids() -> None:
    plans = pd.DataFrame({"plan_id": [7, 8, 7], "label": list("xyx")}, ["cleo", "bob", "ann"])
    assert labels_of(as_graph(EDGES, labels=plans)) == ["x", "y", "x"]
    assert np.asarray(as_graph(EDGES, features=plans[["plan_id"]]).features).ravel().tolist() == [7, 8, 7]

"""Graph: every rule of its docstring, and inputs that it refuses."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import Graph, Interactions, as_graph, read_graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.graph import class_codes, training_classes
from tests.strategies import graphs

quick = settings(max_examples=60)


def dense(graph: Graph) -> list[list[float]]:
    rows: list[list[float]] = graph.adjacency.toarray().tolist()
    return rows


TWICE = sparse.coo_array(([2.0, 3.0], ([0, 0], [1, 1])), shape=(2, 2))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (Graph([[1, 1], [1, 0]]), [[0, 1], [1, 0]]),  # self-loops are of directed graphs only
        (Graph([[1, 1], [0, 0]], directed=True), [[1, 1], [0, 0]]),
        (Graph([[0, 2], [5, 0]]), [[0, 5], [5, 0]]),  # a pair has the larger weight
        (Graph([[0, 2], [0, 0]]), [[0, 2], [2, 0]]),
        (Graph(TWICE, directed=True), [[0, 5], [0, 0]]),  # duplicates add up in a matrix,
        (Graph.from_edges([0, 0, 1], [1, 1, 0], [2, 3, 4]), [[0, 4], [4, 0]]),  # not in a list of edges
    ],
)
def test_loops_asymmetric_pairs_and_duplicates(graph: Graph, expected: list[list[float]]) -> None:
    assert dense(graph) == expected


def test_zeros_are_no_edges_and_ones_are_not_stored() -> None:
    explicit = sparse.csr_array((np.array([0.0, 1.0]), ([0, 1], [1, 0])), shape=(2, 2))
    graph = Graph(explicit, directed=True)
    assert graph.n_edges == 1
    assert not graph.is_weighted
    assert graph.rows.weights is None
    assert Graph.from_edges([0], [1], [0.0]).n_edges == 0


@quick
@given(graphs())
def test_invariants(graph: Graph) -> None:
    matrix = graph.adjacency
    assert matrix.has_canonical_format
    assert (matrix.data > 0).all()
    assert graph.degrees.tolist() == (matrix.toarray() > 0).sum(axis=1).tolist()
    if not graph.directed:
        assert dense(graph) == matrix.T.toarray().tolist()
        assert not matrix.diagonal().any()
    source, target, weights = graph.edges()
    assert len(source) == len(target) == graph.n_edges
    again = Graph.from_edges(source, target, weights, node_ids=graph.node_ids, directed=graph.directed)
    assert again == graph.replace(features=None, labels=None)


@quick
@given(graphs())
def test_copies_and_pickles_are_equal_and_frozen(graph: Graph) -> None:
    _ = graph.adjacency
    for twin in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), graph.replace(), graph):
        assert twin == graph
        arrays = [twin.rows.indptr, twin.rows.indices, twin.rows.weights, twin.label_codes]
        arrays += [twin.adjacency.data, twin.adjacency.indices, twin.__dict__["_node_ids"]]
        features = twin.features
        arrays.append(features.data if isinstance(features, sparse.csr_array) else features)
        assert not any(array.flags.writeable for array in arrays if array is not None)


def test_attributes_are_frozen() -> None:
    graph = Graph([[0, 1], [1, 0]])
    with pytest.raises(AttributeError, match=r"frozen; graph.replace\(features=...\) returns a changed copy"):
        graph.features = None
    with pytest.raises(AttributeError):
        graph.rows.n_columns = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(graph)


def test_input_is_untouched_and_not_shared() -> None:
    adjacency, features = np.array([[1.0, 2], [0, 0]]), np.ones((2, 1))
    labels, ids = np.array([0, 1]), np.array([5, 6])
    table = sparse.csr_array(adjacency)
    graph, other = Graph(adjacency, features, labels, ids), Graph(table, sparse.csr_array(features))
    assert adjacency.tolist() == table.toarray().tolist() == [[1, 2], [0, 0]]
    for array in (adjacency, features, labels, ids, table.data):
        array[:] = 7
    assert graph == Graph([[0, 2], [2, 0]], np.ones((2, 1)), [0, 1], [5, 6])
    assert dense(other) == [[0, 2], [2, 0]]


def test_equality() -> None:
    graph = Graph([[0, 1], [1, 0]], [[1.0], [2.0]], ["a", "b"], ["x", "y"])
    changes: list[dict[str, Any]] = [
        {"adjacency": [[0, 2], [2, 0]]},
        {"features": None},
        {"features": sparse.csr_array([[1.0], [2.0]])},
        {"labels": ["a", "a"]},
        {"labels": [0, 1]},
        {"node_ids": ["x", "z"]},
        {"node_ids": [0, 1]},
        {"directed": True},
    ]
    for change in changes:
        assert graph.replace(**change) != graph
    assert graph.replace(labels=["a", "b"]) == graph
    assert graph != "graph"


def test_labels() -> None:
    named = Graph(np.zeros((4, 4)), labels=["dog", "", "cat", "dog"])
    assert named.label_codes is not None
    assert named.label_codes.tolist() == [1, -1, 0, 1]
    assert named.label_names == ("cat", "dog")
    assert (named.labels == "dog").tolist() == [True, False, False, True]  # type: ignore[union-attr]
    codes = Graph(np.zeros((3, 3)), labels=[2.0, np.nan, 0.0])
    assert codes.label_codes is not None
    assert codes.label_codes.tolist() == [2, -1, 0]
    one_class = Graph(np.zeros((2, 2)), labels=["x", "x"])
    assert repr(one_class) == "Graph(2 nodes, 0 undirected edges, binary, 1 classes)"
    gaps = Graph(np.zeros((3, 3)), labels=np.array(["a", None, float("nan")], object))
    assert gaps.labels.tolist() == ["a", "", ""]  # type: ignore[union-attr]


def test_label_names() -> None:
    graph = Graph(np.zeros((2, 2)), labels=[1, -1]).with_label_names(["a", "b"])
    assert graph.labels.tolist() == ["b", ""]  # type: ignore[union-attr]
    for names in (["a"], ["a", "a"], ["a", ""]):
        with pytest.raises(InputError, match="names must"):
            graph.with_label_names(names)
    with pytest.raises(InputError, match="names must hold a non-empty name for every label"):
        graph.replace(labels=None).with_label_names(["a"])


def test_empty_and_isolated() -> None:
    empty = Graph(np.zeros((0, 0)))
    assert (empty.n_nodes, empty.n_edges) == (0, 0)
    assert empty.largest_component() == empty
    assert Graph.from_edges([], []) == empty
    assert Graph.from_edges([], [], node_ids=["a"]).n_nodes == 1
    assert Graph.from_edges([1], [2], node_ids=[2, 9, 1]).degrees.tolist() == [1, 0, 1]


def test_subgraph_and_component() -> None:
    graph = Graph.from_edges(["a", "b", "d"], ["b", "c", "e"], [1, 2, 3], labels=["x", "y", "x", "z", "z"])
    part = graph.subgraph([2, 1])
    assert part.node_ids.tolist() == ["c", "b"]
    assert dense(part) == [[0, 2], [2, 0]]
    assert part.label_names == ("x", "y", "z")
    assert part.label_codes is not None
    assert part.label_codes.tolist() == [0, 1]
    assert graph.largest_component().node_ids.tolist() == ["a", "b", "c"]
    assert graph.subgraph(["c", "b"]) == part
    assert graph.subgraph([False, True, True, False, False]).node_ids.tolist() == ["b", "c"]
    for nodes, message in (([0, 0], "unique"), ([9], "between 0 and 4; got 9"), ([True], "5 in all; got 1")):
        with pytest.raises(InputError, match=message):
            graph.subgraph(nodes)


def test_positions_of_nodes_by_position_mask_and_id() -> None:
    graph = Graph(np.zeros((3, 3)), node_ids=["c", "a", "b"])
    assert graph.positions([2, 0]).tolist() == [2, 0]
    assert graph.positions(np.array([True, False, True])).tolist() == [0, 2]
    assert graph.positions(["b", "c", "b"]).tolist() == [2, 0, 2]
    assert graph.positions([]).tolist() == []
    numbered = Graph(np.zeros((3, 3)), node_ids=[30, 10, 20])
    assert numbered.positions([2, 0]).tolist() == [2, 0]  # integers are positions, not ids
    assert numbered.positions(["20", "30"]).tolist() == [2, 0]
    assert numbered.positions(np.isin(numbered.node_ids, [10, 20])).tolist() == [1, 2]


def test_ids() -> None:
    mixed = Graph.from_edges(np.array([1], np.uint64), np.array([2], np.int32))
    assert mixed.node_ids.tolist() == [1, 2]
    assert Graph.from_edges(["b"], ["a"]).node_ids.tolist() == ["a", "b"]
    objects = Graph(np.zeros((2, 2)), node_ids=np.array(["x", "y"], object))
    assert objects.node_ids.dtype.kind == "U"
    assert Graph(np.zeros((2, 2))).node_ids.tolist() == [0, 1]


def test_class_codes_of_training_nodes() -> None:
    labels = np.array([7, -1, 2, 7, 4])
    classes, codes = class_codes(labels)
    assert (classes.tolist(), codes.tolist()) == ([2, 4, 7], [2, -1, 0, 2, 1])
    classes, codes = class_codes(labels, np.array([0, 4]))
    assert (classes.tolist(), codes.tolist()) == ([4, 7], [1, -1, -1, 1, 0])


def test_classes_without_training_nodes_are_counted() -> None:
    graph = Graph(np.zeros((9, 9)), labels=list("abcccdefg"))
    with pytest.warns(DataWarning) as caught:
        training_classes(graph, np.array([0, 1]))
    (message,) = (str(warning.message) for warning in caught)
    assert "class c (3 nodes), d (1 node), e (1 node), f (1 node), g (1 node). It is left out" in message
    with pytest.warns(DataWarning, match=r"f \(1 node\) and 1 more\. It"):
        training_classes(graph, np.array([0]))


@pytest.mark.parametrize(
    "texts", [["a\0b", "c"], ["a\0", "a"], np.array(["a\0b", "c"]), np.array(["a\0", 3], object)]
)
def test_texts_with_nul_are_errors(texts: Any, tmp_path: Path) -> None:
    """Arrays drop NUL at the end and Parquet files what follows it, which made them other nodes."""
    for arguments in ({"node_ids": texts}, {"labels": texts}):
        with pytest.raises(InputError, match="must not hold the character NUL; got 'a"):
            Graph(np.ones((2, 2)), **arguments)
    with pytest.raises(InputError, match="NUL"):
        Graph.from_edges(texts, ["x", "y"])
    frame = pandas.DataFrame({"source": list(texts), "target": ["x", "y"]}).astype(str)
    frame.to_parquet(tmp_path / "edges.parquet")
    for source in (frame, tmp_path / "edges.parquet"):
        with pytest.raises(InputError, match="NUL"):
            read_graph(source)


def test_texts_with_half_a_character_are_errors(tmp_path: Path) -> None:
    """JSON can hold them, and no file that is written."""
    texts: Any = ["a\ud83d", "\U0001f600"]
    for arguments in ({"node_ids": texts}, {"labels": texts}):
        with pytest.raises(InputError, match=r"must be valid Unicode; got 'a\\ud83d'"):
            Graph(np.ones((2, 2)), **arguments)
    with pytest.raises(InputError, match="users must be valid Unicode"):
        Interactions.from_table(texts, ["x", "y"])
    nodes = [{"id": text} for text in texts]
    links = [{"source": texts[0], "target": texts[1]}]
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    with pytest.raises(InputError, match="ids must be valid Unicode"):
        read_graph(tmp_path / "graph.json")
    assert Graph(np.ones((2, 2)), node_ids=["a", texts[1]]).node_ids[1] == texts[1]


MIXED: Any = [1, "1"]
FALSE: Any = "False"
PAIR = Graph([[0, 1], [1, 0]], node_ids=["c", "a"])


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: Graph([[0, np.nan], [0, 0]]), "adjacency must hold finite numbers; got nan"),
        (lambda: Graph([[0, -1], [0, 0]]), "must not hold negative weights; got -1"),
        (lambda: Graph([[0, 1, 0], [0, 0, 0]]), r"must be square.*got shape \(2, 3\)"),
        (lambda: Graph([[0, 1], [1]]), "rows of different lengths"),
        (lambda: PAIR.positions([3], "targets"), "targets must lie between 0 and 1; got 3"),
        (lambda: PAIR.positions(["a", "z"], "targets"), "targets must hold known ids; got 'z'"),
        (lambda: PAIR.positions([True], "targets"), "targets must hold one entry per node, 2 in all"),
        (lambda: PAIR.replace(features=[[1.0]]), "features must be a matrix with 2 rows"),
        (lambda: PAIR.replace(labels=[1]), "labels must hold one entry per node, 2 in all; got 1"),
        (lambda: PAIR.replace(labels=[-2, 0]), "labels must be -1"),
        (lambda: PAIR.replace(labels=[0.5, 1]), "whole numbers or strings"),
        (lambda: PAIR.replace(node_ids=["a", "a"]), "node_ids must be unique; got 'a' more than once"),
        (lambda: PAIR.replace(node_ids=np.array(["a", None])), "without missing values"),
        (lambda: PAIR.replace(colour=1), "replace has no parameter colour"),
        (lambda: Graph.from_edges([0, 1], [1]), "target must hold one entry per edge, 2 in all; got 1"),
        (lambda: Graph.from_edges([0], ["a"]), "both hold integers or both hold strings"),
        (lambda: Graph.from_edges([0], [1], node_ids=["0", "1"]), "source must hold known ids; got 0"),
        (lambda: Graph.from_edges([0], [1], [-2.0]), "weight must not be negative; got -2"),
        (lambda: Graph.from_edges(MIXED, ["a", "b"]), "source must not hold both 1 and '1'"),
        (lambda: Graph.from_edges([*MIXED[:1], "c"], ["1", "b"]), "target must not hold both 1 and '1'"),
        (lambda: Graph.from_edges([1, 2**70], [2, 3]), "source must fit into 64 bits with a sign; got 118"),
        (lambda: Graph.from_edges(["a"], ["b" * 10**5]), "target must have at most 4096 characters; got 1"),
        (lambda: Graph([[0]], labels=[2**63]), "labels must be .* in 64 bits; got 9223372036854775808"),
        (lambda: PAIR.replace(labels=[2**64, -1]), "labels must fit into 64 bits"),  # "-1" was a class
        (lambda: Graph([[0]], directed=FALSE), "directed must be True or False; got str"),  # it was true
        (lambda: PAIR.replace(directed=None), "directed must be True or False; got NoneType"),
        (lambda: as_graph(sparse.eye_array(2), directed=FALSE), "directed must be True or False"),
    ],
)
def test_errors(call: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()

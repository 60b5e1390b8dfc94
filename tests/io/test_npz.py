"""NumPy archives: round trips, files of SciPy and of the gnn-benchmark, and damaged ones."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.io import read_graph, read_interactions, write_graph
from tests.strategies import TEXTS, graphs

few = settings(max_examples=40, deadline=None)


def through(graph: Graph) -> Graph:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        write_graph(graph, path)
        return read_graph(path, directed=graph.directed)


@few
@given(graph=graphs(texts=TEXTS))
def test_npz_keeps_everything(graph: Graph) -> None:
    back = through(graph)
    assert back == graph
    assert back.label_names == graph.label_names
    if graph.features is not None:
        assert back.features is not None
        assert back.features.dtype == graph.features.dtype


def test_npz_keeps_names_that_no_node_has() -> None:
    part = Graph(np.zeros((3, 3)), labels=["a", "b", "c"]).subgraph([2, 0])
    back = through(part)
    assert back.label_names == ("a", "b", "c")
    assert back.labels is not None
    assert back.labels.tolist() == [2, 0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_scipy_files(kind: str, tmp_path: Path) -> None:
    matrix = np.array([[0, 2.0, 0], [0, 0, 1], [0, 0, 0]])
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(matrix).asformat(kind))  # type: ignore[call-overload]
    assert read_graph(tmp_path / "a.npz") == Graph(matrix)
    assert read_graph(tmp_path / "a.npz", directed=True) == Graph(matrix, directed=True)


def test_gnn_benchmark_files(tmp_path: Path) -> None:
    adjacency, attributes = sparse.csr_array([[0, 1], [0, 0]]), sparse.csr_array([[0, 1.5, 0], [2.0, 0, 0]])
    parts = {f"adj_{part}": getattr(adjacency, part) for part in ("data", "indices", "indptr", "shape")}
    parts |= {f"attr_{part}": getattr(attributes, part) for part in ("data", "indices", "indptr", "shape")}
    names = np.array(["x", None], object)  # pickled, never read
    np.savez(tmp_path / "cora.npz", labels=[1, 0], node_names=names, **parts)
    assert read_graph(tmp_path / "cora.npz") == Graph(adjacency, attributes, [1, 0])
    dense = {key: value for key, value in parts.items() if key.startswith("adj_")}
    np.savez(tmp_path / "dense.npz", attr_matrix=attributes.toarray(), **dense)
    assert read_graph(tmp_path / "dense.npz") == Graph(adjacency, attributes.toarray())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": [1]}, "must hold a graph; it holds x"),
        ({"indptr": [0, 1], "indices": [7], "directed": False}, "indices between 0 and 0; got 7"),
        ({"indptr": [0, 5], "indices": [0], "directed": False}, "ends at the number of entries, 1; got 5"),
        ({"indptr": [0, 1], "indices": [0], "weights": [np.nan], "directed": True}, "finite"),
        ({"indptr": [0, 1], "indices": [0], "weights": [-1.0], "directed": True}, "negative"),
        ({"indptr": [0, 0], "indices": np.zeros(0, int), "directed": True, "labels": [0, 1]}, "labels"),
        ({"indptr": [0, 0], "indices": np.zeros(0, int), "directed": True, "node_ids": [0.5]}, "node_ids"),
        ({"indptr": np.array([{}]), "indices": [0], "directed": True}, "cannot be read"),
    ],
)
def test_errors_name_the_file(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "graph.npz",
        allow_pickle=True,
        **{name: np.asarray(array) for name, array in arrays.items()},
    )
    with pytest.raises(InputError, match=f"graph.npz: .*{message}"):
        read_graph(tmp_path / "graph.npz")


def test_archives_of_other_data_are_errors(tmp_path: Path) -> None:
    write_graph(Graph([[0, 1], [1, 0]]), tmp_path / "graph.npz")
    with pytest.raises(InputError, match="must hold interactions; it holds"):
        read_interactions(tmp_path / "graph.npz")
    sparse.save_npz(tmp_path / "wide.npz", sparse.csr_array(np.ones((1, 2))))
    with pytest.raises(InputError, match="must be square"):
        read_graph(tmp_path / "wide.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(InputError, match=r"one.npz: "):
        read_graph(tmp_path / "one.npz")

"""The file formats, on tiny files made here."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy._core import checks as file_limits
from nodecopy.datasets import readers
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions


class Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch owned",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_malicious_pickles(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="may only use"):
        readers.unpickle(pickle.dumps({0: [Malice()]}, protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [b"cos\nsystem\n", b"cbuiltins\neval\n", b"c__builtin__\nlist.__class__\n"])
def test_names_outside_the_list_are_refused(name: bytes) -> None:
    with pytest.raises(InputError, match="may only use"):
        readers.unpickle(name + b".")


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps([1, 2, 3])[:-4]])
def test_a_broken_pickle(content: bytes) -> None:
    with pytest.raises(InputError, match="must be a pickle"):
        readers.unpickle(content)


def old_array(values: Any, dtype: str = "f4") -> bytes:
    """The opcodes with which Python 2 and its NumPy wrote a small array."""
    array = np.array(values, dtype)
    shape = b"(" + b"".join(b"K" + bytes([size]) for size in array.shape) + b"t"
    raw = b"U" + bytes([array.nbytes]) + array.tobytes()
    kind = b"cnumpy\ndtype\n(U\x02" + dtype.encode() + b"K\x00K\x01tR(K\x03U\x01<NNNJ" + b"\xff" * 4
    kind += b"J" + b"\xff" * 4 + b"K\x00tb"
    empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return empty + b"(K\x01" + shape + kind + b"\x89" + raw + b"tb"


def old_pickle(values: Any) -> bytes:
    return b"\x80\x02" + old_array(values) + b"."


def old_sparse(values: Any) -> bytes:
    """The same for a SciPy matrix."""
    csr = sparse.csr_array(np.array(values, np.float32))
    rows, columns = csr.shape
    state = b"U\x06_shape(K" + bytes([rows]) + b"K" + bytes([columns]) + b"tU\x04data" + old_array(csr.data)
    state += b"U\x07indices" + old_array(csr.indices, "i4") + b"U\x06indptr" + old_array(csr.indptr, "i4")
    return b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + state + b"ub."


def test_planetoid_puts_test_rows_where_the_index_says() -> None:
    graph = readers.read_planetoid(
        allx=old_sparse([[1, 0, 0], [2, 0, 0]]),
        tx=old_sparse([[0, 0, 4], [0, 3, 0]]),
        ally=old_pickle([[1, 0], [0, 1]]),
        ty=old_pickle([[0, 1], [1, 0]]),
        graph=pickle.dumps({0: [1, 1, 0], 1: [0], 2: [4], 3: [], 4: []}, 2),
        test_index=b"4\n2\n",
    )
    assert graph.features is not None
    assert graph.label_codes is not None
    assert graph.features.toarray().tolist() == [[1, 0, 0], [2, 0, 0], [0, 3, 0], [0, 0, 0], [0, 0, 4]]  # type: ignore[union-attr]
    assert graph.label_codes.tolist() == [0, 1, 0, -1, 1]
    assert [column.tolist() for column in graph.edges()[:2]] == [[0, 2], [1, 4]]
    assert not graph.is_weighted


def test_cora_as_text() -> None:
    content = b"31\t0\t1\tTheory\n7\t1\t1\tGenetic\n12\t0\t0\tTheory\n"
    graph = readers.read_cora_text(content, b"7\t31\n31\t7\n12\t7\n")
    assert graph.node_ids.tolist() == [31, 7, 12]
    assert graph.label_names == ("Genetic", "Theory")
    assert graph.label_codes is not None
    assert graph.label_codes.tolist() == [1, 0, 1]
    assert graph.features is not None
    assert graph.features.toarray().tolist() == [[0, 1], [1, 1], [0, 0]]  # type: ignore[union-attr]
    assert graph.features.dtype == np.float32
    assert graph.n_edges == 2


def npz(**arrays: Any) -> bytes:
    parts = {"adj_data": [1.0, 2.0], "adj_indices": [1, 1], "adj_indptr": [0, 1, 2], "adj_shape": [2, 2]}
    buffer = io.BytesIO()
    np.savez(buffer, **({name: np.array(part) for name, part in parts.items()} | arrays))
    return buffer.getvalue()


def test_npz_drops_counts_and_loops_and_takes_names() -> None:
    graph = readers.read_npz(npz(labels=np.array([1, 0]), class_names=np.array(["red", "blue"])))
    assert (graph.n_nodes, graph.n_edges, graph.is_weighted) == (2, 1, False)
    named = graph.labels
    assert named is not None
    assert named.tolist() == ["blue", "red"]
    assert graph.features is None


def test_npz_does_not_unpack_to_far_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_limits, "MAX_UNPACKED", 100)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, labels=np.zeros(10**6))
    for read in (readers.read_npz, readers.read_split_parts):
        with pytest.raises(InputError, match="bytes when it is unpacked"):
            read(buffer.getvalue())


def test_npz_never_unpickles() -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        readers.read_npz(npz(labels=np.array([Malice(), None])))


def test_elliptic() -> None:
    graph = readers.read_elliptic(b"txId,class\n9,1\n5,0\n", b"txId1,txId2\n9,5\n")
    assert (graph.node_ids.tolist(), graph.n_edges, graph.directed) == ([9, 5], 1, False)


def test_movielens_keeps_ratings() -> None:
    log = readers.read_movielens(b"3\t10\t5\t100\n1\t20\t2\t50\n3\t20\t4\t7\n")
    assert log.user_ids.tolist() == [1, 3]
    assert log.item_ids.tolist() == [10, 20]
    assert log.matrix.toarray().tolist() == [[0, 2], [5, 4]]


def test_item_lists_pool_files() -> None:
    log = readers.read_item_lists(b"0 4 7\n1 4\n2\n", b"0 5 4\n")
    assert log.user_ids.tolist() == [0, 1]
    assert log.item_ids.tolist() == [4, 5, 7]
    assert log.matrix.toarray().tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("has_validation", [False, True])
def test_split_parts(has_validation: bool) -> None:
    train = np.array([[1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 1]])
    parts = {"train": train, "test": 1 - train, "valid": train * [1, 0, 0, 0, 0, 0]}
    arrays: dict[str, Any] = {"shape": np.array(train.shape)}
    for name in ("train", "test", "valid")[: 3 if has_validation else 2]:
        matrix = sparse.csr_array(parts[name])
        arrays |= {f"{name}_indptr": matrix.indptr, f"{name}_indices": matrix.indices}
    file = io.BytesIO()
    np.savez(file, **arrays)
    split = readers.read_split_parts(file.getvalue())
    assert (split.train, split.test) == (Interactions(train), Interactions(1 - train))
    assert split.validation.n_interactions == 1
    assert (split.validation == Interactions(parts["valid"])) or not has_validation

"""NumPy archives, never with pickles: our own, SciPy's sparse matrices and the gnn-benchmark's graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

OURS, SCIPY, BENCHMARK = (
    {"indptr", "indices"},
    {"format", "shape"},
    {"adj_indptr", "adj_indices", "adj_shape"},
)


def read_graph(path: Path, directed: bool | None) -> Graph:
    """Read a graph; where ``directed`` is ``None`` the file decides, and a file that does not say is not."""
    with _opened(path) as archive:
        keys = set(archive.files)
        if keys >= BENCHMARK:
            labels = archive["labels"] if "labels" in keys else None
            return Graph(_csr(archive, "adj_"), _features(archive, "attr"), labels, directed=bool(directed))
        if keys >= SCIPY:
            return Graph(_scipy(path), directed=bool(directed))
        if not keys >= OURS | {"directed"}:
            raise InputError(f"there is no graph in it; it holds {', '.join(sorted(keys)) or 'nothing'}.")
        graph = Graph(
            _rows(archive, len(archive["indptr"]) - 1),
            _features(archive, "features"),
            archive["labels"] if "labels" in keys else None,
            archive["node_ids"] if "node_ids" in keys else None,
            bool(archive["directed"]) if directed is None else directed,
        )
        return graph.with_label_names(archive["label_names"].tolist()) if "label_names" in keys else graph


def write_graph(graph: Graph, path: PathLike) -> None:
    """Write all that a graph holds."""
    arrays = _row_arrays(graph.rows) | {"node_ids": graph.node_ids, "directed": np.array(graph.directed)}
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    if graph.label_names is not None:
        arrays["label_names"] = np.array(graph.label_names, dtype=str)
    if isinstance(graph.features, sparse.csr_array):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"features_{part}"] = np.asarray(getattr(graph.features, part))
    elif graph.features is not None:
        arrays["features"] = graph.features
    _save(path, arrays)


def read_interactions(path: Path) -> Interactions:
    """Read users x items, ours or SciPy's."""
    with _opened(path) as archive:
        keys = set(archive.files)
        if keys >= SCIPY:
            return Interactions(_scipy(path))
        if not keys >= OURS | {"user_ids", "item_ids"}:
            raise InputError(
                f"there are no interactions in it; it holds {', '.join(sorted(keys)) or 'nothing'}."
            )
        users, items = archive["user_ids"], archive["item_ids"]
        return Interactions(_rows(archive, len(items)), users, items)


def write_interactions(interactions: Interactions, path: PathLike) -> None:
    """Write all that interactions hold."""
    ids = {"user_ids": interactions.user_ids, "item_ids": interactions.item_ids}
    _save(path, _row_arrays(interactions.rows) | ids)


def read_matrix(path: Path) -> Any:
    """One matrix: a ``.npy`` file, SciPy's sparse format, or an archive of a single array."""
    with _opened(path) as loaded:
        if isinstance(loaded, np.ndarray):
            return loaded
        keys = set(loaded.files)
        if keys >= SCIPY:
            return _scipy(path)
        if len(keys) == 1:
            return loaded[keys.pop()]
    raise InputError(f"the file must hold one matrix; it holds {', '.join(sorted(keys)) or 'nothing'}.")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """What NumPy loads; the file is ours, since NumPy leaves a damaged one open."""
    with path.open("rb") as file:
        yield np.load(file, allow_pickle=False)


def _save(path: PathLike, arrays: Mapping[str, NDArray[Any]]) -> None:
    # An open file, since NumPy would add .npz to a name that ends in .NPZ.
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _row_arrays(rows: Any) -> dict[str, NDArray[Any]]:
    arrays = {"indptr": rows.indptr, "indices": rows.indices}
    return arrays if rows.weights is None else arrays | {"weights": rows.weights}


def _rows(archive: Any, n_columns: int) -> sparse.csr_array:
    indptr, indices = archive["indptr"], archive["indices"]
    weights = archive["weights"] if "weights" in archive.files else np.ones(len(indices), np.float32)
    return _checked(sparse.csr_array((weights, indices, indptr), shape=(len(indptr) - 1, n_columns)))


def _csr(archive: Any, prefix: str) -> sparse.csr_array:
    indptr, indices, shape = (archive[prefix + part] for part in ("indptr", "indices", "shape"))
    data = archive[f"{prefix}data"] if f"{prefix}data" in archive.files else np.ones(len(indices), np.float32)
    return _checked(sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist())))


def _features(archive: Any, name: str) -> Any:
    """Dense or sparse features, or ``None``; the benchmark calls the dense ones attr_matrix."""
    for dense in (name, f"{name}_matrix"):
        if dense in archive.files:
            return archive[dense]
    return _csr(archive, f"{name}_") if f"{name}_indptr" in archive.files else None


def _scipy(path: Path) -> sparse.csr_array:
    with path.open("rb") as file:
        matrix: Any = sparse.load_npz(file)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return sparse.csr_array(matrix)


def _checked(matrix: sparse.csr_array) -> sparse.csr_array:
    """SciPy trusts column numbers, and a wrong one reads foreign memory."""
    matrix.check_format(full_check=True)
    return matrix

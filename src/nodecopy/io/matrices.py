"""Matrices in files: NumPy archives (our own, of SciPy and of the gnn-benchmark) and Matrix Market."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mmread

from nodecopy._core.arrays import Array, as_csr, check_ids, csr_from_parts
from nodecopy._core.checks import check_choice, check_shape, open_archive
from nodecopy._core.files import PathLike, atomic_write
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

OWN_KEYS, SCIPY_KEYS = {"indptr", "indices"}, {"format", "shape"}
CSR_PARTS = ("data", "indices", "indptr", "shape")
BENCHMARK_KEYS = {"adj_indptr", "adj_indices", "adj_shape"}  # arrays that identify the kind of an archive


def read_graph(path: Path, suffix: str) -> tuple[Graph, bool]:
    """Return the graph in a matrix file with directions, and whether the file says that it has some."""
    if suffix == ".mtx":  # its rows are numbered from one
        matrix = read_matrix_market(path)
        return Graph(matrix, node_ids=np.arange(1, matrix.shape[0] + 1), directed=True), False
    with path.open("rb") as file, open_archive(file) as archive:
        keys, labels = set(archive.files), archive.get("labels")
        if keys >= BENCHMARK_KEYS:
            rows, features = csr_of_archive(archive, "adj_"), _features(archive, "attr")
            return Graph(rows, features, labels, directed=True), False
        if keys >= SCIPY_KEYS:
            return Graph(_scipy(archive), directed=True), False
        if not keys >= OWN_KEYS | {"directed"}:
            raise _wrong_content(archive, "a graph")
        rows, features = _rows(archive, len(archive["indptr"]) - 1), _features(archive, "features")
        graph = Graph(rows, features, labels, archive.get("node_ids"), directed=True)
        if "label_names" in keys:
            graph = graph.with_label_names(archive["label_names"].tolist())
        return graph, bool(archive["directed"])


def write_graph(graph: Graph, path: PathLike) -> None:
    """Write a graph with all its attributes."""
    arrays = _row_arrays(graph.rows) | {"node_ids": graph.node_ids, "directed": np.array(graph.directed)}
    if graph.label_codes is not None:
        arrays["labels"] = graph.label_codes
    if graph.label_names is not None:
        arrays["label_names"] = np.array(graph.label_names, dtype=str)
    if isinstance(graph.features, sparse.csr_array):
        for part in CSR_PARTS:
            arrays[f"features_{part}"] = np.asarray(getattr(graph.features, part))
    elif graph.features is not None:
        arrays["features"] = graph.features
    _save(path, arrays)


def read_interactions(path: Path) -> Interactions:
    """Return the interactions in an archive of this package or of SciPy."""
    with path.open("rb") as file, open_archive(file) as archive:
        keys = set(archive.files)
        if keys >= SCIPY_KEYS:
            return Interactions(_scipy(archive))
        if not keys >= OWN_KEYS | {"user_ids", "item_ids"}:
            raise _wrong_content(archive, "interactions")
        users, items = archive["user_ids"], archive["item_ids"]
        return Interactions(_rows(archive, len(items)), users, items, archive.get("times"))


def write_interactions(interactions: Interactions, path: PathLike) -> None:
    """Write interactions with their ids and times."""
    arrays = {"user_ids": interactions.user_ids, "item_ids": interactions.item_ids}
    if interactions.times is not None:
        arrays["times"] = interactions.times
    _save(path, _row_arrays(interactions.rows) | arrays)


def read_features(path: Path) -> tuple[list[Any] | None, Any]:
    """Return the ids of the rows, if any, and the matrix, alone or in ``x``."""
    with path.open("rb") as file, open_archive(file) as loaded:
        if isinstance(loaded, np.ndarray):
            return None, loaded
        keys = set(loaded.files) - {"ids"}
        ids = _load_ids(loaded)
        usual = [name for name in ("x", "features") if name in keys and ids is not None]
        if keys >= SCIPY_KEYS:
            matrix = _scipy(loaded)
        elif keys >= set(CSR_PARTS):
            matrix = csr_of_archive(loaded, "")
        elif usual or len(keys) == 1:
            matrix = loaded[(usual or [*keys])[0]]
        else:
            raise _wrong_content(loaded, "one matrix")
        if ids is not None and len(ids) != matrix.shape[0]:
            raise InputError("ids", f"must name every row, {matrix.shape[0]} in all; got {len(ids)}.")
        return ids, matrix


def _load_ids(archive: Any) -> list[Any] | None:
    try:
        return check_ids(archive["ids"], "ids").tolist() if "ids" in archive else None
    except InputError:
        raise
    except ValueError:  # an array of Python objects, which is a pickle
        raise InputError("ids", "must be integers or strings; got objects. Use np.array(ids, str).") from None


def _wrong_content(archive: Any, expected: str) -> InputError:
    return InputError(f"the file must hold {expected}; it holds {', '.join(sorted(archive)) or 'nothing'}.")


def _save(path: PathLike, arrays: Mapping[str, Array]) -> None:
    # An open file: NumPy would append .npz to a name that ends in .NPZ.
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _row_arrays(rows: Any) -> dict[str, Array]:
    arrays = {"indptr": rows.indptr, "indices": rows.indices}
    return arrays if rows.weights is None else arrays | {"weights": rows.weights}


def _rows(archive: Any, n_columns: int) -> sparse.csr_array:
    return csr_of_archive(archive, "", (len(archive["indptr"]) - 1, n_columns), "weights")


def csr_of_archive(archive: Any, prefix: str, shape: Any = None, values: str = "data") -> sparse.csr_array:
    """Return a matrix, whose arrays are checked."""
    indptr, indices, data = (archive.get(prefix + part) for part in ("indptr", "indices", values))
    data = np.ones(len(indices), np.float32) if data is None else data
    shape = tuple(archive[f"{prefix}shape"].tolist()) if shape is None else shape
    check_shape(shape, len(indices))
    return csr_from_parts(data, indices, indptr, shape, "the matrix of the file")


def _features(archive: Any, name: str) -> Any:
    dense = archive.get(name, archive.get(f"{name}_matrix"))
    if dense is None and f"{name}_indptr" in archive.files:
        return csr_of_archive(archive, f"{name}_")
    return dense


def _scipy(archive: Any) -> sparse.csr_array:
    kind, shape = archive["format"].item(), tuple(archive["shape"].tolist())
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    check_choice(kind, "format of the matrix", ["csr", "csc", "bsr", "coo", "dia"])
    names = {"coo": ("data", "row", "col"), "dia": ("data", "offsets")}
    parts = {name: archive[name] for name in names.get(kind, ("data", "indices", "indptr"))}
    coords = (parts.pop("row", None), parts.pop("col", None))
    matrix = SimpleNamespace(format=kind, shape=shape, coords=coords, **parts)
    check_shape(shape, np.size(matrix.data))
    return as_csr(matrix, "the matrix of the file")


def read_matrix_market(path: Path) -> sparse.csr_array:
    """Return the matrix of a ``.mtx`` file; SciPy's reader would crash on a damaged one."""
    _check_text(path)
    entries = sparse.coo_array(mmread(path))
    check_shape(entries.shape, entries.nnz)
    return as_csr(entries, "the matrix of the file")


def _check_text(path: Path) -> None:
    first, _, content = path.read_bytes().partition(b"\n")
    while content.lstrip().startswith(b"%"):
        content = content.partition(b"\n")[2]
    line, _, body = content.lstrip().partition(b"\n")
    sizes = list(map(int, line.split()))
    if b"coordinate" not in first.lower():  # a dense matrix
        if math.prod(sizes) > 2 * len(body) + sizes[0]:  # a symmetric one lists half of it
            raise InputError(f"the file must have an entry for each place; there are {math.prod(sizes)}.")
        return
    n_entries = sizes[2]
    if strange := (line + body).translate(None, b"0123456789eE+-. \t\r\n"):
        raise InputError(f"a Matrix Market file must hold numbers; got {strange[:20]!r}.")
    n_lines = body.strip().count(b"\n") + bool(body.strip())
    if n_lines != n_entries and sum(bool(line.strip()) for line in body.splitlines()) != n_entries:
        raise InputError(f"the file must have {n_entries} lines of entries; it has {n_lines}.")

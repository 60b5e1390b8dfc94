"""Readers of the datasets' file formats, from verified bytes to a graph or interactions."""

from __future__ import annotations

import io
import pickle
from collections import defaultdict
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import csr_from_parts
from nodecopy._core.checks import open_archive
from nodecopy.datasets.splits import Split, fixed_split
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions
from nodecopy.io.matrices import csr_of_archive


class _PickledMatrix:
    """SciPy's old ``csr_matrix``, whose attributes pickle sets without running any code."""

    def csr(self) -> sparse.csr_array:
        data, indices, indptr, shape = map(vars(self).get, ("data", "indices", "indptr", "_shape"))
        return csr_from_parts(data, indices, indptr, shape, "the matrix")


def _dtype(code: str, align: Any, copy: Any) -> np.dtype[Any]:
    """Return a data type whose flags are integers in Python 2, which NumPy now warns about."""
    return np.dtype(code, align=bool(align), copy=bool(copy))


class _PlanetoidUnpickler(pickle.Unpickler):
    """An unpickler that resolves the six names these files need; a pickle may name any function."""

    ALLOWED: ClassVar = {
        ("__builtin__", "list"): list,
        ("collections", "defaultdict"): defaultdict,
        ("numpy", "dtype"): _dtype,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): _PickledMatrix,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            allowed = ", ".join(".".join(names) for names in self.ALLOWED)
            raise InputError(f"A Planetoid file may only use {allowed}; got {module}.{name}.")
        return self.ALLOWED[module, name]


def unpickle(content: bytes) -> Any:
    """Return what a Planetoid file holds: an array, a sparse matrix or a dictionary of lists."""
    try:
        value = _PlanetoidUnpickler(io.BytesIO(content), encoding="latin1").load()
        return value.csr() if isinstance(value, _PickledMatrix) else value
    except InputError:
        raise
    except Exception as error:  # broken pickles raise nearly anything
        raise InputError(f"A Planetoid file must be a pickle; {type(error).__name__}: {error}.") from error


def read_planetoid(allx: bytes, tx: bytes, ally: bytes, ty: bytes, graph: bytes, test_index: bytes) -> Graph:
    """Return Cora, Citeseer or Pubmed in Planetoid's order; some nodes of Citeseer are in ``graph`` alone."""
    neighbours, first = unpickle(graph), unpickle(allx)
    n_nodes = len(neighbours)
    # Row k of tx and ty belongs to the k-th node in test.index.
    nodes = np.concatenate([np.arange(first.shape[0]), np.array(test_index.split(), np.int64)])
    stacked = sparse.vstack([first, unpickle(tx)], format="coo")
    entries = (stacked.data, (nodes[stacked.row], stacked.col))
    features = sparse.csr_array(entries, shape=(n_nodes, stacked.shape[1]), dtype=np.float32)
    one_hot = np.concatenate([unpickle(ally), unpickle(ty)])
    labels = np.full(n_nodes, UNLABELLED)
    labels[nodes] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNLABELLED)
    source = np.repeat(list(neighbours), [len(others) for others in neighbours.values()])
    target = np.fromiter(chain.from_iterable(neighbours.values()), np.int64)
    return Graph.from_edges(source, target, node_ids=np.arange(n_nodes), features=features, labels=labels)


def read_cora_text(content: bytes, cites: bytes) -> Graph:
    """Return Cora as first published: papers in the order of ``cora.content``, with ids and class names."""
    papers, words, classes = [], [], []
    for line in content.decode().splitlines():
        paper, *counts, name = line.split("\t")
        papers.append(int(paper))
        words.append(sparse.csr_array(np.array([counts], np.float32)))
        classes.append(name)
    cited, citing = np.array(cites.split(), np.int64).reshape(-1, 2).T
    return Graph.from_edges(
        citing, cited, node_ids=papers, features=sparse.vstack(words, format="csr"), labels=classes
    )


def read_npz(content: bytes) -> Graph:
    """Return a graph from CSR parts ``adj_*`` (without their counts) and ``attr_*``, and from ``labels``."""
    with open_archive(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    labels = arrays["labels"]
    if "class_names" in arrays:
        labels = arrays["class_names"][labels]
    features = csr_of_archive(arrays, "attr_") if "attr_data" in arrays else None
    return Graph(csr_of_archive(arrays, "adj_").astype(bool), features=features, labels=labels)


def read_elliptic(nodes: bytes, edges: bytes) -> Graph:
    """Return bitcoin transactions by their ids, as an undirected graph; label 0 is licit, 1 illicit."""
    ids, classes = np.loadtxt(io.BytesIO(nodes), np.int64, delimiter=",", skiprows=1, ndmin=2).T
    source, target = np.loadtxt(io.BytesIO(edges), np.int64, delimiter=",", skiprows=1, ndmin=2).T
    return Graph.from_edges(source, target, node_ids=ids, labels=classes)


def read_movielens(ratings: bytes) -> Interactions:
    """Return interactions from columns of user, item, rating and time, all of them integers."""
    users, items, stars, times = np.loadtxt(io.BytesIO(ratings), np.int64, ndmin=2).T
    return Interactions.from_table(users, items, stars, times)


def read_item_lists(*contents: bytes) -> Interactions:
    """Return interactions from lines ``user item item ...``, one per user; several files are pooled."""
    lines = [np.array(line.split(), np.int64) for content in contents for line in content.splitlines()]
    users = np.repeat([line[0] for line in lines], [len(line) - 1 for line in lines])
    return Interactions.from_table(users, np.concatenate([line[1:] for line in lines]))


def read_split_parts(content: bytes) -> Split[Interactions]:
    """Return a published split from CSR parts ``train_*``, ``test_*`` and ``valid_*``, if there is one."""
    with open_archive(io.BytesIO(content)) as archive:
        shape = tuple(archive["shape"].tolist())
        names = [name for name in ("train", "test", "valid") if f"{name}_indptr" in archive]
        return fixed_split(*(Interactions(csr_of_archive(archive, f"{name}_", shape)) for name in names))

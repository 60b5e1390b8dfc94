"""Valid files of every format that the package reads, which the fuzzer damages."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
from nodecopy.attacks import DICE, Perturbation
from nodecopy.datasets import read_split
from nodecopy.experiments import toml
from nodecopy.experiments.store import Record, Store
from nodecopy.inference import DirectedCopying, bootstrap
from nodecopy.io import FeatureEncoder

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
    readers |= _write_flips(folder, graph) | _write_experiments(folder) | _write_samples(folder, graph)
    return [(folder / name, read) for name, read in readers.items()]


def build_models(graph: Graph, log: Interactions) -> dict[str, Any]:
    """Return a fitted object of every public class that is saved, by the name of its file."""
    models: list[Any] = [model.fit(graph, np.arange(9), rng=0) for model in (*_classifiers(), *_defences())]
    models += [model.fit(log, rng=0) for model in _recommenders()]
    models += [model.fit(graph, rng=0) for model in _graph_models()]
    models.append(DirectedCopying("labels").fit(graph.replace(directed=True)))
    models.append(FeatureEncoder().fit({"age": [31, 45, None], "city": ["Oslo", "Rome", "Oslo"]}))
    named = {f"{type(model).__name__}.npz": model for model in models}
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
        classify.DFNet(widths=(4,), **FEW), classify.DGI(4, **FEW),
        classify.CustomNetwork(build_network, **FEW),
    ]  # fmt: skip


def _defences() -> list[Any]:
    kinds = (
        defend.CopyingDefence, defend.DonorAverage, defend.SuspectCorrection, defend.WithoutEdges,
        defend.GCNJaccard, defend.GCNSVD,
    )  # fmt: skip
    return [kind(classifier=classify.GCN(**FEW)) for kind in kinds]


def _recommenders() -> list[Any]:
    bpr, light, knn = recommend.BPRMF(3, **FEW), recommend.LightGCN(3, **FEW), recommend.ItemKNN(3)
    return [
        recommend.Popularity(), knn, recommend.IALS(3, n_iterations=2), recommend.EASE(),
        recommend.CopyEASE(), recommend.Fusion(knn, recommend.EASE()), bpr, light,
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
        generators.NetGAN(n_steps=1, walk_length=4, n_transitions=200, batch_size=8, n_critic_steps=1),
    ]  # fmt: skip


def _write_models(folder: Path, graph: Graph, log: Interactions) -> dict[str, Reader]:
    """Save an object of every class."""
    models = build_models(graph, log)
    for name, model in models.items():
        model.save(folder / name)
    return dict.fromkeys(models, lambda path: load(path, classes=[build_network]))


def _write_flips(folder: Path, graph: Graph) -> dict[str, Reader]:
    """Save what an attack changes, as an archive and as a table."""
    graph = graph.replace(adjacency=graph.adjacency > 0)
    perturbation = DICE().attack(graph, [1, 2], budget=2, rng=0)
    for suffix in ("npz", "csv"):
        perturbation.save(folder / f"flips.{suffix}")

    def read_flips(path: Path) -> Graph:
        return Perturbation.load(path, graph).apply(graph)

    return {"flips.npz": read_flips, "flips.csv": read_flips}


def _write_samples(folder: Path, graph: Graph) -> dict[str, Reader]:
    """Write the settings of a run that stores its values."""
    store = folder / "samples"

    bootstrap(graph, "triangles", n=3, rng=0, store=store)
    (folder / "settings.json").write_bytes((store / "settings.json").read_bytes())

    def continue_run(path: Path) -> Any:
        (store / "settings.json").write_bytes(path.read_bytes())
        return bootstrap(graph, "triangles", n=3, store=store)

    return {"settings.json": continue_run}


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

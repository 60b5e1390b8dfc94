"""Arguments that every public callable accepts, by the name of the parameter and of the callable."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

import nodecopy
from nodecopy import Graph, Interactions, NodeCopying, SameLabel

SETTINGS: dict[str, Any] = {
    "n_epochs": 2, "n_hidden": 4, "n_latent": 3, "n_graphs": 2, "n_weight_samples": 2, "n_factors": 3,
    "n_rounds": 1, "n_steps": 4, "n_transitions": 2000, "n_donors": 2, "rank": 3,
    "evaluate_every": 1, "batch_size": 16, "n_swaps": 1, "walk_length": 4, "n_neighbours": 3, "patience": 0,
    "C": 1.0, "alpha": 0.5,
}  # fmt: skip
"""Settings of constructors that make fitting fast."""


@functools.cache
def shared_arguments() -> dict[str, Any]:
    """Return arguments by parameter; the files that they name are written to the working folder."""
    import networkx

    draws = np.random.default_rng(0)
    dense = np.triu(draws.random((12, 12)) < 0.4, 1)
    graph = Graph(dense | dense.T, draws.random((12, 3)), np.arange(12) % 3, [f"n{i}" for i in range(12)])
    log = Interactions(
        draws.random((12, 14)) < 0.5, [f"u{i}" for i in range(12)], [f"i{i}" for i in range(14)]
    )
    network = networkx.path_graph(5)
    networkx.set_node_attributes(network, {node: node % 2 for node in network}, "part")
    nodecopy.write_graph(graph, "graph.npz")
    nodecopy.write_interactions(log, "log.csv")
    Path("features.csv").write_text("id,a,b\n" + "".join(f"n{i},{i},{i % 4}\n" for i in range(12)))
    Path("elliptic.csv").write_text("".join(f"n{i},{i},{i % 4}\n" for i in range(12)))
    Path("contacts.csv").write_text("source,target,time\nn0,n1,2024-05-30\nn1,n2,2024-05-31\n")
    NodeCopying(SameLabel()).fit(graph).save("model.npz")
    return {
        "graph": graph, "data": graph, "adjacency": graph.adjacency, "observed": graph, "first": graph,
        "second": graph, "sample": graph, "samples": [graph], "graphs": [graph, graph],
        "interactions": log, "other": log, "test": log, "matrix": log.matrix, "network": network,
        "labels": np.arange(12) % 3, "features": draws.random((12, 3)),
        "probabilities": np.full((12, 3), 1 / 3), "correct": np.arange(12) % 2 == 0,
        "uncertainty": np.linspace(0, 1, 12), "scores": np.linspace(0, 1, 12),
        "positive": np.arange(12) % 2 == 0, "similarity": np.ones((12, 12)),
        "nodes": [0, 3], "node": 0, "pairs": [[0, 3]], "pair": [0, 3], "targets": [2],
        "train": np.arange(6), "budget": 1, "donors": SameLabel(),
        "users": ["u0", "u1"], "items": ["i0", "i2"], "user": "u0", "item": "i1", "k": 2,
        "histories": [["i0"], ["i1", "i2"]], "mask": np.ones(log.n_interactions, bool),
        "source": ["a", "b"], "target": ["b", "c"], "names": ["x", "y", "z"], "name": "karate",
        "statistic": "triangles", "path": "out.npz", "n": 2, "rng": 0, "seed": np.random.SeedSequence(0),
    }  # fmt: skip


def build_network(n_features: int, n_classes: int) -> Any:
    from torch_geometric.nn import GraphSAGE

    return GraphSAGE(n_features, 4, 2, n_classes)


@functools.cache
def own_arguments() -> dict[str, dict[str, Any]]:
    """Return arguments by callable, where they differ from :func:`shared_arguments`."""
    from torch_geometric.nn import GraphSAGE

    from nodecopy.classify import GCN, Trial
    from nodecopy.edge_tables import DuckDB, SameLabelTable
    from nodecopy.recommend import BPRMF, EASE, ItemKNN
    from nodecopy.report.writing import PARTS

    shared = shared_arguments()
    graph, log = shared["graph"], shared["interactions"]
    timed = Interactions(log.matrix, log.user_ids, log.item_ids, np.arange(log.n_interactions))
    held_out = Interactions(1 - log.matrix.toarray(), log.user_ids, log.item_ids)
    nodecopy.write_interactions(held_out, "test.csv")
    binary = graph.replace(features=(shared["features"] > 0.5).astype(np.float32))
    trials = [Trial(graph, shared["train"], rng=0)]
    fitted = GCN(n_epochs=2).fit(graph, shared["train"], rng=0)
    edges, classes, ids = _parquet_tables()
    base = BPRMF(n_epochs=2, n_factors=3)
    return {
        "load": {"path": "model.npz"},
        "write_report": {"path": "page.html", "without": PARTS, "n_samples": 1},
        "read_graph": {"path": "graph.npz"},
        "read_interactions": {"path": "log.csv"},
        "read_contacts": {"path": "contacts.csv"},
        "read_feature_graph": {"features": "features.csv"},
        "write_interactions": {"path": "out.csv"},
        "time_split": {"interactions": timed},
        "last_item_split": {"interactions": timed},
        "label_split": {"per_class": 1, "validation": 2, "test": 2},
        "as_interactions": {"data": log},
        "sample_like": {"label": "part"}, "copy": {"donors": np.arange(12)},
        "load_split": {"name": "gowalla"},
        "fixed_split": {"train": log, "test": held_out},
        "read_split": {"train": "log.csv", "test": "test.csv"},
        "without_test_edges": {"test": [1, 2]},
        "draw_accuracy_by_certainty": {"predictions": {"a": (shared["correct"], shared["uncertainty"])}},
        "draw_attacked_node": {
            "neighbours": {"a": [(1, "own")]}, "probabilities": {"a": np.full(3, 1 / 3)},
            "class_names": ["x", "y", "z"],
        },
        "Validity": {"score": 0.1, "reference": 0.1, "p_value": 0.5, "p_values": np.linspace(0, 1, 5)},
        "bootstrap": {"n": 8}, "null_test": {"n": 19}, "compare_graphs": {"n": 8},
        "edge_count_variance": {"model": NodeCopying(SameLabel()).fit(graph)},
        "edge_table_statistics": {"edges": edges, "engine": DuckDB(threads=1)},
        "SameLabelTable": {"labels": classes},
        "NearestNeighboursTable": {"neighbours": edges},
        "WeightedTable": {"weights": edges},
        "EdgeTableCopying": {"donors": SameLabelTable(classes)},
        "EdgeTableCopying.fit": {"edges": edges, "engine": DuckDB(threads=1), "nodes": ids},
        "CustomNetwork": {"factory": build_network},
        "ModuleClassifier": {"module": GraphSAGE(3, 4, 2, 3)},
        "WeightedHybrid": {"first": ItemKNN(3), "second": EASE()},
        "ColdItems": {"base": EASE(), "items": ["i0", "i2", "new"], "features": np.eye(3)},
        "EnsembleBPR": {"base": base, "donors": nodecopy.Jaccard()},
        "SampledGraphBPR": {"base": base, "donors": nodecopy.Jaccard(), "threshold": 0.3},
        "Balanced": {"donors": nodecopy.Jaccard()},
        "from_classifier": {"classifier": fitted},
        "fit_trials": {"trials": trials},
        "predict": {"X": shared["features"]}, "predict_proba": {"X": shared["features"]},
        "DGLFRM": {"alpha": 50.0}, "DGLFRMB": {"alpha": 50.0}, "MMSBM": {"alpha": 1.0},
        "CopyEASE": {"n_neighbours": "auto"}, "EASE": {"n_neighbours": "auto"},
        "evaluate": {"metrics": ["recall@2", "ndcg@3"]},
        "tune": {"validation": held_out, "budget": 2},
        "GraphClassifier": {"n_neighbours": 3},
        "GraphClassifier.fit": {"X": shared["features"], "y": shared["labels"]},
        "GraphClassifier.score": {"X": shared["features"], "y": shared["labels"]},
        "GraphClassifier.uncertainty": {"X": shared["features"]},
        "calibrate": {"nodes": np.arange(6, 12)},
        "GlobalDICE.attack": {"targets": None},
        "Edits": {"graph": binary},
        "flip": {"first": 0, "second": 1}, "has_edge": {"first": 0, "second": 1},
        "flip_feature": {"feature": 1},
        "BPRMF": {"patience": 1}, "LightGCN": {"patience": 1}, "MGCCF": {"patience": 1},
        "DGI": {"patience": 1},
        "SBMGCN": {"base": GCN(n_epochs=2)},
        "Graph": {"features": shared["features"], "labels": ["x", "y", "z"] * 4, "node_ids": graph.node_ids},
        "Interactions": {"user_ids": log.user_ids, "item_ids": log.item_ids},
        "log_probability": {"sample": log},
        "FeatureEncoder.fit": {"columns": {"a": [1, 2, 3], "b": ["x", "y", "x"]}},
        "FeatureEncoder.transform": {"columns": {"a": [1, 2, 3], "b": ["x", "y", "x"]}},
        "edge_probabilities": {"first": [0, 1], "second": [2, 3]},
    }  # fmt: skip


def _parquet_tables() -> tuple[str, str, str]:
    """Write tables of edges, labels and ids, and return their paths."""
    import pyarrow
    import pyarrow.parquet as pq

    tables = {
        "edges.parquet": {"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 1.0]},
        "labels.parquet": {"id": [0, 1, 2, 3], "label": [0, 0, 1, 1]},
        "ids.parquet": {"id": [0, 1, 2, 3]},
    }
    for name, columns in tables.items():
        pq.write_table(pyarrow.table(columns), name)
    first, second, third = tables
    return first, second, third

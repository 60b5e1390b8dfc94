"""``nodecopy classify``: predict the classes of unlabelled nodes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.options import at_least, between, check_applicable, check_outputs, option
from nodecopy.cli.reading_options import ReadingOptions, reads
from nodecopy.cli.terminal import print_json, print_note, print_table, print_written
from nodecopy.errors import InputError
from nodecopy.experiments.trials import TrialSeeds
from nodecopy.graph import Graph
from nodecopy.io.table_files import write_table

if TYPE_CHECKING:
    from nodecopy.classify import Classifier

N_SHOWN = 5
"""Nodes in the table of the most uncertain predictions."""


Method = Literal["mlp", "gcn", "appnp", "bgcn-copy", "sbm-gcn", "dfnet"]
"""The classifiers."""
Rounds = Literal["1", "2", "3", "validation"]
"""How often the graph model is fitted to predicted labels."""


@reads("graph")
def classify(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    largest_component: options.LargestComponent = False,
    method: Method = option(
        "The classifier. sbm-gcn needs validation nodes: for a file, --validation.", "bgcn-copy"
    ),
    n_graphs: int | None = option("bgcn-copy: number of sampled graphs. (default: 10)", None, at_least(1)),
    n_weight_samples: int | None = option(
        "bgcn-copy: dropout samples of each network. (default: 10)", None, at_least(1)
    ),
    n_rounds: Rounds | None = option(
        "bgcn-copy: how often the graph model is fitted to predicted labels; 'validation' chooses "
        "the number by the accuracy on validation nodes. (default: 1)"
    ),
    validation: float | None = option(
        "File: share of the labelled nodes of each class that are validation nodes. (default: 0)",
        None,
        between(0, 0.9),
    ),
    labels_per_class: int | None = option(
        "Dataset: training nodes of each class. (default: 20)", None, at_least(1)
    ),
    device: options.Device = "cpu",
    seed: int = option("Seed of the split, of sampling and of training.", 0, at_least(0)),
    out: Path | None = option("File for the table of predictions: .csv, .tsv, .txt or .parquet."),
    save: Path | None = option("File for the fitted classifier: .npz."),
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
) -> None:
    """Predict the classes of unlabelled nodes, with probabilities and uncertainty.

    Nodes with a label in the file are the training nodes, and the others are predicted. For a dataset, the
    training, validation and test nodes are those of the first trial of the experiments, and the accuracy on
    the test nodes is printed.
    """
    check_outputs([source, labels, features], out=(out, TABLES), save=(save, (".npz",)))
    import_optional("torch", "nodecopy classify")
    classifier = _create_classifier(method, n_graphs, n_weight_samples, n_rounds, device)
    graph = sources.load_graph(source, labels, features, directed, largest_component, reading)
    if graph.features is None:
        raise InputError("the graph must have features to be classified; got none. Give --features FILE.")
    is_dataset = sources.is_dataset(source)
    if is_dataset:
        got = f"the dataset {source!r}, which has validation nodes"
        check_applicable("files", got, validation=validation)
        per_class = node_splits.LABELS_PER_CLASS if labels_per_class is None else labels_per_class
        split, root = node_splits.split_as_in_experiments(graph, source, per_class, seed)
    else:
        got = "a file, whose labelled nodes are all training nodes"
        check_applicable("datasets", got, labels_per_class=labels_per_class)
        if not validation and (method == "sbm-gcn" or n_rounds == "validation"):
            option = "--n-rounds validation" if n_rounds == "validation" else f"--method {method}"
            raise InputError(f"{option} needs validation nodes; got none. Give --validation SHARE.")
        root = seed_sequence(seed)
        split = node_splits.split_file(graph, validation or 0.0, child(root, TrialSeeds.SPLIT))
    rng = child(root, TrialSeeds.METHOD)
    classifier.fit(graph, split.train, validation=split.validation, rng=rng)
    results: dict[str, Any] = sources.describe_run(
        source,
        method=method,
        seed=seed,
        train=len(split.train),
        validation=len(split.validation),
        **_summarise(classifier, graph, split.test),
        **classifier.prediction_.details,
    )
    if is_dataset:
        results["accuracy"] = float((classifier.predict() == graph.named_labels())[split.test].mean())
    if out is not None:
        write_table(out, {name: column[split.test] for name, column in classifier.table().items()})
    if save is not None:
        classifier.save(save)
    if json_:
        print_json(results)
        return
    _print_results(results, graph)
    print_written(out, "table of predictions", option="--out FILE")
    print_written(save, "classifier")


def _create_classifier(
    method: Method, n_graphs: int | None, n_weight_samples: int | None, n_rounds: Rounds | None, device: str
) -> Classifier:
    from nodecopy.classify import APPNP, GCN, MLP, SBMGCN, BayesianGCN, DFNet

    if method == "bgcn-copy":
        return BayesianGCN(
            n_graphs=n_graphs or 10,
            n_weight_samples=n_weight_samples or 10,
            n_rounds=n_rounds if n_rounds == "validation" else int(n_rounds or 1),
            device=device,
        )
    given = {"n_graphs": n_graphs, "n_weight_samples": n_weight_samples, "n_rounds": n_rounds}
    check_applicable("--method bgcn-copy", f"--method {method}", **given)
    others = {"mlp": MLP, "gcn": GCN, "appnp": APPNP, "sbm-gcn": SBMGCN, "dfnet": DFNet}
    classifier: Classifier = others[method](device=device)
    return classifier


def _summarise(classifier: Classifier, graph: Graph, nodes: NDArray[np.int64]) -> dict[str, Any]:
    """Return how often each class is predicted, and the most uncertain predictions."""
    predicted = classifier.predict()
    uncertainty = classifier.uncertainty()
    most_uncertain = nodes[np.argsort(-uncertainty.total[nodes], kind="stable")][:N_SHOWN]
    counts = Counter(predicted[nodes].tolist())
    return {
        "predicted": len(nodes),
        "classes": {str(name): counts[name] for name in classifier.classes_.tolist()},
        "most_uncertain": [
            {
                "id": graph.node_ids[node].item(),
                "predicted": predicted[node].item(),
                "probability": float(classifier.predict_proba()[node].max()),
                "total": float(uncertainty.total[node]),
                "aleatoric": float(uncertainty.aleatoric[node]),
                "epistemic": float(uncertainty.epistemic[node]),
            }
            for node in most_uncertain
        ],
    }


def _print_results(results: dict[str, Any], graph: Graph) -> None:
    print_note(f"{graph!r}, method {results['method']}, seed {results['seed']}")
    keys = [key for key in ("train", "validation", "predicted", "accuracy", "rounds") if key in results]
    print_table(keys, [[results[key] for key in keys]])
    print_note("predicted classes")
    print_table(["class", "nodes"], results["classes"].items())
    print_note("most uncertain predictions (uncertainty in nats)")
    rows = [
        row | {"id": str(row["id"]), "predicted": str(row["predicted"])} for row in results["most_uncertain"]
    ]
    print_table(list(rows[0]), [list(row.values()) for row in rows])

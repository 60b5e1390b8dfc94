"""``nodecopy classify``: predict the labels that are not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import nodecopy
from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.output_files import check_outputs
from nodecopy.cli.terminal import format_value, print_json, print_note, print_table
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.table_files import write_table

if TYPE_CHECKING:
    from nodecopy.classify import Classifier

N_SHOWN = 5


class Method(StrEnum):
    """The classifiers."""

    MLP = "mlp"
    GCN = "gcn"
    APPNP = "appnp"
    BGCN_COPY = "bgcn-copy"
    SBM_GCN = "sbm-gcn"
    DFNET = "dfnet"


class Rounds(StrEnum):
    """How often predicted labels define new donors."""

    ONE = "1"
    TWO = "2"
    THREE = "3"
    VALIDATION = "validation"


def classify(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    largest_component: options.LargestComponent = False,
    method: Annotated[
        Method, typer.Option(help="The classifier; sbm-gcn on a file needs --validation.")
    ] = Method.BGCN_COPY,
    graphs: Annotated[int | None, typer.Option(help="bgcn-copy: sampled graphs. (default: 10)")] = None,
    weight_samples: Annotated[
        int | None, typer.Option(help="bgcn-copy: dropout samples of each network. (default: 10)")
    ] = None,
    rounds: Annotated[
        Rounds | None, typer.Option(help="bgcn-copy: rounds of copying by predicted labels. (default: 1)")
    ] = None,
    validation: Annotated[
        float, typer.Option(help="A file: share of labelled nodes held out, to choose rounds or to stop by.")
    ] = 0.0,
    labels_per_class: Annotated[
        int | None, typer.Option(help="A dataset: labels of each class to learn from. (default: 20)")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of the split and of all that is sampled.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Table of predictions: .csv, .tsv, .txt or .parquet.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the fitted classifier as .npz.")] = None,
    json_: options.AsJson = False,
) -> None:
    """Predict the classes of unlabelled nodes, with probabilities and uncertainty.

    Of a file, the labelled nodes are learnt from and the others predicted. Of a dataset, where all
    labels are known, the split is that of the first trial of the experiments, and the accuracy on its
    test nodes is told.
    """
    check_outputs([source, labels, features], out=(out, TABLES), save=(save, (".npz",)))
    import_optional("torch", "nodecopy classify")
    classifier = _classifier(method, graphs, weight_samples, rounds, device)
    graph = sources.load_graph(source, labels, features, directed, largest_component)
    if graph.features is None:
        raise InputError("a graph must have features to be classified; for a file, give --features FILE.")
    if sources.is_dataset(source):
        if validation:
            raise InputError("--validation goes with a file; a dataset has its own validation nodes.")
        per_class = 20 if labels_per_class is None else labels_per_class
        split, root = node_splits.split_as_in_experiments(source, per_class, seed, largest_component)
    else:
        if labels_per_class is not None:
            raise InputError("--labels-per-class goes with a dataset; a file's labels are all used.")
        root = seed_sequence(seed)
        split = node_splits.split_file(graph, validation, child(root, 0))
    classifier.fit(graph, split.train, validation=split.validation, rng=child(root, 1))
    found: dict[str, Any] = {
        "nodecopy": nodecopy.__version__,
        "source": Path(source).name,
        "method": method.value,
        "seed": seed,
        "train": len(split.train),
        "validation": len(split.validation),
        **_summary(classifier, graph, split.test),
        **classifier.prediction_.details,
    }
    if sources.is_dataset(source):
        found["accuracy"] = float((classifier.predict() == graph.named_labels())[split.test].mean())
    if out is not None:
        write_table(out, {name: column[split.test] for name, column in classifier.table().items()})
    if save is not None:
        classifier.save(save)
    if json_:
        print_json(found)
        return
    _tell(found, graph)
    print_note(f"written to {out}" if out else "nothing written: give --out FILE for a table of predictions")
    if save is not None:
        print_note(f"classifier kept in {save}")


def _classifier(
    method: Method, graphs: int | None, weight_samples: int | None, rounds: Rounds | None, device: str
) -> Classifier:
    from nodecopy.classify import APPNP, GCN, MLP, SBMGCN, BayesianGCN, DFNet

    if method is Method.BGCN_COPY:
        number: Any = 1 if rounds is None else rounds.value
        return BayesianGCN(
            n_graphs=10 if graphs is None else graphs,
            n_weight_samples=10 if weight_samples is None else weight_samples,
            n_rounds=number if number == "validation" else int(number),
            device=device,
        )
    if (graphs, weight_samples, rounds) != (None, None, None):
        raise InputError(f"--graphs, --weight-samples and --rounds go with bgcn-copy; got {method.value}.")
    plain: dict[Method, Callable[..., Classifier]] = {
        Method.MLP: MLP,
        Method.GCN: GCN,
        Method.APPNP: APPNP,
        Method.SBM_GCN: SBMGCN,
        Method.DFNET: DFNet,
    }
    return plain[method](device=device)


def _summary(classifier: Classifier, graph: Graph, nodes: NDArray[np.int64]) -> dict[str, Any]:
    predicted = classifier.predict()
    unsure = classifier.uncertainty()
    last = nodes[np.argsort(-unsure.total[nodes], kind="stable")][:N_SHOWN]
    counts = Counter(predicted[nodes].tolist())
    return {
        "predicted": len(nodes),
        "classes": {str(name): counts[name] for name in classifier.classes_.tolist()},
        "most_uncertain": [
            {
                "id": graph.node_ids[node].item(),
                "predicted": predicted[node].item(),
                "probability": float(classifier.predict_proba()[node].max()),
                "total": float(unsure.total[node]),
                "aleatoric": float(unsure.aleatoric[node]),
                "epistemic": float(unsure.epistemic[node]),
            }
            for node in last
        ],
    }


def _tell(found: dict[str, Any], graph: Graph) -> None:
    print_note(f"{graph!r}, method {found['method']}, seed {found['seed']}")
    keys = ("train", "validation", "predicted", "accuracy", "rounds")
    told = {key: found[key] for key in keys if key in found}
    print_table(list(told), [[format_value(value) for value in told.values()]])
    print_note("predicted classes")
    print_table(["class", "nodes"], [[name, format_value(count)] for name, count in found["classes"].items()])
    print_note("most uncertain (uncertainty in nats)")
    rows = found["most_uncertain"]
    print_table(
        list(rows[0]),
        [[str(row["id"]), str(row["predicted"]), *map(format_value, list(row.values())[2:])] for row in rows],
    )

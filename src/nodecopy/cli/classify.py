"""``nodecopy classify``: predict the classes of unlabelled nodes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.arrays import Array
from nodecopy._core.estimator import load as load_estimator
from nodecopy._core.files import TABLES
from nodecopy._core.imports import from_name, import_optional
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, seed_sequence
from nodecopy.classify import CLASSIFIERS
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.files import NodeSplit
from nodecopy.cli.output import print_json, print_note, print_table, print_title, print_written, show_training
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io.tables import write_table

if TYPE_CHECKING:
    from nodecopy.classify import Classifier


RECOMMENDED = "self-training"
LABEL_PROPAGATION = "label-propagation"
METHODS_OF = {
    "n_rounds": ("self-training", "bgcn-copy"),
    "class_weight": ("self-training",),
    "n_graphs": ("bgcn-copy",),
}
N_SHOWN = 5  # nodes in the table of the most uncertain predictions
CLASS_SCORES = ("precision", "recall", "f1")
BY_CLASS = ("pseudo_labels", "class_sizes", "class_weight", "held_out_recall")
UNCERTAINTIES = ("total", "aleatoric", "epistemic")


def classify(
    source: opt.TrainingSource | None = None,
    method: Annotated[str | None, CLASSIFIERS] = opt.common(
        f"The classifier. (default: {RECOMMENDED})\n\nself-training: confident predictions become labels of "
        "a vote of simple classifiers. bgcn-copy: the Bayesian GCN of the paper. "
        "label-propagation uses no features. sbm-gcn needs validation nodes."
    ),
    n_rounds: str | None = opt.more(
        "Rounds with pseudo-labels, or (bgcn-copy) fits of the graph model, where 'validation' chooses the "
        "number by validation accuracy. (default: 4, bgcn-copy 1)"
    ),
    n_graphs: opt.Count | None = opt.common("bgcn-copy: number of sampled graphs. (default: 10)"),
    class_weight: str | None = opt.more(
        "self-training: f1, or weights of classes such as fraud=5,other=1, to find rare classes. (default: 1)"
    ),
    validation: Annotated[float, opt.between(0, 0.9)] | None = opt.more(
        "File: share of the labels of each class for validation. (default: 0)"
    ),
    labels_per_class: opt.Count | None = opt.common(
        "Dataset: training nodes of each class. (default: at most 20)"
    ),
    calibrate: bool = opt.more("Calibrate the probabilities on validation nodes.", False),
    load: Path | None = opt.more("A classifier that --save wrote, to predict all nodes."),
    device: opt.Device = "cpu",
    seed: opt.Seed = 0,
    out: Path | None = opt.writes("File for the table of predictions: .csv, .tsv, .txt or .parquet."),
    save: Path | None = opt.writes("File for the fitted classifier: .npz."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    tables: opt.TrainingGraphOptions = opt.TrainingGraphOptions(),
) -> None:
    """Predict the classes of unlabelled nodes, with probabilities and uncertainty.

    Nodes with a label in the file are the training nodes, and the others are predicted. For a dataset, the
    training, validation and test nodes are those of the first trial of the experiments, and the accuracy on
    the test nodes is printed.

    Examples:
        nodecopy classify digits --labels-per-class 5
        nodecopy classify edges.csv --features features.csv --labels few_labels.csv --out predictions.csv
        nodecopy classify edges.csv --labels few_labels.csv --method label-propagation
    """
    inputs = [source, tables.labels, tables.features, load]
    opt.check_outputs(inputs, out=(out, TABLES), save=(save, (".npz",)))
    import_optional("torch", "nodecopy classify")
    weights = None if class_weight is None else _parse_weights(class_weight)
    settings: dict[str, Any] = {"n_rounds": n_rounds, "n_graphs": n_graphs, "class_weight": weights}
    name, chosen = source or str(tables.features), method or RECOMMENDED
    if load is None:
        if chosen == LABEL_PROPAGATION:
            opt.check_applicable("methods that predict on other graphs", f"--method {chosen}", save=save)
        scalings = tables.scale_features, tables.scale_weights
        classifier = create_classifier(chosen, *scalings, device, **settings)
    else:
        of_training = settings | {"method": method, "calibrate": calibrate, "save": save}
        of_training |= {"validation": validation, "labels_per_class": labels_per_class}
        of_training |= tables.given("scale_features", "scale_weights", "ignore_columns")
        opt.check_applicable("training", "--load, which trains nothing", **of_training)
        classifier = load_estimator(load, device=device)
        if not hasattr(classifier, "feature_encoder_"):
            kind = type(classifier).__name__
            raise InputError(f"--load must be a file of a classifier; {load} holds a {kind}.")
    graph = files.load_training_graph(source, tables, classifier.feature_encoder_, classifier.graph_kind_)
    if graph.features is None and (load is not None or chosen not in (LABEL_PROPAGATION, RECOMMENDED)):
        other = "" if load is not None else ", or --method label-propagation, which uses none"
        raise InputError(
            f"the graph must have features to be classified; got none. Give --features FILE{other}."
        )
    if load is None:
        needs_validation = {"--method sbm-gcn": method == "sbm-gcn"}
        needs_validation |= {"--n-rounds validation": n_rounds == "validation", "--calibrate": calibrate}
        split, root = _split(graph, name, labels_per_class, validation, seed, needs_validation)
        with show_training("training networks"):
            method_seed = child(root, TrialSeeds.METHOD)
            classifier.fit(graph, split.train, validation=split.validation, rng=method_seed)
        if calibrate:
            classifier.calibrate()
        table, nodes = classifier.table(), split.test
        results = files.describe_run(name, method=chosen, seed=seed)
        results |= {"train": len(split.train), "validation": len(split.validation)}
        results |= _describe_training(classifier)
    else:
        table, nodes = classifier.table(graph), np.arange(graph.n_nodes)
        if graph.label_codes is not None:
            log_decision("accuracy: on all labelled nodes, which may include training nodes.")
        results = files.describe_run(name, classifier=load.name)
    table = {head: column[nodes] for head, column in table.items()}
    results |= _summarise(table, classifier)
    if graph.label_codes is not None and (load is not None or files.is_dataset(name)):
        is_labelled = graph.label_codes[nodes] != UNLABELLED
        if is_labelled.any():
            is_correct = table["predicted"].astype(str) == classifier.check_labels(graph)[nodes]
            results["accuracy"] = float(is_correct[is_labelled].mean())
            given = None if load is None else graph
            results["by_class"] = classifier.report(nodes[is_labelled], graph=given).by_class()
    if out is not None:
        write_table(out, table, spreadsheet=spreadsheet)
    if save is not None:
        classifier.save(save)
    if json_:
        print_json(results)
        return
    _print_results(results, graph)
    print_written(out, "table of predictions", option="--out FILE")
    print_written(save, "classifier")


def create_classifier(method: str, features: str, weights: str, device: str, **settings: Any) -> Classifier:
    """Return a classifier by its name."""
    given = opt.select_given("method", method, METHODS_OF, settings)
    if "n_rounds" in given:
        given["n_rounds"] = _parse_rounds(given["n_rounds"], method)
    scaling: dict[str, Any] = {"features": features, "weights": weights, "device": device}
    if method in ("label-propagation", "sgc"):
        others = {"scale_features": features != "auto" and method != "sgc", "device": device != "cpu"}
        opt.check_applicable("networks", f"--method {method}", **others)
        del scaling["device"]
    if method == LABEL_PROPAGATION:
        del scaling["features"]
    elif method in ("bgcn-copy", "sbm-gcn"):
        preset = {"preset": "g3nn"} if method == "sbm-gcn" else {}
        scaling = {"base": from_name("gcn", CLASSIFIERS, "--method", **preset, **scaling)}
    elif method == "dgi":
        scaling["seed"] = None
    return from_name(method, CLASSIFIERS, "--method", **given, **scaling)  # type: ignore[no-any-return]


def _parse_rounds(text: str, method: str) -> int | str:
    if text.isascii() and text.isdigit():
        return int(text)
    is_bayesian = method == "bgcn-copy"
    if is_bayesian and text == "validation":
        return text
    allowed = "at least 1 or 'validation'" if is_bayesian else "at least 0 for --method self-training"
    raise InputError(f"--n-rounds must be an integer of {allowed}; got {text!r}.")


def _parse_weights(text: str) -> str | dict[str, float]:
    """Return ``"f1"``, or the weight of each class."""
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise InputError(f"--class-weight must be f1, or such as fraud=5,other=1; got {text!r}.") from None


def _summarise(table: dict[str, Array], classifier: Classifier) -> dict[str, Any]:
    predicted = table["predicted"]
    counts = Counter(predicted.tolist())
    temperature = {} if classifier.temperature_ == 1 else {"temperature": classifier.temperature_}
    return {
        **temperature,
        "predicted": len(predicted),
        "classes": {str(name): counts[name] for name in classifier.classes_.tolist()},
        "most_uncertain": [
            {
                "id": table["id"][row].item(),
                "predicted": predicted[row].item(),
                "probability": float(table[f"p_{predicted[row]}"][row]),
                **{kind: float(table[f"{kind}_uncertainty"][row]) for kind in UNCERTAINTIES},
            }
            for row in np.argsort(-table["total_uncertainty"], kind="stable")[:N_SHOWN]
        ],
    }


def _describe_training(classifier: Classifier) -> dict[str, Any]:
    from nodecopy.classify import SelfTraining

    details = classifier.prediction_.details
    if not isinstance(classifier, SelfTraining):
        return details
    names = [str(name) for name in classifier.classes_]
    rounds = {
        "n_rounds": classifier.n_rounds,
        "round": details["pseudo_label_rounds"],
        "round_likelihood": details["round_likelihood"],
        "vote": details["vote"],
        **{name: dict(zip(names, details[name], strict=True)) for name in BY_CLASS},
    }
    return {"self_training": rounds}


def _split(
    graph: Graph,
    source: str,
    labels_per_class: int | None,
    validation: float | None,
    seed: int,
    needs_validation: dict[str, bool],
) -> tuple[NodeSplit, SeedSequence]:
    if files.is_dataset(source):
        got = f"the dataset {source!r}, which has validation nodes"
        opt.check_applicable("files", got, validation=validation)
        split, root = files.split_as_in_experiments(graph, source, labels_per_class, seed)
        way_out = "Give fewer --labels-per-class."
    else:
        got = "a file, whose labelled nodes are all training nodes"
        opt.check_applicable("datasets", got, labels_per_class=labels_per_class)
        root, way_out = seed_sequence(seed), "Give --validation SHARE."
        split = files.split_file(graph, validation or 0.0, child(root, TrialSeeds.SPLIT))
    for name, is_given in needs_validation.items():
        if is_given and not len(split.validation):
            raise InputError(f"{name} needs validation nodes; got none. {way_out}")
    return split, root


def _print_results(results: dict[str, Any], graph: Graph) -> None:
    origin = [f"{key} {results[key]}" for key in ("classifier", "method", "seed") if key in results]
    print_note(f"{graph!r}, {', '.join(origin)}")
    keys = ("train", "validation", "temperature", "predicted", "accuracy", "rounds")
    values = {key: results[key] for key in keys if key in results}
    print_table(list(values), [values.values()])
    is_self_trained = "self_training" in results
    print_title("predicted classes" + ", and pseudo-labels that training used" * is_self_trained)
    columns = {"class": results["classes"].keys(), "nodes": results["classes"].values()}
    if is_self_trained:
        columns["pseudo-labels"] = results["self_training"]["pseudo_labels"].values()
        recall = results["self_training"]["held_out_recall"].values()
        columns["recall of held-out labels"] = ["-" if share is None else share for share in recall]
    if "by_class" in results:
        columns |= {name: [row[name] for row in results["by_class"].values()] for name in CLASS_SCORES}
    print_table(list(columns), zip(*columns.values(), strict=True))
    print_title("most uncertain predictions (uncertainty in nats)")
    names = ("id", "predicted")  # numbers among them are not formatted
    rows = [row | {name: str(row[name]) for name in names} for row in results["most_uncertain"]]
    print_table(list(rows[0]), [row.values() for row in rows])

"""``nodecopy classify``: predict the classes of unlabelled nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import typer
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.estimator import load
from nodecopy._core.files import TABLES
from nodecopy._core.files import reading as reading_file
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import files as node_splits
from nodecopy.cli import files as sources
from nodecopy.cli import options
from nodecopy.cli.files import NodeSplit, ReadingOptions, reads
from nodecopy.cli.help_pages import complete_dataset
from nodecopy.cli.options import at_least, between, check_applicable, check_outputs, flag, option
from nodecopy.cli.output import print_json, print_note, print_table, print_title, print_written, show_training
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import FeatureEncoder, is_table
from nodecopy.io.columns import guess_kind
from nodecopy.io.tables import read_names, write_table

if TYPE_CHECKING:
    from nodecopy.classify import Classifier


# Options of the commands that train a classifier, and the classifier and the graph that they describe.


N_NEIGHBOURS = 10
"""Neighbours of each node of a graph that is built from features."""

Method: TypeAlias = Literal[
    "self-training", "bgcn-copy", "gcn", "appnp", "sbm-gcn", "dfnet", "mlp", "label-propagation", "dgi", "sgc"
]
"""The classifiers."""
RECOMMENDED: Method = "self-training"
WITHOUT_FEATURES: tuple[Method, ...] = ("label-propagation",)
ONE_GRAPH: tuple[Method, ...] = ("label-propagation",)
"""Methods that predict on no other graph than that of training."""
METHODS_OF: dict[str, tuple[Method, ...]] = {
    "n_rounds": ("self-training", "bgcn-copy"),
    "n_graphs": ("self-training", "bgcn-copy"),
    "n_weight_samples": ("bgcn-copy",),
    "share": ("self-training",),
    "balance": ("self-training",),
    "base_weight": ("self-training",),
    "network": ("self-training",),
    "prior": ("self-training",),
    "voters": ("self-training",),
}
"""Options that apply to some methods only."""
ScaleFeatures: TypeAlias = Annotated[
    Literal["auto", "unit", "rows", "standardise", "none", "binary"],
    typer.Option(
        help="How networks see features. auto: word counts by unit length, anything else standardised; "
        "the choice is printed."
    ),
]
ScaleWeights: TypeAlias = Annotated[
    Literal["auto", "raw", "log", "binary"],
    typer.Option(
        help="How networks see edge weights. auto: the logarithm of heavy-tailed weights, others as they "
        "are; the choice is printed."
    ),
]
NNeighbours: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help=f"Features without edges: neighbours of each node. (default: {N_NEIGHBOURS})",
        callback=at_least(1),
    ),
]


def create_classifier(
    method: Method, features: str, weights: str, device: str, **settings: Any
) -> Classifier:
    """Return a classifier by its name, whose draws all come from the seed of ``fit``.

    ``settings`` are the options of :data:`METHODS_OF`; ``None`` leaves the default of the class. One that
    does not apply to the method is an error.
    """
    from nodecopy.classify import (
        APPNP,
        DGI,
        GCN,
        MLP,
        SBMGCN,
        SGC,
        BayesianGCN,
        DFNet,
        LabelPropagation,
        SelfTraining,
    )

    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if method not in METHODS_OF[name]:
            check_applicable(
                f"--method {' or '.join(METHODS_OF[name])}", f"--method {method}", **{name: value}
            )
    if "n_rounds" in given:
        given["n_rounds"] = _parse_rounds(given["n_rounds"], method)
    scaling: dict[str, Any] = {"features": features, "weights": weights, "device": device}
    if method == "self-training":
        return SelfTraining(**given, **scaling)
    if method == "bgcn-copy":
        return BayesianGCN(**given, base=GCN(**scaling))
    if method == "sbm-gcn":
        return SBMGCN(base=GCN(preset="g3nn", **scaling))
    if method == "label-propagation":
        others = {"scale_features": features != "auto", "device": device != "cpu"}
        check_applicable("networks", f"--method {method}", **others)
        return LabelPropagation(weights=weights)
    if method == "sgc":
        check_applicable("networks", f"--method {method}", device=device != "cpu")
        return SGC(features=features, weights=weights)
    classes: dict[str, Callable[..., Classifier]] = {
        "gcn": GCN,
        "appnp": APPNP,
        "dfnet": DFNet,
        "mlp": MLP,
        "dgi": partial(DGI, seed=None),
    }
    return classes[method](**scaling)


def _parse_rounds(text: str, method: Method) -> int | str:
    """Return a number of rounds; bgcn-copy also takes ``"validation"``."""
    if text.isascii() and text.isdigit():
        return int(text)
    if method == "self-training":
        allowed = (
            "an integer of at least 0 for --method self-training, which chooses a round by its validation "
            "nodes, if any"
        )
    elif text == "validation":
        return text
    else:
        allowed = "an integer of at least 1 or 'validation'"
    raise InputError(f"--n-rounds must be {allowed}; got {text!r}.")


def load_classifier(path: Path, device: str) -> Classifier:
    """Return a fitted classifier that ``nodecopy classify --save`` wrote."""
    from nodecopy.classify import Classifier

    classifier = load(path, device=device)
    if not isinstance(classifier, Classifier):
        raise InputError(
            f"--load must be a file of a classifier; {path} holds a {type(classifier).__name__}."
        )
    return classifier


def load_graph(
    source: str | None,
    labels: Path | None,
    features: Path | None,
    directed: bool,
    largest_component: bool,
    reading: ReadingOptions,
    *,
    scale: str,
    n_neighbours: int | None,
    encoder: FeatureEncoder | None = None,
) -> Graph:
    """Return the graph of a dataset, of a file of edges, or of features without edges.

    Tables of features are encoded as ``encoder`` was fitted; by default one is fitted to them.
    """
    if features is None and source is not None and _holds_features(source, reading):
        features, source = Path(source), None
    if source is not None:
        got = f"the dataset {source!r}" if sources.is_dataset(source) else "edges"
        check_applicable("features without edges", got, n_neighbours=n_neighbours)
        return sources.load_graph(source, labels, features, directed, largest_component, reading, encoder)
    if features is None:
        raise InputError("a source must be given: a dataset, a file of edges or --features FILE; got none.")
    from nodecopy.features import read_feature_graph

    check_applicable(
        "edges", "features without edges", directed=directed, largest_component=largest_component
    )
    names = {name: getattr(reading, name) for name in ("header", "id", "label")}
    of_edges = reading.given("graph").keys() - {*names, "ignore_column"}
    others = dict.fromkeys(of_edges, True)
    check_applicable("edges", "features without edges", **others)
    return read_feature_graph(
        features,
        labels=labels,
        n_neighbours=N_NEIGHBOURS if n_neighbours is None else n_neighbours,
        scale=scale,
        encoder=encoder or FeatureEncoder(reading.ignore_columns or ()),
        **names,
    )


def _holds_features(source: str, reading: ReadingOptions) -> bool:
    """Return whether a file is a table about nodes, without edges."""
    if sources.is_dataset(source) or not Path(source).is_file() or not is_table(source):
        return False
    with reading_file(source) as path:
        if reading.source or reading.target:
            return False
        has_labels = reading.label is not None and reading.label in read_names(path)
        return has_labels or guess_kind(path, id=reading.id) in ("labels", "features")


N_SHOWN = 5
"""Nodes in the table of the most uncertain predictions."""
UNCERTAINTIES = ("total", "aleatoric", "epistemic")


@reads("graph")
def classify(
    source: str | None = typer.Argument(
        None,
        help="A dataset ('nodecopy datasets list') or a file of edges. Formats: .csv .tsv .txt .parquet .npz "
        ".mtx .graphml .gexf .json. A table of features alone gets a graph of nearest neighbours.",
        metavar="SOURCE",
        autocompletion=complete_dataset,
    ),
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    largest_component: options.LargestComponent = False,
    method: Method | None = option(
        "The classifier. self-training: confident predictions become labels of a vote of networks on "
        "sampled graphs, SGC and DGI. bgcn-copy: the Bayesian GCN of the paper. label-propagation uses no "
        f"features. sbm-gcn needs validation nodes: for a file, --validation. (default: {RECOMMENDED})"
    ),
    scale_features: ScaleFeatures = "auto",
    scale_weights: ScaleWeights = "auto",
    n_neighbours: NNeighbours = None,
    n_rounds: str | None = option(
        "self-training: rounds with pseudo-labels. bgcn-copy: how often the graph model is fitted to "
        "predicted labels. 'validation' chooses the number by the accuracy on validation nodes. (default: 4, "
        "bgcn-copy 1)"
    ),
    n_graphs: int | None = option("Number of sampled graphs. (default: 5, bgcn-copy 10)", None, at_least(1)),
    n_weight_samples: int | None = option(
        "bgcn-copy: dropout samples of each network. (default: 10)", None, at_least(1)
    ),
    share: float | None = option(
        "self-training: at most this share of a class gets pseudo-labels. (default: less the fewer labels)",
        None,
        between(0, 1),
    ),
    balance: float | None = option(
        "self-training: 0 takes classes to be as large as they are predicted, 1 to be equally large. "
        "(default: between, nearer to 1 the fewer labels there are)",
        None,
        between(0, 1),
    ),
    base_weight: float | None = option(
        "self-training: weight of the prediction without pseudo-labels in its mean with that of the chosen "
        "round. (default: 0.5 with more than five labels per class on average and no validation nodes, "
        "otherwise 0)",
        None,
        between(0, 1),
    ),
    network: Literal["auto", "appnp", "gcn"] | None = option(
        "self-training: its networks. (default: auto, which is appnp for sparse word counts and gcn "
        "otherwise; the choice is printed)"
    ),
    prior: float | None = option(
        "self-training: the degree at which a node keeps its neighbours half of the time and otherwise "
        "copies those of a similar node; 0 copies nothing. (default: smaller the more labels there are)",
        None,
        between(0, math.inf),
    ),
    voters: str | None = option(
        "self-training: classifiers whose probabilities are averaged, of networks, sgc and dgi, separated by "
        "commas. (default: all; in graphs of more than 50,000 nodes without dgi)"
    ),
    validation: float | None = option(
        "File: share of the labelled nodes of each class that are validation nodes. (default: 0)",
        None,
        between(0, 0.9),
    ),
    labels_per_class: int | None = option(
        "Dataset: training nodes of each class. (default: 20)", None, at_least(1)
    ),
    calibrate: bool = flag(
        "--calibrate",
        "Calibrate the probabilities on validation nodes. For a file, --validation names their share. The "
        "fitted temperature is printed, and saved with the classifier.",
    ),
    load: Path | None = option(
        "A classifier that --save wrote: it predicts all nodes, and nothing is trained. Tables of features "
        "are encoded and scaled as where it was trained."
    ),
    device: options.Device = "cpu",
    seed: int = option("Seed of the split, of sampling and of training.", 0, at_least(0)),
    out: Path | None = option("File for the table of predictions: .csv, .tsv, .txt or .parquet."),
    save: Path | None = option("File for the fitted classifier: .npz."),
    spreadsheet: options.Spreadsheet = False,
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
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
    check_outputs([source, labels, features, load], out=(out, TABLES), save=(save, (".npz",)))
    import_optional("torch", "nodecopy classify")
    settings: dict[str, Any] = {
        "n_rounds": n_rounds,
        "n_graphs": n_graphs,
        "n_weight_samples": n_weight_samples,
        "share": share,
        "balance": balance,
        "base_weight": base_weight,
        "network": network,
        "prior": prior,
        "voters": None if voters is None else [voter.strip() for voter in voters.split(",") if voter.strip()],
    }
    name, chosen = source or str(features), method or RECOMMENDED
    if load is None:
        if chosen in ONE_GRAPH:
            check_applicable("methods that predict on other graphs", f"--method {chosen}", save=save)
        classifier = create_classifier(chosen, scale_features, scale_weights, device, **settings)
    else:
        of_training = settings | {"method": method, "calibrate": calibrate, "save": save}
        of_training |= {"validation": validation, "labels_per_class": labels_per_class}
        _check_no_training(scale_features, scale_weights, reading, **of_training)
        classifier = load_classifier(load, device)
    graph = load_graph(
        source,
        labels,
        features,
        directed,
        largest_component,
        reading,
        scale=scale_features,
        n_neighbours=n_neighbours,
        encoder=classifier.feature_encoder_,
    )
    _check_features(graph, chosen, is_saved=load is not None)
    if load is None:
        needs_validation = {"--method sbm-gcn": method == "sbm-gcn"}
        needs_validation |= {"--n-rounds validation": n_rounds == "validation", "--calibrate": calibrate}
        split, root = _split(graph, name, labels_per_class, validation, seed, needs_validation)
        predictions = _train(classifier, graph, split, child(root, TrialSeeds.METHOD), calibrate=calibrate)
        results = sources.describe_run(name, method=chosen, seed=seed)
    else:
        predictions = _apply_saved(classifier, graph)
        results = sources.describe_run(name, classifier=load.name)
    results |= predictions.summarise(classifier)
    if load is not None or sources.is_dataset(name):
        results |= predictions.score(graph, is_saved=load is not None)
    if out is not None:
        predictions.write(out, spreadsheet=spreadsheet)
    if save is not None:
        classifier.save(save)
    if json_:
        print_json(results)
        return
    _print_results(results, graph)
    print_written(out, "table of predictions", option="--out FILE")
    print_written(save, "classifier")


def _check_no_training(
    scale_features: ScaleFeatures, scale_weights: ScaleWeights, reading: ReadingOptions, **of_training: object
) -> None:
    """Raise an error if options of training were given beside --load."""
    scalings = {"scale_features": scale_features != "auto", "scale_weights": scale_weights != "auto"}
    ignored = reading.ignore_columns or None
    check_applicable(
        "training", "--load, which trains nothing", **scalings, ignore_column=ignored, **of_training
    )


def _check_features(graph: Graph, method: Method, *, is_saved: bool) -> None:
    """Raise an error if a graph has no features and the method needs some."""
    if graph.features is None and method not in WITHOUT_FEATURES:
        other = "" if is_saved else ", or --method label-propagation, which uses none"
        raise InputError(
            f"the graph must have features to be classified; got none. Give --features FILE{other}."
        )


class _Predictions(NamedTuple):
    """The table of all nodes, the nodes that are reported, and what is said about the training."""

    table: dict[str, NDArray[Any]]
    nodes: NDArray[np.int64]
    details: dict[str, Any]

    def summarise(self, classifier: Classifier) -> dict[str, Any]:
        """Return how often each class is predicted, and the most uncertain predictions."""
        predicted, total = self.table["predicted"], self.table["total_uncertainty"]
        most_uncertain = self.nodes[np.argsort(-total[self.nodes], kind="stable")][:N_SHOWN]
        counts = Counter(predicted[self.nodes].tolist())
        temperature = {} if classifier.temperature_ == 1 else {"temperature": classifier.temperature_}
        return self.details | {
            **temperature,
            "predicted": len(self.nodes),
            "classes": {str(name): counts[name] for name in classifier.classes_.tolist()},
            "most_uncertain": [
                {
                    "id": self.table["id"][node].item(),
                    "predicted": predicted[node].item(),
                    "probability": float(self.table[f"p_{predicted[node]}"][node]),
                    **{kind: float(self.table[f"{kind}_uncertainty"][node]) for kind in UNCERTAINTIES},
                }
                for node in most_uncertain
            ],
        }

    def score(self, graph: Graph, *, is_saved: bool) -> dict[str, float]:
        """Return the accuracy on nodes that have a label, if there are any."""
        if graph.labels is None:
            return {}
        scored = self.nodes[graph.labels[self.nodes] != UNLABELLED]
        if not len(scored):
            return {}
        if is_saved:
            log_decision(
                "accuracy: that of all labelled nodes, among them the training nodes, if the classifier was "
                "trained on this graph."
            )
        is_correct = (self.table["predicted"] == graph.named_labels())[scored]
        return {"accuracy": float(is_correct.mean())}

    def write(self, path: Path, *, spreadsheet: bool) -> None:
        """Write the rows of the reported nodes."""
        columns = {name: column[self.nodes] for name, column in self.table.items()}
        write_table(path, columns, spreadsheet=spreadsheet)


def _train(
    classifier: Classifier, graph: Graph, split: NodeSplit, rng: SeedSequence, *, calibrate: bool
) -> _Predictions:
    """Return the predictions of the test nodes by a classifier that is trained here."""
    with show_training("training networks"):
        classifier.fit(graph, split.train, validation=split.validation, rng=rng)
    if calibrate:
        classifier.calibrate()
    sizes = {"train": len(split.train), "validation": len(split.validation)}
    return _Predictions(classifier.table(), split.test, sizes | _describe_training(classifier))


def _describe_training(classifier: Classifier) -> dict[str, Any]:
    """Return what a classifier says about its training; of self-training, about its rounds."""
    from nodecopy.classify import SelfTraining

    details = classifier.prediction_.details
    if not isinstance(classifier, SelfTraining):
        return details
    accuracy = details.get("round_accuracy")
    rounds = {
        "n_rounds": classifier.n_rounds,
        "round": details["pseudo_label_rounds"],
        "chosen_by": "last round" if accuracy is None else "validation nodes",
        "validation_accuracy": accuracy,
        "share": details["share"],
        "balance": details["balance"],
        "base_weight": details["base_weight"],
        "pseudo_labels": dict(zip(map(str, classifier.classes_), details["pseudo_labels"], strict=True)),
    }
    return {"self_training": rounds}


def _apply_saved(classifier: Classifier, graph: Graph) -> _Predictions:
    """Return the predictions of all nodes by a classifier that was trained before."""
    return _Predictions(classifier.table(graph), np.arange(graph.n_nodes), {})


def _split(
    graph: Graph,
    source: str,
    labels_per_class: int | None,
    validation: float | None,
    seed: int,
    needs_validation: dict[str, bool],
) -> tuple[NodeSplit, SeedSequence]:
    """Return training, validation and test nodes, and the root of the seeds."""
    if sources.is_dataset(source):
        got = f"the dataset {source!r}, which has validation nodes"
        check_applicable("files", got, validation=validation)
        per_class = node_splits.LABELS_PER_CLASS if labels_per_class is None else labels_per_class
        split, root = node_splits.split_as_in_experiments(graph, source, per_class, seed)
        way_out = f"Give fewer --labels-per-class than {per_class}."
    else:
        got = "a file, whose labelled nodes are all training nodes"
        check_applicable("datasets", got, labels_per_class=labels_per_class)
        root, way_out = seed_sequence(seed), "Give --validation SHARE."
        split = node_splits.split_file(graph, validation or 0.0, child(root, TrialSeeds.SPLIT))
    for name, is_given in needs_validation.items():
        if is_given and not len(split.validation):
            raise InputError(f"{name} needs validation nodes; got none. {way_out}")
    return split, root


def _print_results(results: dict[str, Any], graph: Graph) -> None:
    origin = [f"{key} {results[key]}" for key in ("classifier", "method", "seed") if key in results]
    print_note(f"{graph!r}, {', '.join(origin)}")
    keys = [
        key
        for key in ("train", "validation", "temperature", "predicted", "accuracy", "rounds")
        if key in results
    ]
    print_table(keys, [[results[key] for key in keys]])
    is_self_trained = "self_training" in results
    print_title("predicted classes" + ", and pseudo-labels that training used" * is_self_trained)
    columns = {"class": results["classes"].keys(), "nodes": results["classes"].values()}
    if is_self_trained:
        columns["pseudo-labels"] = results["self_training"]["pseudo_labels"].values()
    print_table(list(columns), zip(*columns.values(), strict=True))
    print_title("most uncertain predictions (uncertainty in nats)")
    rows = [
        row | {"id": str(row["id"]), "predicted": str(row["predicted"])} for row in results["most_uncertain"]
    ]
    print_table(list(rows[0]), [list(row.values()) for row in rows])

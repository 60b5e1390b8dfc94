"""Graphs and interactions of datasets or files, ids, and splits of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import SeedSequence

import nodecopy
from nodecopy import datasets
from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import check_unique
from nodecopy._core.files import reading as reading_file
from nodecopy._core.imports import check_name, suggest
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, generator, seed_sequence
from nodecopy.cli import options as opt
from nodecopy.cli.output import show_status
from nodecopy.datasets import Split, label_split
from nodecopy.datasets.splits import hold_out
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds, trial_seed
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions
from nodecopy.io import FeatureEncoder, is_table, read_graph, read_interactions
from nodecopy.io.columns import guess_kind
from nodecopy.io.tables import read_names


def is_dataset(source: str) -> bool:
    """Return whether a source names a dataset; if not, it must be a file."""
    if source in datasets.names():
        return True
    if not Path(source).exists() and not Path(source).suffix:
        check_name(source, datasets.names(), "a source that is not a file")
    return False


def load_graph(source: str, options: opt.GraphOptions, encoder: FeatureEncoder | None = None) -> Graph:
    """Load the graph of a dataset or of a file."""
    if is_dataset(source):
        names = ("labels", "features", "directed", "ignore_columns", *options.reader_parameters)
        opt.check_applicable("files", f"the dataset {source!r}", **options.given(*names))
        with show_status(f"loading {source}"):
            graph = datasets.load(source, largest_component=options.largest_component)
        if not isinstance(graph, Graph):
            raise InputError(f"the source must be a graph for this command; {source} holds interactions.")
        return graph
    if options.features is None:
        opt.check_applicable("--features FILE", "no table of features", **options.given("ignore_columns"))
    elif encoder is None:
        encoder = FeatureEncoder(options.ignore_columns or ())
    tables: dict[str, Any] = {"labels": options.labels, "features": options.features, "encoder": encoder}
    with show_status(f"reading {Path(source).name}"):
        graph = read_graph(source, **tables, directed=options.directed or None, **options.parameters())
    if not graph.n_nodes:
        raise InputError(f"{source} must hold at least one node; it holds none.")
    return graph.largest_component() if options.largest_component else graph


def load_training_graph(
    source: str | None,
    options: opt.TrainingGraphOptions,
    encoder: FeatureEncoder | None = None,
    settings: dict[str, Any] | None = None,
) -> Graph:
    """Load a graph, or build one from features, by default with the given settings."""
    features = options.features
    if features is None and source is not None and _holds_features(source, options):
        features, source = Path(source), None
    if source is not None:
        got = f"the dataset {source!r}" if is_dataset(source) else "edges"
        opt.check_applicable("features without edges", got, n_neighbours=options.n_neighbours)
        return load_graph(source, options, encoder)
    if features is None:
        raise InputError("a source must be given: a dataset, a file of edges or --features FILE; got none.")
    from nodecopy.features import read_feature_graph

    of_edges = ["directed", "largest_component", "source", "target", "weight", "decimal", "duplicates"]
    opt.check_applicable("edges", "features without edges", **options.given(*of_edges, "allow_isolated"))
    defaults = {"n_neighbours": opt.N_NEIGHBOURS, "scale": options.scale_features} | (settings or {})
    return read_feature_graph(
        features,
        labels=options.labels,
        n_neighbours=options.n_neighbours or defaults["n_neighbours"],
        scale=defaults["scale"],
        encoder=encoder or FeatureEncoder(options.ignore_columns or ()),
        header=options.header,
        id=options.id,
        label=options.label,
    )


def _holds_features(source: str, options: opt.GraphOptions) -> bool:
    if is_dataset(source) or not Path(source).is_file() or not is_table(source):
        return False
    if options.source or options.target:
        return False
    with reading_file(source) as path:
        has_labels = options.label is not None and options.label in read_names(path)
        return has_labels or guess_kind(path, id=options.id) in ("labels", "features")


def load_interactions(source: str, options: opt.InteractionOptions) -> Interactions:
    """Load the interactions of a dataset or of a file."""
    if not is_dataset(source):
        with show_status(f"reading {Path(source).name}"):
            interactions = read_interactions(source, **options.parameters())
        if not interactions.n_interactions:
            raise InputError(f"{source} must hold at least one interaction; it holds none.")
        return interactions
    opt.check_applicable("files", f"the dataset {source!r}", **options.given(*options.reader_parameters))
    with show_status(f"loading {source}"):
        loaded = datasets.load(source)
    if not isinstance(loaded, Interactions):
        raise InputError(f"the source must hold interactions for this command; {source} is a graph.")
    return loaded


def parse_nodes(graph: Graph, nodes: str) -> Ints:
    """Return the positions of the nodes that ``--nodes`` gives."""
    positions = parse_ids(nodes, graph.node_ids, "--nodes")
    check_unique(graph.node_ids[positions], "--nodes")
    return positions


def parse_ids(text: str, ids: Array, option: str) -> Ints:
    """Return the positions of ids, separated by commas or in a file."""
    words, names = text.split(","), set(map(str, ids.tolist()))
    if len(words) == 1 and text not in names and Path(text).is_file():
        with reading_file(text) as path:
            words = path.read_text(encoding="utf-8").splitlines()
    named = [word.strip() for word in words if word.strip()]
    if not named:
        raise InputError(f"{option} must name at least one id; got {text!r}.")
    return find_ids(named, ids, option)


def find_ids(words: Iterable[str], ids: Array, option: str) -> Ints:
    """Return the positions of ids; an error names ids close to an unknown one."""
    position = {str(name): number for number, name in enumerate(ids.tolist())}
    for word in words:
        if word not in position:
            kind, hint = option.strip("-").removesuffix("s"), suggest(word, position)
            raise InputError(f"{option} must hold ids of {kind}s; got {word!r}, which is none.{hint}")
    return np.array([position[word] for word in words], np.int64)


def describe_run(source: str | Path, **settings: Any) -> dict[str, Any]:
    """Return the version, the source and the settings, for JSON."""
    return {"nodecopy": nodecopy.__version__, "source": Path(source).name, **settings}


LABELS_PER_CLASS, N_VALIDATION, N_TEST = 20, 500, 1000  # nodes of a trial of the experiments

NodeSplit = Split[Ints]


def split_as_in_experiments(
    graph: Graph, dataset: str, labels_per_class: int | None, seed: int
) -> tuple[NodeSplit, SeedSequence]:
    """Return the nodes of trial 0 of ``nodecopy reproduce``, fewer if necessary, and its seed sequence."""
    n_validation, n_test, is_default = N_VALIDATION, N_TEST, labels_per_class is None
    labels_per_class = labels_per_class or LABELS_PER_CLASS
    if graph.label_codes is not None:
        sizes = np.unique(graph.label_codes[graph.label_codes != UNLABELLED], return_counts=True)[1]
        if is_default and labels_per_class >= sizes.min() > 1:
            labels_per_class = int(sizes.min()) // 2
            reason = f"half of the smallest class of {dataset}"
            log_decision(f"{labels_per_class} training nodes of each class, {reason}.", "labels_per_class")
        if labels_per_class >= sizes.min():
            low = f"{sizes.min()}, the labelled nodes of the smallest class of {dataset}"
            raise InputError(f"--labels-per-class must be below {low}; got {labels_per_class}.")
        n_rest = int(sizes.sum()) - labels_per_class * len(sizes)
        n_validation = min(N_VALIDATION, n_rest // 3)
        n_test = min(N_TEST, n_rest - n_validation)
        if n_validation < N_VALIDATION or n_test < N_TEST:
            log_decision(
                f"{n_validation} validation nodes and {n_test} test nodes, since {dataset} has {n_rest} "
                "labelled nodes outside training."
            )
    root = trial_seed(seed, dataset, 0, labels=labels_per_class)
    rng = child(root, TrialSeeds.SPLIT)
    return label_split(graph.label_codes, labels_per_class, n_validation, n_test, rng=rng), root


def split_for_attack(graph: Graph, source: str, seed: int) -> tuple[NodeSplit, SeedSequence]:
    """Return training nodes, and the nodes that may be attacked (``test``)."""
    if graph.label_codes is None:
        raise InputError("the graph must have labels for this command; got none. Give --labels FILE.")
    labelled = np.flatnonzero(graph.label_codes != UNLABELLED)
    n_needed = LABELS_PER_CLASS * len(np.unique(graph.label_codes[labelled])) + N_VALIDATION + N_TEST
    if is_dataset(source) and len(labelled) >= n_needed:
        return split_as_in_experiments(graph, source, None, seed)
    return Split(labelled, np.zeros(0, np.int64), labelled), seed_sequence(seed)


def split_file(graph: Graph, validation_share: float, seed: SeedSequence) -> NodeSplit:
    """Split labelled nodes for training and validation; the others are test nodes."""
    if graph.label_codes is None:
        raise InputError("the graph must have labels to learn from; got none. Give --labels FILE.")
    unlabelled = np.flatnonzero(graph.label_codes == UNLABELLED)
    if not len(unlabelled):
        raise InputError("some nodes must have no label, to be predicted; every node has one.")
    validation = hold_out(graph.label_codes, validation_share, generator(seed))
    labelled = np.flatnonzero(graph.label_codes != UNLABELLED)
    if validation_share and not len(validation):
        got = f"{validation_share:g} of the labels of a class gives none"
        raise InputError(f"--validation must give validation nodes; {got}. Leave it out.")
    return Split(np.setdiff1d(labelled, validation), validation, unlabelled)

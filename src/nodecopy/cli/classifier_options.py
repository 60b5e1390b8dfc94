"""Options of the commands that train a classifier, and the classifier and the graph that they describe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from nodecopy._core.formats import reading as reading_file
from nodecopy._core.saving import load
from nodecopy.cli import sources
from nodecopy.cli.options import at_least, check_applicable
from nodecopy.cli.reading_options import ReadingOptions
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import FeatureEncoder, is_table
from nodecopy.io.table_files import read_names
from nodecopy.io.table_kinds import guess_kind

if TYPE_CHECKING:
    from nodecopy.classify import Classifier

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

"""The graph or the interactions that a command reads: the name of a dataset, or a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

import nodecopy
from nodecopy import datasets
from nodecopy._core.checks import check_unique
from nodecopy._core.files import reading as reading_file
from nodecopy._core.imports import check_name
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, generator, seed_sequence
from nodecopy.cli.options import check_applicable
from nodecopy.cli.output import show_status
from nodecopy.datasets import Split, label_split
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds, trial_seed
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions
from nodecopy.io import FeatureEncoder, read_graph, read_interactions
from nodecopy.io.edge_lists import Duplicates

# Options of all commands that read files: headers, columns, duplicates and isolated nodes.


Kind = Literal["graph", "interactions"]
PANEL = "Tables in files"


@dataclass(frozen=True)
class ReadingOptions:
    """How tables are read: parameters of ``read_graph`` and ``read_interactions``."""

    header: bool | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    id: str | None = None
    label: str | None = None
    duplicates: Duplicates = "max"
    allow_isolated: bool = False
    ignore_columns: list[str] | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    lists: bool | None = None

    def of(self, kind: Kind) -> dict[str, Any]:
        """Return the parameters of the reader of graphs, but for its encoder, or of interactions."""
        names = ("header", *READER_PARAMETERS[kind])
        return {name: getattr(self, name) for name in names if name != "ignore_columns"}

    def given(self, *kinds: Kind) -> dict[str, Any]:
        """Return the options that were given, those of some kinds only or all."""
        names = [name for kind in kinds for name in READER_PARAMETERS[kind]] or [
            field.name for field in fields(self)
        ]
        default = ReadingOptions()
        return {
            _option(name): True for name in names if getattr(self, name) not in (getattr(default, name), [])
        }


READER_PARAMETERS: dict[Kind, tuple[str, ...]] = {
    "graph": ("source", "target", "weight", "id", "label", "duplicates", "allow_isolated", "ignore_columns"),
    "interactions": ("user", "item", "rating", "time", "lists"),
}
HELP = {
    "source": "Name of the column of sources in the table of edges.",
    "target": "Name of the column of targets in the table of edges.",
    "weight": "Name of the column of weights in the table of edges, or '' for none.",
    "id": "Name of the column of ids in the tables of labels and features.",
    "label": "Name of the column of labels (without --labels, in the table of features), or of a node "
    "attribute of a .graphml, .gexf or .json file.",
    "duplicates": "What an edge that is listed more than once gets: the largest weight, the sum, an error.",
    "allow_isolated": "Add ids of labels and features without edges as isolated nodes.",
    "ignore_columns": "A column of the table of features to leave out. May be repeated.",
    "user": "Name of the column of users in the table of interactions.",
    "item": "Name of the column of items in the table of interactions.",
    "rating": "Name of the column of ratings in the table of interactions, or '' for none.",
    "time": "Name of the column of times in the table of interactions, or '' for none.",
    "lists": "Whether each line of a .txt file holds a user and that user's items. (default: decided by what "
    "is in it)",
}
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of each table is a header. (default: decided by what is in it)",
        rich_help_panel=PANEL,
    ),
]


def reads(*kinds: Kind) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of some kinds of files.

    The command gets them as one argument, ``reading``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        taken = {parameter.name for parameter in own}
        options = {"header_row": ("header", Header, None)}
        for name in (name for kind in kinds for name in READER_PARAMETERS[kind]):
            if name == "ignore_columns" and "features" not in taken:
                continue
            default = getattr(ReadingOptions(), name)
            options[f"{name}_column"] = (name, _annotate(name, is_free=name not in taken), default)

        @wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(parameter) for parameter, (name, *_) in options.items()}
            command(**arguments, reading=ReadingOptions(**values))

        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(parameter, keyword, default=default, annotation=annotation)
            for parameter, (_, annotation, default) in options.items()
        ]
        parameters = [*(parameter.replace(kind=keyword) for parameter in own), *added]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _option(name: str) -> str:
    """Return the name of an option; ``--user`` of recommend is the id of a user."""
    return {"user": "user_column", "ignore_columns": "ignore_column"}.get(name, name)


def _annotate(name: str, *, is_free: bool) -> Any:
    kinds = {"duplicates": Duplicates, "allow_isolated": bool, "ignore_columns": list[str] | None}
    kinds["lists"] = bool | None
    kind: Any = kinds.get(name, str | None)
    names = [f"--{_option(name).replace('_', '-')}"]
    if name == "lists":
        names = ["--lists/--no-lists"]
    if name == "user" and is_free:
        names.append("--user")
    metavar = "COLUMN" if kind in (str | None, list[str] | None) else None
    panel = None if name == "ignore_columns" else PANEL  # it belongs to --features
    return Annotated[kind, typer.Option(*names, help=HELP[name], metavar=metavar, rich_help_panel=panel)]


DEFAULT = ReadingOptions()


def is_dataset(source: str) -> bool:
    """Return whether a source names a dataset; neither a name nor a file is an error with close names."""
    if source in datasets.names():
        return True
    if not Path(source).exists() and not Path(source).suffix:
        check_name(source, datasets.names(), "a source that is not a file")
    return False


def load_graph(
    source: str,
    labels: Path | None,
    features: Path | None,
    directed: bool,
    largest_component: bool,
    reading: ReadingOptions = DEFAULT,
    encoder: FeatureEncoder | None = None,
) -> Graph:
    """Load the graph of a dataset or of a file; features are encoded as the encoder was fitted, if given."""
    if is_dataset(source):
        got, files = f"the dataset {source!r}", {"labels": labels, "features": features}
        check_applicable("files", got, **files, directed=directed, **reading.given("graph"))
        with show_status(f"loading {source}"):
            graph = datasets.load(source, largest_component=largest_component)
        if not isinstance(graph, Graph):
            raise InputError(f"the source must be a graph for this command; {source} holds interactions.")
        return graph
    if features is None:
        check_applicable(
            "--features FILE", "no table of features", ignore_column=reading.ignore_columns or None
        )
    elif encoder is None:
        encoder = FeatureEncoder(reading.ignore_columns or ())
    tables: dict[str, Any] = {"labels": labels, "features": features, "encoder": encoder}
    with show_status(f"reading {Path(source).name}"):
        graph = read_graph(source, **tables, directed=True if directed else None, **reading.of("graph"))
    if not graph.n_nodes:
        raise InputError(f"{source} must hold at least one node; it holds none.")
    return graph.largest_component() if largest_component else graph


def load_interactions(source: str, reading: ReadingOptions = DEFAULT) -> Interactions:
    """Load the interactions of a dataset or of a file."""
    if not is_dataset(source):
        with show_status(f"reading {Path(source).name}"):
            interactions = read_interactions(source, **reading.of("interactions"))
        if not interactions.n_interactions:
            raise InputError(
                f"{source} must hold at least one interaction; it holds none (a rating of zero is none)."
            )
        return interactions
    check_applicable("files", f"the dataset {source!r}", **reading.given("interactions"))
    with show_status(f"loading {source}"):
        loaded = datasets.load(source)
    if not isinstance(loaded, Interactions):
        raise InputError(f"the source must hold interactions for this command; {source} is a graph.")
    return loaded


def parse_nodes(graph: Graph, nodes: str) -> NDArray[np.int64]:
    """Return the positions of nodes given as ids separated by commas, or as a file with one id per line.

    A text that is an id is never taken for the name of a file.
    """
    positions = parse_ids(nodes, graph.node_ids, "--nodes")
    check_unique(graph.node_ids[positions], "--nodes")
    return positions


def parse_ids(text: str, ids: NDArray[Any], option: str, unknown: str = "error") -> NDArray[np.int64]:
    """Return the positions of ids that are separated by commas, or in a file with one id per line.

    A text that is an id is never taken for the name of a file. With ``unknown="ignore"``, ids that are not
    in ``ids`` are left out.
    """
    words, names = text.split(","), set(map(str, ids.tolist()))
    if len(words) == 1 and text not in names and Path(text).is_file():
        with reading_file(text) as path:
            words = path.read_text(encoding="utf-8").splitlines()
    named = [word.strip() for word in words if word.strip()]
    if not named:
        kind = option.strip("-").removesuffix("s")
        raise InputError(f"{option} must name at least one {kind}; got {text!r}.")
    if unknown == "ignore":
        existing = [word for word in named if word in names]
        if len(existing) < len(named):
            log_decision(f"{option}: {len(named) - len(existing)} of {len(named)} ids are not in the source.")
        named = existing
    return find_ids(named, ids, option)


def find_ids(words: Iterable[str], ids: NDArray[Any], option: str) -> NDArray[np.int64]:
    """Return the positions of ids that an option gives as text; an unknown id is an error with close ones."""
    position = {str(name): number for number, name in enumerate(ids.tolist())}
    for word in words:
        if word not in position:
            nearest = get_close_matches(word, position, n=3, cutoff=0.5)
            example = next(iter(position), None)
            hint = "" if example is None else f" An id is, for example, {example}."
            if nearest:
                hint = f" Did you mean {' or '.join(nearest)}?"
            kind = option.strip("-").removesuffix("s")
            raise InputError(f"{option} must hold ids of {kind}s; got {word!r}, which is none.{hint}")
    return np.array([position[word] for word in words], np.int64)


def describe_run(source: str | Path, **settings: Any) -> dict[str, Any]:
    """Return what a command writes about itself: the version, the source and the settings."""
    return {"nodecopy": nodecopy.__version__, "source": Path(source).name, **settings}


# The training, validation and test nodes of commands.


LABELS_PER_CLASS, N_VALIDATION, N_TEST = 20, 500, 1000
"""Nodes of a trial of the experiments."""
TEST_SHARE = 0.2
"""Share of a file's labelled nodes that are the test nodes of a report."""

NodeSplit = Split[NDArray[np.int64]]


def split_as_in_experiments(
    graph: Graph, dataset: str, labels_per_class: int, seed: int
) -> tuple[NodeSplit, SeedSequence]:
    """Return the nodes and the seed sequence of trial 0 of ``nodecopy reproduce``."""
    root = trial_seed(seed, dataset, 0, labels=labels_per_class)
    rng = child(root, TrialSeeds.SPLIT)
    n_validation, n_test = _scale_to_dataset(graph, dataset, labels_per_class)
    return label_split(graph.labels, labels_per_class, n_validation, n_test, rng=rng), root


def _scale_to_dataset(graph: Graph, dataset: str, labels_per_class: int) -> tuple[int, int]:
    """Return the numbers of validation and test nodes: those of the experiments, or fewer, one to two."""
    if graph.labels is None:
        return N_VALIDATION, N_TEST
    sizes = np.unique(graph.labels[graph.labels != UNLABELLED], return_counts=True)[1]
    if labels_per_class >= sizes.min():
        raise InputError(
            f"--labels-per-class must be below {sizes.min()}, the labelled nodes of the smallest class of "
            f"{dataset}; got {labels_per_class}."
        )
    n_rest = int(sizes.sum()) - labels_per_class * len(sizes)
    n_validation = min(N_VALIDATION, n_rest // 3)
    n_test = min(N_TEST, n_rest - n_validation)
    if n_validation < N_VALIDATION or n_test < N_TEST:
        log_decision(
            f"{n_validation} validation nodes and {n_test} test nodes, since {dataset} has {n_rest} labelled "
            "nodes outside training."
        )
    return n_validation, n_test


def split_for_attack(graph: Graph, source: str, seed: int) -> tuple[NodeSplit, SeedSequence]:
    """Return the training nodes and the nodes that may be attacked or defended (``test``).

    For a dataset, these are the nodes of trial 0 with 20 labels per class. For a file, or a dataset with too
    few labels for that, every labelled node is both.
    """
    if graph.labels is None:
        raise InputError(
            "the graph must have labels for this command; got none. Give --labels FILE or --label COLUMN."
        )
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    n_needed = LABELS_PER_CLASS * len(np.unique(graph.labels[labelled])) + N_VALIDATION + N_TEST
    if is_dataset(source) and len(labelled) >= n_needed:
        return split_as_in_experiments(graph, source, LABELS_PER_CLASS, seed)
    return Split(labelled, np.zeros(0, np.int64), labelled), seed_sequence(seed)


def split_file(graph: Graph, validation_share: float, seed: SeedSequence) -> NodeSplit:
    """Split labelled nodes into training and validation nodes; unlabelled nodes are the test nodes."""
    if graph.labels is None:
        raise InputError(
            "the graph must have labels to learn from; got none. Give --labels FILE or --label COLUMN."
        )
    unlabelled = np.flatnonzero(graph.labels == UNLABELLED)
    if not len(unlabelled):
        raise InputError(
            "some nodes must have no label, to be predicted; every node has one. Leave some out of --labels."
        )
    validation = _hold_out(graph.labels, validation_share, generator(seed))
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    if validation_share and not len(validation):
        most = np.unique(graph.labels[labelled], return_counts=True)[1].max()
        raise InputError(
            f"--validation must be a share that gives validation nodes; {validation_share:g} of the labels "
            f"of a class, which are at most {most}, gives none. Leave it out, or label more nodes."
        )
    return Split(np.setdiff1d(labelled, validation), validation, unlabelled)


def split_for_report(graph: Graph, source: str, seed: int) -> tuple[NodeSplit, SeedSequence]:
    """Return the training nodes and the test nodes, by which predictions are evaluated.

    For a dataset, these are the nodes of trial 0 with 20 labels per class. For a file, or a dataset with too
    few labels for that, one labelled node in five of each class is a test node.
    """
    split, root = split_for_attack(graph, source, seed)
    if len(split.validation):
        return split, root
    assert graph.labels is not None
    test = _hold_out(graph.labels, TEST_SHARE, generator(child(root, TrialSeeds.SPLIT)))
    return Split(np.setdiff1d(split.train, test), split.validation, test), root


def cross_validation_folds(
    labels: NDArray[np.int64], n_folds: int, rng: Generator
) -> list[NDArray[np.int64]]:
    """Return the test nodes of each fold, which leave training nodes of every class.

    The nodes of a class are distributed evenly over the folds. The single node of a class is a training node
    in all of them.
    """
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    n_tested = 0
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        for node in nodes.tolist() if len(nodes) > 1 else []:
            folds[n_tested % n_folds].append(node)
            n_tested += 1
    return [np.sort(np.array(fold, np.int64)) for fold in folds if fold]


def _hold_out(labels: NDArray[np.int64], share: float, rng: Generator) -> NDArray[np.int64]:
    """Draw a share of the nodes of each class, leaving at least one."""
    parts = [np.zeros(0, np.int64)]
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        parts.append(nodes[: min(round(share * len(nodes)), len(nodes) - 1)])
    return np.sort(np.concatenate(parts))

"""The graph or the interactions that a command reads: the name of a dataset, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nodecopy
from nodecopy import datasets
from nodecopy._core.formats import reading as reading_file
from nodecopy._core.lookup import check_name
from nodecopy._core.notices import log_decision
from nodecopy._core.validation import check_unique
from nodecopy.cli.options import check_applicable
from nodecopy.cli.reading_options import ReadingOptions
from nodecopy.cli.terminal import show_status
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import FeatureEncoder, read_graph, read_interactions

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

"""What commands take: the name of a dataset, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from nodecopy import datasets
from nodecopy._core.formats import reading
from nodecopy._core.lookup import check_name
from nodecopy._core.validation import check_unique
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import read_graph, read_interactions

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A dataset (see 'nodecopy datasets list') or a file: .csv .tsv .txt .parquet .npz .graphml. "
        "A table's first row is a header if it reads source,target or the like, or stands above numbers."
    ),
]
Labels: TypeAlias = Annotated[
    Path | None, typer.Option(help="Table of node id and label; its ids may include isolated nodes.")
]
Features: TypeAlias = Annotated[
    Path | None, typer.Option(help="Table of node id and features, or .npz/.npy with rows in node order.")
]
Directed: TypeAlias = Annotated[bool, typer.Option("--directed", help="Edges of the file have a direction.")]
LargestComponent: TypeAlias = Annotated[
    bool, typer.Option("--largest-component", help="Use the largest connected component only.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def load_graph(
    source: str, labels: Path | None, features: Path | None, directed: bool, largest_component: bool
) -> Graph:
    """The graph behind a dataset's name or a file."""
    if is_dataset(source):
        if labels is not None or features is not None or directed:
            raise InputError(f"--labels, --features and --directed go with a file; {source!r} is a dataset.")
        graph = datasets.load(source, largest_component=largest_component)
        if not isinstance(graph, Graph):
            raise InputError(f"{source} must be a graph for this command; it holds interactions.")
        return graph
    graph = read_graph(source, labels=labels, features=features, directed=True if directed else None)
    if not graph.n_nodes:
        raise InputError(f"{source} must hold at least one node; it holds none.")
    return graph.largest_component() if largest_component else graph


def parse_nodes(graph: Graph, ids: str) -> NDArray[np.int64]:
    """The numbers of nodes whose ids stand in a text with commas between, or one a line in a file.

    What is an id is never taken for the name of a file.
    """
    words = ids.split(",")
    if len(words) == 1 and ids not in set(map(str, graph.node_ids.tolist())) and Path(ids).is_file():
        with reading(ids) as path:
            words = path.read_text(encoding="utf-8").splitlines()
    wanted = [word.strip() for word in words if word.strip()]
    if not wanted:
        raise InputError(f"--nodes must name at least one node; got {ids!r}.")
    numbers = find_ids(wanted, graph.node_ids, "--nodes")
    check_unique(graph.node_ids[numbers], "--nodes")
    return numbers


def find_ids(words: Iterable[str], ids: NDArray[Any], option: str) -> NDArray[np.int64]:
    """Where ids stand that an option was given as text; one that is not there answers with near ones."""
    place = {str(name): number for number, name in enumerate(ids.tolist())}
    found = []
    for word in words:
        if word not in place:
            nearest = get_close_matches(word, place, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
            what = option.strip("-").removesuffix("s")
            raise InputError(f"{option} must hold ids of {what}s; got {word!r}, which is none.{hint}")
        found.append(place[word])
    return np.array(found, np.int64)


def load_interactions(source: str) -> Interactions:
    """The interactions behind a dataset's name or a file."""
    if not is_dataset(source):
        log = read_interactions(source)
        if not log.n_interactions:
            raise InputError(f"{source} must hold at least one interaction; a rating of zero is none.")
        return log
    loaded = datasets.load(source)
    if not isinstance(loaded, Interactions):
        raise InputError(f"{source} must hold interactions for this command; it is a graph.")
    return loaded


def is_dataset(source: str) -> bool:
    """Whether a source names a dataset; what is neither that nor a file is an error with near names."""
    if source in datasets.names():
        return True
    if not Path(source).exists() and not Path(source).suffix:
        check_name(source, datasets.names(), "a source that is not a file")
    return False

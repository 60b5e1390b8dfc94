"""``nodecopy stats``: describe a graph, or compare it with samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from nodecopy._core.ids import find_positions
from nodecopy.cli import sources
from nodecopy.cli.terminal import format_value, print_json, print_table, show_progress
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import is_table, read_graph
from nodecopy.metrics import compare, statistics


def stats(
    source: sources.Source,
    labels: sources.Labels = None,
    directed: sources.Directed = False,
    largest_component: sources.LargestComponent = False,
    samples: Annotated[
        list[Path] | None,
        typer.Option(
            help="A sampled graph, or a folder of them as 'nodecopy sample' writes it; may be repeated."
        ),
    ] = None,
    path_length: Annotated[
        bool | None,
        typer.Option(
            "--path-length/--no-path-length", help="Mean shortest path; by default up to 10,000 nodes."
        ),
    ] = None,
    json_: sources.AsJson = False,
) -> None:
    """Compute structural statistics of a graph, or compare it with samples."""
    graph = sources.load_graph(source, labels, None, directed, largest_component)
    if samples:
        files = [file for path in samples for file in _sample_files(path)]
        comparison = compare(
            graph, show_progress(_read(files, graph), len(files), "reading"), path_length=path_length
        )
        if json_:
            print_json(comparison.to_dict())
        else:
            rows = [[row.name, *(format_value(value) for value in row[1:])] for row in comparison]
            print_table(["statistic", "observed", f"mean of {comparison.n_samples}", "deviation"], rows)
        return
    found = statistics(graph, path_length=path_length)
    if json_:
        print_json(found)
    else:
        print_table(["statistic", "value"], [[name, format_value(value)] for name, value in found.items()])


def _sample_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("sample-*") if file.is_file())
    if not files:
        raise InputError(f"--samples must name a graph or a folder with sample-* files; {path} has none.")
    return files


def _read(files: list[Path], observed: Graph) -> Iterator[Graph]:
    """Samples on the observed nodes; tables of edges know neither isolated nodes nor labels."""
    for file in files:
        if not file.exists():
            raise InputError(f"--samples must name graphs or folders of them; {file} does not exist.")
        if is_table(file):
            sample = read_graph(file, node_ids=observed.node_ids, directed=observed.directed)
        else:
            sample = read_graph(file)
            sample = sample.subgraph(
                find_positions(observed.node_ids, sample.node_ids, f"{file}: the observed graph")
            )
        yield observed.replace(adjacency=sample.adjacency, directed=sample.directed)

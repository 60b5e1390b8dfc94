"""``nodecopy stats``: structural statistics of a graph, or a comparison with samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodecopy._core.arrays import find_positions
from nodecopy._core.messages import mute_decisions
from nodecopy.cli import files as sources
from nodecopy.cli import options
from nodecopy.cli.files import ReadingOptions, reads
from nodecopy.cli.options import option
from nodecopy.cli.output import print_json, print_note, print_table, show_progress, show_status
from nodecopy.cli.sample import find_samples
from nodecopy.graph import Graph
from nodecopy.io import is_table, read_graph
from nodecopy.metrics import compare, statistics
from nodecopy.metrics.classification import warn_about_missing_labels
from nodecopy.metrics.structure import HEADS, LABEL_NAMES


@reads("graph")
def stats(
    source: options.Source,
    labels: options.Labels = None,
    directed: options.Directed = False,
    largest_component: options.LargestComponent = False,
    samples: list[Path] | None = option(
        "A sampled graph, or a folder that 'nodecopy sample' wrote, to compare the graph with. May "
        "be repeated."
    ),
    path_length: bool | None = option(
        "Compute the mean shortest path length. (default: for at most 10,000 nodes)"
    ),
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
) -> None:
    """Compute structural statistics of a graph, or compare it with samples.

    With --samples, low and high hold 95 % of the samples, and the p-value says how often a sample is as far
    out as the graph.

    Examples:
        nodecopy stats karate
        nodecopy stats edges.csv --labels labels.csv --samples samples
    """
    graph = sources.load_graph(source, labels, None, directed, largest_component, reading)
    warn_about_missing_labels(graph, LABEL_NAMES)
    if samples:
        files = [file for path in samples for file in find_samples(path)]
        sampled = show_progress(_read_samples(files, graph), len(files), "reading")
        comparison = compare(graph, sampled, path_length=path_length)
        if json_:
            print_json(comparison.to_dict())
        else:
            print_table(["statistic", "observed", f"mean of {comparison.n_samples}", *HEADS], comparison)
            for sentence in comparison.outside.values():
                print_note(sentence)
        return
    with show_status("computing statistics"):
        values = statistics(graph, path_length=path_length)
    if json_:
        print_json(values)
    else:
        print_table(["statistic", "value"], values.items())


def _read_samples(files: list[Path], observed: Graph) -> Iterator[Graph]:
    """Yield samples on the observed nodes; edge lists have neither isolated nodes nor labels."""
    for file in files:
        of_table: dict[str, Any] = {}
        if is_table(file):
            of_table = {"node_ids": observed.node_ids, "directed": observed.directed}
        with mute_decisions():
            sample = read_graph(file, **of_table)
        if not of_table:
            sample = sample.subgraph(
                find_positions(observed.node_ids, sample.node_ids, f"{file}: the observed graph")
            )
        yield observed.replace(adjacency=sample.adjacency, directed=sample.directed)

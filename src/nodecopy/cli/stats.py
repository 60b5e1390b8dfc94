"""``nodecopy stats``: structural statistics of a graph, or a comparison with samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodecopy._core.arrays import find_positions
from nodecopy._core.messages import mute_decisions
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_result, print_table, show_progress, show_status
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import is_table, read_graph
from nodecopy.metrics import compare, statistics
from nodecopy.metrics.classification import warn_about_missing_labels
from nodecopy.metrics.structure import LABEL_NAMES


def stats(
    source: opt.Source,
    samples: list[Path] | None = opt.reads("A sampled graph, or a folder of them. May be repeated."),
    json_: opt.AsJson = False,
    graph: opt.StructureOptions = opt.StructureOptions(),
) -> None:
    """Compute structural statistics of a graph, or compare it with samples.

    With --samples, low and high hold 95 % of the samples, and the p-value is the share of samples at least as
    far out as the graph.

    Examples:
        nodecopy stats karate
        nodecopy stats edges.csv --labels labels.csv --samples samples
    """
    observed = files.load_graph(source, graph)
    warn_about_missing_labels(observed, LABEL_NAMES)
    if samples:
        paths = [file for path in samples for file in _find_samples(path)]
        sampled = show_progress(_read_samples(paths, observed), len(paths), "reading")
        comparison = compare(observed, sampled)
        if json_:
            print_json(comparison.to_dict())
        else:
            print_result(comparison)
        return
    with show_status("computing statistics"):
        values = statistics(observed)
    if json_:
        print_json(values)
    else:
        print_table(["statistic", "value"], values.items())


def _find_samples(path: Path) -> list[Path]:
    if path.is_dir():
        samples = sorted(file for file in path.glob("sample-*") if file.is_file())
        if not samples:
            raise InputError(f"--samples must be a graph or a folder with sample-* files; {path} has none.")
        return samples
    if not path.exists():
        raise InputError(f"--samples must be graphs or folders of graphs; {path} does not exist.")
    return [path]


def _read_samples(paths: list[Path], observed: Graph) -> Iterator[Graph]:
    """Yield samples on the observed nodes; edge lists have no isolated nodes."""
    for path in paths:
        of_table: dict[str, Any] = {}
        if is_table(path):
            of_table = {"node_ids": observed.node_ids, "directed": observed.directed}
        with mute_decisions():
            sample = read_graph(path, **of_table)
        if not of_table:
            sample = sample.subgraph(
                find_positions(observed.node_ids, sample.node_ids, f"{path}: the observed graph")
            )
        yield observed.replace(adjacency=sample.adjacency, directed=sample.directed)

"""The report page, one self-contained HTML file, and its sections of graphs, statistics and results tables.

A section is a dictionary of plain values, which the page stores as JSON. Its headline is one sentence about
it; the headlines of all sections are here, with the format of their numbers and names.
"""

from __future__ import annotations

import csv
import html
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

import nodecopy
from nodecopy._core.arrays import IntArray, Ints
from nodecopy._core.checks import check_sequence, show
from nodecopy._core.files import PathLike, atomic_write
from nodecopy._core.messages import join_lines, warn_about_data
from nodecopy._core.random import Rng, generator
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.inference import BootstrapResult
from nodecopy.metrics.structure import Comparison, Row

Section = dict[str, Any]

MAX_NODES, MAX_EDGES = 3000, 15_000  # drawn of the observed graph. Samples have up to twice as many edges
RESTART_PROBABILITY = 0.15  # as in Leskovec and Faloutsos (2006), "Sampling from large graphs"
MAX_STEPS_WITHOUT_NEW_NODE = 100
MAP_SIZE = 10_000  # positions of nodes are integers from 0 to this
OBSERVED, FROM_SOURCE, FROM_TARGET = 1, 2, 4  # flags of a sampled edge; the others: whose donor has it
NUMBERS = ("mean", "std", "published", "published_std")
COLUMNS = {"experiment", "dataset", "score", "method", "verdict", *NUMBERS}
COLOUR = re.compile("#[0-9a-fA-F]{6}")
OPEN = "table2"  # the experiment whose table is open at first
DATASETS = {  # as papers write them
    **{"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed", "coauthor-cs": "Coauthor CS"},
    **{"citeseer-full": "Citeseer-full", "blogcatalog": "BlogCatalog", "gowalla": "Gowalla"},
    **{"amazon-photo": "Amazon Photo", "polblogs": "Polblogs", "bitcoin": "Bitcoin", "digits": "digits"},
    **{"ml-100k": "MovieLens 100k", "amazon-cds": "Amazon CDs", "amazon-beauty": "Amazon Beauty"},
    **{"yelp2018": "Yelp2018", "configuration": "configuration model", "weighted": "weighted blocks"},
    **{"sbm": "block model", "dc-sbm": "degree-corrected block model", "dot-product": "dot product graph"},
    **{"graphon": "graphon", "bipartite": "bipartite graph", "directed": "directed block model"},
    **{"erdos-renyi": "Erdős-Rényi graph", "planted-triangles": "planted triangles"},
    **{f"planted-{kind}": f"planted {kind}" for kind in ("communities", "bipartite", "directed", "weighted")},
}
SCRIPTS = (  # in the order in which they run; vendor/d3-subset.mjs describes how D3 is bundled
    *("vendor/d3.min.js", "drawing.js", "view_state.js", "downloads.js", "graph_painting.js", "graphs.js"),
    *("graph_details.js", "statistics.js", "links.js", "classification.js", "attack.js"),
    *("recommendations.js", "results.js", "page.js"),
)
MAX_NAMED = 3  # statistics that a sentence names
COUNTS = ("n_edges", "triangles", "n_components")
CORRECTIONS = (  # what corrects an attacked node, the ending of its verb, and the words of its failure
    ("copied neighbours", "", "do", "they give"),
    ("all evidence, the method of nodecopy defend,", "s", "does", "it gives"),
)
Summary = Mapping[str, Any]


def write_page(path: PathLike, title: str, sections: Sequence[Section], **settings: Any) -> None:
    """Write the page of some sections to an HTML file."""
    with atomic_write(path) as temporary:
        temporary.write_text(render_page(title, sections, **settings), encoding="utf-8")


def colour_style(colours: Sequence[str]) -> str:
    """Return CSS that sets the colours of the first classes."""
    for colour in check_sequence(colours, "colours", "a list of colours"):
        if not isinstance(colour, str) or not COLOUR.fullmatch(colour):
            raise InputError("colours", f"must be written as #rrggbb; got {show(colour)}.")
    return f":root:root:root{{{''.join(f'--class-{i}:{colour};' for i, colour in enumerate(colours))}}}"


def render_page(title: str, sections: Sequence[Section], *, origin: str = "", style: str = "") -> str:
    """Return the HTML of a page; ``origin`` is a note on the origin of the data."""
    data = {"title": title, "origin": origin, "version": nodecopy.__version__, "sections": list(sections)}
    return Template(_read_asset("page.html")).substitute(
        title=html.escape(join_lines(title)),
        style=_read_asset("style.css") + style,
        data=encode_json(data),
        licence=_read_asset("vendor/d3-LICENSE.txt").replace("--", "- -"),
        scripts="\n".join(f"<script>{_read_asset(name)}</script>" for name in SCRIPTS),
    )


def encode_json(data: Any) -> str:
    """Return ASCII JSON that cannot end the HTML element around it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&"})


def _read_asset(name: str) -> str:
    return (files("nodecopy.report") / "web" / name).read_text(encoding="utf-8")


class CopiedSample(NamedTuple):
    """A sampled graph and the donor of each node."""

    graph: Graph
    donors: IntArray


def copied_samples(model: NodeCopying[Graph], n_samples: int, seed: int) -> Iterator[CopiedSample]:
    """Yield the first samples of a fitted model with their donors."""
    for number, sample in enumerate(model.sample_many(n_samples, rng=seed)):
        yield CopiedSample(sample, model.draw_donors(rng=seed, sample=number))


def graphs_section(
    title: str,
    observed: Graph,
    samples: Mapping[str, CopiedSample],
    *,
    predicted: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    text: str = "",
    rng: Rng = 0,
) -> Section:
    """Return the section of the observed graph beside samples; only a part of large graphs is drawn."""
    if any(sample.graph.n_nodes != observed.n_nodes for sample in samples.values()):
        raise InputError("samples", f"must have the {observed.n_nodes} nodes of the observed graph.")
    from nodecopy._core.layout import compute_layout  # here, since it imports numba

    nodes = choose_nodes(observed, max_nodes=MAX_NODES, max_edges=MAX_EDGES, rng=rng)
    part = observed.subgraph(nodes)
    positions = np.rint(MAP_SIZE * compute_layout(part.undirected().adjacency, rng=rng)).astype(int)
    colours = []
    if observed.label_codes is not None:
        colours.append(_class_colours("label", observed.labels, nodes))
    if predicted is not None:
        colours.append(_class_colours("predicted class", np.asarray(predicted), nodes))
    if uncertainty is not None:
        colours.append({"name": "uncertainty", "values": round_all(np.asarray(uncertainty)[nodes])})
    first = {"title": "observed", "n_edges": observed.n_edges} | _encode_edges(_edge_pairs(part), len(nodes))
    counts = [(sample.graph.n_edges, _count_observed(sample.graph, observed)) for sample in samples.values()]
    return {
        "kind": "graphs",
        "title": title,
        "headline": graphs_headline(observed.n_edges, counts),
        "text": text,
        "n_nodes": observed.n_nodes,
        "directed": observed.directed,
        "ids": to_texts(part.node_ids),
        "x": positions[:, 0].tolist(),
        "y": positions[:, 1].tolist(),
        "colours": colours,
        "graphs": [first, *(_sample_data(name, sample, observed, nodes) for name, sample in samples.items())],
    }


def choose_nodes(graph: Graph, *, max_nodes: int, max_edges: int, rng: Rng = 0) -> IntArray:
    """Return the nodes to draw, ascending: the first ones of a random walk with restarts."""
    if graph.n_nodes <= max_nodes and graph.n_edges <= max_edges:
        return np.arange(graph.n_nodes)
    visited = _walk(graph.undirected(), min(max_nodes, graph.n_nodes), generator(rng))
    part = graph.subgraph(visited)
    # An edge is drawn as soon as the later of its ends is.
    later = np.maximum(part.rows.row_numbers, part.rows.indices)
    n_edges = np.cumsum(np.bincount(later, minlength=len(visited))) // (1 if graph.directed else 2)
    return np.sort(visited[: max(1, int(np.searchsorted(n_edges, max_edges, side="right")))])


def _walk(graph: Graph, n_visited: int, rng: Generator) -> IntArray:
    indptr, indices = graph.rows.indptr, graph.rows.indices
    visited: dict[int, None] = {}
    unvisited = (node for node in rng.permutation(graph.n_nodes).tolist() if node not in visited)
    start = node = next(unvisited)
    n_steps = 0
    while True:
        n_steps = n_steps + 1 if node in visited else 0
        visited[node] = None
        if len(visited) == n_visited:
            return np.array(list(visited), np.int64)
        low, high = int(indptr[node]), int(indptr[node + 1])
        if n_steps > MAX_STEPS_WITHOUT_NEW_NODE or (node == start and low == high):
            start = node = next(unvisited)
        elif low == high or rng.random() < RESTART_PROBABILITY:
            node = start
        else:
            node = int(indices[rng.integers(low, high)])


def _class_colours(name: str, values: Any, nodes: IntArray) -> dict[str, Any]:
    is_labelled = values != (UNLABELLED if values.dtype.kind in "iu" else "")
    names = np.unique(values[is_labelled])
    codes = np.where(is_labelled, np.searchsorted(names, values), UNLABELLED)
    return {"name": name, "classes": to_texts(names), "codes": codes[nodes].tolist()}


def _count_observed(sample: Graph, observed: Graph) -> int:
    n = int(sample.adjacency.astype(bool).multiply(observed.adjacency.astype(bool)).nnz)
    return n if observed.directed else -(-n // 2)


def _sample_data(title: str, sample: CopiedSample, observed: Graph, nodes: IntArray) -> dict[str, Any]:
    pairs, donors = _edge_pairs(sample.graph.subgraph(nodes)), sample.donors
    source, target = nodes[pairs].T
    flags = OBSERVED * _are_edges(observed, source, target)
    flags = flags + FROM_SOURCE * _are_edges(observed, donors[source], target)
    if not observed.directed:
        flags = flags + FROM_TARGET * _are_edges(observed, donors[target], source)
    number, ids = np.full(observed.n_nodes, -1), observed.node_ids
    number[nodes] = np.arange(len(nodes))
    return {
        "title": title,
        "n_edges": sample.graph.n_edges,
        **_encode_edges(pairs, len(nodes)),
        "flags": "".join(map(str, flags.tolist())),
        # The number of a donor that is drawn, the id of a donor that is not.
        "donors": [int(number[d]) if number[d] >= 0 else str(ids[d]) for d in donors[nodes].tolist()],
    }


def _edge_pairs(graph: Graph) -> Ints:
    pairs = np.column_stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64)
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    return pairs if graph.directed else pairs[pairs[:, 0] < pairs[:, 1]]


def _encode_edges(pairs: Ints, n_nodes: int) -> dict[str, list[int]]:
    source, target = pairs.T
    before = np.where(np.diff(source, prepend=-1) == 0, np.roll(target, 1), source)
    counts = np.bincount(source, minlength=n_nodes)
    return {"counts": counts.tolist(), "steps": (target - before).tolist()}


def _are_edges(graph: Graph, source: IntArray, target: IntArray) -> Ints:
    if not len(source):
        return np.zeros(0, np.int64)
    return np.asarray(graph.adjacency[source, target] > 0).astype(np.int64).ravel()


def statistics_section(
    comparisons: Mapping[str, Comparison], *, estimates: BootstrapResult | None = None, text: str = ""
) -> Section:
    """Return the section of statistics, observed and in the samples of one or more models."""
    names = next(iter(comparisons.values())).statistics
    rows = [_statistic_data(name, comparisons) for name in names if name != "n_nodes"]
    if estimates is not None:
        distrusted = {problem.statistic for problem in estimates.problems}  # with None, every statistic
        intervals = {row.name: [float(row.low), float(row.high)] for row in estimates}
        for row in rows:
            if row["name"] in intervals and not {None, row["name"]} & distrusted:
                row["estimate"] = round_all(intervals[row["name"]], 4)
    return {
        "kind": "statistics",
        "title": "Statistics",
        "headline": statistics_headline(comparisons),
        "text": text,
        "series": list(comparisons),
        "estimates": _describe_estimates(estimates),
        "rows": sorted(rows, key=lambda row: not row["outside"]),
    }


def _describe_estimates(estimates: BootstrapResult | None) -> str:
    if estimates is None:
        return ""
    for problem in estimates.problems:
        if problem.statistic is None:
            reason = problem.text.partition(". ")[0].rstrip(".").replace("%", " %")
            return f"The observed statistics have no intervals, since {reason}."
    return (
        f"In brackets: 95 % intervals of observed statistics from {estimates.n} bootstrap samples, where "
        f"they pass the checks of nodecopy infer. {estimates.question}"
    )


def _statistic_data(name: str, comparisons: Mapping[str, Comparison]) -> dict[str, Any]:
    rows = [comparison[name] for comparison in comparisons.values()]
    is_overlap = name == "edge_overlap"  # with itself it is 1, whatever the samples
    sentences = {series: comparison.outside.get(name) for series, comparison in comparisons.items()}
    return {
        "name": name,
        "observed": None if is_overlap else round_number(rows[0].observed),
        "samples": [round_all(comparison.values[name]) for comparison in comparisons.values()],
        "intervals": [
            round_all([row.low, row.high, math.nan if is_overlap else row.p_value], 3) for row in rows
        ],
        "outside": [
            sentence if len(sentences) == 1 else f"{series}: {sentence}"
            for series, sentence in sentences.items()
            if sentence
        ],
    }


def result_tables_section(
    folder: PathLike, *, titles: Mapping[str, Mapping[str, str]] | None = None, text: str = ""
) -> dict[str, Any]:
    """Return the section with every results table of a folder."""
    experiments, verdicts = [], []
    files_by_rank = sorted((not file.stem.startswith("table"), file) for file in Path(folder).glob("*.csv"))
    for _, file in files_by_rank:  # the tables of the paper come first
        try:
            if rows := _read_rows(file):
                experiments.append(_experiment(rows, (titles or {}).get(rows[0]["experiment"], {})))
                verdicts += [row["verdict"] for row in rows if row["verdict"]]
        except (OSError, ValueError, csv.Error) as error:
            warn_about_data(f"{file} is left out, since it cannot be read: {str(error).rstrip('.')}.")
    if not experiments:
        got = f"{folder}, which has none. nodecopy reproduce writes them"
        raise InputError("folder", f"must hold CSV files of results tables; got {got}.")
    names = [experiment["name"] for experiment in experiments]
    return {
        "kind": "tables",
        "title": "Reproduction",
        "headline": tables_headline(verdicts),
        "text": text,
        "open": names.index(OPEN) if OPEN in names else 0,
        "experiments": experiments,
    }


def _read_rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader) if set(reader.fieldnames or ()) >= COLUMNS else []
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise ValueError(f"row {number} has another number of columns than the header")
    return rows


def _experiment(rows: Sequence[Mapping[str, str]], titles: Mapping[str, str]) -> dict[str, Any]:
    name, groups = rows[0]["experiment"], []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        columns = list(dict.fromkeys(map(_column, own)))
        # The heading of a column names what differs between columns.
        differs = [len({column[part] for column in columns}) > 1 for part in range(3)]
        cells = {(row["method"], _column(row)): _cell(row) for row in own}
        methods = dict.fromkeys(row["method"] for row in own)
        groups.append(
            {
                "dataset": DATASETS.get(dataset, dataset),
                "columns": [_heading(column, differs, titles) for column in columns],
                "methods": [titles.get(method, method) for method in methods],
                "cells": [[cells.get((method, column)) for column in columns] for method in methods],
            }
        )
    origin = {  # the trials of a cell may have several origins
        key: sorted({part for row in rows for part in row.get(key, "").split("; ")} - {""})
        for key in ("commit", "machine", "date")
    }
    return {"name": name, "title": _title(name, titles.get("", "")), "groups": groups, "origin": origin}


def _title(name: str, title: str) -> str:
    if match := re.fullmatch(r"table(\d+)(?:-(.+))?", name):
        variant = f", {DATASETS.get(match[2], match[2].replace('-', ' '))}" if match[2] else ""
        return f"Table {match[1]}{variant}" + (f": {title}" if title else "")
    return title or name


def _heading(column: tuple[str, str, str], differs: Sequence[bool], titles: Mapping[str, str]) -> str:
    labels, attack, score = column
    score = re.sub("ndcg|auc", lambda match: match[0].upper(), score).replace("_", " ")
    parts = (f"{labels} {'label' if labels == '1' else 'labels'}", titles.get(attack, attack), score)
    return ", ".join(part for part, is_different in zip(parts, differs, strict=True) if is_different) or score


def _column(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row.get("labels", ""), row.get("attack", ""), row["score"]


def _cell(row: Mapping[str, str]) -> list[Any]:
    numbers = [float(row[key]) if row[key] else None for key in NUMBERS]
    if not all(value is None or math.isfinite(value) for value in numbers):
        raise ValueError(f"the numbers of {row['method']} must be finite; got {numbers}")
    cell: list[Any] = [None if value is None else round_number(value, 5) for value in numbers]
    cell += [row["verdict"] or None, 1 if row.get("best") == "True" else None]
    while cell and cell[-1] is None:
        cell.pop()
    return cell


def graphs_headline(n_edges: int, samples: Sequence[tuple[int, int]]) -> str:
    """Describe the edges of samples, given as numbers of all and of observed edges."""
    if not samples:
        return ""
    sizes = _range([size for size, _ in samples])
    shares = _range([round(100 * n_observed / max(size, 1)) for size, n_observed in samples])
    verb = "The pictured sample has" if len(samples) == 1 else f"The {len(samples)} pictured samples have"
    return f"{verb} {sizes} edges (observed: {n_edges:,}), of which {shares} % are observed edges."


def statistics_headline(comparisons: Mapping[str, Comparison]) -> str:
    """Count the observed statistics in the range of all samples, and name those that change most."""
    models = ["" if len(comparisons) == 1 else f" by {name}" for name in comparisons]
    return " ".join(map(_describe_comparison, comparisons.values(), models))


def _describe_comparison(comparison: Comparison, model: str) -> str:
    rows = [row for row in comparison if row.name not in ("n_nodes", "edge_overlap") and row.p_value >= 0]
    outside = sorted((row for row in rows if row.name in comparison.outside), key=_change, reverse=True)
    n = comparison.n_samples
    samples = f"The sample{model} keeps" if n == 1 else f"The {n:,} samples{model} keep"
    if not outside:
        return f"{samples} all {len(rows)} statistics."
    n_kept = len(rows) - len(outside)
    # The mean degree is redundant beside the number of edges.
    named = [row for row in outside if row.name != "mean_degree" or "n_edges" not in comparison.outside]
    parts = [_describe_statistic(row) for row in named[:MAX_NAMED]]
    rest = len(outside) - len(parts)
    parts += [f"{rest} {'other differs' if rest == 1 else 'others differ'}"] if rest else []
    return f"{samples} {n_kept} of {len(rows)} statistics; on average, {_join(parts)}."


def _change(row: Row) -> float:
    """Return the absolute log ratio of a statistic; 1 to, from and across zero."""
    return abs(math.log(row.mean / row.observed)) if row.mean * row.observed > 0 else 1.0


def _describe_statistic(row: Row) -> str:
    is_count = row.name in COUNTS
    subject = f"{row.name.removeprefix('n_').replace('_', ' ')} {'are' if is_count else 'is'}"
    if row.mean <= 0 or row.observed <= 0:
        return f"{subject} {row.mean:.3g} instead of {row.observed:.3g}"
    ratio = row.mean / row.observed
    if 0.95 < ratio < 1.05:
        return f"{subject} {100 * abs(ratio - 1):.1f} % {'higher' if ratio > 1 else 'lower'}"
    return f"{subject} {ratio:.2g} times as {'many' if is_count else 'large'}"


def classification_headline(evaluations: Sequence[Summary]) -> str:
    """Give the accuracy of the last classifier beside the others, or say that it did not learn."""
    if not evaluations:
        return "No label is held out, so the accuracy is unknown."
    *others, main = evaluations
    splits = f" in {main['n_splits']} splits" if main["n_splits"] > 1 else ""
    accuracy = _format_interval(main["accuracy"], main["interval"])
    verb = f"is right on {accuracy} of {main['n_nodes']:,} held-out nodes{splits}"
    if not main["has_learned"]:
        return (
            f"The model did not learn: {main['name']} {verb}, not clearly more than the "
            f"{_percent(main['majority'])} of always predicting the largest class."
        )
    beside = [f"{part['name']} on {_format_interval(part['accuracy'], part['interval'])}" for part in others]
    return "; ".join([f"{_capitalise(main['name'])} {verb}", *beside]) + "."


def attack_headline(
    classes: Sequence[str], truth: int, probabilities: Sequence[Sequence[float]], n_flips: int
) -> str:
    """Describe the effect of an attack and its corrections on a prediction."""
    before, attacked, *corrected = (classes[int(np.argmax(stage))] for stage in probabilities)
    chances = [_percent(stage[truth]) for stage in probabilities]
    start = f"{n_flips} flipped {'edge' if n_flips == 1 else 'edges'}"
    if attacked != before:
        start += f" {'changes' if n_flips == 1 else 'change'} the prediction from {before} to {attacked}"
    else:
        verb = "does" if n_flips == 1 else "do"
        start += f" {verb} not change the prediction {before} ({chances[0]} before, {chances[1]} after)"
    effects, stages = [], zip(corrected, chances[2:], CORRECTIONS, strict=False)
    for found, chance, (subject, ending, auxiliary, pronoun) in stages:
        verb = ("restore" if attacked != before else "keep") + ending
        is_true = found == classes[truth]
        effect = f"{verb} it ({chance})" if is_true else f"{auxiliary} not correct it: {pronoun} {found}"
        effects.append(f"{subject} {effect}")
    return f"{start}. {_capitalise('; '.join(effects))}."


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def links_headline(lists: Mapping[str, Sequence[Summary]]) -> str:
    """Name the least credible and the most probable missing edge."""
    names = ("doubtful", "least credible"), ("missing", "most probable missing")
    firsts = [(what, lists[kind][0]) for kind, what in names if lists[kind]]
    parts = [
        f"the {what} edge is between {' and '.join(link['ends'])} ({100 * link['probability']:.2g} %)"
        for what, link in firsts
    ]
    return f"{_capitalise('; '.join(parts))}."


def recommendations_headline(evaluations: Sequence[Summary]) -> str:
    """Give the recall of the last recommender beside the others."""
    if not evaluations:
        return ""
    *others, main = evaluations
    beside = [f"{other['name']} {_format_interval(other['recall'], other['interval'])}" for other in others]
    recall = _format_interval(main["recall"], main["interval"])
    text = f"The first {main['k']} recommendations of {main['name']} contain {recall} of a user's held-out"
    return f"{text} items; {_join(beside)}." if beside else f"{text} items."


def tables_headline(verdicts: Sequence[str]) -> str:
    """Count the verdicts of the cells with published numbers."""
    if not verdicts:
        return ""
    n = Counter(verdicts)
    differ = n["above"] + n["below"]  # of statistics, for which neither is better
    parts = [f"{n['level']:,} are level with them", f"{n['ahead']:,} ahead", f"{n['behind']:,} behind"]
    parts += [f"{differ:,} statistics differ"] if differ else []
    return f"Of {len(verdicts):,} results with published numbers, {_join(parts)}, at 2 standard errors."


def _format_interval(value: float, interval: Sequence[float]) -> str:
    percent, low, high = (100 * part for part in (value, *interval))
    if round(percent - low) == round(high - percent):
        return f"{percent:.0f} ± {(high - low) / 2:.0f} %"
    return f"{percent:.0f} % ({low:.0f} to {high:.0f} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def to_texts(values: ArrayLike) -> list[str]:
    """Return ids or names as text."""
    return [str(value) for value in np.asarray(values).tolist()]


def round_number(value: Any, digits: int = 6) -> float | None:
    """Round to some significant digits; ``None`` if the value is not finite."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def round_all(values: Sequence[Any] | NDArray[Any], digits: int = 6) -> list[float | None]:
    """Round each of some values by :func:`round_number`."""
    return [round_number(float(value), digits) for value in values]

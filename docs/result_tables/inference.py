"""The tables and sentences of the page on inference, from the stored results of its experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from docs.result_tables.cells import (
    COVERAGE,
    DEFAULTS,
    SMOOTH,
    Cells,
    Row,
    find_default,
    format_table,
    not_computed,
    read_cells,
)
from docs.result_tables.levels import describe_levels, level_table
from docs.result_tables.sharpness import describe_sharpness
from nodecopy.experiments.config import load
from nodecopy.experiments.tasks.coverage import STATISTICS

RATIO = (0.9, 1.25)
MAIN_NETWORKS = ("sbm", "dc-sbm", "dot-product", "graphon")
KINDS = ("covered", "ratio")
OF_SUBSAMPLES = ("density", "transitivity", "assortativity", "modularity")
"""Statistics whose expectation hardly depends on the number of nodes, for which subsampling is meant."""
BENCHMARK = Path(__file__).parents[2] / "results/benchmarks/inference.txt"


def is_inside(covered: float, ratio: float) -> bool:
    """Return whether coverage and ratio are as intended."""
    return COVERAGE[0] <= covered <= COVERAGE[1] and RATIO[0] <= ratio <= RATIO[1]


def name_networks(rows: Iterable[Row]) -> dict[tuple[str, str, str], str]:
    """Return the heading of each row of networks; it says how many there are, if they are not 500."""
    task: Any = load("coverage").task
    names = {}
    for row in rows:
        n_networks = int(row["n"]) * task.networks
        few = "" if row["n"] == str(task.trials) else f", {n_networks} networks"
        place = (row["dataset"], row["nodes"], row["degree"])
        if row["mean"] and row["method"] in DEFAULTS:
            names[place] = f"{place[0]}, {int(place[1]):,} nodes, degree {place[2]}{few}"
    return names


def coverage_table(rows: Sequence[Row]) -> str:
    """Return coverage and ratio of the default model, by network, size and statistic."""
    cells = find_default(read_cells(rows))
    if not cells:
        return not_computed("coverage")
    lines = []
    for place, heading in name_networks(rows).items():
        line = [heading]
        for name in STATISTICS:
            line.append(format_cell(cells, (*place, "default"), name))
        lines.append(line)
    return format_table(["network", *STATISTICS.values()], lines)


def format_cell(cells: Cells, place: tuple[str, str, str, str], name: str, is_meant: bool = True) -> str:
    """Return coverage and ratio: bold outside of the limits, in brackets if they need not be inside."""
    covered, ratio = (cells.get((*place, f"{name} {kind}")) for kind in KINDS)
    if covered is None or ratio is None:
        return "-"
    text = f"{covered:.1f}, {ratio / 100:.2f}"
    if not is_meant:
        return f"({text})"
    return text if is_inside(covered, ratio / 100) else f"**{text}**"


def levels_table(rows: Sequence[Row]) -> str:
    """Return coverage and ratio of the statistics that a second level calibrates."""
    cells = read_cells(rows)
    if not cells:
        return not_computed("coverage-levels")
    scores = load("coverage-levels").task.scores  # type: ignore[attr-defined]
    lines = []
    for place, heading in name_networks(rows).items():
        lines.append([heading, *(format_cell(cells, (*place, "class-copying"), name) for name in scores)])
    return format_table(["network", *(STATISTICS[name] for name in scores)], lines)


def windows_table(rows: Sequence[Row]) -> str:
    """Return coverage and ratio of intervals from one window for the mean over windows."""
    cells, experiment = read_cells(rows), load("coverage-windows")
    if not cells:
        return not_computed("coverage-windows")
    task: Any = experiment.task
    titles = {method.name: method.title for method in experiment.methods if method.name != "truth"}
    lines = [
        [f"{dataset}, degree {degree}", titles[method]]
        + [format_cell(cells, (dataset, nodes, degree, method), name) for name in task.scores]
        for dataset, nodes, degree, method in dict.fromkeys(place[:4] for place in cells)
        if method in titles
    ]
    headings = ["windows", "model of the samples", *(STATISTICS[name] for name in task.scores)]
    return format_table(headings, lines)


class Miss(NamedTuple):
    """A cell outside of the limits; all numbers are shares, and bias is in true standard deviations."""

    dataset: str
    heading: str
    statistic: str
    covered: float
    ratio: float
    bias: float
    warned: float

    @property
    def has_wide_intervals_only(self) -> bool:
        return RATIO[0] <= self.ratio <= RATIO[1] and 100 * self.covered > COVERAGE[1]


def find_misses(rows: Sequence[Row]) -> tuple[list[Miss], dict[str, int], float]:
    """Return the smooth statistics outside of the limits, cells by dataset, and the lowest coverage."""
    cells = find_default(read_cells(rows))
    n_cells: dict[str, int] = {}
    misses, lowest = [], 1.0
    for place, heading in name_networks(rows).items():
        for name in SMOOTH:
            kinds = ("covered", "ratio", "bias", "warned")
            values = [cells.get((*place, "default", f"{name} {kind}")) for kind in kinds]
            if None in values:
                continue
            covered, ratio, bias, warned = (value / 100 for value in values if value is not None)
            n_cells[place[0]] = n_cells.get(place[0], 0) + 1
            lowest = min(lowest, covered)
            if not is_inside(100 * covered, ratio):
                misses.append(Miss(place[0], heading, name, covered, ratio, bias, warned))
    return misses, n_cells, lowest


def list_misses(rows: Sequence[Row]) -> str:
    """Return which smooth statistics are outside of the limits, with bias and warnings."""
    misses, n_cells, lowest = find_misses(rows)
    if not n_cells:
        return not_computed("coverage")
    total, n_main = sum(n_cells.values()), sum(n_cells.get(name, 0) for name in MAIN_NETWORKS)
    n_missed_main = sum(miss.dataset in MAIN_NETWORKS for miss in misses)
    text = (
        f"{total - len(misses)} of {total} cells are inside the limits ({n_main - n_missed_main} of {n_main} "
        f"of {', '.join(MAIN_NETWORKS[:-1])} and {MAIN_NETWORKS[-1]}), without the maximum degree and the "
        "modularity of estimated communities, which are not smooth. The lowest coverage of all is "
        f"{100 * lowest:.1f} %."
    )
    if not misses:
        return text
    n_wide = sum(miss.has_wide_intervals_only for miss in misses)
    text += (
        f" Of the {len(misses)} others, {n_wide} have coverage above 98 % and nothing else. Bias is in true "
        "standard deviations; the last number is the percentage of networks for which `bootstrap` warned:"
    )
    lines = [
        [
            miss.heading,
            STATISTICS[miss.statistic],
            f"{100 * miss.covered:.1f}",
            f"{miss.ratio:.2f}",
            f"{miss.bias:+.1f}",
            f"{100 * miss.warned:.0f}",
            explain_miss(*miss[2:6]),
        ]
        for miss in misses
    ]
    headings = ["network", "statistic", "coverage", "ratio", "bias", "warned", "likely reason"]
    return f"{text}\n\n{format_table(headings, lines)}"


def describe_missing_warnings(rows: Sequence[Row]) -> str:
    """Return in which cells outside of the limits there was mostly no warning."""
    misses, n_cells, _ = find_misses(rows)
    if not n_cells:
        return not_computed("coverage")
    silent = [miss for miss in misses if miss.warned < 0.5]
    wide = [miss for miss in silent if miss.has_wide_intervals_only]
    others = [miss for miss in silent if not miss.has_wide_intervals_only]
    text = f"`bootstrap` did not warn in {len(silent)} of these {len(misses)} cells."
    if wide:
        low, high = min(miss.covered for miss in wide), max(miss.covered for miss in wide)
        ratios = [miss.ratio for miss in wide]
        text += (
            f" {len(wide)} of them have intervals that are wide rather than wrong: coverage of "
            f"{100 * low:.1f} to {100 * high:.1f} %, with ratios of {min(ratios):.2f} to {max(ratios):.2f}. "
            "Other cells with the same ratios are inside the limits."
        )
    if others:
        names = [
            f"{STATISTICS[miss.statistic]} of {miss.heading} (coverage {100 * miss.covered:.1f} %, ratio "
            f"{miss.ratio:.2f})"
            for miss in others
        ]
        text += f" The rest: {'; '.join(names)}."
    return text


def explain_miss(name: str, covered: float, ratio: float, bias: float) -> str:
    """Return the likely reason of a miss; only the first one is derived."""
    if name == "degree_variance" and ratio > 1:
        return "degrees of samples vary more (derived)"
    if abs(bias) > 2:
        return "samples differ from the network in this statistic"
    if ratio < RATIO[0]:
        return "few donors of nodes with large degrees"
    if covered < COVERAGE[0] / 100:
        return "skewed distribution, or chance"
    return "standard errors too large (not derived), or chance"


def describe_estimated_communities(rows: Iterable[Row]) -> str:
    """Return how well the modularity of estimated communities is covered."""
    cells = find_default(read_cells(rows))
    pairs = [
        (cells[*place[:4], "found_modularity covered"], ratio / 100)
        for place, ratio in cells.items()
        if place[4] == "found_modularity ratio"
    ]
    if not pairs:
        return not_computed("coverage")
    (good, bad) = (
        [pair for pair in pairs if (pair[0] >= COVERAGE[0]) == is_good] for is_good in (True, False)
    )
    texts = [
        f"coverage {min(c for c, _ in part):.0f} to {max(c for c, _ in part):.0f} %, ratios "
        f"{min(r for _, r in part):.2f} to {max(r for _, r in part):.2f}"
        if part
        else "none"
        for part in (good, bad)
    ]
    return (
        f"The modularity of estimated communities covers in {len(good)} of {len(pairs)} cells ({texts[0]}). "
        f"In the others ({texts[1]}) the number of estimated communities differs between draws of the "
        "network, and with it modularity, which is zero for a single community. Samples keep the number of "
        "the observed network, and so miss this part of the variance."
    )


def pool(cells: Cells, place: tuple[str, str, str, str]) -> str:
    """Return the range of ratios and the pooled coverage of smooth statistics."""
    ratios, covered = (
        [cells[*place, f"{name} {kind}"] / 100 for name in SMOOTH if (*place, f"{name} {kind}") in cells]
        for kind in ("ratio", "covered")
    )
    if not ratios:
        return "-"
    return f"{min(ratios):.2f} to {max(ratios):.2f}, {100 * np.mean(covered):.0f} %"


def methods_table(rows: Iterable[Row], experiment: str) -> str:
    """Return the range of ratios and the pooled coverage of each method, at the first size."""
    cells = read_cells(rows)
    if not cells:
        return not_computed(experiment)
    task = load(experiment).task
    size = [str(value) for value in task.conditions[0].values()]
    lines = []
    for method in load(experiment).methods:
        texts = [pool(cells, (dataset, size[0], size[1], method.name)) for dataset in task.datasets]
        if any(text != "-" for text in texts):
            lines.append([method.title, *texts])
    return format_table(["model of the samples", *task.datasets], lines)


def show_range(values: Sequence[float]) -> str:
    """Return the smallest and the largest of some numbers, rounded."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def describe_fitted_models(rows: Iterable[Row]) -> str:
    """Return how the fitted models fail, and how the maximum does."""
    cells = read_cells(rows)
    covered = {
        name: [
            x
            for (dataset, *_, method, score), x in cells.items()
            if (dataset, method, score) == ("dc-sbm", "sbm", f"{name} covered")
        ]
        for name in ("degree_variance", "triangles")
    }
    if not all(covered.values()):
        return not_computed("coverage")
    smooth = {f"{name} {kind}" for name in SMOOTH for kind in ("covered", "ratio")}
    values = {place: x for place, x in cells.items() if place[4] in smooth}
    dot_product, maximum = (
        {place: x for place, x in values.items() if place[3] == method}
        for method in ("dot-product", "copying-maximum")
    )
    lowest, worst = min((x, place) for place, x in dot_product.items() if place[4].endswith("covered"))
    largest = max(x for place, x in dot_product.items() if place[4] == "degree_variance ratio")
    text = (
        "A fitted block model is better than node copying where it is the truth, and fails where it is not: "
        f"with heavy-tailed degrees (dc-sbm) its intervals of the variance of degrees cover "
        f"{show_range(covered['degree_variance'])} % and those of triangles "
        f"{show_range(covered['triangles'])} %. The lowest coverage of the fitted dot product graph, but for "
        f"the maximum degree, is {lowest:.0f} % ({worst[4].partition(' ')[0].replace('_', ' ')} of "
        f"{worst[0]} with {int(worst[1]):,} nodes and mean degree {worst[2]}); it overstates the variance of "
        f"degrees by up to {largest / 100:.2f}."
    )
    ratios = [x / 100 for place, x in maximum.items() if place[4].endswith("ratio")]
    if ratios:
        text += (
            ' Where an edge is copied from either end (`symmetrise="maximum"`), samples have too many '
            f"edges, and standard errors are {min(ratios):.2f} to {max(ratios):.2f} times the true ones."
        )
    return text


def nodes_table(rows: Sequence[Row]) -> str:
    """Return coverage and ratio for a population of nodes, by network, method and statistic."""
    cells, experiment = read_cells(rows), load("coverage-nodes")
    if not cells:
        return not_computed("coverage-nodes")
    task: Any = experiment.task
    scores = [name for name in STATISTICS if name in task.scores]
    lines = []
    for dataset, nodes, degree in dict.fromkeys(place[:3] for place in cells):
        for method in experiment.methods:
            place = (dataset, nodes, degree, method.name)
            if method.name == "truth" or (*place, "density covered") not in cells:
                continue
            texts = [
                format_cell(cells, place, name, method.name != "subsampling" or name in OF_SUBSAMPLES)
                for name in scores
            ]
            lines.append([f"{dataset}, {nodes} nodes", method.title, *texts])
    return format_table(["network", "model of the samples", *(STATISTICS[name] for name in scores)], lines)


def speed_table(text: str) -> str:
    """Return the stored output of the benchmark as a table."""
    pattern = r"^(\S.*?)  +([\d.]+) ms (of CPU )?per sample +([\d.]+) times ours$"
    lines = [
        [name, f"{float(time):.0f} ms", "CPU" if is_cpu else "wall-clock", ratio]
        for name, time, is_cpu, ratio in re.findall(pattern, text, re.MULTILINE)
    ]
    return format_table(["a sample with its statistics", "time", "of", "times ours"], lines)


def inference_tables(read_results: Callable[[str], list[Row]]) -> dict[str, str]:
    """Return the text between each pair of markers that depends on an experiment."""
    rows, of_nodes, levels = map(read_results, ("coverage", "coverage-nodes", "level"))
    structured = read_results("level-structure")
    return {
        "coverage": coverage_table(rows),
        "coverage levels": levels_table(read_results("coverage-levels")),
        "coverage windows": windows_table(read_results("coverage-windows")),
        "coverage misses": list_misses(rows),
        "coverage of estimated communities": describe_estimated_communities(rows),
        "coverage methods": methods_table(rows, "coverage"),
        "coverage sharpness": describe_sharpness(rows),
        "coverage warnings": describe_missing_warnings(rows),
        "coverage fitted models": describe_fitted_models(rows),
        "coverage nodes": nodes_table(of_nodes),
        "level": level_table(levels),
        "level of structure": level_table(structured, "level-structure"),
        "level summary": describe_levels(levels),
    }

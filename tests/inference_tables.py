"""The tables and sentences of the page on inference, from the stored results of its experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from nodecopy.experiments.tasks.coverage_task import STATISTICS
from nodecopy.experiments.toml import load

Row = Mapping[str, str]
Cells = dict[tuple[str, str, str, str, str], float]
"""Means by dataset, nodes, degree, method and score, in percent."""
DEFAULTS, FITTED = ("copying", "copying-directed"), ("dot-product", "sbm")
COVERAGE, RATIO = (90.0, 98.0), (0.9, 1.25)
SMOOTH = [name for name in STATISTICS if name != "max_degree"]
POOLED = [name for name in SMOOTH if name != "found_modularity"]
"""Those that are measured for all methods."""
NOT_SHARPER = 1.05
"""Intervals that are wider by no more than this factor count as equally sharp."""


def read_cells(rows: Iterable[Row]) -> Cells:
    """Return the means of all cells that were run."""
    keys = ("dataset", "nodes", "degree", "method", "score")
    return {tuple(row[key] for key in keys): float(row["mean"]) for row in rows if row["mean"]}  # type: ignore[misc]


def not_computed(experiment: str) -> str:
    """Return the text of a table whose experiment was not run."""
    return f"Not computed yet; `nodecopy reproduce {experiment}` does it."


def format_table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def is_inside(covered: float, ratio: float) -> bool:
    """Return whether coverage and ratio are as intended."""
    return COVERAGE[0] <= covered <= COVERAGE[1] and RATIO[0] <= ratio <= RATIO[1]


def find_default(cells: Cells) -> Cells:
    """Return the cells of the default model, without the method."""
    return {(*place[:3], "default", place[4]): x for place, x in cells.items() if place[3] in DEFAULTS}


def coverage_table(rows: Iterable[Row]) -> str:
    """Return coverage and ratio of the default model, by network, size and statistic."""
    cells = find_default(read_cells(rows))
    if not cells:
        return not_computed("coverage")
    lines = []
    for dataset, nodes, degree in dict.fromkeys(place[:3] for place in cells):
        line = [f"{dataset}, {nodes} nodes, degree {degree}"]
        for name in STATISTICS:
            covered, ratio = (
                cells.get((dataset, nodes, degree, "default", f"{name} {kind}"))
                for kind in ("covered", "ratio")
            )
            if covered is None or ratio is None:
                line.append("-")
                continue
            text = f"{covered:.0f}, {ratio / 100:.2f}"
            line.append(text if is_inside(covered, ratio / 100) else f"**{text}**")
        lines.append(line)
    return format_table(["network", *STATISTICS.values()], lines)


def list_misses(rows: Iterable[Row]) -> str:
    """Return which smooth statistics are outside of the limits, with bias and warnings."""
    cells = find_default(read_cells(rows))
    if not cells:
        return not_computed("coverage")
    lines, n_cells = [], 0
    for dataset, nodes, degree in dict.fromkeys(place[:3] for place in cells):
        for name in SMOOTH:
            kinds = ("covered", "ratio", "bias", "warned")
            values = [cells.get((dataset, nodes, degree, "default", f"{name} {kind}")) for kind in kinds]
            if None in values:
                continue
            covered, ratio, bias, warned = (value / 100 for value in values if value is not None)
            n_cells += 1
            if not is_inside(100 * covered, ratio):
                place = f"{dataset}, {nodes} nodes, degree {degree}"
                numbers = [f"{100 * covered:.1f}", f"{ratio:.2f}", f"{bias:+.1f}", f"{100 * warned:.0f}"]
                lines.append([place, STATISTICS[name], *numbers, explain_miss(name, covered, ratio, bias)])
    text = (
        f"{n_cells - len(lines)} of {n_cells} cells of statistics other than the maximum degree are inside "
        "the limits. The others, with the bias in true standard deviations and the percentage of networks "
        "for which `bootstrap` warned:"
    )
    headings = ["network", "statistic", "coverage", "ratio", "bias", "warned", "likely reason"]
    return f"{text}\n\n{format_table(headings, lines)}" if lines else text.partition(" The others")[0]


def explain_miss(name: str, covered: float, ratio: float, bias: float) -> str:
    """Return the likely reason of a miss; only the first one is derived."""
    if name == "degree_variance" and ratio > RATIO[1]:
        return "degrees of samples vary more (derived)"
    if name == "found_modularity":
        return "communities are found less well in samples"
    if abs(bias) > 2:
        return "samples differ from the network in this statistic"
    if ratio < RATIO[0]:
        return "few donors of nodes with large degrees"
    if ratio > RATIO[1]:
        return "inherited from the variance of degrees"
    return "skewed distribution, or chance" if covered < COVERAGE[0] / 100 else "conservative"


def pool(cells: Cells, place: tuple[str, str, str, str]) -> str:
    """Return the range of ratios and the pooled coverage of smooth statistics."""
    ratios, covered = (
        [cells[*place, f"{name} {kind}"] / 100 for name in POOLED if (*place, f"{name} {kind}") in cells]
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


def describe_sharpness(rows: Iterable[Row]) -> str:
    """Return how wide intervals are beside those of the fitted models, where all of them cover."""
    cells = read_cells(rows)
    default, factors = find_default(cells), []
    n_cells = n_sharp = 0
    for (*size, _, score), ratio in default.items():
        name, _, kind = score.partition(" ")
        others = [cells.get((*size, method, score)) for method in FITTED]  # type: ignore[arg-type]
        if kind != "ratio" or name not in SMOOTH or None in others:
            continue
        ratios = np.array([ratio, *others], np.float64) / 100
        factors.append(np.maximum(ratios, 1 / ratios))
        score = f"{name} covered"
        covered = [default[*size, "default", score], *(cells[*size, method, score] for method in FITTED)]  # type: ignore[index]
        if min(covered) >= COVERAGE[0]:
            n_cells += 1
            n_sharp += ratios[0] <= NOT_SHARPER * ratios[1:].min()
    if not n_cells:
        return not_computed("coverage")
    median, worst = (
        "{:.2f} (node copying), {:.2f} (dot product graph) and {:.2f} (block model)".format(*values)
        for values in (np.median(factors, axis=0), np.max(factors, axis=0))
    )
    return (
        f"In {n_cells} of {len(factors)} cells node copying, the fitted dot product graph and the fitted "
        f"block model all cover at least 90 %. In {n_sharp} of them the intervals of node copying are at "
        "most 5 % wider than the narrower ones of the other two. Over all cells, standard errors are off by "
        "a factor of "
        f"{median} in the median, and by up to {worst}."
    )


def level_table(rows: Iterable[Row]) -> str:
    """Return the percentages of rejections, by network and null model."""
    found = {(row["dataset"], row["method"], row["score"]): float(row["mean"]) for row in rows if row["mean"]}
    if not found:
        return not_computed("level")
    experiment = load("level")
    scores = [column.score for column in experiment.task.columns]
    lines = [
        [dataset, method.title, *(f"{found[dataset, method.name, score]:.1f}" for score in scores)]
        for dataset in experiment.task.datasets
        for method in experiment.methods
        if (dataset, method.name, scores[0]) in found
    ]
    return format_table(
        ["network", "null model", *(column.heading for column in experiment.task.columns)], lines
    )


def inference_tables(read_results: Callable[[str], list[Row]]) -> dict[str, str]:
    """Return the text between each pair of markers."""
    rows, of_nodes = read_results("coverage"), read_results("coverage-nodes")
    return {
        "coverage": coverage_table(rows),
        "coverage misses": list_misses(rows),
        "coverage methods": methods_table(rows, "coverage"),
        "coverage sharpness": describe_sharpness(rows),
        "coverage nodes": methods_table(of_nodes, "coverage-nodes"),
        "level": level_table(read_results("level")),
    }

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
SMOOTH = [name for name in STATISTICS if name not in ("max_degree", "found_modularity")]
NOT_WORSE = 1.05
"""Standard errors whose factor from the truth is larger by no more than this count as equally good."""
WRONG_FAMILY = ("dc-sbm", "graphon", "directed")
"""Networks that no block model with few blocks describes."""


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
            text = f"{covered:.1f}, {ratio / 100:.2f}"
            line.append(text if is_inside(covered, ratio / 100) else f"**{text}**")
        lines.append(line)
    return format_table(["network", *STATISTICS.values()], lines)


def list_misses(rows: Iterable[Row]) -> str:
    """Return which smooth statistics are outside of the limits, with bias and warnings."""
    cells = find_default(read_cells(rows))
    if not cells:
        return not_computed("coverage")
    lines, n_cells, n_wide, lowest = [], 0, 0, 1.0
    for dataset, nodes, degree in dict.fromkeys(place[:3] for place in cells):
        for name in SMOOTH:
            kinds = ("covered", "ratio", "bias", "warned")
            values = [cells.get((dataset, nodes, degree, "default", f"{name} {kind}")) for kind in kinds]
            if None in values:
                continue
            covered, ratio, bias, warned = (value / 100 for value in values if value is not None)
            n_cells += 1
            lowest = min(lowest, covered)
            if not is_inside(100 * covered, ratio):
                n_wide += RATIO[0] <= ratio <= RATIO[1] and 100 * covered > COVERAGE[1]
                place = f"{dataset}, {nodes} nodes, degree {degree}"
                numbers = [f"{100 * covered:.1f}", f"{ratio:.2f}", f"{bias:+.1f}", f"{100 * warned:.0f}"]
                lines.append([place, STATISTICS[name], *numbers, explain_miss(name, covered, ratio, bias)])
    text = (
        f"{n_cells - len(lines)} of {n_cells} cells are inside the limits, without the maximum degree and "
        "the modularity of estimated communities, which are not smooth. The lowest coverage of all is "
        f"{100 * lowest:.1f} %."
    )
    if not lines:
        return text
    text += (
        f" Of the {len(lines)} others, {n_wide} have coverage above 98 % and nothing else. Bias is in true "
        "standard deviations; the last number is the percentage of networks for which `bootstrap` warned:"
    )
    headings = ["network", "statistic", "coverage", "ratio", "bias", "warned", "likely reason"]
    return f"{text}\n\n{format_table(headings, lines)}"


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
    return "standard errors too large, as those of the degree variance"


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


def describe_sharpness(rows: Iterable[Row]) -> str:
    """Return how far standard errors are from the truth beside those of the fitted models."""
    cells = read_cells(rows)
    default = find_default(cells)
    factors: dict[tuple[str, ...], list[float]] = {}
    n_cover = n_good = 0
    for (*size, _, score), ratio in default.items():
        name, _, kind = score.partition(" ")
        others = [cells.get((*size, method, score)) for method in FITTED]  # type: ignore[arg-type]
        if kind != "ratio" or name not in SMOOTH or name == "mean_degree" or None in others:
            continue
        ratios = np.array([ratio, *others], np.float64) / 100
        place = (*size, name)
        factors[place] = np.maximum(ratios, 1 / ratios).tolist()
        score = f"{name} covered"
        covered = [default[*size, "default", score], *(cells[*size, method, score] for method in FITTED)]  # type: ignore[index]
        if min(covered) >= COVERAGE[0]:
            n_cover += 1
            n_good += factors[place][0] <= NOT_WORSE * min(factors[place][1:])
    if not n_cover:
        return not_computed("coverage")
    wrong = [values for place, values in factors.items() if place[0] in WRONG_FAMILY]
    n_better = sum(values[0] <= NOT_WORSE * values[2] for values in wrong)
    median, worst = (
        "{:.2f} (node copying), {:.2f} (dot product graph) and {:.2f} (block model)".format(*values)
        for values in (np.median(list(factors.values()), axis=0), np.max(list(factors.values()), axis=0))
    )
    return (
        f"Beside the fitted dot product graph and the fitted block model, in {len(factors)} cells (density "
        f"stands for the mean degree): standard errors are off by a factor of {median} in the median, and by "
        f"up to {worst}. All three cover at least 90 % in {n_cover} cells; in {n_good} of them the factor of "
        "node copying is at most 5 % larger than that of the better one of the other two. Where a block "
        f"model is the wrong family ({', '.join(WRONG_FAMILY)}), it is at most 5 % larger than that of the "
        f"fitted block model in {n_better} of {len(wrong)} cells."
    )


def level_table(rows: Iterable[Row]) -> str:
    """Return the percentages of rejections, by network and null model."""
    shares = {
        (row["dataset"], row["method"], row["score"]): float(row["mean"]) for row in rows if row["mean"]
    }
    if not shares:
        return not_computed("level")
    experiment = load("level")
    scores = [column.score for column in experiment.task.columns]
    lines = [
        [dataset, method.title, *(f"{shares[dataset, method.name, score]:.1f}" for score in scores)]
        for dataset in experiment.task.datasets
        for method in experiment.methods
        if (dataset, method.name, scores[0]) in shares
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
        "coverage of estimated communities": describe_estimated_communities(rows),
        "coverage methods": methods_table(rows, "coverage"),
        "coverage sharpness": describe_sharpness(rows),
        "coverage nodes": methods_table(of_nodes, "coverage-nodes"),
        "level": level_table(read_results("level")),
    }

"""The tables of the page on missing and doubtful edges, from the stored results of their experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from docs.result_tables.cells import format_table, not_computed
from nodecopy.experiments.config import load
from nodecopy.report.page import DATASETS

Row = Mapping[str, str]
LINKS, DENOISE = "links", "links-denoise"
TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "missing": (("missing", "auc"), ("missing", "ap")),
    "hard": (("missing", "hits@100"), ("missing", "hard mrr")),
    "planted": (("random", "auc"), ("similar", "auc"), ("dice", "auc")),
    "calibration": (("missing", "ece"), ("missing", "balanced ece")),
}
"""The questions and scores of each table, by its name on the page."""
GAINS = (
    *(("AUC", "missing", "auc"), ("AP", "missing", "ap"), ("Hits@100", "missing", "hits@100")),
    *(("MRR", "missing", "mrr"), ("planted at random", "random", "auc")),
)


def score_table(rows: Sequence[Row], places: Sequence[tuple[str, str]]) -> str:
    """Return some scores of every method by dataset, separated by slashes; the best are bold."""
    cells = {
        (row["dataset"], row["question"], row["score"], row["method"]): row for row in rows if row["mean"]
    }
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    lines = []
    for method in load(LINKS).methods:
        shown = []
        for dataset in datasets:
            found = [cells.get((dataset, *place, method.name)) for place in places]
            shown.append(" / ".join(map(format_mean, found)) if any(found) else "-")
        if set(shown) != {"-"}:
            lines.append([method.title, *shown])
    return format_table(["", *(DATASETS[name] for name in datasets)], lines)


def format_mean(row: Row | None) -> str:
    """Return the mean of a cell, bold if it is the best of its column."""
    if row is None:
        return "-"
    text = f"{float(row['mean']):.1f}"
    return f"**{text}**" if row["best"] == "True" else text


def gains_table(rows: Sequence[Row]) -> str:
    """Return the gains of copying over the same predictor without it, with the p values of paired tests."""
    over = "without-copying"
    cells = {
        (row["dataset"], row["question"], row["score"]): (row[f"gain_over_{over}"], row[f"p_over_{over}"])
        for row in rows
        if row["method"] == "default" and row[f"p_over_{over}"]
    }
    lines = []
    for dataset in dict.fromkeys(dataset for dataset, *_ in cells):
        shown = [cells.get((dataset, question, score)) for _, question, score in GAINS]
        lines.append([DATASETS[dataset], *("-" if cell is None else format_gain(*cell) for cell in shown)])
    return format_table(["gain of copying", *(title for title, *_ in GAINS)], lines)


def format_gain(gain: str, p: str) -> str:
    """Return a gain with its p value."""
    return f"{float(gain):+.1f}, p {'< 0.01' if float(p) < 0.01 else f'= {float(p):.2g}'}"


def compare_with_controls(rows: Sequence[Row]) -> str:
    """Return for each dataset the columns in which a control is more than two standard errors ahead."""
    controls = {method.name for method in load(LINKS).methods} - {"default", "without-copying"}
    columns: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        if row["mean"] and "ece" not in row["score"]:
            columns.setdefault((row["dataset"], row["question"], row["score"]), {})[row["method"]] = row
    lines = []
    for dataset in dict.fromkeys(dataset for dataset, *_ in columns):
        behind, n = [], 0
        for (name, question, score), cells in columns.items():
            others = [row for method, row in cells.items() if method in controls]
            if name != dataset or not others or "default" not in cells:
                continue
            ours, best = cells["default"], max(others, key=lambda row: float(row["mean"]))
            errors = [float(row["std"] or 0) ** 2 / int(row["n"]) for row in (ours, best)]
            gap = float(best["mean"]) - float(ours["mean"])
            n += 1
            if gap > 2 * sum(errors) ** 0.5:
                behind.append(f"{score if question == 'missing' else question} ({best['method']}, {gap:.1f})")
        lines.append(f"- {DATASETS[dataset]}: behind a control in {len(behind)} of {n} columns")
        lines[-1] += f": {', '.join(behind)}." if behind else "."
    return "\n".join(lines)


def denoise_table(rows: Sequence[Row]) -> str:
    """Return the accuracy of every classifier by dataset and noise."""
    cells = {
        (row["dataset"], row["noise"], row["percent"], row["method"]): row for row in rows if row["mean"]
    }
    places = [("clean", "0"), ("added", "10"), ("added", "50"), ("removed", "10"), ("removed", "50")]
    heads = ["clean", *(f"{percent} % {noise}" for noise, percent in places[1:])]
    lines = []
    for dataset in dict.fromkeys(dataset for dataset, *_ in cells):
        for method in load(DENOISE).methods:
            shown = [format_mean(cells.get((dataset, *place, method.name))) for place in places]
            if set(shown) != {"-"}:
                lines.append([f"{DATASETS[dataset]}, {method.title}", *shown])
    return format_table(["accuracy", *heads], lines)


def links_tables(read_results: Callable[[str], list[Row]]) -> dict[str, str]:
    """Return the tables of the page by their names."""
    rows, noisy = read_results(LINKS), read_results(DENOISE)
    if not rows:
        return dict.fromkeys([*TABLES, "gains", "columns", "denoise"], not_computed(LINKS))
    tables = {name: score_table(rows, places) for name, places in TABLES.items()}
    denoised = denoise_table(noisy) if noisy else not_computed(DENOISE)
    return tables | {"gains": gains_table(rows), "columns": compare_with_controls(rows), "denoise": denoised}

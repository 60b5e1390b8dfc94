"""The tables of the README and of pages of the documentation, from the stored results.

The build replaces lines such as ``<!-- table: coverage -->`` of pages by tables. The README holds its
table: ``python -m docs.result_tables.pages`` writes it, and a test checks that it is up to date.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from docs.result_tables.cells import format_table, not_computed
from docs.result_tables.defence import defence_tables
from docs.result_tables.inference import BENCHMARK, inference_tables, speed_table
from docs.result_tables.links import links_tables
from docs.result_tables.uncertainty import uncertainty_tables
from nodecopy.experiments.config import load
from nodecopy.experiments.spec import Method

ROOT = Path(__file__).parents[2]
README, FEW_LABELS = ROOT / "README.md", ROOT / "docs/few_labels.md"
INFERENCE, UNCERTAINTY = ROOT / "docs/results/inference.md", ROOT / "docs/uncertainty.md"
RECOMMENDATION = ROOT / "docs/recommendation.md"
RESULTS = ROOT / "results"
PAGES = ROOT / "docs/results"


class Job(NamedTuple):
    """A row of the README: a question, what answers it, and one number beside the strongest control."""

    question: str
    answer: str
    measure: str
    experiment: str
    condition: dict[str, str]
    ours: str
    controls: tuple[str, ...] = ()
    """Rows that may be the strongest control; by default all other rows."""


JOBS = (
    Job(
        "Which edges are missing?",
        "[`links.LinkPredictor`](docs/links.md)",
        "AUC of held-out edges, Cora",
        "links",
        {"dataset": "cora", "question": "missing", "score": "auc"},
        "default",
    ),
    Job(
        "Which edges are wrong?",
        "[`links.LinkPredictor`](docs/links.md)",
        "AUC of planted edges, Cora",
        "links",
        {"dataset": "cora", "question": "random", "score": "auc"},
        "default",
    ),
    Job(
        "Which class does each node have, with few labels?",
        "[`classify.SelfTraining`](docs/few_labels.md)",
        "accuracy, Cora, 5 labels per class",
        "few-labels",
        {"dataset": "cora", "labels": "5", "visible_validation": "0"},
        "default",
    ),
    Job(
        "Which class, by the Bayesian GCN of the paper?",
        "[`classify.BayesianGCN`](docs/results/table2.md)",
        "accuracy, Cora, 5 labels per class",
        "table2",
        {"dataset": "cora", "labels": "5"},
        "bgcn-copy",
        ("gcn", "mmsbm-bgcn", "sbm-gcn"),
    ),
    Job(
        "What will each user like?",
        "[`recommend.CopyEASE`](docs/recommendation.md)",
        "recall@20, Gowalla",
        "public-splits",
        {"dataset": "gowalla", "score": "recall@20"},
        "copy-ease",
    ),
    Job(
        "Which class does an attacked node have?",
        "[`defend`](docs/defence.md)",
        "accuracy under Nettack, Cora",
        "defence",
        {"dataset": "cora", "attack": "nettack"},
        "evidence",
    ),
)
MIN_TRIALS = 5  # of a number in the README
COVERED = (92.0, 98.0)  # of nominally 95 %
COPYING = ("class-copying", "copying")  # the default, and what was computed before it
UNDIRECTED, FITTED = ("sbm", "dc-sbm", "dot-product", "graphon"), ("sbm", "dc-sbm", "dot-product")
FEW, FOREIGN, PUBLIC_SPLITS = "few-labels", "foreign-graphs", "public-splits"
CONTROLS = {
    "gcn": "a GCN",
    "sgc": "SGC",
    "dgi": "DGI",
    "bgcn-copy": "BGCN-Copy",
    "self-training": "self-training of GCNs",
}
"""Controls of the default on few labels, and what its gains over them are called."""
Row = Mapping[str, str]
MARKER = re.compile(r"^<!-- table: (.+) -->$", re.MULTILINE)


def read_results(experiment: str) -> list[Row]:
    """Return the rows of a stored results table; none if the experiment was not run yet."""
    path = RESULTS / f"{experiment}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def describe_gain(row: Row, over: str) -> str:
    """Return the gain over another method with its p value, such as "+0.5, p = 0.003"."""
    p = float(row[f"p_over_{over}"])
    return f"{float(row[f'gain_over_{over}']):+.1f}, p {'< 0.001' if p < 0.001 else f'= {p:.2g}'}"


def results_table() -> str:
    """Return the table of the README: each question, the class that answers it, and a measurement."""
    lines = [["How uncertain is a statistic?", "[`inference.bootstrap`](docs/inference.md)", *_coverage()]]
    for job in JOBS:
        rows = [row for row in read_results(job.experiment) if row.items() >= job.condition.items()]
        values = {row["method"]: _measured(row) for row in rows if _is_measured(row)}
        others = {
            name: value
            for name, value in values.items()
            if value is not None and name != job.ours and name in (job.controls or values)
        }
        ours = values.get(job.ours)
        if ours is None or not others:  # not computed yet
            continue
        best = max(others, key=others.__getitem__)
        title = next(method.title for method in load(job.experiment).methods if method.name == best)
        lines.append([job.question, job.answer, f"{job.measure}: {ours:.1f}", f"{title}: {others[best]:.1f}"])
    return format_table(["you ask", "you use", "measured, in percent", "best other method"], lines)


def _measured(row: Row) -> float | None:
    """Return our mean, or the published number of a method that was not run."""
    text = row["mean"] or row["published"]
    return float(text) if text else None


def _is_measured(row: Row) -> bool:
    """Return whether a cell has enough trials for the README, or is published only."""
    return not row["mean"] or int(row["n"]) >= min(MIN_TRIALS, load(row["experiment"]).task.trials)


def _coverage() -> list[str]:
    """Return how often coverage is near 95 % on undirected networks, here and with the best fitted model."""
    shares: dict[str, dict[tuple[str, ...], bool]] = {}
    for row in read_results("coverage"):
        is_shown = row["score"].endswith(" covered") and row["dataset"] in UNDIRECTED
        if is_shown and row["mean"] and _is_measured(row):
            place = tuple(row[name] for name in ("dataset", "nodes", "degree", "score"))
            shares.setdefault(row["method"], {})[place] = COVERED[0] <= float(row["mean"]) <= COVERED[1]
    ours = next(name for name in COPYING if name in shares)
    percent = {}
    for name, values in shares.items():  # on the networks on which ours was measured
        common = [value for place, value in values.items() if place in shares[ours]]
        percent[name] = 100 * sum(common) / max(len(common), 1)
    best = max(FITTED, key=percent.__getitem__)
    title = {method.name: method.title for method in load("coverage").methods}
    what = f"share of 95 % intervals whose measured coverage is {COVERED[0]:.0f} to {COVERED[1]:.0f} %"
    return [f"{what}, {title[ours]}: {percent[ours]:.0f}", f"{title[best]}: {percent[best]:.0f}"]


def few_labels_table(by: str, heading: str, value: str = "mean", **conditions: str) -> str:
    """Return the methods of the experiment on few labels as rows, one column for each value of ``by``.

    Methods that are not run in all columns are left out. The best mean of a column is bold if the default was
    computed, and the last rows are the gains of the default over those of its controls that were computed.
    """
    rows = [row for row in read_results(FEW) if all(row[name] == given for name, given in conditions.items())]
    if not rows:
        return not_computed(FEW)
    columns = list(dict.fromkeys(row[by] for row in rows))
    cells = {(row["method"], row[by]): row for row in rows if row["mean"]}
    lines = [f"| {heading} | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    methods = load(FEW).methods
    is_run_in_all = {
        method.name: all(_is_run(method, conditions | {by: column}) for column in columns)
        for method in methods
    }
    for method in methods:
        if not is_run_in_all[method.name] or not any((method.name, column) in cells for column in columns):
            continue
        shown = []
        for column in columns:
            row = cells.get((method.name, column))
            text = "-" if row is None else f"{float(row[value]):.1f}"
            is_best = row is not None and row["best"] == "True" and ("default", column) in cells
            is_best = is_best and value == "mean"
            shown.append(f"**{text}**" if is_best else text)
        lines.append(f"| {method.title} | {' | '.join(shown)} |")
    for over, title in CONTROLS.items() if value == "mean" else ():
        gains = [
            describe_gain(row, over) if row.get(f"gain_over_{over}") else "-"
            for row in (cells.get(("default", column), {}) for column in columns)
        ]
        if set(gains) != {"-"} and is_run_in_all[over]:
            lines.append(f"| gain of the default over {title} | {' | '.join(gains)} |")
    return "\n".join(lines)


def foreign_graphs_table(labels: str) -> str:
    """Return the accuracy of each method on other graphs and variants, and its mean over all of them."""
    rows = [row for row in read_results(FOREIGN) if row["labels"] == labels and row["mean"]]
    rows = [row for row in rows if row["score"] == "accuracy"]
    computed = {row["method"] for row in rows}
    methods = [method for method in load(FOREIGN).methods if method.name in computed]
    if not methods:
        return not_computed(FOREIGN)
    cells = {(row["dataset"], row["variant"], row["method"]): float(row["mean"]) for row in rows}
    places = list(dict.fromkeys(place[:2] for place in cells))
    lines = []
    for place in places:
        values = [cells.get((*place, method.name)) for method in methods]
        lines.append([", ".join(place), *("-" if value is None else f"{value:.1f}" for value in values)])
    complete = [place for place in places if all((*place, m.name) in cells for m in methods)]
    if complete:
        means = [sum(cells[(*place, m.name)] for place in complete) / len(complete) for m in methods]
        lines.append([f"mean of the {len(complete)} with all", *(f"{mean:.1f}" for mean in means)])
    return format_table([f"accuracy, {labels} labels", *(method.title for method in methods)], lines)


def _is_run(method: Method, conditions: Mapping[str, str]) -> bool:
    numbers = {name: int(value) for name, value in conditions.items() if name != "dataset"}
    return method.runs_on(conditions["dataset"], numbers)


def gains_table(labels: str, visible_validation: str = "500") -> str:
    """Return the gains of the experiment on few labels with so many labels per class, by dataset."""
    conditions = {"labels": labels, "visible_validation": visible_validation}
    rows = [row for row in read_results(FEW) if all(row[name] == value for name, value in conditions.items())]
    pairs = [(method, over) for method in load(FEW).methods for over in method.gain_over]
    cells = {
        (method.name, over, row["dataset"]): describe_gain(row, over)
        for method, over in pairs
        for row in rows
        if row["method"] == method.name and row.get(f"p_over_{over}")
    }
    if not cells:
        return not_computed(FEW)
    datasets = [name for name in load(FEW).task.datasets if any(name == dataset for *_, dataset in cells)]
    titles = {method.name: method.title for method in load(FEW).methods}
    lines = [
        [f"{method.title} over {titles[over]}", *(cells.get((method.name, over, d), "-") for d in datasets)]
        for method, over in pairs
        if any((method.name, over, d) in cells for d in datasets)
    ]
    return format_table([f"gain, {labels} labels", *datasets], lines)


def describe_columns() -> str:
    """Return in how many columns of each dataset the default is ahead of self-training of GCNs."""
    over, lines = "self-training", []
    rows = [row for row in read_results(FEW) if row["method"] == "default" and row.get(f"p_over_{over}")]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        gains = [float(row[f"gain_over_{over}"]) for row in rows if row["dataset"] == dataset]
        is_clear = [float(row[f"p_over_{over}"]) < 0.05 for row in rows if row["dataset"] == dataset]
        n_ahead, n_behind = (
            sum(clear and sign * gain > 0 for gain, clear in zip(gains, is_clear, strict=True))
            for sign in (1, -1)
        )
        lines.append(
            f"- {dataset}: significantly ahead of self-training of GCNs in {n_ahead} of {len(gains)} "
            f"computed columns and behind in {n_behind}; gains of {min(gains):+.1f} to {max(gains):+.1f}."
        )
    return "\n".join(lines) or not_computed(FEW)


def public_splits_table() -> str:
    """Return recall and NDCG of each method on each public split, ours and in parentheses the published."""
    rows = read_results(PUBLIC_SPLITS)
    if not any(row["mean"] for row in rows):
        return not_computed(PUBLIC_SPLITS)
    scores = list(dict.fromkeys(row["score"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    cells = {(row["method"], row["dataset"], row["score"]): row for row in rows}
    lines = [f"| {' / '.join(scores)} | {' | '.join(datasets)} |", "| --- |" + " --- |" * len(datasets)]
    for method in load(PUBLIC_SPLITS).methods:
        shown = []
        for dataset in datasets:
            entries = [cells.get((method.name, dataset, score), {}) for score in scores]
            ours = [_percent(row, "mean", is_bold=row.get("best") == "True") for row in entries]
            published = [_percent(row, "published") for row in entries]
            texts = [" / ".join(ours)] if any(row.get("mean") for row in entries) else []
            if any(row.get("published") for row in entries):
                texts.append(f"({' / '.join(published)})")
            shown.append(" ".join(texts) or "-")
        lines.append(f"| {method.title} | {' | '.join(shown)} |")
    return "\n".join(lines)


# The tables on the pages of results: columns as (title, condition of the row), and methods.
SUMMARIES: dict[str, tuple[tuple[tuple[str, dict[str, str]], ...], tuple[str, ...]]] = {
    "table1": (
        (
            ("mean degree", {"dataset": "cora", "score": "mean_degree"}),
            ("maximum degree", {"dataset": "cora", "score": "max_degree"}),
            ("edges between classes, %", {"dataset": "cora", "score": "cross_community_share"}),
        ),
        ("observed", "vgae-calibrated", "copying-5", "copying-15", "copying-balanced"),
    ),
    "table2": (
        (
            ("Cora", {"dataset": "cora", "labels": "5"}),
            ("Citeseer", {"dataset": "citeseer", "labels": "5"}),
            ("Pubmed", {"dataset": "pubmed", "labels": "5"}),
            ("Coauthor CS", {"dataset": "coauthor-cs", "labels": "5"}),
        ),
        ("gcn", "mmsbm-bgcn", "sbm-gcn", "bgcn-copy", "appnp-copy-iterated"),
    ),
    "table3": (
        (
            ("Cora", {"dataset": "cora"}),
            ("Citeseer", {"dataset": "citeseer"}),
            ("Pubmed", {"dataset": "pubmed"}),
            ("Coauthor CS", {"dataset": "coauthor-cs"}),
        ),
        ("mlp", "gcn", "mmsbm-bgcn", "sbm-gcn", "bgcn-copy"),
    ),
    "table4": (
        (("5 labels", {"labels": "5"}), ("10 labels", {"labels": "10"}), ("20 labels", {"labels": "20"})),
        ("vgae", "graphite", "mmsbm", "netgan", "dglfrm-b", "bgcn-copy"),
    ),
    "table5": (
        (
            ("Cora, no attack", {"dataset": "cora", "attack": "none"}),
            ("DICE 50 %", {"dataset": "cora", "attack": "dice-50"}),
            ("Nettack", {"dataset": "cora", "attack": "nettack"}),
            ("FGA", {"dataset": "cora", "attack": "fga"}),
            ("knows the expected donors", {"dataset": "cora", "attack": "adaptive-expected"}),
        ),
        (
            *("gcn", "gcn-jaccard", "copying", "average-vgae", "copying-expected", "average-expected"),
            *("copying-retrained", "average-retrained"),
        ),
    ),
    "table6": (
        (
            ("MovieLens 100k, recall@20", {"dataset": "ml-100k", "score": "printed recall@20"}),
            ("NDCG@20", {"dataset": "ml-100k", "score": "printed ndcg@20"}),
            ("Amazon CDs, recall@20", {"dataset": "amazon-cds", "score": "printed recall@20"}),
            ("NDCG@20", {"dataset": "amazon-cds", "score": "printed ndcg@20"}),
        ),
        ("bprmf", "mgccf", "mgccf-ebpr", "mgccf-sgbpr", "ease", "copy-ease", "ials", "fusion"),
    ),
}


def summary_table(experiment: str) -> str:
    """Return some cells of a table: our means and, in parentheses, those of the paper; the best are bold."""
    columns, methods = SUMMARIES[experiment]
    rows = read_results(experiment)
    titles = {method.name: method.title for method in load(experiment).methods}
    lines = [
        f"| here (paper) | {' | '.join(title for title, _ in columns)} |",
        "| --- |" + " --- |" * len(columns),
    ]
    for method in methods:
        cells = []
        for _, condition in columns:
            wanted = {"method": method, **condition}
            (row,) = (row for row in rows if all(row[name] == value for name, value in wanted.items()))
            cells.append(_compare(row))
        lines.append(f"| {titles[method]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _compare(row: Row) -> str:
    """Return our mean, bold if it is the best of its column, with the published one if there is one."""
    if not row["mean"]:
        return "-"
    ours = f"{float(row['mean']):.1f}"
    ours = f"**{ours}**" if row["best"] == "True" else ours
    return f"{ours} ({float(row['published']):.1f})" if row["published"] else ours


def _percent(row: Row, key: str, is_bold: bool = False) -> str:
    if not row.get(key):
        return "-"
    text = f"{float(row[key]):.2f}"
    return f"**{text}**" if is_bold else text


def documented_tables() -> dict[tuple[Path, str], str]:
    """Return every generated table by its file and the name of its markers."""
    without = {"visible_validation": "0"}
    with_validation = {"visible_validation": "500"}
    return {
        (RECOMMENDATION, "public splits"): public_splits_table(),
        (FEW_LABELS, "five labels"): few_labels_table("dataset", "accuracy, 5 labels", labels="5", **without),
        (FEW_LABELS, "labels"): few_labels_table("labels", "accuracy, labels", dataset="cora", **without),
        **{
            (FEW_LABELS, f"{n} labels with validation"): few_labels_table(
                "dataset", f"accuracy, {n} labels", labels=n, **with_validation
            )
            for n in ("5", "20")
        },
        (FEW_LABELS, "other graphs"): foreign_graphs_table("5"),
        (FEW_LABELS, "cost"): few_labels_table(
            "dataset", "seconds per trial", "seconds", labels="5", **without
        ),
        **{(PAGES / "few-labels.md", f"{n} labels"): gains_table(n) for n in ("5", "20")},
        (PAGES / "few-labels.md", "columns"): describe_columns(),
        **{(PAGES / f"{name}.md", "summary"): summary_table(name) for name in SUMMARIES},
        **{
            (UNCERTAINTY, name): text
            for name, text in uncertainty_tables(read_results("uncertainty")).items()
        },
        **{(PAGES / "defence.md", name): text for name, text in defence_tables(read_results).items()},
        **{(PAGES / "links.md", name): text for name, text in links_tables(read_results).items()},
        **{(INFERENCE, name): text for name, text in inference_tables(read_results).items()},
        (INFERENCE, "speed"): speed_table(BENCHMARK.read_text(encoding="utf-8")),
    }


def fill_tables(path: Path, text: str, tables: Mapping[tuple[Path, str], str]) -> str:
    """Return the text of a page with the tables that it names."""
    return MARKER.sub(lambda match: tables[path, match[1]], text)


def find_block(text: str) -> re.Match[str]:
    """Return the results table of the README."""
    match = re.search(r"(?<=<!-- results -->\n).*?(?=\n<!-- end of results -->)", text, re.DOTALL)
    assert match is not None
    return match


def main() -> None:
    """Write the table of the README."""
    block = find_block(README.read_text(encoding="utf-8"))
    text = block.string[: block.start()] + results_table() + block.string[block.end() :]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The tables and sentences of the page on uncertainty, from the stored results of its experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from docs.result_tables.cells import format_table, not_computed
from nodecopy.experiments.config import load
from nodecopy.experiments.tasks.classify import LEFT_OUT

Row = Mapping[str, str]
EXPERIMENT, BASELINE = "uncertainty", "gcn"
LEVEL = 0.05
"""Of the paired tests."""
TABLES = {
    "selection": ("accuracy without 0.2 by total", "accuracy without 0.2 by epistemic"),
    "errors": ("errors auc by total", "errors auc by epistemic"),
    "class": ("left-out class auc by total", "left-out class auc by epistemic"),
    "calibration": ("ece", "scaled ece"),
}
"""The scores of each table, by its name on the page."""


def score_table(rows: Iterable[Row], scores: tuple[str, str]) -> str:
    """Return two scores of every method, separated by a slash, by dataset and number of labels."""
    cells = {(row["method"], _column(row), row["score"]): row for row in rows if row["mean"]}
    columns = list(dict.fromkeys(column for _, column, _ in cells))
    lines = []
    for method in load(EXPERIMENT).methods:
        pairs = [[cells.get((method.name, column, score)) for score in scores] for column in columns]
        shown = [
            " / ".join("-" if row is None else f"{float(row['mean']):.1f}" for row in pair) for pair in pairs
        ]
        lines.append([method.title, *shown])
    headings = []
    for column in columns:
        n_splits = {int(row["n"]) for (_, of, _), row in cells.items() if of == column}
        shown_splits = " to ".join(map(str, sorted({min(n_splits), max(n_splits)})))
        headings.append(f"{column} ({shown_splits} splits)")
    return format_table(["", *headings], lines)


def compare_with_entropy(rows: Iterable[Row]) -> str:
    """Return how often the epistemic uncertainty of each method beats the entropy of a GCN, in a list.

    Its selective accuracy is compared by the paired test for every share that is left out, its detection of
    errors, which does not depend on the accuracy, by the same test.
    """
    selective = [f"accuracy without {share} by epistemic" for share in LEFT_OUT]
    rows, lines = list(rows), []
    for method in load(EXPERIMENT).methods:
        if method.name == BASELINE:
            continue
        own = [row for row in rows if row["method"] == method.name and row[f"p_over_{BASELINE}"]]
        selected = _count_verdicts([row for row in own if row["score"] in selective])
        ranked = _count_verdicts([row for row in own if row["score"] == "errors auc by epistemic"])
        lines.append(f"- {method.title}: selective accuracy {selected}; detection of errors {ranked}.")
    return "\n".join([*lines, _compare_with_total(rows)])


def _compare_with_total(rows: Iterable[Row]) -> str:
    """Return how often the total uncertainty detects errors better than the epistemic one of a classifier."""
    names = TABLES["errors"]
    scores = {(row["method"], _column(row), row["score"]): float(row["mean"]) for row in rows if row["mean"]}
    places = {place[:2] for place in scores if place[0] != BASELINE}
    pairs = [[scores.get((*place, name)) for name in names] for place in places]
    pairs = [pair for pair in pairs if None not in pair]
    n_better = sum(total > epistemic for total, epistemic in pairs)  # type: ignore[operator]
    return (
        "- The total uncertainty of these classifiers detects errors better than the epistemic one in "
        f"{n_better} of {len(pairs)} cells."
    )


def _count_verdicts(rows: list[Row]) -> str:
    """Return how many gains over the baseline are significant, and how many losses."""
    gains = [(float(row[f"gain_over_{BASELINE}"]), float(row[f"p_over_{BASELINE}"])) for row in rows]
    better = sum(gain > 0 and p < LEVEL for gain, p in gains)
    worse = sum(gain < 0 and p < LEVEL for gain, p in gains)
    return f"significantly higher in {better} of {len(gains)} comparisons and lower in {worse}"


def _column(row: Row) -> str:
    return f"{row['dataset']}, {row['labels']} labels"


def uncertainty_tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return every generated part of the page by the name of its markers."""
    if not any(row["mean"] for row in rows):
        return dict.fromkeys(["comparison", *TABLES], not_computed(EXPERIMENT))
    parts = {name: score_table(rows, scores) for name, scores in TABLES.items()}
    return {"comparison": compare_with_entropy(rows)} | parts

"""The section of results tables, read from the CSV files that ``nodecopy reproduce`` wrote."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodecopy._core.formats import PathLike
from nodecopy._core.notices import warn_about_data
from nodecopy.errors import InputError
from nodecopy.report.headlines import tables_headline
from nodecopy.report.rounding import round_number

NUMBERS = ("mean", "std", "published", "published_std")
COLUMNS = {"experiment", "dataset", "score", "method", "verdict", *NUMBERS}
OPEN = "table2"
"""The experiment whose table is open when the page is; the first one if it is not there."""
DATASETS = {
    **{"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed", "coauthor-cs": "Coauthor CS"},
    **{"amazon-photo": "Amazon Photo", "polblogs": "Polblogs", "bitcoin": "Bitcoin", "digits": "digits"},
    **{"ml-100k": "MovieLens 100k", "amazon-cds": "Amazon CDs", "amazon-beauty": "Amazon Beauty"},
    **{"gowalla": "Gowalla", "yelp2018": "Yelp2018"},
    **{"sbm": "block model", "dc-sbm": "degree-corrected block model", "dot-product": "dot product graph"},
    **{"graphon": "graphon", "bipartite": "bipartite graph", "directed": "directed block model"},
    **{"erdos-renyi": "Erdős-Rényi graph", "configuration": "configuration model"},
    **{"planted-triangles": "planted triangles", "planted-communities": "planted communities"},
}
"""Names of datasets and of models of networks as papers write them."""


def result_tables_section(
    folder: PathLike, *, titles: Mapping[str, Mapping[str, str]] | None = None, text: str = ""
) -> dict[str, Any]:
    """Return the section with every results table of a folder, our numbers above the published ones.

    Parameters
    ----------
    folder
        The folder of the CSV files; files with other columns are skipped, and those that cannot be read are
        left out with a warning.
    titles
        For each experiment its title (key ``""``) and the titles of its methods and attacks. By default
        their names.
    text
        The introduction of the section.
    """
    experiments, verdicts = [], []
    for file in sorted(Path(folder).glob("*.csv"), key=_rank):
        try:
            if rows := _read_rows(file):
                experiments.append(_experiment(rows, (titles or {}).get(rows[0]["experiment"], {})))
                verdicts += [row["verdict"] for row in rows if row["verdict"]]
        except (OSError, ValueError, csv.Error) as error:
            warn_about_data(f"{file} is left out, since it cannot be read: {str(error).rstrip('.')}.")
    if not experiments:
        raise InputError(f"folder must hold CSV files of results tables; got {folder}, which has none.")
    names = [experiment["name"] for experiment in experiments]
    return {
        "kind": "tables",
        "title": "Reproduction",
        "headline": tables_headline(verdicts),
        "text": text,
        "open": names.index(OPEN) if OPEN in names else 0,
        "experiments": experiments,
    }


def _rank(file: Path) -> tuple[bool, str]:
    """Return the place of a file: the tables of the paper come first."""
    return not file.stem.startswith("table"), file.stem


def _read_rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader) if set(reader.fieldnames or ()) >= COLUMNS else []
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise ValueError(f"row {number} has another number of columns than the header")
    return rows


def _experiment(rows: Sequence[Mapping[str, str]], titles: Mapping[str, str]) -> dict[str, Any]:
    name = rows[0]["experiment"]
    groups = []
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
    """Return the title of an experiment, after the number of its table in the paper, if it has one.

    >>> _title("table5-unknown-targets", "Accuracy"), _title("table5-pubmed", ""), _title("mine", "")
    ('Table 5, unknown targets: Accuracy', 'Table 5, Pubmed', 'mine')
    """
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
    """Return labels, attack and score; not every task has all of them."""
    return row.get("labels", ""), row.get("attack", ""), row["score"]


def _cell(row: Mapping[str, str]) -> list[Any]:
    """Return our mean and deviation, the published ones, the verdict and whether ours is the best.

    What is missing is ``None``, or left out at the end, which keeps the page small.
    """
    numbers = [float(row[key]) if row[key] else None for key in NUMBERS]
    if not all(value is None or math.isfinite(value) for value in numbers):
        raise ValueError(f"the numbers of {row['method']} must be finite; got {numbers}")
    is_best = 1 if row.get("best") == "True" else None
    cell = [
        *(None if value is None else round_number(value, 5) for value in numbers),
        row["verdict"] or None,
        is_best,
    ]
    while cell and cell[-1] is None:
        cell.pop()
    return cell

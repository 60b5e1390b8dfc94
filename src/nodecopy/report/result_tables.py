"""The section of results tables, read from the CSV files that ``nodecopy reproduce`` wrote."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodecopy._core.formats import PathLike
from nodecopy._core.notices import warn_about_data
from nodecopy.errors import InputError
from nodecopy.report.headlines import tables_headline

NUMBERS = ("mean", "std", "published", "published_std", "difference")
COLUMNS = {"experiment", "dataset", "score", "method", "verdict", *NUMBERS}


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
    experiments = []
    for file in sorted(Path(folder).glob("*.csv")):
        try:
            if rows := _read_rows(file):
                experiments.append(_experiment(rows, (titles or {}).get(rows[0]["experiment"], {})))
        except (OSError, ValueError, csv.Error) as error:
            warn_about_data(f"{file} is left out, since it cannot be read: {str(error).rstrip('.')}.")
    if not experiments:
        raise InputError(f"folder must hold CSV files of results tables; got {folder}, which has none.")
    verdicts = [
        cell["verdict"]
        for experiment in experiments
        for group in experiment["groups"]
        for row in group["rows"]
        for cell in row["cells"]
        if cell and "verdict" in cell
    ]
    return {
        "kind": "tables",
        "title": "Reproduction",
        "headline": tables_headline(verdicts),
        "text": text,
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
                "dataset": dataset,
                "columns": [_heading(column, differs, titles) for column in columns],
                "rows": [
                    {
                        "method": titles.get(method, method),
                        "cells": [cells.get((method, column)) for column in columns],
                    }
                    for method in methods
                ],
            }
        )
    origin = {  # the trials of a cell may have several origins
        key: sorted({part for row in rows for part in row.get(key, "").split("; ")} - {""})
        for key in ("commit", "machine", "date")
    }
    return {"name": name, "title": titles.get("", name), "groups": groups, "origin": origin}


def _heading(column: tuple[str, str, str], differs: Sequence[bool], titles: Mapping[str, str]) -> str:
    labels, attack, score = column
    parts = (f"{labels} labels", titles.get(attack, attack), score)
    return ", ".join(part for part, is_different in zip(parts, differs, strict=True) if is_different) or score


def _column(row: Mapping[str, str]) -> tuple[str, str, str]:
    """Return labels, attack and score; not every task has all of them."""
    return row.get("labels", ""), row.get("attack", ""), row["score"]


def _cell(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that a row has; what is left out keeps the page small."""
    values: dict[str, Any] = {key: float(f"{float(row[key]):.5g}") for key in NUMBERS if row[key]}
    if not all(map(math.isfinite, values.values())):
        raise ValueError(f"the numbers of {row['method']} must be finite; got {values}")
    if row["verdict"]:
        values["verdict"] = row["verdict"]
    return values | {"best": True} if row.get("best") == "True" else values

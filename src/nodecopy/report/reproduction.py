"""The reproduction tables, read back from the CSV files that ``nodecopy reproduce`` wrote."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodecopy._core.formats import PathLike
from nodecopy.errors import InputError

NUMBERS = ("mean", "std", "published", "published_std", "difference")
NEEDED = {"experiment", "dataset", "labels", "attack", "score", "method", "verdict", *NUMBERS}


def tables(
    folder: PathLike, *, titles: Mapping[str, Mapping[str, str]] | None = None, text: str = ""
) -> dict[str, Any]:
    """A section with every table of a folder, ours beside the published numbers.

    Other CSV files in the folder are left out.

    Parameters
    ----------
    folder
        Holds the CSV files.
    titles
        For each experiment, what to call it (key ``""``), its methods and its attacks; by default their
        names.
    text
        What to say of it.
    """
    read = [_rows(file) for file in sorted(Path(folder).glob("*.csv"))]
    if not any(read):
        raise InputError(f"results must be a folder with CSV files of nodecopy reproduce; {folder} has none.")
    found = [_experiment(rows, (titles or {}).get(rows[0]["experiment"], {})) for rows in read if rows]
    return {"kind": "tables", "title": "Reproduction", "text": text, "experiments": found}


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        return list(reader) if set(reader.fieldnames or ()) >= NEEDED else []


def _experiment(rows: Sequence[Mapping[str, str]], titles: Mapping[str, str]) -> dict[str, Any]:
    name = rows[0]["experiment"]
    groups = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == dataset]
        columns = list(dict.fromkeys((row["labels"], row["attack"], row["score"]) for row in own))
        # A column is called after what differs between columns.
        differs = [len({column[part] for column in columns}) > 1 for part in range(3)]
        cells = {(row["method"], (row["labels"], row["attack"], row["score"])): _cell(row) for row in own}
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
    origin = {  # a cell's trials may come from several
        key: sorted({part for row in rows for part in row.get(key, "").split("; ")} - {""})
        for key in ("commit", "machine", "date")
    }
    return {"name": name, "title": titles.get("", name), "groups": groups, "origin": origin}


def _heading(column: tuple[str, str, str], differs: Sequence[bool], titles: Mapping[str, str]) -> str:
    labels, attack, score = column
    parts = (f"{labels} labels", titles.get(attack, attack), score)
    return ", ".join(part for part, wanted in zip(parts, differs, strict=True) if wanted) or score


def _cell(row: Mapping[str, str]) -> dict[str, Any]:
    values = {key: float(row[key]) if row[key] else None for key in NUMBERS}
    return {**values, "verdict": row["verdict"], "best": row.get("best") == "True"}

"""``nodecopy sample --engine``: samples of Parquet files that need not fit into memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nodecopy import datasets
from nodecopy._core.atomic_files import atomic_folder
from nodecopy._core.validation import check_integer
from nodecopy.cli.terminal import show_progress
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.edge_tables.donor_tables import EdgeTableLaw
from nodecopy.edge_tables.engines import DuckDB, Engine, Spark
from nodecopy.errors import InputError


def opener(name: str, memory: str | None, master: str, scratch: Path) -> Callable[[], Engine]:
    """What opens an engine."""
    if name == "duckdb":
        return lambda: DuckDB(memory, scratch=scratch)
    if memory is not None:
        raise InputError("--memory goes with --engine duckdb; Spark's is set where its cluster is.")
    return lambda: Spark(master, scratch)


def chosen_law(
    law: str,
    labels: Path | None,
    neighbours: Path | None,
    similarity: Path | None,
    max_item_degree: int | None,
    max_donors: int | None,
) -> tuple[str, EdgeTableLaw]:
    """The donor law by its name; auto takes the one whose table was given, else jaccard."""
    given = {"same-label": labels, "nearest-neighbours": neighbours, "weighted": similarity}
    if law == "auto":
        law = next((name for name, path in given.items() if path is not None), "jaccard")
    if law == "jaccard":
        return law, JaccardTable(max_item_degree, max_donors=max_donors)
    path = given[law]
    if path is None:
        option = {"same-label": "labels", "nearest-neighbours": "neighbours", "weighted": "similarity"}[law]
        raise InputError(f"--law {law} with an engine needs a Parquet file: --{option} FILE.")
    laws: dict[str, type[Any]] = {
        "same-label": SameLabelTable,
        "nearest-neighbours": NearestNeighboursTable,
        "weighted": WeightedTable,
    }
    return law, laws[law](path)


def write_samples(
    model: EdgeTableCopying,
    source: str,
    inputs: Iterable[Path],
    open_engine: Callable[[], Engine],
    origin: dict[str, Any],
    out: Path,
    *,
    overwrite: bool,
    directed: bool,
    interactions: bool,
) -> list[dict[str, Any]]:
    """Write a folder of samples, whole or not at all; returns what each file holds."""
    n, found = check_integer(origin["n"], "--n", low=0), []
    if not Path(source).exists() and source in datasets.names():
        raise InputError(
            f"--engine {origin['engine']} takes Parquet files, not names of datasets; got {source}."
        )
    for path in (Path(source), *inputs):
        if out.resolve() in (path.resolve(), *path.resolve().parents):
            raise InputError(f"--out {out} must not be a folder that is read; it holds {path}.")
    with atomic_folder(out, mark="samples.json", overwrite=overwrite) as folder, open_engine() as engine:
        model.fit(source, engine=engine, directed=directed, interactions=interactions)
        if not model.n_nodes_:
            raise InputError(f"{source} must hold at least one edge; it has none.")
        for number in show_progress(range(n), n, "sampling"):
            path = folder / f"sample-{number:0{len(str(n - 1))}d}.parquet"
            model.write(path, rng=origin["seed"], sample=number)
            written = engine.scan(path)
            found.append({"file": path.name, "edges": engine.row(written.aggregate(n=written.count()))["n"]})
        (folder / "samples.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    return found

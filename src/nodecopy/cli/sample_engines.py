"""``nodecopy sample --engine``: samples of Parquet files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nodecopy import datasets
from nodecopy.cli.options import check_applicable
from nodecopy.cli.sample_files import create_sample_folder
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

TABLE_LAWS: dict[str, tuple[str, type[Any]]] = {
    "same-label": ("labels", SameLabelTable),
    "nearest-neighbours": ("neighbours", NearestNeighboursTable),
    "weighted": ("similarity", WeightedTable),
}
"""The donor laws that read a table: the option that names it, and the class."""


def engine_factory(name: str, memory: str | None, master: str, scratch: Path) -> Callable[[], Engine]:
    """Return the function that starts an engine."""
    if name == "duckdb":
        return lambda: DuckDB(memory, scratch=scratch)
    check_applicable("--engine duckdb", "--engine spark, whose memory its cluster sets", memory=memory)
    return lambda: Spark(master, scratch)


def create_law(
    law: str, tables: Mapping[str, Path | None], limits: Mapping[str, Any]
) -> tuple[EdgeTableLaw, dict[str, Any]]:
    """Return a donor law, and its name and settings; auto takes the law whose table is given, else jaccard.

    Tables of other laws, and limits of Jaccard, are errors.
    """
    if law == "auto":
        law = next((name for name, (option, _) in TABLE_LAWS.items() if tables[option]), "jaccard")
    for other, (option, _) in TABLE_LAWS.items():
        if other != law:
            check_applicable(f"--law {other}", f"--law {law}", **{option: tables[option]})
    if law == "jaccard":
        return JaccardTable(**limits), {"law": law, **limits}
    check_applicable("--law jaccard", f"--law {law}", **limits)
    option, kind = TABLE_LAWS[law]
    if tables[option] is None:
        raise InputError(f"--law {law} with an engine needs a Parquet file; got none. Give --{option} FILE.")
    return kind(tables[option]), {"law": law}


def write_samples(
    law: EdgeTableLaw,
    source: str,
    inputs: Iterable[Path],
    start_engine: Callable[[], Engine],
    origin: dict[str, Any],
    out: Path,
    *,
    overwrite: bool,
    directed: bool,
    interactions: bool,
) -> list[dict[str, Any]]:
    """Write a folder of samples, completely or not at all, and return a summary of each file."""
    if not Path(source).exists() and source in datasets.names():
        raise InputError(
            f"--engine {origin['engine']} takes Parquet files, not names of datasets; got {source}. "
            "Leave --engine out."
        )
    model, n, summaries = EdgeTableCopying(law, origin["keep"], origin["symmetrise"]), origin["n"], []
    with (
        create_sample_folder(
            out, origin, "parquet", overwrite=overwrite, inputs=[source, *inputs]
        ) as sample_path,
        start_engine() as engine,
    ):
        model.fit(source, engine=engine, directed=directed, interactions=interactions)
        if not model.n_nodes_:
            raise InputError(f"{source} must hold at least one edge; it holds none.")
        for number in show_progress(range(n), n, "sampling"):
            path = sample_path(number)
            model.write(path, rng=origin["seed"], sample=number)
            edges = engine.scan(path)
            summaries.append({"file": path.name, "edges": engine.row(edges.aggregate(n=edges.count()))["n"]})
    return summaries

"""``nodecopy sample``: draw graphs like the observed one."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import nodecopy
from nodecopy import datasets
from nodecopy._core.atomic_files import atomic_folder
from nodecopy.cli import sample_engines, sources
from nodecopy.cli.terminal import format_value, print_json, print_note, print_table, show_progress
from nodecopy.copying import DonorLaw, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
from nodecopy.edge_tables import EdgeTableCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import read_matrix, write_graph, write_interactions
from nodecopy.metrics import edge_overlap


class Law(StrEnum):
    """The donor laws."""

    AUTO = "auto"
    SAME_LABEL = "same-label"
    NEAREST_NEIGHBOURS = "nearest-neighbours"
    JACCARD = "jaccard"
    WEIGHTED = "weighted"


class Rule(StrEnum):
    """How undirected samples are made symmetric."""

    MAXIMUM = "maximum"
    ONE_ENDPOINT = "one-endpoint"
    NONE = "none"


class Engine(StrEnum):
    """Where samples are made."""

    MEMORY = "memory"
    DUCKDB = "duckdb"
    SPARK = "spark"


class Format(StrEnum):
    """What samples can be written as."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    NPZ = "npz"
    GRAPHML = "graphml"


def sample(
    source: sources.Source,
    labels: sources.Labels = None,
    features: sources.Features = None,
    directed: sources.Directed = False,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="The file is a table of user, item[, rating, time].")
    ] = False,
    largest_component: sources.LargestComponent = False,
    law: Annotated[
        Law,
        typer.Option(
            help="Who may be whose donor; auto: by label, else by features, else by shared neighbours."
        ),
    ] = Law.AUTO,
    n_neighbours: Annotated[int, typer.Option(help="nearest-neighbours: how many.")] = 10,
    exponent: Annotated[float, typer.Option(help="jaccard: power of the index.")] = 1.0,
    max_donors: Annotated[int | None, typer.Option(help="jaccard: only so many of the most similar.")] = None,
    similarity: Annotated[
        Path | None,
        typer.Option(
            help="weighted: a square .npz or .npy matrix, rows in node order; with an engine, Parquet of "
            "node, donor and weight."
        ),
    ] = None,
    neighbours: Annotated[
        Path | None, typer.Option(help="nearest-neighbours with an engine: Parquet of node and donor.")
    ] = None,
    max_item_degree: Annotated[
        int | None, typer.Option(help="jaccard with an engine: items that more nodes have do not count.")
    ] = None,
    keep: Annotated[float, typer.Option(help="Probability that a node keeps its own neighbours.")] = 0.0,
    symmetrise: Annotated[
        Rule,
        typer.Option(
            help="Undirected samples: the paper's maximum (adds edges), one endpoint decides, or neither."
        ),
    ] = Rule.MAXIMUM,
    n: Annotated[int, typer.Option("--n", "-n", help="Number of samples.")] = 1,
    seed: Annotated[int, typer.Option(help="Sample s depends on the seed and s alone.")] = 0,
    workers: Annotated[int, typer.Option(help="Threads over samples.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the samples, written whole or not at all.")
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="File format of the samples; that of the input file, or csv, by default."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a folder of earlier samples.")
    ] = False,
    engine: Annotated[
        Engine, typer.Option(help="Where: in memory, or on Parquet of any size by DuckDB or Spark.")
    ] = Engine.MEMORY,
    memory: Annotated[str | None, typer.Option(help="duckdb: what it may use, such as 1GB.")] = None,
    master: Annotated[
        str, typer.Option(help="spark: where it runs, such as spark://host:7077.")
    ] = "local[*]",
    scratch: Annotated[
        Path | None, typer.Option(help="Engines: folder for what is spilled; beside --out by default.")
    ] = None,
    json_: sources.AsJson = False,
) -> None:
    """Sample graphs or interactions by node copying.

    With --out, every sample becomes a table of source, target and weight with the ids that came in,
    beside samples.json, which says how they were made. Without, only a summary is shown. With --engine
    duckdb or spark, Parquet files of any size are sampled; the same seed gives the same edges.
    """
    if engine is not Engine.MEMORY:
        if features or largest_component or n_neighbours != 10 or exponent != 1.0 or workers != 1:
            raise InputError(
                "--features, --largest-component, --n-neighbours, --exponent and --workers go with "
                "--engine memory."
            )
        if out is None or format not in (None, Format.PARQUET):
            raise InputError("--engine duckdb and spark need --out FOLDER, and write Parquet there.")
        name, table_law = sample_engines.chosen_law(
            law.value, labels, neighbours, similarity, max_item_degree, max_donors
        )
        origin = {
            "nodecopy": nodecopy.__version__,
            "source": Path(source).name,
            "engine": engine.value,
            "law": name,
            **({"max_item_degree": max_item_degree, "max_donors": max_donors} if name == "jaccard" else {}),
            "keep": keep,
            "symmetrise": symmetrise.value,
            "seed": seed,
            "n": n,
        }
        found = sample_engines.write_samples(
            EdgeTableCopying(table_law, keep, symmetrise.value),
            source,
            [path for path in (labels, neighbours, similarity) if path is not None],
            sample_engines.opener(engine.value, memory, master, scratch or out.resolve().parent),
            origin,
            out,
            overwrite=overwrite,
            directed=directed,
            interactions=interactions,
        )
        _tell(origin, found, f"{source}, {engine.value}", out, json_)
        return
    if memory is not None or neighbours or max_item_degree is not None or scratch:
        raise InputError(
            "--memory, --neighbours, --max-item-degree and --scratch go with --engine duckdb or spark."
        )
    if sources.is_dataset(source):
        interactions |= datasets.describe(source).kind == "interactions"
    data: Any
    if interactions:
        if labels or features or directed or largest_component:
            raise InputError("--labels, --features, --directed and --largest-component go with graphs.")
        data = sources.load_interactions(source)
    else:
        data = sources.load_graph(source, labels, features, directed, largest_component)
    law = default_law(data) if law is Law.AUTO else law
    model: NodeCopying[Any] = NodeCopying(
        donor_law(law, n_neighbours, exponent, max_donors, similarity), keep, symmetrise.value
    ).fit(data)
    samples = show_progress(model.sample_many(n, rng=seed, workers=workers), n, "sampling")
    origin = {
        "nodecopy": nodecopy.__version__,
        "source": Path(source).name,
        "law": law.value,
        **({"n_neighbours": n_neighbours} if law is Law.NEAREST_NEIGHBOURS else {}),
        **({"exponent": exponent, "max_donors": max_donors} if law is Law.JACCARD else {}),
        **({"similarity": similarity.name} if similarity else {}),
        "keep": keep,
        "symmetrise": symmetrise.value,
        "seed": seed,
        "n": n,
    }
    if out is None:
        found = [_summary(data, one) for one in samples]
    else:
        suffix = format.value if format else _format_of(source)
        if interactions and suffix == Format.GRAPHML:
            raise InputError("--format must be csv, tsv, parquet or npz for interactions; got graphml.")
        with atomic_folder(out, mark="samples.json", overwrite=overwrite) as folder:
            found = [
                _written(one, folder / f"sample-{number:0{len(str(n - 1))}d}.{suffix}") | _summary(data, one)
                for number, one in enumerate(samples)
            ]
            (folder / "samples.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    _tell(origin, found, repr(data), out, json_)


def _tell(
    origin: dict[str, Any], found: list[dict[str, Any]], what: str, out: Path | None, json_: bool
) -> None:
    """What was made, for people or for programs."""
    if json_:
        print_json({**origin, "samples": found})
        return
    print_note(f"{what}, law {origin['law']}, seed {origin['seed']}")
    if found:
        print_table(list(found[0]), [[format_value(value) for value in one.values()] for one in found])
    print_note(f"written to {out}" if out else "nothing written: give --out FOLDER to keep samples")


def default_law(data: Graph | Interactions) -> Law:
    """By label, else by features, else by shared neighbours."""
    if isinstance(data, Graph) and data.labels is not None:
        return Law.SAME_LABEL
    if isinstance(data, Graph) and data.features is not None:
        return Law.NEAREST_NEIGHBOURS
    return Law.JACCARD


def donor_law(
    law: Law, n_neighbours: int, exponent: float, max_donors: int | None, similarity: Path | None
) -> DonorLaw:
    """The law of that name with its settings; those of other laws do not matter."""
    if (law is Law.WEIGHTED) != (similarity is not None):
        raise InputError("--similarity and --law weighted go together; one of them is missing.")
    if similarity is not None:
        return Weighted(read_matrix(similarity))
    if law is Law.SAME_LABEL:
        return SameLabel()
    if law is Law.NEAREST_NEIGHBOURS:
        return NearestNeighbours(n_neighbours)
    return Jaccard(exponent=exponent, max_donors=max_donors)


def _format_of(source: str) -> str:
    """A sample looks like its input, where samples can."""
    name = Path(source).name.removesuffix(".gz")
    suffix = Path(name).suffix.removeprefix(".")
    return suffix if suffix in list(Format) else Format.CSV.value


def _written(one: Any, path: Path) -> dict[str, Any]:
    write: Any = write_interactions if isinstance(one, Interactions) else write_graph
    write(one, path)
    return {"file": path.name}


def _summary(data: Any, one: Any) -> dict[str, Any]:
    if isinstance(one, Interactions):
        shared = one.binary().matrix.multiply(data.binary().matrix).nnz
        return {"interactions": one.n_interactions, "overlap": shared / max(1, data.n_interactions)}
    return {"edges": one.n_edges, "overlap": edge_overlap(one, data)}

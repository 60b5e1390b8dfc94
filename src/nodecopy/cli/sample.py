"""``nodecopy sample``: draw graphs or interactions by node copying."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nodecopy import datasets
from nodecopy.cli import options, sample_engines, sources
from nodecopy.cli.options import at_least, between, check_applicable
from nodecopy.cli.sample_files import create_sample_folder
from nodecopy.cli.terminal import (
    format_value,
    print_json,
    print_note,
    print_table,
    print_written,
    show_progress,
)
from nodecopy.copying import DonorLaw, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
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
    """How undirected samples are symmetrised."""

    MAXIMUM = "maximum"
    ONE_ENDPOINT = "one-endpoint"
    NONE = "none"


class Engine(StrEnum):
    """Where samples are drawn."""

    MEMORY = "memory"
    DUCKDB = "duckdb"
    SPARK = "spark"


class Format(StrEnum):
    """The file formats of samples."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    NPZ = "npz"
    GRAPHML = "graphml"


def sample(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="The file is a table of user, item[, rating, time].")
    ] = False,
    largest_component: options.LargestComponent = False,
    law: Annotated[
        Law,
        typer.Option(
            help="The donor law. auto takes same-label where there are labels, else nearest-neighbours where "
            "there are features, else jaccard."
        ),
    ] = Law.AUTO,
    n_neighbours: Annotated[
        int | None,
        typer.Option(help="nearest-neighbours: donors of each node. (default: 10)", callback=at_least(1)),
    ] = None,
    exponent: Annotated[
        float | None, typer.Option(help="jaccard: exponent of the Jaccard index. (default: 1)")
    ] = None,
    max_donors: Annotated[
        int | None,
        typer.Option(
            help="jaccard: use this many of the most similar nodes only. (default: all)",
            callback=at_least(1),
        ),
    ] = None,
    similarity: Annotated[
        Path | None,
        typer.Option(
            help="weighted: a square .npz or .npy matrix with rows in node order; with an engine, a Parquet "
            "file of node, donor and weight."
        ),
    ] = None,
    neighbours: Annotated[
        Path | None,
        typer.Option(help="nearest-neighbours with an engine: a Parquet file of node and donor."),
    ] = None,
    max_item_degree: Annotated[
        int | None,
        typer.Option(help="jaccard with an engine: ignore shared items of more nodes than this."),
    ] = None,
    keep: Annotated[
        float,
        typer.Option(help="Probability that a node keeps its own neighbours.", callback=between(0, 1)),
    ] = 0.0,
    symmetrise: Annotated[
        Rule,
        typer.Option(
            help="How undirected samples are symmetrised: an edge exists if either endpoint has it (maximum, "
            "as in the paper; adds edges), if a random endpoint has it (one-endpoint), or samples stay "
            "directed (none)."
        ),
    ] = Rule.MAXIMUM,
    n: Annotated[int, typer.Option("--n", "-n", help="Number of samples.", callback=at_least(0))] = 1,
    seed: Annotated[
        int,
        typer.Option(help="Seed; sample s depends on the seed and on s alone.", callback=at_least(0)),
    ] = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="Threads that draw samples in parallel. (default: 1)", callback=at_least(1)),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the samples, written completely or not at all.")
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="File format of the samples. (default: that of the input file, else csv)"),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a folder of earlier samples.")
    ] = False,
    engine: Annotated[
        Engine,
        typer.Option(help="Draw in memory, or by DuckDB or Spark on Parquet files of any size."),
    ] = Engine.MEMORY,
    memory: Annotated[
        str | None, typer.Option(help="duckdb: the memory that it may use, such as 1GB.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="spark: the master URL, such as spark://host:7077.")
    ] = "local[*]",
    scratch: Annotated[
        Path | None,
        typer.Option(help="duckdb, spark: folder for temporary files. (default: the folder of --out)"),
    ] = None,
    json_: options.AsJson = False,
) -> None:
    """Sample graphs or interactions by node copying.

    With --out, each sample is written as a table of source, target and weight with the ids of the input,
    and samples.json records the source, the settings and the seed. Without it, only a summary is printed.
    With --engine duckdb or spark, Parquet files of any size are sampled; the same seed gives the same edges.
    """
    settings = {"keep": keep, "symmetrise": symmetrise.value, "seed": seed, "n": n}
    if engine is Engine.MEMORY:
        check_applicable(
            "--engine duckdb and --engine spark",
            "--engine memory",
            memory=memory,
            neighbours=neighbours,
            max_item_degree=max_item_degree,
            scratch=scratch,
        )
        data: Any = _load(source, labels, features, directed, interactions, largest_component)
        law = choose_law(data) if law is Law.AUTO else law
        donor_law, law_settings = create_law(law, data, n_neighbours, exponent, max_donors, similarity)
        origin = sources.describe_run(source, law=law.value, **law_settings, **settings)
        model: NodeCopying[Any] = NodeCopying(donor_law, keep, symmetrise.value).fit(data)
        suffix = _choose_format(format, source, data) if out else ""
        summaries = _sample_in_memory(model, origin, workers or 1, out, suffix, overwrite)
        title = repr(data)
    else:
        check_applicable(
            "--engine memory",
            f"--engine {engine.value}",
            features=features,
            largest_component=largest_component,
            n_neighbours=n_neighbours,
            exponent=exponent,
            workers=workers,
        )
        if out is None or format not in (None, Format.PARQUET):
            raise InputError(f"--engine {engine.value} writes Parquet: give --out FOLDER, without --format.")
        tables = {"labels": labels, "neighbours": neighbours, "similarity": similarity}
        name, table_law = sample_engines.create_law(law.value, tables, max_item_degree, max_donors)
        limits = {"max_item_degree": max_item_degree, "max_donors": max_donors} if name == "jaccard" else {}
        origin = sources.describe_run(source, engine=engine.value, law=name, **limits, **settings)
        summaries = sample_engines.write_samples(
            table_law,
            source,
            [path for path in tables.values() if path is not None],
            sample_engines.engine_factory(engine.value, memory, master, scratch or out.resolve().parent),
            origin,
            out,
            overwrite=overwrite,
            directed=directed,
            interactions=interactions,
        )
        title = f"{source}, {engine.value}"
    if json_:
        print_json({**origin, "samples": summaries})
        return
    print_note(f"{title}, law {origin['law']}, seed {seed}")
    if summaries:
        print_table(list(summaries[0]), [list(map(format_value, row.values())) for row in summaries])
    print_written(out, "samples", option="--out FOLDER")


def _load(
    source: str,
    labels: Path | None,
    features: Path | None,
    directed: bool,
    interactions: bool,
    largest_component: bool,
) -> Graph | Interactions:
    if sources.is_dataset(source):
        interactions |= datasets.describe(source).kind == "interactions"
    if not interactions:
        return sources.load_graph(source, labels, features, directed, largest_component)
    check_applicable(
        "graphs",
        "interactions",
        labels=labels,
        features=features,
        directed=directed,
        largest_component=largest_component,
    )
    return sources.load_interactions(source)


def choose_law(data: Graph | Interactions) -> Law:
    """Return the donor law by label, else by features, else by shared neighbours."""
    if isinstance(data, Graph) and data.labels is not None:
        return Law.SAME_LABEL
    if isinstance(data, Graph) and data.features is not None:
        return Law.NEAREST_NEIGHBOURS
    return Law.JACCARD


def create_law(
    law: Law,
    data: Graph | Interactions,
    n_neighbours: int | None = None,
    exponent: float | None = None,
    max_donors: int | None = None,
    similarity: Path | None = None,
) -> tuple[DonorLaw, dict[str, Any]]:
    """Return the donor law of that name, and its settings; options of other laws are ignored."""
    if (law is Law.WEIGHTED) != (similarity is not None):
        raise InputError("--law weighted and --similarity FILE must be given together; one is missing.")
    if similarity is not None:
        return Weighted(read_matrix(similarity)), {"similarity": similarity.name}
    if law is Law.SAME_LABEL:
        return SameLabel(), {}
    if law is Law.NEAREST_NEIGHBOURS:
        if getattr(data, "features", None) is None:
            raise InputError("--law nearest-neighbours needs features; got none. Give --features FILE.")
        n_neighbours = 10 if n_neighbours is None else n_neighbours
        return NearestNeighbours(n_neighbours), {"n_neighbours": n_neighbours}
    settings: dict[str, Any] = {"exponent": 1.0 if exponent is None else exponent, "max_donors": max_donors}
    return Jaccard(**settings), settings


def _sample_in_memory(
    model: NodeCopying[Any],
    origin: dict[str, Any],
    workers: int,
    out: Path | None,
    suffix: str,
    overwrite: bool,
) -> list[dict[str, Any]]:
    """Draw samples, write them where there is a folder, and return a summary of each."""
    n = origin["n"]
    samples = show_progress(model.sample_many(n, rng=origin["seed"], workers=workers), n, "sampling")
    if out is None:
        return [_summarise(sample, model.graph_) for sample in samples]
    write: Any = write_interactions if isinstance(model.graph_, Interactions) else write_graph
    summaries = []
    with create_sample_folder(out, origin, suffix, overwrite=overwrite) as sample_path:
        for number, sample in enumerate(samples):
            path = sample_path(number)
            write(sample, path)
            summaries.append({"file": path.name} | _summarise(sample, model.graph_))
    return summaries


def _choose_format(format: Format | None, source: str, data: Graph | Interactions) -> str:
    """Return the suffix of sample files: as requested, else that of the input file, else csv."""
    suffix = Path(Path(source).name.removesuffix(".gz")).suffix.removeprefix(".")
    chosen = format or (Format(suffix) if suffix in list(Format) else Format.CSV)
    if chosen is Format.GRAPHML and isinstance(data, Interactions):
        raise InputError("--format must be csv, tsv, parquet or npz for interactions; got graphml.")
    return chosen.value


def _summarise(sample: Any, data: Any) -> dict[str, Any]:
    if isinstance(sample, Interactions):
        n_shared = sample.binary().matrix.multiply(data.binary().matrix).nnz
        return {"interactions": sample.n_interactions, "overlap": n_shared / max(1, data.n_interactions)}
    return {"edges": sample.n_edges, "overlap": edge_overlap(sample, data)}

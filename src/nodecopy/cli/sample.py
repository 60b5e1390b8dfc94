"""``nodecopy sample``: draw graphs or interactions by node copying."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from nodecopy import datasets
from nodecopy._core.files import atomic_folder, list_tree, resolve
from nodecopy._core.files import reading as reading_file
from nodecopy._core.messages import log_decision
from nodecopy.cli import files as sources
from nodecopy.cli import options
from nodecopy.cli.files import ReadingOptions, reads
from nodecopy.cli.options import at_least, between, check_applicable, flag, option
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_progress, show_status
from nodecopy.copying import (
    DonorRule,
    Jaccard,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    choose_donors,
)
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.edge_tables.donors import EdgeTableRule
from nodecopy.edge_tables.engines import DuckDB, Engine, Spark
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import is_table, read_matrix, write_graph, write_interactions
from nodecopy.io.columns import INTERACTION_COLUMNS, match_kind, match_names
from nodecopy.io.tables import read_names
from nodecopy.metrics import edge_overlap

# The folder of samples that ``nodecopy sample`` writes and ``nodecopy stats --samples`` reads.


ORIGIN = "samples.json"
"""Says how the samples of a folder were drawn, and lists them. No other folder is overwritten."""


@contextmanager
def create_sample_folder(
    out: Path, origin: dict[str, Any], suffix: str, *, overwrite: bool, inputs: Iterable[Any] = ()
) -> Iterator[Callable[[int], Path]]:
    """Write a folder completely or not at all; yields the function from a sample's number to its path."""
    files = [path for path in inputs if path is not None]
    with atomic_folder(out, manifest=ORIGIN, overwrite=overwrite, inputs=files) as folder:
        width = len(str(origin["n"] - 1))
        yield lambda number: folder / f"sample-{number:0{width}d}.{suffix}"
        about = origin | {"files": list_tree(folder)}
        (folder / ORIGIN).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def find_samples(path: Path) -> list[Path]:
    """Return the files of a folder of samples, or the path itself where it is a file."""
    if path.is_dir():
        files = sorted(file for file in path.glob("sample-*") if file.is_file())
        if not files:
            raise InputError(
                f"--samples must be a graph or a folder with sample-* files; {path} has none. "
                "Write some with nodecopy sample --out FOLDER."
            )
        return files
    if not path.exists():
        raise InputError(f"--samples must be graphs or folders of graphs; {path} does not exist.")
    return [path]


Rule = Literal["auto", "same-label", "nearest-neighbours", "jaccard", "weighted"]
"""The donor rules."""
RULES: dict[Rule, type] = {
    "same-label": SameLabel,
    "nearest-neighbours": NearestNeighbours,
    "jaccard": Jaccard,
    "weighted": Weighted,
}
Rule = Literal["maximum", "one-endpoint", "none"]
"""How undirected samples are symmetrised."""
EFFECTS = {"maximum": "up to twice as many edges", "one-endpoint": "about as many edges"}
"""What the rules do to the density of undirected samples."""
EngineName = Literal["memory", "duckdb", "spark"]
"""Where samples are drawn."""
Format = Literal["csv", "tsv", "parquet", "npz", "graphml"]
"""The file formats of samples."""


@reads("graph", "interactions")
def sample(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    interactions: bool | None = option(
        "Whether the file holds interactions or a graph. Interactions are tables of user, item[, rating, "
        "time]. (default: decided by the header)",
        None,
        None,
        "--interactions/--graph",
    ),
    largest_component: options.LargestComponent = False,
    donors: Rule = option(
        "The donor rule. auto takes same-label where at least half of the nodes have a label, else "
        "nearest-neighbours where there are features, else jaccard.",
        "auto",
    ),
    n_neighbours: int | None = option(
        "nearest-neighbours: donors of each node. (default: 10)", None, at_least(1)
    ),
    exponent: float | None = option("jaccard: exponent of the Jaccard index. (default: 1)"),
    max_donors: int | None = option(
        "jaccard: use this many of the most similar nodes only. (default: all)", None, at_least(1)
    ),
    similarity: Path | None = option(
        "weighted: a square .npz matrix with the array ids (without ids, or as .npy: of nodes 0 to n-1); "
        "with an engine, a Parquet file of node, donor and weight."
    ),
    neighbours: Path | None = option("nearest-neighbours with an engine: a Parquet file of node and donor."),
    max_item_degree: int | None = option(
        "jaccard with an engine: ignore shared items of more nodes than this."
    ),
    keep: float = option("Probability that a node keeps its own neighbours.", 0.0, between(0, 1)),
    symmetrise: Rule = option(
        "How undirected samples are symmetrised. An edge exists if a random endpoint has it (one-endpoint, "
        "about as many edges) or if either has it (maximum, as in the paper; up to twice as many "
        "edges: Cora has 5,278, samples 5,270 and 10,527), or samples stay directed (none).",
        "one-endpoint",
    ),
    n: int = option(
        "Number of samples.",
        1,
        at_least(1),
        "--n",
        "-n",
    ),
    seed: int = option("Seed of the samples. Sample s depends on it and on s alone.", 0, at_least(0)),
    workers: int | None = option("Threads that draw samples in parallel. (default: 1)", None, at_least(1)),
    out: Path | None = option("Folder for the samples. It is written completely or not at all."),
    format: Format | None = option("File format of the samples. (default: that of the input, else csv)"),
    overwrite: bool = flag("--overwrite", "Replace a folder of earlier samples."),
    engine: EngineName = option(
        "Draw in memory, or by DuckDB or Spark on Parquet files of any size.", "memory"
    ),
    memory: str | None = option("duckdb: the memory that it may use, such as 1GB."),
    master: str = option("spark: the master URL, such as spark://host:7077.", "local[*]"),
    scratch: Path | None = option(
        "duckdb, spark: folder for temporary files. (default: the folder of --out)"
    ),
    spreadsheet: options.Spreadsheet = False,
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
) -> None:
    """Sample graphs or interactions by node copying.

    With --out, each sample is written as a table of source, target and weight with the ids of the input,
    and samples.json records the source, the settings and the seed. Without it, only a summary is printed.
    With --engine duckdb or spark, Parquet files of any size are sampled; the same seed gives the same edges.

    Examples:
        nodecopy sample karate --n 5 --out samples
        nodecopy sample edges.csv --labels labels.csv --donors same-label --seed 7
        nodecopy sample edges.parquet --engine duckdb --out large
    """
    settings = {"keep": keep, "symmetrise": symmetrise, "seed": seed, "n": n}
    of_rules = {"n_neighbours": n_neighbours, "exponent": exponent, "max_donors": max_donors}
    if engine == "memory":
        of_engines = {"neighbours": neighbours, "max_item_degree": max_item_degree, "scratch": scratch}
        check_applicable("--engine duckdb and --engine spark", "--engine memory", memory=memory, **of_engines)
        of_graphs = {"labels": labels, "features": features, "directed": directed}
        data: Any = _load(source, interactions, reading, **of_graphs, largest_component=largest_component)
        donor_rule, rule_settings = _choose_donors(donors, data, similarity, of_rules)
        origin = sources.describe_run(source, **rule_settings, **settings)
        with show_status("fitting the donor rule"):
            model: NodeCopying[Any] = NodeCopying(donor_rule, keep, symmetrise).fit(data)
        suffix = _choose_format(format, source, data) if out else ""
        given = [None if sources.is_dataset(source) else source, labels, features, similarity]
        write: Any = write_interactions if isinstance(data, Interactions) else write_graph
        write = partial(write, spreadsheet=spreadsheet)
        summaries = _sample_in_memory(model, origin, workers or 1, write, out, suffix, overwrite, given)
        title, is_undirected = repr(data), not getattr(data, "directed", True)
    else:
        of_memory = {"features": features, "largest_component": largest_component, "workers": workers}
        of_memory |= {"n_neighbours": n_neighbours, "exponent": exponent} | reading.given()
        check_applicable("--engine memory", f"--engine {engine}", **of_memory)
        if out is None or format not in (None, "parquet"):
            raise InputError(f"--engine {engine} writes Parquet: give --out FOLDER, without --format.")
        tables = {"labels": labels, "neighbours": neighbours, "similarity": similarity}
        limits = {"max_item_degree": max_item_degree, "max_donors": max_donors}
        table_rule, rule_settings = create_table_rule(donors, tables, limits)
        origin = sources.describe_run(source, engine=engine, **rule_settings, **settings)
        start = engine_factory(engine, memory, master, scratch or resolve(out).parent)
        kind = {"directed": directed, "interactions": bool(interactions)}
        inputs = [path for path in tables.values() if path is not None]
        summaries = write_table_samples(
            table_rule, source, inputs, start, origin, out, overwrite=overwrite, **kind
        )
        title, is_undirected = f"{source}, {engine}", not (directed or interactions)
    if json_:
        print_json({**origin, "samples": summaries})
        return
    effect = EFFECTS.get(symmetrise, "directed samples")
    rule = f"symmetrise {symmetrise} ({effect}), " if is_undirected else ""
    print_note(f"{title}, donor rule {origin['donors']}, {rule}seed {seed}")
    if summaries:
        print_table(list(summaries[0]), [list(row.values()) for row in summaries])
    print_written(out, "samples", option="--out FOLDER")


def _load(
    source: str, interactions: bool | None, reading: ReadingOptions, **graph_options: Any
) -> Graph | Interactions:
    if sources.is_dataset(source):
        interactions = interactions or datasets.describe(source).kind == "interactions"
    elif interactions is None and not any(graph_options.values()) and not reading.given("graph"):
        interactions = bool(reading.given("interactions")) or _is_interaction_table(source)
    if not interactions:
        check_applicable("--interactions", "a graph", **reading.given("interactions"))
        return sources.load_graph(source, **graph_options, reading=reading)
    check_applicable("graphs", "interactions", **graph_options, **reading.given("graph"))
    return sources.load_interactions(source, reading)


def _is_interaction_table(source: str) -> bool:
    """Return whether a file is a table of interactions, and log what follows from it."""
    if not is_table(source):
        return False
    with reading_file(source) as path:
        names = read_names(path)
    if match_kind(names) != "interactions":
        return False
    columns = match_names(names, {role: INTERACTION_COLUMNS[role] for role in ("user", "item")})
    log_decision(
        f"{source} is read as interactions, since its columns are "
        f"{' and '.join(names[number] for number in columns.values())}. Read it as a graph with --graph."
    )
    return True


def name_rule(donors: DonorRule) -> Rule:
    """Return the name of a donor rule on the command line."""
    return next(name for name, kind in RULES.items() if isinstance(donors, kind))


def _choose_donors(
    donors: Rule, data: Graph | Interactions, similarity: Path | None, of_rules: dict[str, Any]
) -> tuple[DonorRule, dict[str, Any]]:
    """Return the donor rule, chosen by the data with auto, and its name and settings.

    Options of other donor rules are errors.
    """
    if donors == "auto":
        chosen, reason = choose_donors(data)
        donors = name_rule(chosen)
        log_decision(f"donor rule {donors}, since {reason}. Choose another with --donors.")
    for name in of_rules:
        owner = "nearest-neighbours" if name == "n_neighbours" else "jaccard"
        if donors != owner:
            check_applicable(f"--donors {owner}", f"--donors {donors}", **{name: of_rules[name]})
    donor_rule, settings = create_rule(donors, data, **of_rules, similarity=similarity)
    return donor_rule, {"donors": donors, **settings}


def create_rule(
    donors: Rule,
    data: Graph | Interactions,
    n_neighbours: int | None = None,
    exponent: float | None = None,
    max_donors: int | None = None,
    similarity: Path | None = None,
) -> tuple[DonorRule, dict[str, Any]]:
    """Return the donor rule of that name, and its settings; options of other donor rules are ignored."""
    if (donors == "weighted") != (similarity is not None):
        raise InputError("--donors weighted and --similarity FILE must be given together; one is missing.")
    if similarity is not None:
        ids = data.user_ids if isinstance(data, Interactions) else data.node_ids
        return Weighted(read_matrix(similarity, node_ids=ids)), {"similarity": similarity.name}
    if donors == "same-label":
        return SameLabel(), {}
    if donors == "nearest-neighbours":
        if getattr(data, "features", None) is None:
            raise InputError("--donors nearest-neighbours needs features; got none. Give --features FILE.")
        n_neighbours = 10 if n_neighbours is None else n_neighbours
        return NearestNeighbours(n_neighbours), {"n_neighbours": n_neighbours}
    settings: dict[str, Any] = {"exponent": 1.0 if exponent is None else exponent, "max_donors": max_donors}
    return Jaccard(**settings), settings


def _sample_in_memory(
    model: NodeCopying[Any],
    origin: dict[str, Any],
    workers: int,
    write: Callable[[Any, Path], None],
    out: Path | None,
    suffix: str,
    overwrite: bool,
    inputs: list[Any],
) -> list[dict[str, Any]]:
    """Draw samples, write them where there is a folder, and return a summary of each."""
    n = origin["n"]
    samples = show_progress(model.sample_many(n, rng=origin["seed"], workers=workers), n, "sampling")
    if out is None:
        return [_summarise(sample, model.graph_) for sample in samples]
    summaries = []
    with create_sample_folder(out, origin, suffix, overwrite=overwrite, inputs=inputs) as sample_path:
        for number, sample in enumerate(samples):
            path = sample_path(number)
            write(sample, path)
            summaries.append({"file": path.name} | _summarise(sample, model.graph_))
    return summaries


def _choose_format(format: Format | None, source: str, data: Graph | Interactions) -> str:
    """Return the suffix of sample files: as requested, else that of the input file, else csv."""
    suffix = Path(Path(source).name.removesuffix(".gz")).suffix.removeprefix(".")
    chosen: str = format or (suffix if suffix in get_args(Format) else "csv")
    if chosen == "graphml" and isinstance(data, Interactions):
        raise InputError("--format must be csv, tsv, parquet or npz for interactions; got graphml.")
    return chosen


def _summarise(sample: Any, data: Any) -> dict[str, Any]:
    if isinstance(sample, Interactions):
        n_shared = sample.binary().matrix.multiply(data.binary().matrix).nnz
        return {"interactions": sample.n_interactions, "overlap": n_shared / max(1, data.n_interactions)}
    return {"edges": sample.n_edges, "overlap": edge_overlap(sample, data)}


# ``nodecopy sample --engine``: samples of Parquet files that need not fit into memory.


TABLE_RULES: dict[str, tuple[str, type[Any]]] = {
    "same-label": ("labels", SameLabelTable),
    "nearest-neighbours": ("neighbours", NearestNeighboursTable),
    "weighted": ("similarity", WeightedTable),
}
"""The donor rules that read a table: the option that names it, and the class."""


def engine_factory(name: str, memory: str | None, master: str, scratch: Path) -> Callable[[], Engine]:
    """Return the function that starts an engine."""
    if name == "duckdb":
        return lambda: DuckDB(memory, scratch=scratch)
    check_applicable("--engine duckdb", "--engine spark, whose memory its cluster sets", memory=memory)
    return lambda: Spark(master, scratch)


def create_table_rule(
    donors: str, tables: Mapping[str, Path | None], limits: Mapping[str, Any]
) -> tuple[EdgeTableRule, dict[str, Any]]:
    """Return a donor rule, and its name and settings; auto takes the donor rule whose table is given, else jaccard.

    Tables of other donor rules, and limits of Jaccard, are errors.
    """
    if donors == "auto":
        donors = next((kind for kind, (name, _) in TABLE_RULES.items() if tables[name]), "jaccard")
    for other, (name, _) in TABLE_RULES.items():
        if other != donors:
            check_applicable(f"--donors {other}", f"--donors {donors}", **{name: tables[name]})
    if donors == "jaccard":
        return JaccardTable(**limits), {"donors": donors, **limits}
    check_applicable("--donors jaccard", f"--donors {donors}", **limits)
    name, kind = TABLE_RULES[donors]
    if tables[name] is None:
        raise InputError(
            f"--donors {donors} with an engine needs a Parquet file; got none. Give --{name} FILE."
        )
    return kind(tables[name]), {"donors": donors}


def write_table_samples(
    donors: EdgeTableRule,
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
    model, n, summaries = EdgeTableCopying(donors, origin["keep"], origin["symmetrise"]), origin["n"], []
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

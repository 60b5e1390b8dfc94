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
from nodecopy.cli import files
from nodecopy.cli import options as opt
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
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import is_table, read_matrix, write_graph, write_interactions
from nodecopy.io.columns import INTERACTION_COLUMNS, match_kind, match_names
from nodecopy.io.tables import read_names
from nodecopy.metrics import edge_overlap

ORIGIN = "samples.json"  # only folders with this file are overwritten
RuleName = Literal["auto", "same-label", "nearest-neighbours", "jaccard", "weighted"]
RULES: dict[RuleName, type] = {
    "same-label": SameLabel,
    "nearest-neighbours": NearestNeighbours,
    "jaccard": Jaccard,
    "weighted": Weighted,
}
SETTINGS: dict[RuleName, dict[str, Any]] = {  # and their defaults
    "nearest-neighbours": {"n_neighbours": 10},
    "jaccard": {"exponent": 1.0, "max_donors": None},
}
EFFECTS = {"maximum": "up to twice as many edges", "one-endpoint": "about as many edges"}
Format = Literal["csv", "tsv", "parquet", "npz", "graphml"]
TABLE_RULES: dict[RuleName, str] = {
    "same-label": "labels",
    "nearest-neighbours": "neighbours",
    "weighted": "similarity",
}


def sample(
    source: opt.Source,
    interactions: bool | None = opt.more(
        "Read interactions or a graph. (default: by the header)", None, "--interactions/--graph"
    ),
    donors: RuleName = opt.common(
        "The donor rule.\n\nauto: same-label if at least half of the nodes have labels, else "
        "nearest-neighbours with features, else jaccard.",
        "auto",
    ),
    n_neighbours: opt.Count | None = opt.more("nearest-neighbours: donors of each node. (default: 10)"),
    exponent: float | None = opt.more("jaccard: exponent of the Jaccard index. (default: 1)"),
    max_donors: opt.Count | None = opt.more("jaccard: number of most similar nodes used. (default: all)"),
    similarity: Path | None = opt.more(
        "weighted: a square .npz matrix with the array ids (or without ids, of nodes 0 to n-1); with an "
        "engine, a Parquet file of node, donor and weight."
    ),
    neighbours: Path | None = opt.engine("nearest-neighbours with an engine: Parquet of node and donor."),
    max_item_degree: int | None = opt.engine("jaccard with an engine: ignore shared items of more nodes."),
    keep: opt.Share = opt.common("Probability that a node keeps its own neighbours.", 0.0),
    symmetrise: Literal["maximum", "one-endpoint", "none"] = opt.common(
        "How undirected samples are symmetrised.\n\none-endpoint: an edge exists if a random endpoint has it "
        "(about as many edges). maximum: if either has it (up to twice as many). none: samples are directed.",
        "one-endpoint",
    ),
    n: opt.Count = opt.common("Number of samples.", 1, "--n", "-n"),
    seed: opt.Seed = 0,
    workers: opt.Count | None = opt.engine("Threads that draw samples in parallel. (default: 1)"),
    out: Path | None = opt.writes("Folder for the samples.", metavar="FOLDER"),
    format: Format | None = opt.more("Format of the samples. (default: that of the input, else csv)"),
    overwrite: bool = opt.more("Replace a folder of earlier samples.", False),
    engine: Literal["memory", "duckdb", "spark"] = opt.engine("Draw in memory or from Parquet.", "memory"),
    memory: str | None = opt.engine("duckdb: memory limit, such as 1GB."),
    master: str = opt.engine("spark: the master URL, such as spark://host:7077.", "local[*]"),
    scratch: Path | None = opt.engine("duckdb, spark: folder for temporary files. (default: that of --out)"),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    graph: opt.GraphOptions = opt.GraphOptions(),
    log: opt.InteractionOptions = opt.InteractionOptions(),
) -> None:
    """Sample graphs or interactions by node copying.

    With --out, each sample is written as a table of source, target and weight with the ids of the input,
    and samples.json records the source, the settings and the seed. With --engine duckdb or spark, Parquet
    files of any size are sampled; the same seed gives the same edges.

    Examples:
        nodecopy sample karate --n 5 --out samples
        nodecopy sample edges.csv --labels labels.csv --donors same-label --seed 7
        nodecopy sample edges.parquet --engine duckdb --out large
    """
    settings = {"keep": keep, "symmetrise": symmetrise, "seed": seed, "n": n}
    summaries: list[dict[str, Any]] = []
    of_rules: dict[str, Any] = {"n_neighbours": n_neighbours, "exponent": exponent, "max_donors": max_donors}
    if engine == "memory":
        of_engines = {"neighbours": neighbours, "max_item_degree": max_item_degree, "scratch": scratch}
        opt.check_applicable(
            "--engine duckdb and --engine spark", "--engine memory", memory=memory, **of_engines
        )
        data = load_data(source, interactions, graph, log)
        donor_rule, rule_settings = _choose_donors(donors, data, similarity, of_rules)
        origin = files.describe_run(source, **rule_settings, **settings)
        with show_status("fitting the donor rule"):
            model: NodeCopying[Any] = NodeCopying(donor_rule, keep, symmetrise).fit(data)
        suffix = Path(source.removesuffix(".gz")).suffix.removeprefix(".")
        suffix = format or (suffix if suffix in get_args(Format) else "csv")
        if out and suffix == "graphml" and isinstance(data, Interactions):
            raise InputError("--format must be csv, tsv, parquet or npz for interactions; got graphml.")
        inputs = [None if files.is_dataset(source) else source, graph.labels, graph.features, similarity]
        samples = show_progress(model.sample_many(n, rng=seed, workers=workers or 1), n, "sampling")
        if out is None:
            summaries += [_summarise(sample, data) for sample in samples]
        else:
            write: Any = write_interactions if isinstance(data, Interactions) else write_graph
            with _create_folder(out, origin, suffix, overwrite, inputs) as sample_path:
                for number, sample in enumerate(samples):
                    write(sample, path := sample_path(number), spreadsheet=spreadsheet)
                    summaries.append({"file": path.name} | _summarise(sample, data))
        title, is_undirected = repr(data), not getattr(data, "directed", True)
    else:
        from nodecopy.edge_tables import EdgeTableCopying
        from nodecopy.edge_tables.engines import DuckDB, Spark

        of_memory = {"workers": workers, "n_neighbours": n_neighbours, "exponent": exponent}
        of_memory |= {**graph.given(), **log.given(), "labels": None, "directed": None}
        opt.check_applicable("--engine memory", f"--engine {engine}", **of_memory)
        if out is None or format not in (None, "parquet"):
            raise InputError(f"--engine {engine} writes Parquet: give --out FOLDER, without --format.")
        tables = {"labels": graph.labels, "neighbours": neighbours, "similarity": similarity}
        limits = {"max_item_degree": max_item_degree, "max_donors": max_donors}
        table_rule, rule_settings = _create_table_rule(donors, tables, limits)
        origin = files.describe_run(source, engine=engine, **rule_settings, **settings)
        folder = scratch or resolve(out).parent
        start: Callable[[], Any] = partial(DuckDB, memory, scratch=folder)
        if engine == "spark":
            opt.check_applicable("--engine duckdb", "--engine spark, whose cluster sets it", memory=memory)
            start = partial(Spark, master, folder)
        if not Path(source).exists() and source in datasets.names():
            raise InputError(f"--engine {engine} takes Parquet files, not names of datasets; got {source}.")
        kind = {"directed": graph.directed, "interactions": bool(interactions)}
        table_model = EdgeTableCopying(table_rule, keep, symmetrise)
        paths = _create_folder(out, origin, "parquet", overwrite, [source, *tables.values()])
        with paths as sample_path, start() as database:
            table_model.fit(source, engine=database, **kind)
            if not table_model.n_nodes_:
                raise InputError(f"{source} must hold at least one edge; it holds none.")
            for number in show_progress(range(n), n, "sampling"):
                path = sample_path(number)
                table_model.write(path, rng=seed, sample=number)
                edges = database.scan(path)
                n_edges = database.row(edges.aggregate(n=edges.count()))["n"]
                summaries.append({"file": path.name, "edges": n_edges})
        title, is_undirected = f"{source}, {engine}", not (graph.directed or interactions)
    if json_:
        print_json({**origin, "samples": summaries})
        return
    effect = EFFECTS.get(symmetrise, "directed samples")
    rule = f"symmetrise {symmetrise} ({effect}), " if is_undirected else ""
    print_note(f"{title}, donor rule {origin['donors']}, {rule}seed {seed}")
    print_table(list(summaries[0]), [row.values() for row in summaries])
    print_written(out, "samples", option="--out FOLDER")


def load_data(
    source: str, interactions: bool | None, graph: opt.GraphOptions, log: opt.InteractionOptions
) -> Graph | Interactions:
    """Load a graph or interactions, by the header unless the options say which."""
    shared = ("header", "decimal")
    of_graph, of_log = (
        {name: True for name in group.given() if name not in shared} for group in (graph, log)
    )
    if files.is_dataset(source):
        interactions = interactions or datasets.describe(source).kind == "interactions"
    elif interactions is None and not of_graph:
        interactions = bool(of_log) or _is_interaction_table(source)
    if not interactions:
        opt.check_applicable("--interactions", "a graph", **of_log)
        return files.load_graph(source, graph)
    opt.check_applicable("graphs", "interactions", **of_graph)
    return files.load_interactions(source, log)


def _is_interaction_table(source: str) -> bool:
    if not is_table(source):
        return False
    with reading_file(source) as path:
        names = read_names(path)
    if match_kind(names) != "interactions":
        return False
    columns = match_names(names, {role: INTERACTION_COLUMNS[role] for role in ("user", "item")})
    listing = " and ".join(names[number] for number in columns.values())
    log_decision(f"{source} is read as interactions, since its columns are {listing}. --graph reads a graph.")
    return True


def name_rule(donors: DonorRule) -> RuleName:
    """Return the name of a donor rule on the command line."""
    return next(name for name, kind in RULES.items() if isinstance(donors, kind))


def _choose_donors(
    donors: RuleName, data: Graph | Interactions, similarity: Path | None, of_rules: dict[str, Any]
) -> tuple[DonorRule, dict[str, Any]]:
    if donors == "auto":
        chosen, reason = choose_donors(data)
        donors = name_rule(chosen)
        log_decision(f"donor rule {donors}, since {reason}.", "donors")
    rules_of = {name: [rule] for rule, defaults in SETTINGS.items() for name in defaults}
    opt.select_given("donors", donors, rules_of, of_rules)
    donor_rule, settings = create_rule(donors, data, **of_rules, similarity=similarity)
    return donor_rule, {"donors": donors, **settings}


def create_rule(
    donors: RuleName, data: Graph | Interactions, *, similarity: Path | None = None, **of_rules: Any
) -> tuple[DonorRule, dict[str, Any]]:
    """Return a donor rule and its settings; those of other rules are ignored."""
    if (donors == "weighted") != (similarity is not None):
        raise InputError("--donors weighted and --similarity FILE must be given together; one is missing.")
    if similarity is not None:
        ids = data.user_ids if isinstance(data, Interactions) else data.node_ids
        return Weighted(read_matrix(similarity, node_ids=ids)), {"similarity": similarity.name}
    if donors == "nearest-neighbours" and getattr(data, "features", None) is None:
        raise InputError("--donors nearest-neighbours needs features; got none. Give --features FILE.")
    settings = dict(SETTINGS.get(donors, {}))
    settings |= {name: of_rules[name] for name in settings if of_rules.get(name) is not None}
    return RULES[donors](**settings), settings


def _summarise(sample: Any, data: Any) -> dict[str, Any]:
    if isinstance(sample, Interactions):
        n_shared = sample.binary().matrix.multiply(data.binary().matrix).nnz
        return {"interactions": sample.n_interactions, "overlap": n_shared / max(1, data.n_interactions)}
    return {"edges": sample.n_edges, "overlap": edge_overlap(sample, data)}


@contextmanager
def _create_folder(
    out: Path, origin: dict[str, Any], suffix: str, overwrite: bool, inputs: Iterable[Any]
) -> Iterator[Callable[[int], Path]]:
    """Write a folder completely or not at all; yield a function from sample numbers to paths."""
    paths = [path for path in inputs if path is not None]
    with atomic_folder(out, manifest=ORIGIN, overwrite=overwrite, inputs=paths) as folder:
        width = len(str(origin["n"] - 1))
        yield lambda number: folder / f"sample-{number:0{width}d}.{suffix}"
        about = origin | {"files": list_tree(folder)}
        (folder / ORIGIN).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _create_table_rule(
    donors: RuleName, tables: Mapping[str, Path | None], limits: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    from nodecopy import edge_tables

    if donors == "auto":
        donors = next((rule for rule, name in TABLE_RULES.items() if tables[name]), "jaccard")
    rules_of = dict.fromkeys(limits, ("jaccard",)) | {name: (rule,) for rule, name in TABLE_RULES.items()}
    opt.select_given("donors", donors, rules_of, {**tables, **limits})
    if donors == "jaccard":
        return edge_tables.JaccardTable(**limits), {"donors": donors, **limits}
    name = TABLE_RULES[donors]
    if tables[name] is None:
        raise InputError(f"--donors {donors} with an engine needs a table; give --{name} FILE.")
    kind = getattr(edge_tables, f"{RULES[donors].__name__}Table")
    return kind(tables[name]), {"donors": donors}

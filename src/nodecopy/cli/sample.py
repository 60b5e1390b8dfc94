"""``nodecopy sample``: draw graphs or interactions by node copying."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from nodecopy import datasets
from nodecopy._core.checks import show
from nodecopy._core.files import (
    PathLike,
    atomic_write,
    check_folder,
    digest_files,
    list_parts,
    list_tree,
    remove_path,
    resolve,
)
from nodecopy._core.files import reading as reading_file
from nodecopy._core.messages import log_decision
from nodecopy._core.parallel import sample_stream
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_progress, show_status
from nodecopy.copying import DonorRule, NodeCopying, choose_donors
from nodecopy.copying.donors import RULES
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import is_table, write_graph, write_interactions
from nodecopy.io.columns import INTERACTION_COLUMNS, match_kind, match_names
from nodecopy.io.tables import read_names
from nodecopy.metrics import edge_overlap

ORIGIN = "samples.json"  # only folders with this file are continued or overwritten
Draw = Callable[[int], Any]  # returns the sample of a number
Save = Callable[[Any, Any], dict[str, Any]]  # writes a sample to a path, if any, and describes it
Work = AbstractContextManager[tuple[Draw, Save]]
RuleName = Literal["auto", "same-label", "nearest-neighbours", "jaccard"]
SETTINGS: dict[RuleName, dict[str, Any]] = {  # and their defaults
    "nearest-neighbours": {"n_neighbours": 10},
    "jaccard": {"max_donors": None},
}
EFFECTS = {"maximum": "up to twice as many edges", "one-endpoint": "about as many edges"}
Format = Literal["csv", "tsv", "parquet", "npz", "graphml"]
ONLY_IN_MEMORY = (
    *("features", "ignore_columns", "header", "decimal", "duplicates", "largest_component"),
    *("time", "lists", "day_first"),
)


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
    n_neighbours: opt.Count | None = opt.more(
        "nearest-neighbours: donors of each node. (default: 10; with auto chosen by the graph)"
    ),
    max_donors: opt.Count | None = opt.more("jaccard: number of most similar nodes used. (default: all)"),
    keep: opt.Share = opt.common("Probability that a node keeps its own neighbours.", 0.0),
    symmetrise: Literal["maximum", "one-endpoint", "none"] | None = opt.common(
        "How samples of undirected graphs are symmetrised. (default: one-endpoint)\n\none-endpoint: an edge "
        "exists if a random endpoint has it (about as many edges). maximum: if either has it (up to twice as "
        "many). none: samples are directed."
    ),
    n: opt.Count = opt.common("Number of samples.", 1, "--n", "-n"),
    first: opt.Natural = opt.more("Number of the first sample, to continue a numbering.", 0),
    seed: opt.Seed = 0,
    workers: opt.Count | None = opt.engine("Threads that draw samples in parallel. (default: 1)"),
    out: Path | None = opt.writes("Folder for the samples.", metavar="FOLDER"),
    format: Format | None = opt.more("Format of the samples. (default: that of the input, else csv)"),
    overwrite: bool = opt.more("Replace a folder of earlier samples instead of continuing it.", False),
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
    and samples.json records the source, the settings, the seed and the finished samples: the same command
    continues a stopped run. With --engine duckdb or spark, Parquet files of any size are sampled; the same
    seed gives the same edges.

    Examples:
        nodecopy sample karate --n 5 --out samples
        nodecopy sample edges.csv --labels labels.csv --donors same-label --seed 7
        nodecopy sample edges.parquet --engine duckdb --out large
    """
    given_rule, symmetrise = symmetrise, symmetrise or "one-endpoint"
    settings: dict[str, Any] = {"keep": keep, "symmetrise": symmetrise, "seed": seed}
    of_rules: dict[str, Any] = {"n_neighbours": n_neighbours, "max_donors": max_donors}
    rule: Any
    work: Work
    if engine == "memory":
        of_engines = {"memory": memory, "scratch": scratch}
        opt.check_applicable("--engine duckdb and --engine spark", "--engine memory", **of_engines)
        data = load_data(source, interactions, graph, log)
        rule, rule_settings = _choose_donors(donors, data, of_rules)
        suffix = Path(source.removesuffix(".gz")).suffix.removeprefix(".")
        suffix = format or (suffix if suffix in get_args(Format) else "csv")
        if out and suffix == "graphml" and isinstance(data, Interactions):
            raise InputError("--format must be csv, tsv, parquet or npz for interactions; got graphml.")
        title, is_undirected = repr(data), not getattr(data, "directed", True)
        work = _in_memory(data, NodeCopying(rule, keep, symmetrise), seed, spreadsheet)
    else:
        from nodecopy.edge_tables import EdgeTableCopying, engines

        of_memory = {"workers": workers, "n_neighbours": n_neighbours}
        of_memory |= {**graph.given(*ONLY_IN_MEMORY), **log.given(*ONLY_IN_MEMORY)}
        opt.check_applicable("--engine memory", f"--engine {engine}", **of_memory)
        if out is None or format not in (None, "parquet"):
            raise InputError(f"--engine {engine} writes Parquet: give --out FOLDER, without --format.")
        if not Path(source).exists() and source in datasets.names():
            raise InputError(f"--engine {engine} takes Parquet files, not names of datasets; got {source}.")
        interactions = _holds_interactions(source, interactions, graph, log)
        rule, rule_settings = _create_table_rule(donors, max_donors, graph)
        settings["engine"], suffix = engine, "parquet"
        title, is_undirected = f"{source}, {engine}", not (graph.directed or interactions)
        names: Any = ("user", "item", "rating") if interactions else ("source", "target", "weight")
        columns = {name: getattr(log if interactions else graph, name) for name in names}
        kind = {"directed": graph.directed, "interactions": interactions, "columns": columns}
        kind["allow_isolated"] = graph.allow_isolated
        place = scratch or resolve(out).parent
        start: Callable[[], Any] = partial(engines.DuckDB, memory, scratch=place)
        if engine == "spark":
            opt.check_applicable("--engine duckdb", "--engine spark, whose cluster sets it", memory=memory)
            start = partial(engines.Spark, master, place)
        work = _on_engine(source, kind, EdgeTableCopying(rule, keep, symmetrise), seed, start)
    if not is_undirected:
        opt.check_applicable("undirected graphs", title, symmetrise=given_rule)
    origin = files.describe_run(source, **rule_settings, **settings)
    numbers, n_workers = range(first, first + n), workers or 1
    if out is None:
        with work as (draw, save):
            stream = sample_stream(lambda position: draw(numbers[position]), n, n_workers)
            summaries = [save(drawn, None) for drawn in show_progress(stream, n, "sampling")]
    else:
        inputs: dict[str, Any] = {"features": graph.features, "labels": graph.labels}
        inputs |= {} if files.is_dataset(source) else {"path": source}
        given = {**asdict(graph), **asdict(log), "interactions": interactions, "spreadsheet": spreadsheet}
        paths = {name: path for name, path in inputs.items() if path is not None}
        digest = digest_files(paths, {name: given[name] for name in given.keys() - inputs.keys()})
        folder = _SampleFolder(out, {**origin, "format": suffix, "input": digest}, overwrite, paths.values())
        with work as (draw, save):
            folder.write(numbers, draw, save, n_workers)
        summaries = [folder.rows[number] for number in numbers]
    if json_:
        print_json({**origin, "first": first, "n": n, "samples": summaries})
        return
    effect = EFFECTS.get(symmetrise, "directed samples")
    rule = f"symmetrise {symmetrise} ({effect}), " if is_undirected else ""
    print_note(f"{title}, donor rule {origin['donors']}, {rule}seed {seed}")
    print_table(list(summaries[0]), [row.values() for row in summaries])
    print_written(out, "samples", option="--out FOLDER")


@contextmanager
def _in_memory(
    data: Graph | Interactions, model: NodeCopying[Any], seed: int, spreadsheet: bool
) -> Iterator[tuple[Draw, Save]]:
    """Fit a model; yield functions that draw a sample, and write and describe it."""
    write: Any = write_interactions if isinstance(data, Interactions) else write_graph
    with show_status("fitting the donor rule"):
        model.fit(data)
    root = seed_sequence(seed)

    def save(sample: Any, path: Path | None) -> dict[str, Any]:
        if path is not None:
            write(sample, path, spreadsheet=spreadsheet)
        if isinstance(data, Interactions):
            n_shared = sample.binary().matrix.multiply(data.binary().matrix).nnz
            return {"interactions": sample.n_interactions, "overlap": n_shared / max(1, data.n_interactions)}
        return {"edges": sample.n_edges, "overlap": edge_overlap(sample, data)}

    yield lambda number: model.draw(child(root, number)), save


@contextmanager
def _on_engine(
    source: str, kind: dict[str, Any], model: Any, seed: int, start: Callable[[], Any]
) -> Iterator[tuple[Draw, Save]]:
    """Do the same on an engine, which draws a sample while it is written."""
    from nodecopy.edge_tables.engines import count_rows

    with start() as database:
        model.fit(source, engine=database, **kind)
        if not model.n_nodes_:
            raise InputError(f"{source} must hold at least one edge; it holds none.")

        def save(number: int, path: Path) -> dict[str, Any]:
            model.write(path, rng=seed, sample=number)
            return {"edges": count_rows(database.scan(path), database)}

        yield int, save


class _SampleFolder:
    """A folder of whole samples, and a manifest of their run and of those that are finished."""

    def __init__(
        self, path: Path, origin: dict[str, Any], overwrite: bool, inputs: Collection[PathLike]
    ) -> None:
        self.path, self.origin = path, json.loads(json.dumps(origin))
        self.rows: dict[int, dict[str, Any]] = {}
        self.earlier: set[str] = set()  # files of another run, or not finished
        if overwrite or not (path / ORIGIN).exists():
            folder = check_folder(path, manifest=ORIGIN, overwrite=overwrite, inputs=inputs)
            self.earlier = {*list_tree(folder)} - {ORIGIN}
            return
        with reading_file(path / ORIGIN) as file:
            stored = json.loads(file.read_bytes())
            rows = {int(number): dict(row) for number, row in stored["samples"].items()}
            self.rows = {number: row for number, row in rows.items() if (path / row["file"]).exists()}
            self.earlier = {name for name in stored["files"] if (path / name).exists()}
        for name in sorted({*self.origin, *stored} - {"n", "samples", "files"}):
            if stored.get(name) != self.origin.get(name):
                got = f"{name} was {show(stored.get(name))} there and is {show(self.origin.get(name))} now"
                way_out = "Write to another folder, or give --overwrite to replace it."
                raise InputError(
                    f"{path} must hold samples of the same run, to be continued; {got}. {way_out}"
                )

    def write(self, numbers: range, draw: Draw, save: Save, workers: int) -> None:
        """Write the missing samples; a stop keeps the finished ones, a kill those of more than 1 s ago."""
        missing = [number for number in numbers if number not in self.rows] if self.rows else numbers
        names = [Path(self.rows[number]["file"]).stem for number in sorted(self.rows)[:1]]
        self.n_digits = len(names[0].removeprefix("sample-") if names else str(numbers[-1]))
        n = len(missing) if self.rows else numbers.stop - numbers.start  # len fails from 2**63 on
        stream = sample_stream(lambda position: draw(missing[position]), n, workers)
        end, n_next, planned, since = 1, 1, missing[:1], time.monotonic()
        self.path.mkdir(parents=True, exist_ok=True)
        self._describe(planned)
        try:
            for position, sample in enumerate(show_progress(stream, n, "sampling"), 1):
                number = missing[position - 1]
                path = self.path / self._name(number)
                remove_path(path)  # which a killed run may have left
                self.rows[number] = {"file": path.name} | save(sample, path)
                self._remove_earlier()
                if position == end:
                    n_next = 1 if time.monotonic() - since > 1 else 2 * n_next
                    planned, end, since = missing[end : end + n_next], end + n_next, time.monotonic()
                    self._describe(planned)
        finally:
            self._describe([number for number in planned if (self.path / self._name(number)).exists()])
            if not self.rows and not self.earlier:
                remove_path(self.path / ORIGIN)
                self.path.rmdir()

    def _remove_earlier(self) -> None:
        """Remove other samples after the first one is finished."""
        kept = {row["file"] for row in self.rows.values()}
        for name in {name.partition("/")[0] for name in self.earlier} - kept:
            remove_path(self.path / name)
        self.earlier = set()

    def _name(self, number: int) -> str:
        return f"sample-{number:0{self.n_digits}d}.{self.origin['format']}"

    def _describe(self, planned: Iterable[int]) -> None:
        """Write the manifest, which names planned files too, so that a kill leaves no others."""
        folder, rows = self.path, self.rows
        names = {*map(self._name, planned), *(row["file"] for row in rows.values()), *self.earlier}
        parts = {name: list_tree(folder / name) for name in names if (folder / name).is_dir()}
        listed = [*(names - parts.keys()), *(f"{name}/{part}" for name in parts for part in parts[name])]
        about = {"n": len(rows), "samples": {number: rows[number] for number in sorted(rows)}}
        with atomic_write(folder / ORIGIN) as file:
            content = json.dumps(self.origin | about | {"files": sorted(listed)}, indent=2)
            file.write_text(content + "\n", encoding="utf-8")


def load_data(
    source: str, interactions: bool | None, graph: opt.GraphOptions, log: opt.InteractionOptions
) -> Graph | Interactions:
    """Load a graph or interactions, by the header unless the options say which."""
    if _holds_interactions(source, interactions, graph, log):
        return files.load_interactions(source, log)
    return files.load_graph(source, graph)


def _holds_interactions(
    source: str, interactions: bool | None, graph: opt.GraphOptions, log: opt.InteractionOptions
) -> bool:
    shared = ("header", "decimal")
    of_graph, of_log = (
        {name: True for name in group.given() if name not in shared} for group in (graph, log)
    )
    if files.is_dataset(source):
        interactions = interactions or datasets.describe(source).kind == "interactions"
    elif interactions is None and not of_graph:
        interactions = bool(of_log) or _is_interaction_table(str(list_parts(source)[0]))
    if interactions:
        opt.check_applicable("graphs", "interactions", **of_graph)
    else:
        opt.check_applicable("--interactions", "a graph", **of_log)
    return bool(interactions)


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
    """Return the name of a rule on the command line."""
    names: dict[Any, type] = RULES
    return next(name for name, kind in names.items() if isinstance(donors, kind))


def _choose_donors(
    donors: RuleName, data: Graph | Interactions, of_rules: dict[str, Any]
) -> tuple[DonorRule, dict[str, Any]]:
    chosen = None
    if donors == "auto":
        chosen, reason = choose_donors(data)
        donors = name_rule(chosen)
        values = {name: getattr(chosen, name, None) for name in (*SETTINGS.get(donors, ()), "embeddings")}
        details = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
        log_decision(f"donor rule {donors}{f' ({details})' * bool(details)}, since {reason}.", "donors")
    rules_of = {name: [rule] for rule, defaults in SETTINGS.items() for name in defaults}
    opt.select_given("donors", donors, rules_of, of_rules)
    donor_rule, settings = create_rule(donors, data, chosen=chosen, **of_rules)
    return donor_rule, {"donors": donors, **settings}


def create_rule(
    donors: RuleName, data: Graph | Interactions, *, chosen: Any = None, **of_rules: Any
) -> tuple[DonorRule, dict[str, Any]]:
    """Return a donor rule, perhaps ``chosen`` with other settings, and its settings; others are ignored."""
    if donors == "nearest-neighbours" and getattr(data, "features", None) is None:
        raise InputError("--donors nearest-neighbours needs features; got none. Give --features FILE.")
    settings = {name: getattr(chosen, name, default) for name, default in SETTINGS.get(donors, {}).items()}
    settings |= {name: of_rules[name] for name in settings if of_rules.get(name) is not None}
    return (chosen.set_params(**settings) if chosen is not None else RULES[donors](**settings)), settings


def _create_table_rule(
    donors: RuleName, max_donors: int | None, graph: opt.GraphOptions
) -> tuple[Any, dict[str, Any]]:
    from nodecopy import edge_tables

    if donors == "auto":
        donors = "jaccard" if graph.labels is None else "same-label"
    columns = {"id": graph.id, "label": graph.label}
    rules_of = {"max_donors": ("jaccard",)} | dict.fromkeys(("labels", *columns), ("same-label",))
    opt.select_given(
        "donors", donors, rules_of, {"labels": graph.labels, "max_donors": max_donors, **columns}
    )
    if donors == "jaccard":
        return edge_tables.JaccardTable(max_donors=max_donors), {"donors": donors, "max_donors": max_donors}
    if donors == "nearest-neighbours" or graph.labels is None:
        raise InputError("--donors must be jaccard with an engine, or same-label with --labels FILE.")
    return edge_tables.SameLabelTable(graph.labels, **columns), {"donors": donors}

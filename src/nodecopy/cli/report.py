"""``nodecopy report``: an HTML page about a graph, interactions or results tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from numpy.random import SeedSequence

from nodecopy._core.arrays import Ints
from nodecopy._core.messages import escape_controls
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import console, print_json, print_note, show_status, show_training
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.report import page as pages
from nodecopy.report.page import Section
from nodecopy.report.writing import MAX_BOOTSTRAP_EDGES, N_SAMPLES, PARTS, graph_sections, recommendations

Part = StrEnum("Part", list(PARTS))  # type: ignore[misc]  # parts of the page that take time


def report(
    source: opt.TrainingSource | None = None,
    interactions: str | None = opt.reads(
        "A dataset or a table of user, item[, rating, time], for recommendations.", metavar="SOURCE"
    ),
    results: Path | None = opt.reads("Folder of tables that nodecopy reproduce wrote.", metavar="FOLDER"),
    samples: opt.Count | None = opt.common(
        f"Number of samples behind the statistics. (default: {N_SAMPLES[0]}; {N_SAMPLES[1]} for more than "
        f"{MAX_BOOTSTRAP_EDGES:,} edges)"
    ),
    without: list[Part] | None = opt.common("Leave out links, classification or attack. May be repeated."),
    colours: str = opt.common("Colours of the first classes, such as #d08770,#5e81ac.", ""),
    seed: opt.Seed = 0,
    out: Path = opt.writes("File for the page: .html.", Path("report.html")),
    json_: opt.AsJson = False,
    tables: opt.TrainingGraphOptions = opt.TrainingGraphOptions(),
    log: opt.InteractionOptions = opt.InteractionOptions(),
) -> None:
    """Write an HTML page with a graph, its samples and what can be learnt from them.

    With labels and features, the page has predictions with their uncertainty and, if the graph is undirected
    and unweighted, one attacked node and its correction. One label in five is held out to evaluate the
    predictions; few labels are cross-validated. The page is one file that loads nothing from the network.

    Examples:
        nodecopy report karate --out karate.html
        nodecopy report edges.csv --labels labels.csv --features features.csv
        nodecopy report --interactions ratings.csv --out readers.html
    """
    opt.check_outputs([source, tables.labels, tables.features, interactions], out=(out, (".html",)))
    features, style = tables.features, pages.colour_style(colours.split(",") if colours else [])
    if source is None and features is None and interactions is None and results is None:
        raise InputError("there is nothing to report; give a graph, --interactions or --results.")
    read = None if interactions is None else files.load_interactions(interactions, log)
    extra = [] if results is None else [results_section(results)]  # before anything is trained
    page: list[Section] = []
    if source is not None or features is not None:
        graph = files.load_training_graph(source, tables)
        scalings = (tables.scale_features, tables.scale_weights)
        page += graph_sections(
            graph,
            seed,
            split=_split(graph, source or str(features), seed),
            n_samples=samples,
            without=without or (),
            scalings=scalings,
            show=lambda what: show_training(what) if what.startswith("training") else show_status(what),
        )
    if read is not None:
        with show_status("fitting CopyEASE"):
            page.append(recommendations(read, seed))
    given = (source or features, interactions, results)
    names = [Path(name).name for name in given if name is not None]
    page += extra
    origin = f"{', '.join(names)}; seed {seed}"
    pages.write_page(out, f"Node copying: {names[0]}", page, origin=origin, style=style)
    if json_:
        contents = [{key: part.get(key) for key in ("title", "headline")} for part in page]
        print_json(files.describe_run(names[0], seed=seed, page=str(out), sections=contents))
    else:
        for section in page:
            if section.get("headline"):
                text = escape_controls(f"{section['title']}: {section['headline']}")
                console.print(text, markup=False, soft_wrap=True)
    print_note(f"page written to {out}: open it in a browser")


def _split(graph: Graph, source: str, seed: int) -> tuple[Split[Ints], SeedSequence] | None:
    """Return the split of a dataset as in the experiments; ``None`` for other graphs."""
    if graph.label_codes is None:
        return None
    split, root = files.split_for_attack(graph, source, seed)
    return (split, root) if len(split.validation) else None


def results_section(folder: Path) -> Section:
    """Return the section of the results tables of a folder."""
    from nodecopy.experiments import config as toml

    titles = {}
    for name in toml.names():
        experiment = toml.load(name)
        named: tuple[Any, ...] = (*experiment.methods, *getattr(experiment.task, "attacks", ()))
        titles[name] = {"": experiment.title} | {method.name: method.title for method in named}
    text = (
        "Below each result are the published one and the verdict at two standard errors. The best result is "
        "bold. The Markdown files beside the CSV files explain differences."
    )
    return pages.result_tables_section(folder, titles=titles, text=text)

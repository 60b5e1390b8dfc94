"""``nodecopy reproduce``: run an experiment of the paper and set its numbers beside the published ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import typer
from rich.progress import MofNCompleteColumn
from rich.text import Text

from nodecopy._core.files import atomic_write, check_writable, resolve
from nodecopy._core.messages import join_lines
from nodecopy.cli import options as opt
from nodecopy.cli.output import console, create_bar, print_json, print_note, print_table
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering, runner
from nodecopy.experiments.rendering import Results, summarise
from nodecopy.experiments.runner import JobResult
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Store
from nodecopy.report.plots import IntervalQuality, StatisticSamples, draw_coverage, draw_sample_statistics


def reproduce(
    experiment: str = typer.Argument(
        help="An experiment, such as table2, or the path of a .toml file.\n\nExperiments: "
        f"{', '.join(toml.names())}.",
        metavar="EXPERIMENT",
    ),
    trust: bool = opt.more("Run code outside nodecopy that a .toml file names.", False),
    dataset: str | None = opt.reads("Some of its datasets, separated by commas.", metavar="NAMES"),
    labels: str | None = opt.reads("Some of its numbers of labels per class, such as 5,10."),
    visible_validation: str | None = opt.more("Some of its numbers of visible validation nodes."),
    attacks: str | None = opt.more("Some of its attacks, such as dice-50,nettack.", metavar="NAMES"),
    methods: str | None = opt.common("Some of its methods, such as gcn,bgcn-copy.", metavar="NAMES"),
    trials: opt.Count | None = opt.common("Number of trials; by default that of the experiment."),
    seed: opt.Seed = 0,
    device: opt.Device = "cpu",
    batch_size: opt.Count | None = opt.engine("Trials computed together. (default: all on a GPU)"),
    workers: opt.Count = opt.engine("Number of processes.", 1),
    backend: Literal["local", "dask"] = opt.engine("Compute trials here or on a Dask cluster.", "local"),
    scheduler: str | None = opt.engine("dask: address of the scheduler, such as tcp://host:8786."),
    store: Path = opt.engine("Folder for finished trials.", Path("results/store")),
    resume: bool = opt.engine("Compute missing trials only, or all again.", True, "--resume/--fresh"),
    stored: bool = opt.engine("Compute nothing; print the table of stored trials.", False),
    out_folder: Path | None = opt.writes(
        "Folder for the table as .md, .csv and .tex, and for its picture.", None, "--out", metavar="FOLDER"
    ),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
) -> None:
    """Reproduce a table of the paper, or the part of it that the options choose.

    A cell of the table is one method on one dataset under one condition, such as 5 labels per class. It is
    the mean over trials, which differ in their random splits and seeds. Finished trials are written to the
    store at once. If a run is stopped, the same command continues it; on a CPU at most half a minute or one
    trial is lost.

    Examples:
        nodecopy reproduce table2 --dataset cora --labels 5 --methods gcn --trials 2 --out tables
        nodecopy reproduce table2 --dataset cora --labels 5 --methods gcn --trials 2 --stored
    """
    given = {"datasets": dataset, "labels": labels, "visible_validation": visible_validation}
    given |= {"attacks": attacks, "methods": methods}
    filters = {
        name: [part.strip() for part in text.split(",") if part.strip()]
        for name, text in given.items()
        if text is not None
    }
    chosen = toml.load(experiment, trust=trust).narrow(trials=trials, **filters)
    if (backend == "dask") != (scheduler is not None):
        raise InputError("--backend dask and --scheduler ADDRESS go together; one of them is missing.")
    if stored and not resume:
        raise InputError("--stored and --fresh exclude each other: one computes nothing, the other all.")
    if out_folder:
        for suffix in (".md", ".csv", ".tex", ".png"):
            check_writable(out_folder / f"{chosen.name}{suffix}")
    absolute = resolve(store)  # a loop of links is an error
    trials_store = Store(absolute if scheduler else store)
    if not stored:
        run_options = {"device": device, "batch_size": batch_size, "workers": workers, "scheduler": scheduler}
        _run(chosen, trials_store, seed=seed, fresh=not resume, **run_options)
    results = summarise(chosen, trials_store, seed=seed)
    if stored and not any(cell.n for cell in results.cells.values()):
        needed = f"finished trials of {chosen.name}"
        raise InputError(f"--store must hold {needed} with --stored; {store} holds none.")
    written = [] if out_folder is None else _write(results, out_folder, spreadsheet)
    if json_:
        print_json(results.to_dict())
    else:
        _show(results)
    for path in written:
        print_note(f"written to {path}")


def _run(experiment: Experiment, store: Store, *, seed: int, fresh: bool, **run_options: Any) -> None:
    trials = range(experiment.task.trials)
    cells = experiment.cells(seed)
    n_missing = sum(len(trials if fresh else store.find_missing(cell, trials)) for cell in cells)
    with create_bar(MofNCompleteColumn()) as bar:
        progress = bar.add_task("trials", total=n_missing)
        skipped: set[str] = set()
        totals: dict[tuple[str, ...], list[float]] = {}

        def report_batch(result: JobResult) -> None:
            cell = result.job.cell
            if result.skip_reason and cell.method not in skipped:
                skipped.add(cell.method)
                print_note(f"{cell.method} is skipped: {result.skip_reason}")
            n_done = len(result.job.trials) - len(result.locked_elsewhere)
            bar.update(progress, advance=n_done, description=str(cell))
            total = totals.setdefault(cell.folders, [0, 0.0])
            total[0] += result.n_computed
            total[1] += result.seconds
            if result.rest is None and total[0]:
                print_note(f"{cell}: {total[0]} trials in {total[1]:.1f} s")
                del totals[cell.folders]

        try:
            runner.run(experiment, store, seed=seed, fresh=fresh, on_batch=report_batch, **run_options)
        except (KeyboardInterrupt, SystemExit):
            bar.stop()
            n_kept = sum(len(store.read_finished(cell, trials)) for cell in cells)
            again = "The same command without --fresh" if fresh else "The same command"
            print_note(
                f"stopped: {n_kept} of {len(cells) * len(trials)} trials are finished and kept in "
                f"{store.folder}. {again} computes the others."
            )
            raise


def _write(results: Results, folder: Path, spreadsheet: bool) -> list[Path]:
    texts = {
        ".md": rendering.render_markdown(results),
        ".csv": rendering.render_csv(results, spreadsheet=spreadsheet),
        ".tex": rendering.render_latex(results),
    }
    paths = [folder / f"{results.experiment.name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    draw = {"samples": _draw_samples, "coverage": _draw_intervals}.get(results.experiment.task.picture)
    if draw and (figure := draw(results)):
        paths.append(folder / f"{results.experiment.name}.png")
        with atomic_write(paths[-1]) as temporary:
            figure.savefig(temporary, format="png", dpi=110)
    return paths


def _draw_intervals(results: Results) -> Any:
    titles = {method.name: method.title for method in results.experiment.methods}
    rows: dict[str, Any] = {}
    for (dataset, column, method), cell in results.cells.items():
        name, _, kind = column.score.partition(" ")
        other = replace(column, score=f"{name} covered")
        covered = results.cells.get((dataset, other, method))
        if kind == "ratio" and method != results.experiment.task.reference and covered and cell.mean:
            place = ", ".join(f"{condition} {value}" for condition, value in column.conditions)
            panel = rows.setdefault(place, {}).setdefault(dataset, {}).setdefault(titles[method], {})
            panel[column.heading.rpartition(": ")[2]] = IntervalQuality(covered.mean or 0.0, cell.mean / 100)
    return draw_coverage(rows) if rows else None


def _draw_samples(results: Results) -> Any:
    task, methods = results.experiment.task, results.experiment.methods
    graphs: dict[str, dict[str, StatisticSamples]] = {}
    for dataset, column in product(task.datasets, task.columns):
        cells = {method.title: results.cells.get((dataset, column, method.name)) for method in methods}
        samples = {title: cell.samples for title, cell in cells.items() if cell and cell.samples}
        observed = results.cells.get((dataset, column, task.reference))
        if observed is not None and observed.mean is not None:
            graphs.setdefault(dataset, {})[column.heading] = StatisticSamples(observed.mean, samples)
    if not graphs:
        return None
    copying = [method.title for method in methods if method.path == "nodecopy.NodeCopying"]
    return draw_sample_statistics(graphs, highlight=copying)


def _show(results: Results) -> None:
    for dataset, tables in rendering.iterate_tables(results, rendering.TERMINAL):
        console.print(Text(f"\n{join_lines(dataset)}" if dataset else "", "bold"))
        for number, grid in enumerate(tables):
            if number:
                console.print()
            print_table(*grid)
    console.print()
    for line in rendering.build_footer(results):
        print_note(line)

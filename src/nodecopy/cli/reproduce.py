"""``nodecopy reproduce``: run an experiment of the paper and set its numbers beside the published ones."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from nodecopy._core.atomic_files import atomic_write, check_writable
from nodecopy.cli import options
from nodecopy.cli.terminal import console, error_console, print_json, print_note, print_table
from nodecopy.errors import InputError
from nodecopy.experiments import rendering, runner, toml
from nodecopy.experiments.runner import Finished
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import Results, summarise
from nodecopy.report.statistic_plots import StatisticSamples, draw_sample_statistics


class Backend(StrEnum):
    """Where trials are computed."""

    LOCAL = "local"
    DASK = "dask"


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(help=f"{', '.join(toml.names())}, or a .toml file like theirs."),
    ],
    dataset: Annotated[
        str | None, typer.Option(help="Some of its datasets, with commas between; all by default.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Some of its numbers of labels per class, such as 5,10.")
    ] = None,
    attacks: Annotated[str | None, typer.Option(help="Some of its attacks, such as dice-50,nettack.")] = None,
    methods: Annotated[str | None, typer.Option(help="Some of its methods, such as gcn,bgcn-copy.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Number of trials; by default as many as the paper's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Trial t depends on seed, dataset, labels and t alone.")] = 0,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    batch: Annotated[
        int | None,
        typer.Option(help="Trials trained together; by default all of a cell, of recommenders one."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    backend: Annotated[
        Backend, typer.Option(help="Where trials are computed: here, or on a Dask cluster.")
    ] = Backend.LOCAL,
    scheduler: Annotated[
        str | None, typer.Option(help="dask: address of the scheduler, such as tcp://host:8786.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder that keeps every finished trial.")] = Path(
        "results/store"
    ),
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--fresh",
            help="Compute only what the store lacks, or all that is asked for anew.",
        ),
    ] = True,
    stored: Annotated[
        bool, typer.Option("--stored", help="Compute nothing: the table of what the store holds.")
    ] = False,
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the table as .md, .csv and .tex; of graph models also a .png."
        ),
    ] = None,
    json_: options.AsJson = False,
) -> None:
    """Reproduce a table of the paper, or the part of it that the options choose.

    Every finished trial is kept in the store at once, so a run that was stopped, however it was stopped,
    goes on where it was; results of other settings, seeds or splits are never mixed in.
    """
    chosen = toml.load(experiment).narrowed(
        datasets=_parts(dataset),
        labels=_numbers(labels),
        attacks=_parts(attacks),
        methods=_parts(methods),
        trials=trials,
    )
    if (backend is Backend.DASK) != (scheduler is not None):
        raise InputError("--backend dask and --scheduler ADDRESS go together; one of them is missing.")
    kept = Store(store.resolve() if scheduler else store)
    if stored and not resume:
        raise InputError("--stored and --fresh exclude each other: one computes nothing, the other all.")
    if out_folder:
        for suffix in (".md", ".csv", ".tex", ".png"):
            check_writable(out_folder / f"{chosen.name}{suffix}")
    if not stored:
        _run(chosen, kept, seed, device, batch, jobs, scheduler, fresh=not resume)
    results = summarise(chosen, kept, seed=seed)
    written = [*_write(results, out_folder), *_draw(results, out_folder)] if out_folder else []
    if json_:
        print_json(results.to_dict())
    else:
        _show(results)
    for path in written:
        print_note(f"written to {path}")


def _run(
    chosen: Experiment,
    store: Store,
    seed: int,
    device: str,
    batch: int | None,
    jobs: int,
    scheduler: str | None,
    *,
    fresh: bool,
) -> None:
    """Run what is missing under a progress bar that only a person sees."""
    trials = range(chosen.protocol.trials)
    todo = (trials if fresh else store.missing(cell, trials) for cell in chosen.cells(seed))
    total = sum(map(len, todo))
    with Progress(console=error_console, transient=True, disable=not error_console.is_terminal) as bar:
        task = bar.add_task("trials", total=total)
        skipped: set[str] = set()

        def tell(finished: Finished) -> None:
            if finished.skipped and finished.batch.cell.method not in skipped:
                skipped.add(finished.batch.cell.method)
                print_note(f"{finished.batch.cell.method} is skipped: {finished.skipped}")
            bar.advance(task, len(finished.batch.trials) - len(finished.elsewhere))
            if finished.n_computed:
                print_note(f"{finished.batch.cell}: {finished.n_computed} trials in {finished.seconds:.1f} s")

        runner.run(
            chosen,
            store,
            seed=seed,
            device=device,
            batch=batch,
            jobs=jobs,
            scheduler=scheduler,
            fresh=fresh,
            report=tell,
        )


def _write(results: Results, folder: Path) -> list[Path]:
    """Write the three forms; all are made before the first is written."""
    texts = {
        ".md": rendering.markdown(results),
        ".csv": rendering.comma_separated(results),
        ".tex": rendering.latex(results),
    }
    paths = [folder / f"{results.experiment.name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return paths


def _draw(results: Results, folder: Path) -> list[Path]:
    """Draw the spread of every statistic of sampled graphs; nothing for other experiments."""
    protocol, methods = results.experiment.protocol, results.experiment.methods
    graphs: dict[str, dict[str, StatisticSamples]] = {}
    for dataset, column in product(protocol.datasets, protocol.columns):
        found = {one.title: results.cells.get((dataset, column, one.name)) for one in methods}
        samples = {title: cell.samples for title, cell in found.items() if cell and cell.samples}
        observed = results.cells.get((dataset, column, protocol.reference))
        if observed is not None and observed.mean is not None:
            graphs.setdefault(dataset, {})[protocol.heading(column)] = StatisticSamples(
                observed.mean, samples
            )
    if not graphs:
        return []
    copying = [one.title for one in methods if one.path == "nodecopy.NodeCopying"]
    figure = draw_sample_statistics(graphs, highlight=copying)
    path = folder / f"{results.experiment.name}.png"
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return [path]


def _show(results: Results) -> None:
    for dataset in results.experiment.protocol.datasets:
        console.print(f"\n[bold]{dataset}[/]")
        for number, (heads, rows) in enumerate(rendering.grids(results, dataset, rendering.TERMINAL)):
            if number:
                console.print()
            print_table(heads, rows)
    heads, rows = rendering.rank_grid(results, rendering.TERMINAL)
    if rows:
        console.print()
        print_table(heads, rows)
    console.print()
    for line in rendering.footer(results):
        print_note(line)


def _parts(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str | None) -> list[int] | None:
    parts = _parts(text)
    if parts is not None and not all(part.isdecimal() for part in parts):
        raise InputError(f"--labels must be whole numbers with commas between, such as 5,10; got {text!r}.")
    return None if parts is None else [int(part) for part in parts]
